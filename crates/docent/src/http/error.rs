//! What goes wrong, as every client sees it.
//!
//! Invariant: one shape, one list of codes; never an internal message or a secret.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use docent_core::agent::AskError;
use docent_core::retrieve::RetrieveError;
use docent_core::session::SessionError;
use serde::Serialize;
use utoipa::ToSchema;

use super::request_id;

/// The kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    Validation,
    Unauthorized,
    NotFound,
    MethodNotAllowed,
    TooLarge,
    RateLimited,
    Internal,
    RetrievalUnavailable,
    Overloaded,
}

/// An error a client gets.
#[derive(Debug, Clone)]
pub struct ApiError {
    code: Code,
    message: String,
    detail: Option<String>,
    retry_after: Option<u64>,
}

/// The body of every error.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ErrorBody {
    /// What kind of trouble.
    #[schema(example = "validation_error")]
    pub error: &'static str,
    /// In words for the reader.
    #[schema(example = "Query cannot be empty")]
    pub message: String,
    /// What may help.
    pub detail: Option<String>,
    /// The status again, for clients that only keep the body.
    #[schema(example = 400)]
    pub status_code: u16,
    /// Names the request in the log.
    pub request_id: String,
}

impl Code {
    fn parts(self) -> (&'static str, StatusCode) {
        match self {
            Self::Validation => ("validation_error", StatusCode::BAD_REQUEST),
            Self::Unauthorized => ("unauthorized", StatusCode::UNAUTHORIZED),
            Self::NotFound => ("not_found", StatusCode::NOT_FOUND),
            Self::MethodNotAllowed => ("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED),
            Self::TooLarge => ("payload_too_large", StatusCode::PAYLOAD_TOO_LARGE),
            Self::RateLimited => ("rate_limited", StatusCode::TOO_MANY_REQUESTS),
            Self::Internal => ("internal_error", StatusCode::INTERNAL_SERVER_ERROR),
            Self::RetrievalUnavailable => ("retrieval_unavailable", StatusCode::SERVICE_UNAVAILABLE),
            Self::Overloaded => ("overloaded", StatusCode::SERVICE_UNAVAILABLE),
        }
    }
}

impl ApiError {
    /// An error with a message for the reader.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None, retry_after: None }
    }

    /// With what may help.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// With the seconds after which it may work.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds.max(1));
        self
    }

    /// Something broke; the log says what.
    pub fn internal(what: &str, error: &dyn std::fmt::Display) -> Self {
        tracing::error!(request_id = %request_id(), "{what}: {error}");
        Self::new(Code::Internal, "Something went wrong on our side")
    }

    /// The body, for a stream that is already under way.
    pub fn body(&self) -> ErrorBody {
        let (error, status) = self.code.parts();
        ErrorBody {
            error,
            message: self.message.clone(),
            detail: self.detail.clone(),
            status_code: status.as_u16(),
            request_id: request_id(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.code.parts().1, Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Code::Unauthorized {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<AskError> for ApiError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Invalid(error) => Self::new(Code::Validation, error.to_string()),
            AskError::NoSuchPart(_) => Self::new(Code::Validation, error.to_string())
                .detail("GET /api/v1/modules lists those there are"),
            AskError::Retrieve(error) => error.into(),
            AskError::Session(error) => error.into(),
            other => Self::internal("ask", &other),
        }
    }
}

impl From<RetrieveError> for ApiError {
    fn from(error: RetrieveError) -> Self {
        tracing::error!(request_id = %request_id(), "retrieval: {error}");
        Self::new(Code::RetrievalUnavailable, error.told())
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::NotFound(id) => Self::new(Code::NotFound, format!("There is no session {id}")),
            other => Self::internal("sessions", &other),
        }
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            return Self::new(Code::TooLarge, "The request is too long");
        }
        Self::new(Code::Validation, "The request body is not what this route takes")
            .detail(rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(Code::Validation, "The query parameters are not what this route takes")
            .detail(rejection.body_text())
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        Self::new(Code::Validation, "The address is not what this route takes").detail(rejection.body_text())
    }
}
