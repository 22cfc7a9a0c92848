//! For whoever runs the server: is it alive, can it answer, how is it doing.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::Server;
use super::error::{ApiError, ErrorBody};
use super::guard::Admin;

/// Whether the server can answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct Readiness {
    /// Whether all that is needed is there.
    ready: bool,
    /// The book.
    index: &'static str,
    /// The conversations.
    sessions: &'static str,
    /// The model's circuit; answers are extractive while it is open.
    model: &'static str,
}

/// Is it alive?
#[utoipa::path(get, path = "/healthz", tag = "operation",
    responses((status = 200, body = String, content_type = "text/plain", description = "Yes")))]
pub async fn healthz() -> &'static str {
    "ok"
}

/// Can it answer?
#[utoipa::path(get, path = "/readyz", tag = "operation",
    responses(
        (status = 200, body = Readiness, description = "Yes"),
        (status = 503, body = Readiness, description = "Not now")
    ))]
pub async fn readyz(State(server): State<Arc<Server>>) -> Response {
    let index = server.retriever.describe().await.is_ok();
    let sessions = server.sessions.list(1, 0).await.is_ok();
    let word = |well: bool| if well { "ok" } else { "unavailable" };
    let readiness = Readiness {
        ready: index && sessions,
        index: word(index),
        sessions: word(sessions),
        model: server.agent.circuit().unwrap_or("none"),
    };
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness)).into_response()
}

/// Figures for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "operation",
    responses(
        (status = 200, body = String, content_type = "text/plain", description = "In Prometheus' text format"),
        (status = 401, body = ErrorBody, description = "No admin rights")
    ))]
pub async fn metrics(State(server): State<Arc<Server>>, _: Admin) -> Result<Response, ApiError> {
    let (waiting, answering) = server.guard.load(server.settings.concurrent_turns);
    metrics::gauge!("docent_queue").set(waiting as f64);
    metrics::gauge!("docent_turns_running").set(answering as f64);
    for state in ["closed", "open", "half_open"] {
        let is = server.agent.circuit() == Some(state);
        metrics::gauge!("docent_breaker_state", "service" => "model", "state" => state)
            .set(f64::from(u8::from(is)));
    }
    let kind = (header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    Ok(([kind], server.prometheus.render()).into_response())
}
