//! `POST /api/v1/search`: finds the passages for a query.
//!
//! Invariant: a search uses no language model and is not recorded as a turn.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use docent_core::agent::AskError;
use docent_core::index::Filter;
use docent_core::query::{DEFAULT_HITS, InvalidQuestion, Question};
use docent_core::search_response::SearchResponse;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Server;
use super::access::Lookup;
use super::error::{ApiError, ErrorBody};

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
    let filter = Filter { book: request.book, module: request.module };
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
