//! What the book holds, questions to begin with, and what readers think of answers.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use docent_core::index::{Filter, Modules, PageOutline};
use docent_core::log::{Feedback, Rating};
use docent_core::query::Question;
use docent_core::retrieve::Confidence;
use docent_core::session::SessionError;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::Server;
use super::error::{ApiError, Code, ErrorBody};
use super::guard::{Reader, Visitor};

/// The longest comment.
const LONGEST_COMMENT: usize = 2000;

/// What a reader thinks of an answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FeedbackRequest {
    /// The answer.
    turn_id: Uuid,
    /// Thumb up or down.
    rating: Rating,
    /// Why.
    #[schema(max_length = 2000)]
    comment: Option<String>,
}

/// Rate an answer
#[utoipa::path(post, path = "/api/v1/feedback", tag = "answers", request_body = FeedbackRequest,
    responses(
        (status = 204, description = "Thank you"),
        (status = 400, body = ErrorBody, description = "Not valid feedback"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 404, body = ErrorBody, description = "No such answer"),
        (status = 413, body = ErrorBody, description = "Too long"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 500, body = ErrorBody, description = "Our fault")
    ))]
pub async fn feedback(
    State(server): State<Arc<Server>>,
    _: Reader,
    body: Result<Json<FeedbackRequest>, JsonRejection>,
) -> Result<StatusCode, ApiError> {
    let Json(request) = body?;
    let comment =
        request.comment.map(|comment| comment.trim().to_owned()).filter(|comment| !comment.is_empty());
    if comment.as_ref().is_some_and(|comment| comment.chars().count() > LONGEST_COMMENT) {
        let message = format!("A comment has at most {LONGEST_COMMENT} characters");
        return Err(ApiError::new(Code::Validation, message));
    }
    let feedback = Feedback { rating: request.rating, comment };
    match server.ledger.rate(request.turn_id, &feedback).await {
        Err(SessionError::NotFound(id)) => {
            Err(ApiError::new(Code::NotFound, format!("There is no answer {id}")))
        }
        rated => Ok(rated.map(|()| StatusCode::NO_CONTENT)?),
    }
}

/// The parts of the book.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModuleList {
    modules: Vec<ModuleEntry>,
}

/// A part of the book.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModuleEntry {
    /// The book it is of, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    book: Option<String>,
    /// As a filter names it.
    name: String,
    /// As people call it.
    label: String,
    /// Pages in it.
    pages: usize,
    /// Passages in it.
    chunks: usize,
}

/// List modules
#[utoipa::path(get, path = "/api/v1/modules", tag = "book",
    responses(
        (status = 200, body = ModuleList, description = "In the order of their names, book by book where there are several"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 503, body = ErrorBody, description = "The book cannot be read")
    ))]
pub async fn modules(State(server): State<Arc<Server>>, _: Visitor) -> Result<Json<ModuleList>, ApiError> {
    let described = server.retriever.describe().await?;
    let entries = |book: Option<String>, modules: Modules| {
        modules.into_iter().map(move |(name, module)| ModuleEntry {
            book: book.clone(),
            label: module.label.unwrap_or_else(|| name.clone()),
            name,
            pages: module.pages,
            chunks: module.chunks,
        })
    };
    let modules = if described.books.is_empty() {
        entries(None, described.modules).collect()
    } else {
        described.books.into_iter().flat_map(|(book, modules)| entries(Some(book), modules)).collect()
    };
    Ok(Json(ModuleList { modules }))
}

/// The server and its book.
#[derive(Debug, Serialize, ToSchema)]
pub struct Status {
    /// What the book is called.
    title: String,
    /// Whether it is the sample book.
    is_sample: bool,
    /// How many pages.
    pages: usize,
    /// How many passages.
    chunks: usize,
    /// The generation of the book.
    index_version: String,
    /// When it was published.
    created_at: String,
    /// Who writes answers.
    model: String,
    /// Whether calls of the model get through.
    circuit: Option<&'static str>,
    /// Whether today's tokens for the model are not used up.
    model_available: bool,
    /// Of the program.
    version: &'static str,
}

/// Show the status
#[utoipa::path(get, path = "/api/v1/status", tag = "book",
    responses(
        (status = 200, body = Status, description = "The server and its book"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 503, body = ErrorBody, description = "The book cannot be read")
    ))]
pub async fn status(State(server): State<Arc<Server>>, _: Visitor) -> Result<Json<Status>, ApiError> {
    let book = server.retriever.describe().await?;
    Ok(Json(Status {
        title: server.title.clone(),
        is_sample: server.is_sample,
        pages: book.pages,
        chunks: book.chunks,
        index_version: book.version,
        created_at: book.created_at,
        model: server.agent.model().to_owned(),
        circuit: server.agent.circuit(),
        model_available: server.guard.tokens().is_left(),
        version: env!("CARGO_PKG_VERSION"),
    }))
}

/// Questions to begin with.
#[derive(Debug, Serialize, ToSchema)]
pub struct Suggestions {
    questions: Vec<String>,
}

/// How many suggestions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Suggesting {
    /// How many.
    #[param(minimum = 1, maximum = 20, default = 4)]
    limit: Option<usize>,
}

/// Suggest questions
///
/// Drawn from the book's own headings; each is one the book covers.
#[utoipa::path(get, path = "/api/v1/suggestions", tag = "book", params(Suggesting),
    responses(
        (status = 200, body = Suggestions, description = "Questions the book answers"),
        (status = 400, body = ErrorBody, description = "Not a valid number"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 503, body = ErrorBody, description = "The book cannot be read")
    ))]
pub async fn suggestions(
    State(server): State<Arc<Server>>,
    _: Visitor,
    suggesting: Result<Query<Suggesting>, QueryRejection>,
) -> Result<Json<Suggestions>, ApiError> {
    let limit = suggesting?.0.limit.unwrap_or(4);
    if !(1..=20).contains(&limit) {
        return Err(ApiError::new(Code::Validation, format!("limit must be between 1 and 20, got {limit}")));
    }
    let outline = server.retriever.outline().await?;
    let mut questions = Vec::new();
    for candidate in candidates(&outline).into_iter().take(limit * 4) {
        if questions.len() == limit {
            break;
        }
        let Ok(question) = Question::new(&candidate, 1, 0.0, Filter::default()) else { continue };
        if server.retriever.search(&question).await?.confidence == Confidence::High {
            questions.push(candidate);
        }
    }
    Ok(Json(Suggestions { questions }))
}

/// Questions made of headings: those that are questions already, then one for each page,
/// spread over the modules.
fn candidates(outline: &[PageOutline]) -> Vec<String> {
    let headings =
        outline.iter().flat_map(|page| &page.sections).filter_map(|section| section.heading.as_ref());
    let asked = headings.filter(|heading| heading.ends_with('?') && heading.chars().count() <= 80).cloned();
    let mut questions: Vec<String> = asked.take(2).collect();
    let mut modules: Vec<(&str, Vec<&PageOutline>)> = Vec::new();
    for page in outline {
        match modules.iter_mut().find(|(name, _)| *name == page.module_name) {
            Some((_, pages)) => pages.push(page),
            None => modules.push((&page.module_name, vec![page])),
        }
    }
    let deepest = modules.iter().map(|(_, pages)| pages.len()).max().unwrap_or(0);
    for place in 0..deepest {
        for (_, pages) in &modules {
            if let Some(question) = pages.get(place).and_then(|page| about(&page.title))
                && !questions.contains(&question)
            {
                questions.push(question);
            }
        }
    }
    questions
}

/// A question about a page; none for titles that name no subject.
fn about(title: &str) -> Option<String> {
    let title = title.trim().trim_end_matches(['.', ':', '!']);
    let words: Vec<&str> = title.split_whitespace().collect();
    let first = words.first()?.to_lowercase();
    let no_subject = ["introduction", "overview", "index", "preface", "summary", "contents", "glossary"];
    match title {
        _ if title.ends_with('?') => Some(title.to_owned()),
        _ if no_subject.contains(&first.as_str()) || words.len() > 8 => None,
        _ if first.ends_with("ing") && words.len() > 1 && !title.ends_with('s') => {
            Some(format!("How does {} work?", lowered(title)))
        }
        _ if ["how", "why", "what", "when", "where"].contains(&first.as_str()) => Some(format!("{title}?")),
        _ if first.ends_with('s') && words.len() == 1 => Some(format!("What are {}?", lowered(title))),
        _ => Some(format!("What does the book say about {title}?")),
    }
}

/// Lower case at the start, unless it is a name or an abbreviation.
fn lowered(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_becomes_a_question() {
        for (title, question) in [
            ("Nodes", Some("What are nodes?")),
            ("Installing ROS 2", Some("How does installing ROS 2 work?")),
            ("Why simulate?", Some("Why simulate?")),
            ("How to walk", Some("How to walk?")),
            ("Isaac Sim", Some("What does the book say about Isaac Sim?")),
            ("Introduction", None),
        ] {
            assert_eq!(about(title).as_deref(), question);
        }
    }
}
