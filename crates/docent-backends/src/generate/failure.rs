//! Why a call failed, sorted by what can be done about it.
//!
//! Servers repeat keys and questions in their error messages, and HTTP errors contain URLs. So nothing is
//! quoted: messages are made of the status, of error codes known here, and of names of settings.
//!
//! Invariant: an error never contains text sent by a server.

use std::time::Duration;

use docent_core::generate::GenerateError;
use serde_json::Value;

use crate::resilience::Transient;
use crate::resilience::http::{connection_trouble, retry_after};

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: GenerateError,
    /// Whether the model rejects the temperature parameter.
    pub(super) blames_temperature: bool,
    retry_after: Option<Duration>,
}

impl Failure {
    /// A failure before the first event of the answer.
    pub(super) fn before_answer(error: &genai::Error, model: &str) -> Self {
        if let Some(status) = Status::of(error) {
            return status.failure(model);
        }
        use genai::Error::*;
        match error {
            RequiresApiKey { .. } | NoAuthResolver { .. } | NoAuthData { .. } | Resolver { .. } => {
                Self::refused("the API key is missing")
            }
            // These are about the request or the settings; nothing was sent.
            ChatReqHasNoMessages { .. }
            | LastChatMessageIsNotUser { .. }
            | MessageRoleNotSupported { .. }
            | MessageContentTypeNotSupported { .. }
            | AdapterNotSupported { .. }
            | AdapterKindMismatch { .. }
            | ModelMapperFailed { .. }
            | Internal(_) => Self::refused("the provider does not support this request"),
            error => Self::unavailable(reason(error)),
        }
    }

    /// A failure after the first event of the answer.
    pub(super) fn within_answer(error: &genai::Error) -> GenerateError {
        GenerateError::Interrupted(reason(error))
    }

    pub(super) fn unavailable(reason: impl Into<String>) -> Self {
        GenerateError::Unavailable(reason.into()).into()
    }

    fn refused(reason: impl Into<String>) -> Self {
        GenerateError::Refused(reason.into()).into()
    }
}

impl From<GenerateError> for Failure {
    fn from(error: GenerateError) -> Self {
        Self { error, blames_temperature: false, retry_after: None }
    }
}

impl Transient for Failure {
    fn is_transient(&self) -> bool {
        self.error.is_transient()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    fn open_circuit() -> Self {
        Self::unavailable("circuit breaker open after repeated failures; retrying shortly")
    }

    fn timed_out() -> Self {
        Self::unavailable("timed out before the answer began")
    }
}

/// An HTTP error status, or an error sent as an event.
struct Status {
    code: u16,
    retry_after: Option<Duration>,
    body: Value,
}

impl Status {
    fn of(error: &genai::Error) -> Option<Self> {
        match error {
            genai::Error::HttpError { status, body, headers, .. } => {
                let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
                Some(Self {
                    code: status.as_u16(),
                    retry_after: retry_after(header("retry-after-ms"), header("retry-after")),
                    body: serde_json::from_str(body).unwrap_or_default(),
                })
            }
            genai::Error::WebStream { error, .. } => Self::of(error.downcast_ref::<genai::Error>()?),
            genai::Error::ChatResponse { body, .. } => {
                let code =
                    body.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok())?;
                (400..600).contains(&code).then(|| Self { code, retry_after: None, body: body.clone() })
            }
            _ => None,
        }
    }

    fn failure(self, model: &str) -> Failure {
        let code = self.code;
        let mut failure = match (code, self.error_code()) {
            (_, Some("insufficient_quota" | "billing_hard_limit_reached")) => {
                Failure::refused(format!("the account's quota is used up (HTTP {code})"))
            }
            (429, _) => GenerateError::RateLimited { retry_after: self.retry_after }.into(),
            (408 | 409 | 425 | 500.., _) => Failure::unavailable(format!("the server returned HTTP {code}")),
            (_, Some("context_length_exceeded")) => {
                GenerateError::TooLong(format!("`{model}` rejected it (HTTP {code})")).into()
            }
            (_, Some("content_filter" | "content_policy_violation")) => {
                Failure::refused(format!("the provider's content filter blocked it (HTTP {code})"))
            }
            (404, _) | (_, Some("model_not_found")) => Failure::refused(format!(
                "model `{model}` not found at this address (HTTP {code}); check the model name and the base URL"
            )),
            (401, _) => Failure::refused("the API key was rejected (HTTP 401); check the key"),
            (402, _) => Failure::refused("the provider requires payment (HTTP 402)"),
            (403, _) => {
                Failure::refused(format!("the API key has no access to the model `{model}` (HTTP 403)"))
            }
            (300..=399, _) => Failure::refused(format!(
                "the server redirected the request (HTTP {code}); check the base URL"
            )),
            _ => Failure::refused(format!(
                "the server rejected it (HTTP {code}); check the model name and the base URL"
            )),
        };
        failure.retry_after = self.retry_after;
        failure.blames_temperature = code == 400 && self.blames_temperature();
        failure
    }

    /// The server's error code.
    fn error_code(&self) -> Option<&str> {
        let error = self.body.get("error").unwrap_or(&self.body);
        ["code", "type"].iter().find_map(|key| error.get(key)?.as_str())
    }

    fn blames_temperature(&self) -> bool {
        let error = self.body.get("error").unwrap_or(&self.body);
        let says = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
        says("param") == "temperature" || says("message").contains("temperature")
    }
}

fn reason(error: &genai::Error) -> String {
    match error {
        genai::Error::WebStream { error, .. } => match connection_trouble(error.as_ref()) {
            Some(kind) => format!("the connection failed: {kind}"),
            None => "the connection failed".to_owned(),
        },
        genai::Error::ChatResponse { .. } => "the server reported an error".to_owned(),
        _ => "the server sent invalid JSON".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: u16, body: &str) -> String {
        let body = serde_json::from_str(body).unwrap_or_default();
        Status { code, retry_after: None, body }.failure("m").error.to_string()
    }

    #[test]
    fn messages_name_what_to_check() {
        assert!(check(401, "").contains("check the key"));
        assert!(check(404, "<html>").contains("model `m` not found at this address"));
        assert!(
            check(400, r#"{"error": {"code": "context_length_exceeded"}}"#)
                .contains("too long for the model")
        );
        assert!(check(429, r#"{"error": {"type": "insufficient_quota"}}"#).contains("quota is used up"));
        assert_eq!(check(429, ""), "the model is busy");
        assert_eq!(check(503, ""), "the model is unavailable: the server returned HTTP 503");
    }

    #[test]
    fn errors_never_contain_text_from_the_server() {
        for code in 300..600 {
            let body =
                r#"{"error": {"code": "sk-secret", "type": "sk-secret", "message": "sk-secret: question"}}"#;
            let message = check(code, body);
            assert!(!message.contains("secret") && !message.contains("question"), "{message}");
        }
    }
}
