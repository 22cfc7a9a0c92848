//! JSON calls to a provider's API: address, key, timeouts and retries.
//!
//! Used by the embedders and rerankers behind an API.
//!
//! Invariant: errors and logs never contain the key, the request or the response. The key is only sent to the
//! configured address, so redirects are not followed.

mod failure;

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::redirect;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use tokio::time::Instant;

use crate::resilience::http::{connection_trouble, retry_after};
use crate::resilience::{self, Breaker, Policy};
pub(crate) use failure::Failure;

/// Maximum size of a response in bytes; larger than any expected one.
const LONGEST_ANSWER: usize = 128 << 20;

/// Maximum number of bytes read from the body of an error.
const LONGEST_ERROR: usize = 64 << 10;

/// Timeouts and retries of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallPolicy {
    /// How often to try, and how long each attempt may take.
    pub policy: Policy,
    /// Maximum time for all attempts together.
    pub together: Option<Duration>,
    /// The delay after a 429 without `Retry-After`; if not set, that of the policy.
    pub when_busy: Option<Duration>,
}

impl CallPolicy {
    /// For a user who is waiting: a few seconds in total.
    pub fn interactive() -> Self {
        let policy = Policy { attempt_timeout: Duration::from_secs(4), ..Policy::default() };
        Self { policy, together: Some(Duration::from_secs(6)), when_busy: None }
    }

    /// For an ingest: no user is waiting, so there is time for rate limits that reset every minute.
    pub fn ingest() -> Self {
        let policy = Policy {
            first_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            attempt_timeout: Duration::from_secs(120),
            ..Policy::default()
        };
        Self { policy, together: None, when_busy: Some(Duration::from_secs(31)) }
    }
}

/// The address of a provider, and its names in error messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contact {
    /// Its name in error messages: `Cohere`.
    pub(crate) who: &'static str,
    /// Its section in the settings: `embedder`.
    pub(crate) section: &'static str,
    /// The environment variable with its key.
    pub(crate) key_variable: &'static str,
    /// The base URL, without a trailing slash.
    pub(crate) base: String,
    /// Query parameters added to every path: `?api-version=1`.
    pub(crate) query: String,
}

/// A provider that can be called.
#[derive(Debug)]
pub(crate) struct Provider {
    contact: Contact,
    key: Option<SecretString>,
    client: reqwest::Client,
    breaker: Breaker,
}

impl Provider {
    /// Validates the key; does not connect.
    pub(crate) fn new(contact: Contact, key: Option<SecretString>) -> Result<Self, Failure> {
        let key = key.filter(|key| !key.expose_secret().trim().is_empty());
        let sound =
            |key: &SecretString| key.expose_secret().trim().bytes().all(|byte| byte.is_ascii_graphic());
        if key.as_ref().is_some_and(|key| !sound(key)) {
            let message = format!("the API key contains invalid characters; check {}", contact.key_variable);
            return Err(Failure::refused(message).of(contact.who));
        }
        let client = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .user_agent(concat!("docent/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|_| Failure::refused("cannot set up the HTTP client"))?;
        let breaker = Breaker::new(contact.section);
        Ok(Self { contact, key, client, breaker })
    }

    /// Like [`Self::new`], for a provider that requires a key.
    pub(crate) fn with_key(contact: Contact, key: Option<SecretString>) -> Result<Self, Failure> {
        if key.as_ref().is_none_or(|key| key.expose_secret().trim().is_empty()) {
            let message = format!("the API key is missing; set {}", contact.key_variable);
            return Err(Failure::refused(message).of(contact.who));
        }
        Self::new(contact, key)
    }

    /// Sends `body` to `path` and parses and validates the response with `read`. Transient failures,
    /// including those of `read`, are retried.
    pub(crate) async fn post<T>(
        &self,
        path: &str,
        model: &str,
        body: &impl Serialize,
        call_policy: &CallPolicy,
        read: impl Fn(&[u8]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let who = format!("{}, `{model}`", self.contact.who);
        let body = serde_json::to_vec(body)
            .map_err(|_| Failure::refused("cannot serialize the request").of(&who))?;
        let deadline = call_policy.together.map(|together| Instant::now() + together);
        let attempt = async || {
            let answer = self
                .send(path, model, body.clone())
                .await
                .map_err(|failure| failure.or_wait(call_policy.when_busy))?;
            read(&answer)
        };
        let answered = resilience::call(&call_policy.policy, &self.breaker, deadline, attempt).await;
        answered.map_err(|failure| failure.of(&who))
    }

    async fn send(&self, path: &str, model: &str, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let Contact { base, query, .. } = &self.contact;
        let mut request = self.client.post(format!("{base}{path}{query}"));
        // The key is exposed only here, for each call.
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose_secret().trim());
        }
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        let response = request.send().await.map_err(|error| self.trouble(&error))?;
        let status = response.status().as_u16();
        if response.status().is_success() {
            return self.body(response, LONGEST_ANSWER).await;
        }
        let retry_after = requested_delay(response.headers());
        let body = self.body(response, LONGEST_ERROR).await.unwrap_or_default();
        Err(failure::of_status(status, &body, &self.contact, model).after(retry_after))
    }

    async fn body(&self, mut response: reqwest::Response, most: usize) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.trouble(&error))? {
            if body.len() + piece.len() > most {
                return Err(Failure::unavailable("its response is too large"));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// The failure for a missing or incomplete response.
    fn trouble(&self, error: &reqwest::Error) -> Failure {
        let kind = connection_trouble(error).map(|kind| format!(": {kind}")).unwrap_or_default();
        if error.is_connect() {
            let section = self.contact.section;
            let advice = format!("check {section}.base_url and whether the server is running");
            return Failure::unavailable(format!("cannot connect{kind}; {advice}"));
        }
        Failure::unavailable(format!("the connection failed{kind}"))
    }
}

/// The delay that the server requests.
fn requested_delay(headers: &HeaderMap) -> Option<Duration> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    retry_after(header("retry-after-ms"), header("retry-after"))
}

/// Normalizes a base URL; also returns its query. `tails` are removed from the end: paths copied from
/// examples, and paths of other protocols of the same server.
pub(crate) fn base_url(url: &str, tails: &[&str]) -> Result<(String, String), Failure> {
    let refused = || Failure::refused("the base URL must look like https://host or http://host:port");
    let (url, query) = match url.trim().split_once('?') {
        Some((url, query)) => (url, format!("?{query}")),
        None => (url.trim(), String::new()),
    };
    let (scheme, mut rest) = url.split_once("://").ok_or_else(refused)?;
    if !matches!(scheme, "http" | "https") || rest.contains([' ', '#']) {
        return Err(refused());
    }
    rest = rest.trim_end_matches('/');
    for tail in tails {
        rest = rest.strip_suffix(tail).unwrap_or(rest);
    }
    if rest.is_empty() || rest.starts_with('/') {
        return Err(refused());
    }
    Ok((format!("{scheme}://{rest}"), query))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_normalized() {
        let base = |url: &str| base_url(url, &["/embeddings", "/v2"]).map(|(base, query)| base + &query).ok();
        assert_eq!(base(" https://host/ ").as_deref(), Some("https://host"));
        assert_eq!(base("http://host:8080/v2").as_deref(), Some("http://host:8080"));
        assert_eq!(base("https://host/v1/embeddings").as_deref(), Some("https://host/v1"));
        assert_eq!(base("https://host/deep?version=1").as_deref(), Some("https://host/deep?version=1"));
        for url in ["localhost:8080", "ftp://host", "http://", "http:///v1", "http://a b"] {
            assert_eq!(base(url), None, "{url}");
        }
    }

    #[test]
    fn missing_and_invalid_keys_are_rejected() {
        let contact = Contact {
            who: "Cohere",
            section: "embedder",
            key_variable: "COHERE_API_KEY",
            base: "http://127.0.0.1:1".to_owned(),
            query: String::new(),
        };
        let refused = |key: Option<&str>| {
            Provider::with_key(contact.clone(), key.map(|key| key.into())).unwrap_err().to_string()
        };
        assert_eq!(refused(None), "Cohere: the API key is missing; set COHERE_API_KEY");
        assert_eq!(refused(Some(" ")), refused(None));
        let odd = refused(Some("secret\u{7}key"));
        assert!(odd.contains("invalid characters") && !odd.contains("secret"), "{odd}");
    }
}
