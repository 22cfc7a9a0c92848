//! Calls to a Qdrant server: retries, timeouts, and errors without secrets.
//!
//! Reads give up quickly, because a user is waiting. Writes are retried for a long time, so that an ingest
//! survives a restart of the server.
//!
//! Invariant: errors never contain the API key or response metadata.

use std::time::Duration;

use docent_core::index::IndexError;
use qdrant_client::{Qdrant, QdrantError};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, sleep};

use crate::resilience::{self, Breaker, Policy, Transient};

/// Default gRPC port.
const GRPC_PORT: u16 = 6334;

/// Default REST port. Addresses often name it; gRPC then uses [`GRPC_PORT`].
const REST_PORT: u16 = 6333;

/// Address, API key and timeouts of a server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its address, with the REST port, the gRPC port or no port.
    pub url: String,
    /// The API key.
    pub api_key: Option<SecretString>,
    /// Timeout of a single call.
    pub timeout: Duration,
    /// How long a write is retried while the server is unavailable.
    pub write_timeout: Duration,
}

impl Server {
    /// A server with the default timeouts.
    pub fn new(url: impl Into<String>, api_key: Option<SecretString>) -> Self {
        Self {
            url: url.into(),
            api_key,
            timeout: Duration::from_secs(5),
            write_timeout: Duration::from_secs(120),
        }
    }
}

/// A client for one server.
pub(super) struct Connection {
    client: Qdrant,
    /// The address, as shown in errors.
    place: String,
    breaker: Breaker,
    reading: Policy,
    write_timeout: Duration,
}

impl Connection {
    /// Validates the address; does not connect.
    pub fn new(server: &Server) -> Result<Self, IndexError> {
        let place = grpc_address(&server.url)?;
        let mut config = Qdrant::from_url(&place).timeout(server.timeout).connect_timeout(server.timeout);
        config.check_compatibility = false;
        config.api_key = server.api_key.as_ref().map(|key| key.expose_secret().trim().to_owned());
        let client =
            config.build().map_err(|_| IndexError::Unusable(format!("invalid Qdrant URL `{place}`")))?;
        Ok(Self {
            client,
            place,
            breaker: Breaker::new("qdrant"),
            reading: Policy {
                attempts: 2,
                first_delay: Duration::from_millis(50),
                attempt_timeout: server.timeout,
                ..Policy::default()
            },
            write_timeout: server.write_timeout,
        })
    }

    /// The server's address.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Runs a query; a transient failure is retried once.
    pub async fn read<'a, T, Work>(&'a self, ask: impl Fn(&'a Qdrant) -> Work) -> Result<T, IndexError>
    where
        Work: Future<Output = Result<T, QdrantError>>,
    {
        let asked = resilience::call(&self.reading, &self.breaker, None, async || {
            ask(&self.client).await.map_err(|error| CallError::of(error, &self.place))
        });
        asked.await.map_err(|failed| failed.error(&self.place))
    }

    /// Runs an idempotent change; retries while the server is unavailable.
    pub async fn write<'a, T, Work>(&'a self, change: impl Fn(&'a Qdrant) -> Work) -> Result<T, IndexError>
    where
        Work: Future<Output = Result<T, QdrantError>>,
    {
        let end = Instant::now() + self.write_timeout;
        let mut wait = Duration::from_millis(100);
        loop {
            let failed = match change(&self.client).await {
                Ok(done) => return Ok(done),
                Err(error) => CallError::of(error, &self.place),
            };
            let pause = failed.retry_after().unwrap_or(wait);
            if !failed.is_transient() || Instant::now() + pause > end {
                return Err(failed.error(&self.place));
            }
            tracing::warn!(server = %self.place, error = %failed.what(), "retrying a write");
            sleep(pause).await;
            wait = (wait * 2).min(Duration::from_secs(5));
        }
    }
}

/// Why a call failed.
#[derive(Debug)]
enum CallError {
    /// A retry may succeed.
    Transient { what: String, retry_after: Option<Duration> },
    /// A retry will fail too.
    Permanent(IndexError),
}

impl CallError {
    fn of(error: QdrantError, place: &str) -> Self {
        use tonic::Code;
        let (status, retry_after) = match error {
            QdrantError::ResponseError { status } => (status, None),
            QdrantError::ResourceExhaustedError { status, retry_after_seconds } => {
                (status, Some(Duration::from_secs(retry_after_seconds)))
            }
            other => return Self::Permanent(IndexError::Unusable(format!("{place}: {other}"))),
        };
        // A message may be long; its first line has the reason.
        let message = status.message().lines().next().unwrap_or_default();
        match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => {
                let message = format!("{place} rejected the API key; check QDRANT_API_KEY");
                Self::Permanent(IndexError::Unusable(message))
            }
            Code::NotFound => Self::Permanent(IndexError::Gone(format!("{place}: {message}"))),
            Code::InvalidArgument | Code::FailedPrecondition | Code::Unimplemented | Code::AlreadyExists => {
                Self::Permanent(IndexError::Unusable(format!("{place}: {message}")))
            }
            // The client reports a failed connection as an internal error with a long list of causes.
            Code::Internal if message.starts_with("Failed to connect") => {
                Self::Transient { what: "the server cannot be reached".to_owned(), retry_after }
            }
            Code::Unavailable | Code::Cancelled | Code::Unknown => {
                Self::Transient { what: "the server cannot be reached".to_owned(), retry_after }
            }
            Code::DeadlineExceeded => {
                Self::Transient { what: "the request timed out".to_owned(), retry_after }
            }
            Code::ResourceExhausted => {
                Self::Transient { what: "the server is overloaded".to_owned(), retry_after }
            }
            _ => Self::Transient { what: message.to_owned(), retry_after },
        }
    }

    fn what(&self) -> String {
        match self {
            Self::Transient { what, .. } => what.clone(),
            Self::Permanent(error) => error.to_string(),
        }
    }

    fn error(self, place: &str) -> IndexError {
        match self {
            Self::Transient { what, .. } => IndexError::Unavailable(format!("{place}: {what}")),
            Self::Permanent(error) => error,
        }
    }
}

impl Transient for CallError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Transient { .. })
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Transient { retry_after, .. } => *retry_after,
            Self::Permanent(_) => None,
        }
    }

    fn open_circuit() -> Self {
        Self::Transient {
            what: "circuit breaker open after repeated failures; retrying shortly".to_owned(),
            retry_after: None,
        }
    }

    fn timed_out() -> Self {
        Self::Transient { what: "the request timed out".to_owned(), retry_after: None }
    }
}

/// The gRPC address for a configured address, which may lack scheme or port or name the REST port.
fn grpc_address(url: &str) -> Result<String, IndexError> {
    let url = url.trim().trim_end_matches('/');
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split('/').next().unwrap_or_default();
    // An address with a password is rejected here, so that the password cannot end up in an error.
    if !matches!(scheme, "http" | "https") || authority.is_empty() || authority.contains('@') {
        return Err(IndexError::Unusable(
            "invalid Qdrant URL; it must look like http://localhost:6334".to_owned(),
        ));
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !port.ends_with(']') => {
            let port = port
                .parse()
                .map_err(|_| IndexError::Unusable(format!("invalid port in the Qdrant URL `{authority}`")))?;
            (host, if port == REST_PORT { GRPC_PORT } else { port })
        }
        _ => (authority, GRPC_PORT),
    };
    Ok(format!("{scheme}://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grpc_address_is_derived_from_the_configured_url() {
        for (url, expected) in [
            ("http://localhost:6333", "http://localhost:6334"),
            ("http://localhost:6334/", "http://localhost:6334"),
            ("localhost", "http://localhost:6334"),
            ("https://abc.eu-central.aws.cloud.qdrant.io", "https://abc.eu-central.aws.cloud.qdrant.io:6334"),
            ("https://abc.cloud.qdrant.io:6333/", "https://abc.cloud.qdrant.io:6334"),
            ("http://127.0.0.1:40123", "http://127.0.0.1:40123"),
            ("http://[::1]", "http://[::1]:6334"),
        ] {
            assert_eq!(grpc_address(url).unwrap(), expected, "{url}");
        }
    }

    #[test]
    fn invalid_urls_are_rejected_without_repeating_a_password() {
        for url in ["ftp://host", "https://", "https://me:secret@host:6334", "http://host:port"] {
            let error = grpc_address(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
