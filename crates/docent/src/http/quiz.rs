//! Quiz questions about a page or a part of the book, also as flashcards for Anki: `GET /api/v1/quiz`.
//!
//! Invariant: every answer is quoted from the book, and a model is asked about a question at most once. The HTML of
//! questions, answers and quotes is sanitized.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use docent_core::agent::{AskError, EXTRACTIVE};
use docent_core::cache::Cache;
use docent_core::generate::Meter;
use docent_core::index::Filter;
use docent_core::quiz::{self, MOST_PHRASED, MOST_QUESTIONS, QuizKind, QuizQuestion};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::access::Lookup;
use super::error::{ApiError, Code, ErrorBody};
use super::{Server, html};

/// Number of questions about a part of the book, unless the request says otherwise.
const QUESTIONS: usize = 20;

/// Query parameters of a quiz.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Wanted {
    /// `document_id` of a page; without it, the questions are about the whole book.
    page: Option<String>,
    /// Only pages of this book, if the index contains several.
    book: Option<String>,
    /// Only pages of this module.
    module: Option<String>,
    /// Version of the book, or `all`; if not set, the default version. See `versions` of `GET /api/v1/modules`.
    version: Option<String>,
    /// Locale of the book, or `all`; if not set, the default locale. See `locales` of `GET /api/v1/modules`.
    locale: Option<String>,
    /// Maximum number of questions; by default all about a page, or 20 about the book.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `json`, or `anki` for a file of flashcards.
    format: Option<QuizFormat>,
}

/// Format of a quiz.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuizFormat {
    /// Questions as JSON.
    #[default]
    Json,
    /// Tab-separated text that Anki imports.
    Anki,
}

/// Quiz questions.
#[derive(Debug, Serialize, ToSchema)]
pub struct Quiz {
    /// The questions: those about a page in reading order; those about the book with the first one of each page first.
    questions: Vec<QuizCard>,
    /// Version of the index.
    index_version: String,
}

/// A quiz question with its HTML.
#[derive(Debug, Serialize, ToSchema)]
pub struct QuizCard {
    /// The question.
    #[serde(flatten)]
    question: QuizQuestion,
    /// The question as HTML.
    question_html: String,
    /// The answer as HTML.
    answer_html: String,
    /// The quote as HTML.
    quote_html: String,
}

/// Quiz questions
///
/// Made from definitions, lists, steps, tables, commands and reasons of the book. Each has two hints and the words of the
/// book that answer it. If a model is configured, it phrases the questions, and `phrased_by` names it. Pages that are not in
/// English have no questions.
#[utoipa::path(get, path = "/api/v1/quiz", tag = "book", params(Wanted),
    responses(
        (status = 200, description = "The questions; none if the page has nothing to ask about", content(
            (Quiz = "application/json"),
            (String = "text/plain")
        )),
        (status = 400, body = ErrorBody, description = "Invalid parameter"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 404, body = ErrorBody, description = "There is no such page"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 503, body = ErrorBody, description = "The index is unavailable, or the server is overloaded")
    ))]
pub async fn quiz(
    State(server): State<Arc<Server>>,
    _: Lookup,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(Wanted { page, book, module, version, locale, limit, format }) = wanted?;
    if let Some(limit) = limit.filter(|limit| !(1..=MOST_QUESTIONS).contains(limit)) {
        let message = format!("limit must be between 1 and {MOST_QUESTIONS}, got {limit}");
        return Err(ApiError::new(Code::Validation, message));
    }
    let filter = Filter::requested(book, module, version, locale);
    let snapshot = server.book().await?;
    let retriever = &snapshot.retriever;
    retriever.check(&filter).await?.map_err(AskError::from)?;
    let mut questions = match &page {
        Some(page) => quiz::of_page(retriever, page, &filter, limit.unwrap_or(MOST_QUESTIONS))
            .await?
            .ok_or_else(|| ApiError::new(Code::NotFound, format!("There is no page {page} in the book")))?,
        None => quiz::of_book(retriever, &filter, limit.unwrap_or(QUESTIONS)).await?,
    };
    server.phrase(&mut questions).await;
    if let Some(QuizFormat::Anki) = format {
        let file = [
            (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
            (header::CONTENT_DISPOSITION, "attachment; filename=\"flashcards.txt\""),
        ];
        return Ok((file, quiz::anki(&questions, &server.title.now().await)).into_response());
    }
    let index_version = retriever.version().await?;
    Ok(Json(Quiz { questions: questions.into_iter().map(card).collect(), index_version }).into_response())
}

/// Wordings of the model by the id of their question; none for a question that keeps its own.
pub struct Phrased(Cache<Uuid, Option<(String, String)>>);

/// Number of questions whose wordings are kept.
const PHRASED_KEPT: usize = 20_000;

impl Default for Phrased {
    fn default() -> Self {
        Self(Cache::new(PHRASED_KEPT))
    }
}

impl Server {
    /// Lets the model phrase the questions, if there is one and it has time: those that it has phrased before, and up to
    /// [`MOST_PHRASED`] more.
    async fn phrase(&self, questions: &mut [QuizQuestion]) {
        if self.agent().model() == EXTRACTIVE {
            return;
        }
        let mut new: Vec<QuizQuestion> = Vec::new();
        for question in questions.iter_mut() {
            match self.phrased.0.get(&question.id) {
                Some(Some((wording, model))) => {
                    question.rephrase(&wording, &model);
                }
                Some(None) => {}
                None if new.len() < MOST_PHRASED => new.push(question.clone()),
                None => {}
            }
        }
        if new.is_empty() {
            return;
        }
        let Some(_permit) = self.access.spare_turn_permit() else { return };
        let spending = Spending { server: self, meter: Meter::default() };
        if let Err(error) = self.agent().phrase(&mut new, &spending.meter).await {
            metrics::counter!("docent_model_failures_total").increment(1);
            tracing::warn!(%error, "the model did not phrase the quiz questions");
            return;
        }
        for phrased in new {
            let wording = phrased.phrased_by.clone().map(|model| (phrased.question.clone(), model));
            if let Some(question) = questions.iter_mut().find(|question| question.id == phrased.id) {
                *question = phrased;
                self.phrased.0.put(question.id, wording);
            }
        }
    }
}

/// Counts the tokens of a call, also if the client disconnects.
struct Spending<'a> {
    server: &'a Server,
    meter: Meter,
}

impl Drop for Spending<'_> {
    fn drop(&mut self) {
        self.server.access.tokens().spend(self.meter.usage().total());
    }
}

fn card(question: QuizQuestion) -> QuizCard {
    let is_command = question.kind == QuizKind::Command && !question.answer.contains('`');
    let answer = if is_command { format!("`{}`", question.answer) } else { question.answer.clone() };
    QuizCard {
        question_html: html::document(&question.question),
        answer_html: html::document(&answer),
        quote_html: html::document(&question.readable_quote()),
        question,
    }
}
