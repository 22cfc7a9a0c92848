//! Why a page or a `robots.txt` could not be fetched.
//!
//! Invariant: an error contains no text of the response.

use std::time::Duration;

use thiserror::Error;

use crate::resilience::Transient;

/// Why a page could not be fetched, sorted by what the caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// `robots.txt` disallows it.
    #[error("forbidden by robots.txt")]
    Robots,
    /// The address is in a private network, and that is not allowed.
    #[error("it leads to a private address")]
    Private,
    /// Only http and https are supported, without a user name or password.
    #[error("not an http or https address")]
    Scheme,
    /// The page does not exist.
    #[error("not found ({0})")]
    Missing(u16),
    /// The server rejected the request.
    #[error("refused by the server ({0})")]
    Refused(u16),
    /// It redirects to another site.
    #[error("redirects to another site")]
    Elsewhere,
    /// There are too many redirects, or they form a loop.
    #[error("too many redirects")]
    Redirects,
    /// It exceeds the size limit.
    #[error("too large")]
    TooLarge,
    /// It is an image, a program, a video …
    #[error("not text ({0})")]
    NotText(String),
    /// Try again later.
    #[error("{what}")]
    Trouble {
        /// The reason.
        what: String,
        /// The time from `Retry-After`.
        wait: Option<Duration>,
    },
}

impl FetchError {
    pub(super) fn trouble(what: impl Into<String>) -> Self {
        Self::Trouble { what: what.into(), wait: None }
    }
}

impl Transient for FetchError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Trouble { .. })
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Trouble { wait, .. } => *wait,
            _ => None,
        }
    }

    fn open_circuit() -> Self {
        Self::trouble("circuit breaker open after repeated failures")
    }

    fn timed_out() -> Self {
        Self::trouble("the request timed out")
    }
}
