//! One JSON call to a provider's API: where it goes, with which key, how patiently.
//!
//! Embedders and rerankers behind an API are made of this.
//!
//! Invariant: neither the key, nor what was sent, nor what a server answered gets into an
//! error or a log; and a key only goes where the settings send it, so redirects are not followed.

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

/// More than the largest answer asked for; what is longer is a mistake or worse.
const LONGEST_ANSWER: usize = 128 << 20;

/// As much of an error's body as is looked at.
const LONGEST_ERROR: usize = 64 << 10;

/// How patiently a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How often to try, and how long each attempt may take.
    pub policy: Policy,
    /// The longest wait, all attempts together.
    pub together: Option<Duration>,
    /// The wait after a 429 that does not say how long; without it, the policy's.
    pub when_busy: Option<Duration>,
}

impl Patience {
    /// For a reader who waits: a few seconds in all.
    pub fn of_a_reader() -> Self {
        let policy = Policy { attempt_timeout: Duration::from_secs(4), ..Policy::default() };
        Self { policy, together: Some(Duration::from_secs(6)), when_busy: None }
    }

    /// For an ingest: nobody waits, and providers that count by the minute are waited for.
    pub fn of_an_ingest() -> Self {
        let policy = Policy {
            first_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            attempt_timeout: Duration::from_secs(120),
            ..Policy::default()
        };
        Self { policy, together: None, when_busy: Some(Duration::from_secs(31)) }
    }
}

/// Who is called, and where the settings about it are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contact {
    /// What errors call it: `Cohere`.
    pub(crate) who: &'static str,
    /// The section of the settings it is configured in: `embedder`.
    pub(crate) section: &'static str,
    /// Where its key is set.
    pub(crate) key_variable: &'static str,
    /// Where paths begin, without a slash at the end.
    pub(crate) base: String,
    /// What is added to every path: `?api-version=1`.
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
    /// Checks the key; nothing is sent.
    pub(crate) fn new(contact: Contact, key: Option<SecretString>) -> Result<Self, Failure> {
        let key = key.filter(|key| !key.expose_secret().trim().is_empty());
        let sound =
            |key: &SecretString| key.expose_secret().trim().bytes().all(|byte| byte.is_ascii_graphic());
        if key.as_ref().is_some_and(|key| !sound(key)) {
            let message = format!("the API key holds characters no key has; check {}", contact.key_variable);
            return Err(Failure::refused(message).of(contact.who));
        }
        let client = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .user_agent(concat!("docent/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|_| Failure::refused("this system offers no way to make HTTPS calls"))?;
        let breaker = Breaker::new(contact.section);
        Ok(Self { contact, key, client, breaker })
    }

    /// The same, for a provider that takes no calls without a key.
    pub(crate) fn with_key(contact: Contact, key: Option<SecretString>) -> Result<Self, Failure> {
        if key.as_ref().is_none_or(|key| key.expose_secret().trim().is_empty()) {
            let message = format!("there is no API key for it; set {}", contact.key_variable);
            return Err(Failure::refused(message).of(contact.who));
        }
        Self::new(contact, key)
    }

    /// Sends `body` to `path` and reads the answer with `read`, which also judges it. All
    /// that fails is tried again if that can help.
    pub(crate) async fn post<T>(
        &self,
        path: &str,
        model: &str,
        body: &impl Serialize,
        patience: &Patience,
        read: impl Fn(&[u8]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let who = format!("{}, `{model}`", self.contact.who);
        let body = serde_json::to_vec(body)
            .map_err(|_| Failure::refused("the request cannot be written").of(&who))?;
        let deadline = patience.together.map(|together| Instant::now() + together);
        let attempt = async || {
            let answer = self
                .send(path, model, body.clone())
                .await
                .map_err(|failure| failure.or_wait(patience.when_busy))?;
            read(&answer)
        };
        let answered = resilience::call(&patience.policy, &self.breaker, deadline, attempt).await;
        answered.map_err(|failure| failure.of(&who))
    }

    async fn send(&self, path: &str, model: &str, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let Contact { base, query, .. } = &self.contact;
        let mut request = self.client.post(format!("{base}{path}{query}"));
        // The key is taken out of its box for each call, and only then.
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose_secret().trim());
        }
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        let response = request.send().await.map_err(|error| self.trouble(&error))?;
        let status = response.status().as_u16();
        if response.status().is_success() {
            return self.body(response, LONGEST_ANSWER).await;
        }
        let wish = wish(response.headers());
        let body = self.body(response, LONGEST_ERROR).await.unwrap_or_default();
        Err(failure::of_status(status, &body, &self.contact, model).after(wish))
    }

    async fn body(&self, mut response: reqwest::Response, most: usize) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.trouble(&error))? {
            if body.len() + piece.len() > most {
                return Err(Failure::unavailable("its answer is far too long"));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// No answer, or not all of it.
    fn trouble(&self, error: &reqwest::Error) -> Failure {
        let kind = connection_trouble(error).map(|kind| format!(": {kind}")).unwrap_or_default();
        if error.is_connect() {
            let section = self.contact.section;
            let advice = format!("check {section}.base_url and whether the server runs");
            return Failure::unavailable(format!("there is no connection{kind}; {advice}"));
        }
        Failure::unavailable(format!("the connection failed{kind}"))
    }
}

/// How long the server asks to wait.
fn wish(headers: &HeaderMap) -> Option<Duration> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    retry_after(header("retry-after-ms"), header("retry-after"))
}

/// A base URL as paths are joined to it, and its query. `tails` are taken off the end: what
/// people paste from examples, and the paths of other protocols of the same server.
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
    fn a_base_url_may_be_written_in_many_ways() {
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
    fn a_key_is_needed_and_looks_like_one() {
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
        assert_eq!(refused(None), "Cohere: there is no API key for it; set COHERE_API_KEY");
        assert_eq!(refused(Some(" ")), refused(None));
        let odd = refused(Some("secret\u{7}key"));
        assert!(odd.contains("no key has") && !odd.contains("secret"), "{odd}");
    }
}
