//! `POST /api/v1/search`: finds the passages for a query. `GET /api/v1/suggest`: finds pages and sections while a
//! user is typing.
//!
//! Invariant: neither uses a language model or is recorded as a turn; `suggest` uses no model at all.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use docent_core::agent::AskError;
use docent_core::index::Filter;
use docent_core::query::{DEFAULT_HITS, InvalidQuestion, Question};
use docent_core::search_response::SearchResponse;
use docent_core::typeahead::PageMatch;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Server;
use super::access::{Keystroke, Lookup};
use super::error::{ApiError, Code, ErrorBody};

/// Maximum length of what was typed, in characters.
const LONGEST_TYPED: usize = 200;

/// Maximum and default number of pages.
const MOST_PAGES: usize = 20;
const PAGES: usize = 6;

/// A search request.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// 1 to 8000 characters after trimming.
    #[schema(min_length = 1, max_length = 8000, pattern = r"\S", example = "publish a message")]
    query: String,
    /// Maximum number of passages.
    #[schema(minimum = 1, maximum = 100)]
    top_k: Option<usize>,
    /// Only passages of this book, if the index contains several.
    book: Option<String>,
    /// Only passages of this module.
    module: Option<String>,
    /// Version of the book, or `all`; if not set, the default version. See `versions` of `GET /api/v1/modules`.
    version: Option<String>,
    /// Locale of the book, or `all`; if not set, the default locale. See `locales` of `GET /api/v1/modules`.
    locale: Option<String>,
    /// Only passages with at least this score.
    #[schema(minimum = 0.0, maximum = 1.0)]
    threshold: Option<f64>,
}

/// Find passages
#[utoipa::path(post, path = "/api/v1/search", tag = "answers", request_body = SearchRequest,
    responses(
        (status = 200, body = SearchResponse, description = "The passages, best first"),
        (status = 400, body = ErrorBody, description = "Invalid request"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 413, body = ErrorBody, description = "Payload too large"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 503, body = ErrorBody, description = "Search is unavailable, or the server is overloaded")
    ))]
pub async fn search(
    State(server): State<Arc<Server>>,
    _: Lookup,
    body: Result<Json<SearchRequest>, JsonRejection>,
) -> Result<Json<SearchResponse>, ApiError> {
    let Json(request) = body?;
    let filter = Filter::requested(request.book, request.module, request.version, request.locale);
    let book = server.book().await?;
    book.retriever.check(&filter).await?.map_err(AskError::from)?;
    let top_k = request.top_k.unwrap_or(DEFAULT_HITS);
    // Check before the conversion to f32, which would round a value slightly above 1 to 1.
    let threshold = match request.threshold {
        Some(threshold) if !(0.0..=1.0).contains(&threshold) => {
            return Err(AskError::from(InvalidQuestion::Threshold(threshold.to_string())).into());
        }
        Some(threshold) => threshold as f32,
        None => server.threshold,
    };
    let question = Question::new(&request.query, top_k, threshold, filter).map_err(AskError::from)?;
    let retrieved = book.retriever.search(&question).await?;
    Ok(Json(SearchResponse::new(question.text(), &retrieved)))
}

/// Query parameters of search as you type.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Typed {
    /// What the user has typed so far, at most 200 characters. The last word may be unfinished.
    #[param(max_length = 200, example = "instal")]
    q: String,
    /// Maximum number of pages.
    #[param(minimum = 1, maximum = 20, default = 6)]
    limit: Option<usize>,
    /// Only pages of this book, if the index contains several.
    book: Option<String>,
    /// Only pages of this module.
    module: Option<String>,
    /// Version of the book, or `all`; if not set, the default version. See `versions` of `GET /api/v1/modules`.
    version: Option<String>,
    /// Locale of the book, or `all`; if not set, the default locale. See `locales` of `GET /api/v1/modules`.
    locale: Option<String>,
}

/// The pages and sections for what was typed.
#[derive(Debug, Serialize, ToSchema)]
pub struct Suggested {
    /// What was typed.
    query: String,
    /// The pages, best first.
    pages: Vec<PageMatch>,
    /// Version of the index that was searched.
    index_version: String,
}

/// Search as you type
///
/// Finds pages and sections for words that may be unfinished or misspelled, by keywords only.
#[utoipa::path(get, path = "/api/v1/suggest", tag = "answers", params(Typed),
    responses(
        (status = 200, body = Suggested, description = "The pages, best first; none if nothing matches"),
        (status = 400, body = ErrorBody, description = "Invalid parameter"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 503, body = ErrorBody, description = "The index is unavailable, or the server is overloaded")
    ))]
pub async fn suggest(
    State(server): State<Arc<Server>>,
    _: Keystroke,
    typed: Result<Query<Typed>, QueryRejection>,
) -> Result<Json<Suggested>, ApiError> {
    let Query(Typed { q, limit, book, module, version, locale }) = typed?;
    let limit = limit.unwrap_or(PAGES);
    if !(1..=MOST_PAGES).contains(&limit) {
        let message = format!("limit must be between 1 and {MOST_PAGES}, got {limit}");
        return Err(ApiError::new(Code::Validation, message));
    }
    let length = q.chars().count();
    if length > LONGEST_TYPED {
        let message = format!("q must have at most {LONGEST_TYPED} characters, got {length}");
        return Err(ApiError::new(Code::Validation, message));
    }
    let filter = Filter::requested(book, module, version, locale);
    let snapshot = server.book().await?;
    snapshot.retriever.check(&filter).await?.map_err(AskError::from)?;
    let pages = snapshot.retriever.typeahead(&q, &filter, limit).await?;
    Ok(Json(Suggested { query: q, pages, index_version: snapshot.retriever.version().await? }))
}
