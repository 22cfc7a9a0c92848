//! The settings of the server.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::out_of_range;
use crate::exit::{Exit, Failure};

/// `[serve]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Serve {
    /// The address to listen on.
    pub listen: String,
    /// Where readers reach the server, for links to pages that are published nowhere else:
    /// `https://docent.example.org`.
    pub public_url: Option<String>,
    /// Names the server is reached by from outside, for MCP: `docs.example.org`.
    pub hosts: Vec<String>,
    /// What the book is called on the page.
    pub title: Option<String>,
    /// Sites whose pages may use the widget: `https://docs.example.org`, or `*` for all.
    pub cors_origins: Vec<String>,
    /// Who may use it; without keys everybody may read, and this machine may administrate.
    pub keys: Vec<Key>,
    /// Questions and searches a minute, for each key or address; 0 is without limit.
    pub requests_per_minute: u32,
    /// Whether a proxy in front names the reader in `X-Forwarded-For`.
    pub trust_proxy: bool,
    /// Answers written at once.
    pub concurrent_turns: usize,
    /// Questions that wait for their turn; more are turned away.
    pub queue: usize,
    /// Seconds a question waits at most.
    pub queue_seconds: f64,
    /// The longest request body, in bytes.
    pub body_limit: usize,
    /// Tokens a day for the model; after that answers are extractive. 0 is without limit.
    pub daily_tokens: u64,
    /// Days turns are kept for the owner's report; 0 keeps none.
    pub retention_days: u32,
    /// How often the book's sources are read again: `30m`, `6h`, `1d`; never without it.
    pub every: Option<String>,
    /// How log lines look.
    pub log_format: LogFormat,
}

/// A key that readers or programs show.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Who has it, for logs and limits.
    pub name: String,
    /// SHA-256 of the key, in hexadecimal; `docent key NAME` makes one.
    pub sha256: String,
    /// What it may do.
    #[serde(default)]
    pub rights: Rights,
}

/// What a key may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// Ask, search, and use conversations whose id is known.
    #[default]
    Read,
    /// Also list conversations and see metrics.
    Admin,
}

/// How log lines look.
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
            requests_per_minute: 120,
            trust_proxy: false,
            concurrent_turns: 64,
            queue: 4,
            queue_seconds: 0.5,
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
        if !(1..=10_000).contains(&self.concurrent_turns) {
            return Err(out_of_range("serve.concurrent_turns", "1 and 10000", self.concurrent_turns));
        }
        if !(0.0..=600.0).contains(&self.queue_seconds) {
            return Err(out_of_range("serve.queue_seconds", "0 and 600", self.queue_seconds));
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
                let message = format!("the key `{}` in serve.keys is no SHA-256 in hexadecimal", key.name);
                return Err(Failure::new(Exit::NotConfigured, message)
                    .hint("`docent key NAME` makes a key and prints what belongs in docent.toml"));
            }
        }
        for origin in &self.cors_origins {
            let is_origin = origin == "*"
                || origin == "null"
                || origin.split_once("://").is_some_and(|(scheme, host)| {
                    matches!(scheme, "http" | "https") && !host.is_empty() && !host.contains('/')
                });
            if !is_origin {
                let message = format!("`{origin}` in serve.cors_origins is not an origin");
                return Err(Failure::new(Exit::NotConfigured, message)
                    .hint("an origin is scheme and host alone: https://docs.example.org"));
            }
        }
        Ok(())
    }
}

/// A time between two events, as people write it: `90s`, `30m`, `6h`, `1d`.
pub fn period(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; write 90s, 30m, 6h or 1d");
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
    fn times_are_a_number_and_a_unit() {
        for (text, seconds) in [("90s", 90), ("30m", 1800), ("6h", 21_600), (" 1 d", 86_400)] {
            assert_eq!(period(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "h", "6", "-1h", "0m", "6 hours", "1.5h", "99999999999999999999d", "6é"] {
            assert!(period(text).unwrap_err().contains("90s, 30m, 6h or 1d"), "{text}");
        }
    }
}
