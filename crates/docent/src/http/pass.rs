//! The read-only cookie for the pages under `/read`, because a browser cannot send an API key when it follows
//! a link.
//!
//! The chat page gets the cookie (`read_cookie.rs`) in exchange for its API key.
//!
//! Invariant: only a client with a valid key gets the cookie.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::access::Allowed;
use super::error::{ApiError, ErrorBody};
use super::{Server, read_cookie};

/// Get the read-only cookie
///
/// Exchanges an API key for a cookie that gives a browser access to the pages under `/read`. Citations link
/// to these pages if the book has no base URL. On a server without keys, no cookie is needed and none is set.
#[utoipa::path(post, path = "/api/v1/pass", tag = "book",
    responses(
        (status = 204, description = "The key is valid; the cookie is set if the server has keys"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 403, body = ErrorBody, description = "Origin not allowed")
    ))]
pub async fn give(
    State(server): State<Arc<Server>>,
    _: Allowed,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(key) = server.access.key_shown(&headers)
        && let Ok(cookie) = HeaderValue::from_str(&read_cookie::new(key, &server.settings))
    {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}
