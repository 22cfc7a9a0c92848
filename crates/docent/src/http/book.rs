//! Modules and status of the book, suggested questions, and feedback on answers.
//!
//! Invariant: nothing here changes the book; feedback only goes to the turn log.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use docent_core::agent::AskError;
use docent_core::edition::Variant;
use docent_core::index::{Filter, Module, Modules};
use docent_core::session::SessionError;
use docent_core::turn_log::{Feedback, Rating};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::Server;
use super::access::{Allowed, Lookup, RateLimited};
use super::error::{ApiError, Code, ErrorBody};

/// Maximum length of a comment, in characters.
const LONGEST_COMMENT: usize = 2000;

/// A user's rating of an answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FeedbackRequest {
    /// The turn whose answer is rated.
    turn_id: Uuid,
    /// Thumbs up or down.
    rating: Rating,
    /// The reason for the rating.
    #[schema(max_length = 2000)]
    comment: Option<String>,
}

/// Rate an answer
#[utoipa::path(post, path = "/api/v1/feedback", tag = "answers", request_body = FeedbackRequest,
    responses(
        (status = 204, description = "Feedback recorded"),
        (status = 400, body = ErrorBody, description = "Invalid feedback"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 404, body = ErrorBody, description = "No such answer"),
        (status = 413, body = ErrorBody, description = "Payload too large"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 500, body = ErrorBody, description = "Internal server error")
    ))]
pub async fn feedback(
    State(server): State<Arc<Server>>,
    _: RateLimited,
    body: Result<Json<FeedbackRequest>, JsonRejection>,
) -> Result<StatusCode, ApiError> {
    let Json(request) = body?;
    let comment =
        request.comment.map(|comment| comment.trim().to_owned()).filter(|comment| !comment.is_empty());
    if comment.as_ref().is_some_and(|comment| comment.chars().count() > LONGEST_COMMENT) {
        let message = format!("A comment may have at most {LONGEST_COMMENT} characters");
        return Err(ApiError::new(Code::Validation, message));
    }
    let feedback = Feedback::new(request.rating, comment);
    match server.log_writer.rate(request.turn_id, &feedback).await {
        Err(SessionError::NotFound(id)) => {
            Err(ApiError::new(Code::NotFound, format!("There is no answer with the turn_id {id}")))
        }
        rated => Ok(rated.map(|()| StatusCode::NO_CONTENT)?),
    }
}

/// The modules of the book.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModuleList {
    modules: Vec<ModuleEntry>,
    /// The versions of the book, the default first; empty if it has none.
    versions: Vec<Variant>,
    /// The locales of the book, the default first; empty if it has only one.
    locales: Vec<Variant>,
}

/// A module of the book.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModuleEntry {
    /// The book it belongs to, if the index contains several.
    #[serde(skip_serializing_if = "Option::is_none")]
    book: Option<String>,
    /// The name to use in filters.
    name: String,
    /// The name to show to users.
    label: String,
    /// Number of pages.
    pages: usize,
    /// Number of passages.
    chunks: usize,
}

/// List modules, versions and locales
#[utoipa::path(get, path = "/api/v1/modules", tag = "book",
    responses(
        (status = 200, body = ModuleList, description = "The modules, sorted by name; grouped by book if there are several"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 503, body = ErrorBody, description = "The index is unavailable")
    ))]
pub async fn modules(State(server): State<Arc<Server>>, _: Allowed) -> Result<Json<ModuleList>, ApiError> {
    let described = server.book().await?.retriever.describe().await?;
    let entries = |book: Option<&String>, modules: &Modules| -> Vec<ModuleEntry> {
        let entry = |(name, module): (&String, &Module)| ModuleEntry {
            book: book.cloned(),
            label: module.label.clone().unwrap_or_else(|| name.clone()),
            name: name.clone(),
            pages: module.pages,
            chunks: module.chunks,
        };
        modules.iter().map(entry).collect()
    };
    let modules = if described.books.is_empty() {
        entries(None, &described.modules)
    } else {
        described.books.iter().flat_map(|(book, modules)| entries(Some(book), modules)).collect()
    };
    let (versions, locales) = (described.versions.clone(), described.locales.clone());
    Ok(Json(ModuleList { modules, versions, locales }))
}

/// The status of the server and its book.
#[derive(Debug, Serialize, ToSchema)]
pub struct Status {
    /// The title of the book.
    title: String,
    /// Whether this is the built-in sample book.
    is_sample: bool,
    /// Number of pages.
    pages: usize,
    /// Number of passages.
    chunks: usize,
    /// The current generation of the index.
    index_version: String,
    /// When this generation was published.
    created_at: String,
    /// The model that writes answers; `extractive` if none is configured.
    model: String,
    /// State of the model's circuit breaker; null without a model.
    circuit: Option<&'static str>,
    /// False once today's token budget is used up.
    model_available: bool,
    /// The version of Docent.
    version: &'static str,
}

/// Show the status
#[utoipa::path(get, path = "/api/v1/status", tag = "book",
    responses(
        (status = 200, body = Status, description = "The status of the server and its book"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 503, body = ErrorBody, description = "The index is unavailable")
    ))]
pub async fn status(State(server): State<Arc<Server>>, _: Allowed) -> Result<Json<Status>, ApiError> {
    let snapshot = server.book().await?;
    let book = snapshot.retriever.describe().await?;
    Ok(Json(Status {
        title: server.title.now().await,
        is_sample: snapshot.is_sample,
        pages: book.pages,
        chunks: book.chunks,
        index_version: book.version.clone(),
        created_at: book.created_at.clone(),
        model: server.agent.model().to_owned(),
        circuit: server.agent.circuit(),
        model_available: server.access.tokens().is_left(),
        version: env!("CARGO_PKG_VERSION"),
    }))
}

/// Suggested questions.
#[derive(Debug, Serialize, ToSchema)]
pub struct Suggestions {
    questions: Vec<String>,
}

/// Query parameters of the suggestions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Suggesting {
    /// Maximum number of questions.
    #[param(minimum = 1, maximum = 20, default = 4)]
    limit: Option<usize>,
    /// Only questions about this book, if the index contains several.
    book: Option<String>,
    /// Only questions about this module.
    module: Option<String>,
    /// Version of the book, or `all`; if not set, the default version. See `versions` of `GET /api/v1/modules`.
    version: Option<String>,
    /// Locale of the book, or `all`; if not set, the default locale. See `locales` of `GET /api/v1/modules`.
    locale: Option<String>,
    /// Only questions that this page answers, at most 4: its `document_id` or its URL. If there is no such page,
    /// questions about the whole book.
    page: Option<String>,
    /// With `page`: a heading of the page. Questions about the sections after it come first, and no question is about
    /// its own section.
    heading: Option<String>,
}

/// Suggest questions
///
/// Made from headings of the book. The book covers every suggested question. With `page`, the questions are about one
/// page: for a user who is on that page, or after an answer from it.
#[utoipa::path(get, path = "/api/v1/suggestions", tag = "book", params(Suggesting),
    responses(
        (status = 200, body = Suggestions, description = "Questions that the book covers"),
        (status = 400, body = ErrorBody, description = "Invalid limit"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 503, body = ErrorBody, description = "The index is unavailable")
    ))]
pub async fn suggestions(
    State(server): State<Arc<Server>>,
    _: Lookup,
    suggesting: Result<Query<Suggesting>, QueryRejection>,
) -> Result<Json<Suggestions>, ApiError> {
    let Suggesting { limit, book, module, version, locale, page, heading } = suggesting?.0;
    let limit = limit.unwrap_or(4);
    if !(1..=20).contains(&limit) {
        return Err(ApiError::new(Code::Validation, format!("limit must be between 1 and 20, got {limit}")));
    }
    let filter = Filter::requested(book, module, version, locale);
    let snapshot = server.book().await?;
    let retriever = &snapshot.retriever;
    retriever.check(&filter).await?.map_err(AskError::from)?;
    let near = match page {
        Some(page) => retriever.suggestions_near(&page, heading.as_deref(), limit).await?,
        None => None,
    };
    let questions = match near {
        Some(questions) => questions,
        None => retriever.suggestions(limit, &filter).await?,
    };
    Ok(Json(Suggestions { questions }))
}
