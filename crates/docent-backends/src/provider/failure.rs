//! What went wrong with a call, sorted by what can be done about it.
//!
//! Servers echo keys and questions in their error messages, and HTTP errors hold URLs, so
//! nothing is quoted: a message is made of the status, of codes known here, and of settings.
//!
//! Invariant: no text that a server sent gets into a failure.

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

    /// Something has to be set right first.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { transient: false, ..Self::unavailable(message) }
    }

    /// The answer is not what the protocol says.
    pub(crate) fn unreadable() -> Self {
        Self::unavailable("its answer was not in the expected format")
    }

    /// Says whose failure it is.
    pub(super) fn of(self, who: &str) -> Self {
        Self { message: format!("{who}: {}", self.message), ..self }
    }

    pub(super) fn after(self, wish: Option<Duration>) -> Self {
        Self { retry_after: wish, ..self }
    }

    /// A busy provider that does not say how long is given this much time.
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
        Self::unavailable("it failed too often; it is left alone for a while")
    }

    fn timed_out() -> Self {
        Self::unavailable("it took too long")
    }
}

/// What a status other than success means.
pub(super) fn of_status(code: u16, body: &[u8], contact: &Contact, model: &str) -> Failure {
    let Contact { section, key_variable, who, .. } = contact;
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let settings = format!("check {section}.model and {section}.base_url");
    match code {
        402 | 429 if is_used_up(&body) => Failure::refused(format!(
            "the account's quota is used up ({code}); see the provider's page about it"
        )),
        429 => Failure { busy: true, ..Failure::unavailable("it takes no more calls for now (429)") },
        408 | 409 | 425 | 500.. => Failure::unavailable(format!("the server answered {code}")),
        401 => Failure::refused(format!("the API key was not accepted (401); check {key_variable}")),
        402 => Failure::refused("the provider wants to be paid first (402)"),
        403 => Failure::refused(format!("the API key may not use this model (403); check {key_variable}")),
        404 if *who == "Ollama" => Failure::refused(format!(
            "it does not have this model (404); run `ollama pull {model}`, or {settings}"
        )),
        404 => Failure::refused(format!("there is no such model at this address (404); {settings}")),
        413 => Failure::refused(format!(
            "so many texts at once are too much for it (413); lower {section}.batch_size"
        )),
        300..=399 => {
            Failure::refused(format!("the server sent the call elsewhere ({code}); check {section}.base_url"))
        }
        _ => Failure::refused(format!("the server did not accept the request ({code}); {settings}")),
    }
}

/// Whether waiting a little will not help. OpenAI has a code for it, Cohere says it in words.
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
    fn statuses_become_advice() {
        assert!(check(401, "").message.ends_with("check COHERE_API_KEY"));
        assert!(check(404, "<html>").message.contains("embedder.model"));
        assert!(of_status(404, b"", &contact("Ollama"), "m").message.contains("ollama pull m"));
        assert!(check(413, "").message.contains("embedder.batch_size"));
        assert!(check(302, "").message.contains("embedder.base_url"));
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
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
    fn a_busy_provider_is_given_time_only_when_it_does_not_say_how_much() {
        let (short, long) = (Some(Duration::from_secs(1)), Some(Duration::from_secs(30)));
        assert_eq!(check(429, "").or_wait(long).retry_after, long);
        assert_eq!(check(429, "").after(short).or_wait(long).retry_after, short);
        assert_eq!(check(503, "").or_wait(long).retry_after, None);
    }

    #[test]
    fn nothing_a_server_says_is_repeated() {
        for code in 300..600 {
            let body = r#"{"error": {"code": "sk-secret", "message": "sk-secret: question"}, "message": "sk-secret"}"#;
            let message = check(code, body).message;
            assert!(!message.contains("secret") && !message.contains("question"), "{message}");
        }
    }
}
