//! Why a call failed, sorted by what can be done about it.
//!
//! Servers repeat keys and questions in their error messages, and HTTP errors contain URLs. So nothing is
//! quoted: messages are made of the status, of error codes known here, and of names of settings.
//!
//! Invariant: a failure never contains text sent by a server.

use std::fmt;
use std::time::Duration;

use docent_core::embed::EmbedError;
use docent_core::rerank::RerankError;
use serde_json::Value;

use super::Contact;
use crate::resilience::Transient;

/// A failed call.
#[derive(Debug, PartialEq)]
pub(crate) struct Failure {
    message: String,
    transient: bool,
    busy: bool,
    retry_after: Option<Duration>,
}

impl Failure {
    /// The same call may succeed later.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self { message: message.into(), transient: true, busy: false, retry_after: None }
    }

    /// The call will not succeed until the configuration is fixed.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { transient: false, ..Self::unavailable(message) }
    }

    /// The response does not follow the protocol.
    pub(crate) fn unreadable() -> Self {
        Self::unavailable("its response was not in the expected format")
    }

    /// Adds the name of the provider to the message.
    pub(super) fn of(self, who: &str) -> Self {
        Self { message: format!("{who}: {}", self.message), ..self }
    }

    pub(super) fn after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }

    /// Sets the delay for a busy provider that did not send `Retry-After`.
    pub(super) fn or_wait(self, when_busy: Option<Duration>) -> Self {
        let retry_after = self.retry_after.or(when_busy.filter(|_| self.busy));
        Self { retry_after, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Failure> for EmbedError {
    fn from(failure: Failure) -> Self {
        if failure.transient { Self::Unavailable(failure.message) } else { Self::Unusable(failure.message) }
    }
}

impl From<Failure> for RerankError {
    fn from(failure: Failure) -> Self {
        if failure.transient { Self::Unavailable(failure.message) } else { Self::Unusable(failure.message) }
    }
}

impl Transient for Failure {
    fn is_transient(&self) -> bool {
        self.transient
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    fn open_circuit() -> Self {
        Self::unavailable("circuit breaker open after repeated failures; retrying shortly")
    }

    fn timed_out() -> Self {
        Self::unavailable("the request timed out")
    }
}

/// The failure for an HTTP error status.
pub(super) fn of_status(code: u16, body: &[u8], contact: &Contact, model: &str) -> Failure {
    let Contact { section, key_variable, who, .. } = contact;
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let settings = format!("check {section}.model and {section}.base_url");
    match code {
        402 | 429 if is_used_up(&body) => Failure::refused(format!(
            "the account's quota is used up (HTTP {code}); check your plan with the provider"
        )),
        429 => Failure { busy: true, ..Failure::unavailable("rate limit exceeded (HTTP 429)") },
        408 | 409 | 425 | 500.. => Failure::unavailable(format!("the server returned HTTP {code}")),
        401 => Failure::refused(format!("the API key was rejected (HTTP 401); check {key_variable}")),
        402 => Failure::refused("the provider requires payment (HTTP 402)"),
        403 => Failure::refused(format!(
            "the API key has no access to this model (HTTP 403); check {key_variable}"
        )),
        404 if *who == "Ollama" => Failure::refused(format!(
            "the model is not installed (HTTP 404); run `ollama pull {model}`, or {settings}"
        )),
        404 => Failure::refused(format!("model not found at this address (HTTP 404); {settings}")),
        413 => Failure::refused(format!("the batch is too large (HTTP 413); lower {section}.batch_size")),
        300..=399 => Failure::refused(format!(
            "the server redirected the request (HTTP {code}); check {section}.base_url"
        )),
        _ => Failure::refused(format!("the server rejected the request (HTTP {code}); {settings}")),
    }
}

/// Whether the quota is used up, so that a retry is pointless. OpenAI has a code for it, Cohere only a
/// message.
fn is_used_up(body: &Value) -> bool {
    let error = body.get("error").unwrap_or(body);
    let says = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    let codes = [says("code"), says("type")];
    codes.iter().any(|code| matches!(*code, "insufficient_quota" | "billing_hard_limit_reached"))
        || says("message").contains("/ month")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact(who: &'static str) -> Contact {
        Contact {
            who,
            section: "embedder",
            key_variable: "COHERE_API_KEY",
            base: "http://host".to_owned(),
            query: String::new(),
        }
    }

    fn check(code: u16, body: &str) -> Failure {
        of_status(code, body.as_bytes(), &contact("Cohere"), "m")
    }

    #[test]
    fn messages_name_the_setting_to_check() {
        assert!(check(401, "").message.ends_with("check COHERE_API_KEY"));
        assert!(check(404, "<html>").message.contains("embedder.model"));
        assert!(of_status(404, b"", &contact("Ollama"), "m").message.contains("ollama pull m"));
        assert!(check(413, "").message.contains("embedder.batch_size"));
        assert!(check(302, "").message.contains("embedder.base_url"));
    }

    #[test]
    fn only_transient_failures_are_retried() {
        for code in [408, 429, 500, 502, 503, 504] {
            assert!(check(code, "").transient, "{code}");
        }
        for code in [301, 400, 401, 402, 403, 404, 413, 422] {
            assert!(!check(code, "").transient, "{code}");
        }
        let month =
            r#"{"message": "You are using a Trial key, which is limited to 1000 API calls / month."}"#;
        assert!(!check(429, month).transient);
        assert!(!check(429, r#"{"error": {"code": "insufficient_quota"}}"#).transient);
    }

    #[test]
    fn the_delay_for_a_busy_provider_applies_only_without_retry_after() {
        let (short, long) = (Some(Duration::from_secs(1)), Some(Duration::from_secs(30)));
        assert_eq!(check(429, "").or_wait(long).retry_after, long);
        assert_eq!(check(429, "").after(short).or_wait(long).retry_after, short);
        assert_eq!(check(503, "").or_wait(long).retry_after, None);
    }

    #[test]
    fn failures_never_contain_text_from_the_server() {
        for code in 300..600 {
            let body = r#"{"error": {"code": "sk-secret", "message": "sk-secret: question"}, "message": "sk-secret"}"#;
            let message = check(code, body).message;
            assert!(!message.contains("secret") && !message.contains("question"), "{message}");
        }
    }
}
