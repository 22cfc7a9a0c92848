//! Health checks and metrics for operators.
//!
//! Invariant: the health checks need no key; the metrics need one with admin rights.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::Server;
use super::access::Admin;
use super::error::{ApiError, ErrorBody};

/// Whether the server is ready to answer questions.
#[derive(Debug, Serialize, ToSchema)]
pub struct Readiness {
    /// Whether the index and the conversation store are available.
    ready: bool,
    /// The index: `ok` or `unavailable`.
    index: &'static str,
    /// The conversation store: `ok` if it is writable, else `unavailable`.
    sessions: &'static str,
    /// State of the model's circuit breaker, or `none`. While it is open, answers are extractive.
    model: &'static str,
}

/// Liveness check
#[utoipa::path(get, path = "/healthz", tag = "operation",
    responses((status = 200, body = String, content_type = "text/plain", description = "Alive")))]
pub async fn healthz() -> &'static str {
    "ok"
}

/// Readiness check
#[utoipa::path(get, path = "/readyz", tag = "operation",
    responses(
        (status = 200, body = Readiness, description = "Ready"),
        (status = 503, body = Readiness, description = "Not ready")
    ))]
pub async fn readyz(State(server): State<Arc<Server>>) -> Response {
    let index = server.library.current().await.is_ok();
    let sessions = server.sessions.check_writable().await;
    if let Err(error) = &sessions {
        tracing::warn!("the conversation store is not writable: {error}");
    }
    let sessions = sessions.is_ok();
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

/// Prometheus metrics
#[utoipa::path(get, path = "/metrics", tag = "operation",
    responses(
        (status = 200, body = String, content_type = "text/plain", description = "Metrics in the Prometheus text format"),
        (status = 401, body = ErrorBody, description = "Missing admin rights")
    ))]
pub async fn metrics(State(server): State<Arc<Server>>, _: Admin) -> Result<Response, ApiError> {
    let (waiting, answering) = server.access.load(server.settings.concurrent_turns);
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
