//! Settings for the server.

use std::time::Duration;

use axum::http::Uri;
use axum::http::uri::Authority;
use serde::{Deserialize, Serialize};

use super::{is_web, out_of_range};
use crate::exit::{Exit, Failure};

/// `[serve]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Serve {
    /// The address to listen on.
    pub listen: String,
    /// The URL at which users reach the server, for links to pages that are not published elsewhere:
    /// `https://docent.example.org`.
    pub public_url: Option<String>,
    /// Host names of the server in addition to that of `public_url`: `docent.example.org`, or `*` for any. Requests
    /// for other names are rejected; IP addresses and `localhost` are always allowed.
    pub hosts: Vec<String>,
    /// The title of the book on the chat page.
    pub title: Option<String>,
    /// Origins whose pages may use the widget: `https://docs.example.org`, or `*` for any.
    pub cors_origins: Vec<String>,
    /// API keys; without any, everyone may ask and nobody has admin rights.
    pub keys: Vec<Key>,
    /// Whether users may ask without a key even though there are keys; admin rights still need one.
    pub public: bool,
    /// Questions, searches and pages per minute for each API key or IP address; 0 for no limit.
    pub requests_per_minute: u32,
    /// Whether a reverse proxy sets the client's address in `X-Forwarded-For`.
    pub trust_proxy: bool,
    /// The number of turns that may run at the same time.
    pub concurrent_turns: usize,
    /// The number of questions that may wait for a permit; more are rejected.
    pub queue: usize,
    /// The maximum waiting time of a question, in seconds.
    pub queue_seconds: f64,
    /// Open connections per IP address; 0 for no limit. Not applied behind a trusted proxy.
    pub connections_per_address: usize,
    /// The time limit for receiving the headers of a request, and again for its body, in seconds.
    pub request_seconds: f64,
    /// The maximum size of a request body, in bytes.
    pub body_limit: usize,
    /// The model's tokens per day; once used up, answers are extractive. 0 for no limit.
    pub daily_tokens: u64,
    /// The number of days to keep the turn log; 0 disables it.
    pub retention_days: u32,
    /// The interval at which the sources are ingested again: `30m`, `6h`, `1d`; never if not set.
    pub every: Option<String>,
    /// The format of log lines.
    pub log_format: LogFormat,
}

/// An API key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Its name, for logs and rate limits.
    pub name: String,
    /// SHA-256 of the key, in hexadecimal; `docent key NAME` prints it.
    pub sha256: String,
    /// What it allows.
    #[serde(default)]
    pub rights: Rights,
}

/// What a key allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// Ask, search, and have conversations.
    #[default]
    Read,
    /// Also list, read and delete all conversations, and read metrics.
    Admin,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

impl Default for Serve {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            public_url: None,
            hosts: Vec::new(),
            title: None,
            cors_origins: Vec::new(),
            keys: Vec::new(),
            public: false,
            requests_per_minute: 120,
            trust_proxy: false,
            concurrent_turns: 64,
            queue: 4,
            queue_seconds: 0.5,
            connections_per_address: 256,
            request_seconds: 15.0,
            body_limit: 64 * 1024,
            daily_tokens: 0,
            retention_days: 90,
            every: None,
            log_format: LogFormat::default(),
        }
    }
}

impl Serve {
    pub(super) fn check(&self) -> Result<(), Failure> {
        if !is_address(&self.listen) {
            let message = format!("serve.listen: invalid address `{}`", self.listen);
            return Err(Failure::new(Exit::NotConfigured, message).hint(ADDRESS_HINT));
        }
        if let Some(url) = self.public_url.as_ref().filter(|url| !url.is_empty() && !is_public_url(url)) {
            let message = format!("serve.public_url: invalid URL `{url}`");
            return Err(Failure::new(Exit::NotConfigured, message)
                .hint("use the URL that users open, such as https://docent.example.org"));
        }
        if !(1..=10_000).contains(&self.concurrent_turns) {
            return Err(out_of_range("serve.concurrent_turns", "1 and 10000", self.concurrent_turns));
        }
        if !(0.0..=600.0).contains(&self.queue_seconds) {
            return Err(out_of_range("serve.queue_seconds", "0 and 600", self.queue_seconds));
        }
        if !(0.1..=3600.0).contains(&self.request_seconds) {
            return Err(out_of_range("serve.request_seconds", "0.1 and 3600", self.request_seconds));
        }
        if !(1024..=100 * 1024 * 1024).contains(&self.body_limit) {
            return Err(out_of_range("serve.body_limit", "1024 and 104857600", self.body_limit));
        }
        if let Some(every) = &self.every {
            period(every)
                .map_err(|what| Failure::new(Exit::NotConfigured, format!("serve.every: {what}")))?;
        }
        for key in &self.keys {
            if key.sha256.len() != 64 || !key.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                let message = format!("serve.keys: `{}`: `sha256` must be 64 hex digits", key.name);
                return Err(Failure::new(Exit::NotConfigured, message)
                    .hint("`docent key NAME` creates a key and prints the lines for docent.toml"));
            }
        }
        for origin in &self.cors_origins {
            let is_origin = origin == "*"
                || origin == "null"
                || origin.split_once("://").is_some_and(|(scheme, host)| {
                    matches!(scheme, "http" | "https") && !host.is_empty() && !host.contains('/')
                });
            if !is_origin {
                let message = format!("serve.cors_origins: invalid origin `{origin}`");
                return Err(Failure::new(Exit::NotConfigured, message)
                    .hint("an origin has a scheme and a host but no path: https://docs.example.org"));
            }
        }
        Ok(())
    }
}

/// How to write an address to listen on.
pub const ADDRESS_HINT: &str =
    "use a host and a port: 127.0.0.1:8080, or 0.0.0.0:8080 for all network interfaces";

/// Whether this is a host and a port. Does not check that the host exists.
fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// Whether links can start with this URL: it has a host, but no user, query or fragment.
fn is_public_url(text: &str) -> bool {
    let Ok(url) = text.parse::<Uri>() else { return false };
    let is_host = |authority: &Authority| {
        let port = authority.as_str().strip_prefix(authority.host());
        !authority.host().is_empty()
            && port.is_some_and(|port| port.is_empty() || authority.port_u16().is_some())
    };
    is_web(text) && url.authority().is_some_and(is_host) && !text.contains(['?', '#'])
}

/// Parses an interval such as `90s`, `30m`, `6h` or `1d`.
pub fn period(text: &str) -> Result<Duration, String> {
    let wrong = || format!("invalid interval `{text}`; use a number and a unit, such as 90s, 30m, 6h or 1d");
    let text = text.trim();
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].trim().parse().map_err(|_| wrong())?;
    match number.checked_mul(seconds) {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for text in ["127.0.0.1:8080", "[::1]:80", "localhost:0"] {
            assert!(is_address(text), "{text}");
        }
        for text in ["8080", "localhost", ":8080", "localhost:http", "127.0.0.1:65536", ""] {
            assert!(!is_address(text), "{text}");
        }
    }

    #[test]
    fn a_public_url_has_a_scheme_and_a_host() {
        let good = [
            "https://docent.example.org",
            "http://10.0.0.1:8080/",
            "https://example.org/book",
            "http://[::1]:80",
        ];
        for text in good {
            assert!(is_public_url(text), "{text}");
        }
        let bad = [
            "docent.example.org",
            "https://",
            "https:///book",
            "ftp://example.org",
            "https://example org",
            "https://user@example.org",
            "https://example.org:http",
            "https://example.org/?a",
            "https://example.org/#a",
        ];
        for text in bad {
            assert!(!is_public_url(text), "{text}");
        }
    }

    #[test]
    fn an_interval_is_a_number_and_a_unit() {
        for (text, seconds) in [("90s", 90), ("30m", 1800), ("6h", 21_600), (" 1 d", 86_400)] {
            assert_eq!(period(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "h", "6", "-1h", "0m", "6 hours", "1.5h", "99999999999999999999d", "6é"] {
            assert!(period(text).unwrap_err().contains("90s, 30m, 6h or 1d"), "{text}");
        }
    }
}
