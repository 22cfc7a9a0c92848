//! `POST /api/v1/search`: the passages for a question.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use docent_core::agent::AskError;
use docent_core::index::Filter;
use docent_core::query::{DEFAULT_HITS, InvalidQuestion, Question};
use docent_core::sources::SearchResponse;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Server;
use super::error::{ApiError, ErrorBody};
use super::guard::Reader;

/// What to look for.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// 1 to 1000 characters after trimming.
    #[schema(min_length = 1, max_length = 1000, pattern = r"\S", example = "publish a message")]
    query: String,
    /// How many passages.
    #[schema(minimum = 1, maximum = 100)]
    top_k: Option<usize>,
    /// Only passages of this book, where there are several.
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
        (status = 400, body = ErrorBody, description = "Not a valid search"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 413, body = ErrorBody, description = "Too long"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 503, body = ErrorBody, description = "The book cannot be searched")
    ))]
pub async fn search(
    State(server): State<Arc<Server>>,
    _: Reader,
    body: Result<Json<SearchRequest>, JsonRejection>,
) -> Result<Json<SearchResponse>, ApiError> {
    let Json(request) = body?;
    let filter = Filter { book: request.book, module: request.module };
    server.retriever.check(&filter).await?.map_err(AskError::from)?;
    let top_k = request.top_k.unwrap_or(DEFAULT_HITS);
    // Checked before it is rounded: a little more than 1 would pass for 1.
    let threshold = match request.threshold {
        Some(threshold) if !(0.0..=1.0).contains(&threshold) => {
            return Err(AskError::from(InvalidQuestion::Threshold(threshold.to_string())).into());
        }
        Some(threshold) => threshold as f32,
        None => server.threshold,
    };
    let question = Question::new(&request.query, top_k, threshold, filter).map_err(AskError::from)?;
    let retrieved = server.retriever.search(&question).await?;
    Ok(Json(SearchResponse::new(question.text(), &retrieved)))
}
