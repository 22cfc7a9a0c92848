//! Errors as clients see them.
//!
//! Invariant: all errors have one shape and one list of codes, and never contain internal messages or
//! secrets.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use docent_core::agent::AskError;
use docent_core::embed::EmbedError;
use docent_core::index::NoSuchPart;
use docent_core::retrieve::RetrieveError;
use docent_core::session::SessionError;
use serde::Serialize;
use utoipa::ToSchema;

use super::request_id::request_id;

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    Validation,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    TooLarge,
    RateLimited,
    Internal,
    RetrievalUnavailable,
    Overloaded,
    TooSlow,
}

/// An error response.
#[derive(Debug, Clone)]
pub struct ApiError {
    code: Code,
    message: String,
    detail: Option<String>,
    retry_after: Option<u64>,
    param: Option<&'static str>,
}

/// The body of every error.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ErrorBody {
    /// The error code.
    #[schema(example = "validation_error")]
    pub error: &'static str,
    /// A message for the user.
    #[schema(example = "Query cannot be empty")]
    pub message: String,
    /// Additional information, such as a hint.
    pub detail: Option<String>,
    /// The HTTP status code, for clients that only see the body.
    #[schema(example = 400)]
    pub status_code: u16,
    /// The request id, as in the server's log.
    pub request_id: String,
    /// The invalid parameter, for OpenAI clients.
    #[serde(skip)]
    param: Option<&'static str>,
}

/// The body of every error under `/v1`, in the format that OpenAI clients expect.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenAiError {
    error: OpenAiErrorDetails,
}

/// An error in OpenAI's format.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenAiErrorDetails {
    /// A message for the user.
    #[schema(example = "Query cannot be empty")]
    message: String,
    /// The type of the error.
    #[serde(rename = "type")]
    #[schema(example = "invalid_request_error")]
    kind: &'static str,
    /// The invalid parameter.
    param: Option<&'static str>,
    /// The error code; mostly the same as `error` elsewhere in the API.
    #[schema(example = "validation_error")]
    code: &'static str,
}

impl From<&ErrorBody> for OpenAiError {
    fn from(body: &ErrorBody) -> Self {
        let message = match &body.detail {
            Some(detail) => format!("{}: {detail}", body.message),
            None => body.message.clone(),
        };
        let (kind, code) = match body.status_code {
            401 => ("invalid_request_error", "invalid_api_key"),
            429 => ("rate_limit_error", "rate_limit_exceeded"),
            500.. => ("server_error", body.error),
            _ => ("invalid_request_error", body.error),
        };
        Self { error: OpenAiErrorDetails { message, kind, param: body.param, code } }
    }
}

/// Converts an error response to OpenAI's format; leaves other responses unchanged.
pub fn in_openai_shape(response: Response) -> Response {
    let Some(body) = response.extensions().get::<ErrorBody>().cloned() else { return response };
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let (_, body) = Json(OpenAiError::from(&body)).into_response().into_parts();
    Response::from_parts(parts, body)
}

impl Code {
    fn parts(self) -> (&'static str, StatusCode) {
        match self {
            Self::Validation => ("validation_error", StatusCode::BAD_REQUEST),
            Self::Unauthorized => ("unauthorized", StatusCode::UNAUTHORIZED),
            Self::Forbidden => ("forbidden", StatusCode::FORBIDDEN),
            Self::NotFound => ("not_found", StatusCode::NOT_FOUND),
            Self::MethodNotAllowed => ("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED),
            Self::TooLarge => ("payload_too_large", StatusCode::PAYLOAD_TOO_LARGE),
            Self::RateLimited => ("rate_limited", StatusCode::TOO_MANY_REQUESTS),
            Self::Internal => ("internal_error", StatusCode::INTERNAL_SERVER_ERROR),
            Self::RetrievalUnavailable => ("retrieval_unavailable", StatusCode::SERVICE_UNAVAILABLE),
            Self::Overloaded => ("overloaded", StatusCode::SERVICE_UNAVAILABLE),
            Self::TooSlow => ("timeout", StatusCode::REQUEST_TIMEOUT),
        }
    }
}

impl ApiError {
    /// An error with a message for the user.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None, retry_after: None, param: None }
    }

    /// Adds a hint or other information.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Names the invalid parameter.
    pub fn param(mut self, param: &'static str) -> Self {
        self.param = Some(param);
        self
    }

    /// Sets how many seconds the client should wait before it retries.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds.max(1));
        self
    }

    /// An internal error. The cause is only logged.
    pub fn internal(what: &str, error: &dyn std::fmt::Display) -> Self {
        tracing::error!("{what}: {error}");
        Self::new(Code::Internal, "Internal server error")
    }

    /// The body of the response; a stream that has already begun sends it as an event.
    pub fn body(&self) -> ErrorBody {
        let (error, status) = self.code.parts();
        ErrorBody {
            error,
            message: self.message.clone(),
            detail: self.detail.clone(),
            status_code: status.as_u16(),
            request_id: request_id(),
            param: self.param,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = self.body();
        let mut response = (self.code.parts().1, Json(&body)).into_response();
        response.extensions_mut().insert(body);
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
            AskError::NoSuchPart(ref part @ (NoSuchPart::Version { .. } | NoSuchPart::Locale { .. })) => {
                let detail = match part.known() {
                    [] => format!("The book has no {}", part.kind()),
                    known => format!("The book has the {} {}", part.kind(), known.join(", ")),
                };
                Self::new(Code::Validation, part.to_string()).detail(detail)
            }
            AskError::NoSuchPart(_) => Self::new(Code::Validation, error.to_string())
                .detail("GET /api/v1/modules lists the available books and modules"),
            AskError::Retrieve(error) => error.into(),
            AskError::Session(error) => error.into(),
            other => Self::internal("ask", &other),
        }
    }
}

impl From<RetrieveError> for ApiError {
    fn from(error: RetrieveError) -> Self {
        if let RetrieveError::Embed(EmbedError::Busy) = error {
            metrics::counter!("docent_overloaded_total").increment(1);
            return Self::new(Code::Overloaded, "Too many questions at once; please try again in a moment")
                .retry_after(1);
        }
        tracing::error!("retrieval: {error}");
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
            return Self::new(Code::TooLarge, "The request body is too large");
        }
        Self::new(Code::Validation, "Invalid request body").detail(rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(Code::Validation, "Invalid query parameters").detail(rejection.body_text())
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        Self::new(Code::Validation, "Invalid path parameter").detail(rejection.body_text())
    }
}
