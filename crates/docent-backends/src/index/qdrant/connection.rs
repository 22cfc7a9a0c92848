//! Calls to a Qdrant server: patience, and errors without secrets.
//!
//! Reading gives up soon, because a reader waits. Writing is patient, because a server that
//! restarts comes back, and an ingest should not have to be started again.
//!
//! Invariant: no error holds the key or anything the server put into its metadata.

use std::time::Duration;

use docent_core::index::IndexError;
use qdrant_client::{Qdrant, QdrantError};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, sleep};

use crate::resilience::{self, Breaker, Policy, Transient};

/// Where gRPC is spoken, when an address does not say.
const GRPC_PORT: u16 = 6334;

/// Where REST is spoken; addresses of other systems name it, and gRPC is next to it.
const REST_PORT: u16 = 6333;

/// Where a server is, and how to be let in.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its address, with REST's port, gRPC's port or none.
    pub url: String,
    /// The key.
    pub api_key: Option<SecretString>,
    /// The longest a single call may take.
    pub timeout: Duration,
    /// How long a write waits for a server that is gone.
    pub patience: Duration,
}

impl Server {
    /// A server with the usual patience.
    pub fn new(url: impl Into<String>, api_key: Option<SecretString>) -> Self {
        Self { url: url.into(), api_key, timeout: Duration::from_secs(5), patience: Duration::from_secs(120) }
    }
}

/// The way to a server.
pub(super) struct Connection {
    client: Qdrant,
    /// As errors name it.
    place: String,
    breaker: Breaker,
    reading: Policy,
    patience: Duration,
}

impl Connection {
    /// Checks the address; nothing is sent.
    pub fn new(server: &Server) -> Result<Self, IndexError> {
        let place = grpc_address(&server.url)?;
        let mut config = Qdrant::from_url(&place).timeout(server.timeout).connect_timeout(server.timeout);
        config.check_compatibility = false;
        config.api_key = server.api_key.as_ref().map(|key| key.expose_secret().trim().to_owned());
        let client = config
            .build()
            .map_err(|_| IndexError::Unusable(format!("`{place}` is not the address of a Qdrant server")))?;
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
            patience: server.patience,
        })
    }

    /// The server's address.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Asks something; what fails for the moment is asked once more.
    pub async fn read<'a, T, Work>(&'a self, ask: impl Fn(&'a Qdrant) -> Work) -> Result<T, IndexError>
    where
        Work: Future<Output = Result<T, QdrantError>>,
    {
        let asked = resilience::call(&self.reading, &self.breaker, None, async || {
            ask(&self.client).await.map_err(|error| Trouble::of(error, &self.place))
        });
        asked.await.map_err(|trouble| trouble.error(&self.place))
    }

    /// Changes something, so that it may be done twice; waits for a server that is gone.
    pub async fn write<'a, T, Work>(&'a self, change: impl Fn(&'a Qdrant) -> Work) -> Result<T, IndexError>
    where
        Work: Future<Output = Result<T, QdrantError>>,
    {
        let end = Instant::now() + self.patience;
        let mut wait = Duration::from_millis(100);
        loop {
            let trouble = match change(&self.client).await {
                Ok(done) => return Ok(done),
                Err(error) => Trouble::of(error, &self.place),
            };
            let pause = trouble.retry_after().unwrap_or(wait);
            if !trouble.is_transient() || Instant::now() + pause > end {
                return Err(trouble.error(&self.place));
            }
            tracing::warn!(server = %self.place, trouble = %trouble.what(), "trying again");
            sleep(pause).await;
            wait = (wait * 2).min(Duration::from_secs(5));
        }
    }
}

/// What went wrong with a call.
#[derive(Debug)]
enum Trouble {
    /// It may pass.
    Passing { what: String, retry_after: Option<Duration> },
    /// It will not.
    Lasting(IndexError),
}

impl Trouble {
    fn of(error: QdrantError, place: &str) -> Self {
        use tonic::Code;
        let (status, retry_after) = match error {
            QdrantError::ResponseError { status } => (status, None),
            QdrantError::ResourceExhaustedError { status, retry_after_seconds } => {
                (status, Some(Duration::from_secs(retry_after_seconds)))
            }
            other => return Self::Lasting(IndexError::Unusable(format!("{place}: {other}"))),
        };
        // A message may be long; the first line says what happened.
        let message = status.message().lines().next().unwrap_or_default();
        match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => {
                Self::Lasting(IndexError::Unusable(format!("{place} refused the key; check QDRANT_API_KEY")))
            }
            Code::NotFound => Self::Lasting(IndexError::Gone(format!("{place}: {message}"))),
            Code::InvalidArgument | Code::FailedPrecondition | Code::Unimplemented | Code::AlreadyExists => {
                Self::Lasting(IndexError::Unusable(format!("{place}: {message}")))
            }
            // The client reports a failed connection as an internal error, with all its causes.
            Code::Internal if message.starts_with("Failed to connect") => {
                Self::Passing { what: "it cannot be reached".to_owned(), retry_after }
            }
            Code::Unavailable | Code::Cancelled | Code::Unknown => {
                Self::Passing { what: "it cannot be reached".to_owned(), retry_after }
            }
            Code::DeadlineExceeded => Self::Passing { what: "it took too long".to_owned(), retry_after },
            Code::ResourceExhausted => Self::Passing { what: "it is overloaded".to_owned(), retry_after },
            _ => Self::Passing { what: message.to_owned(), retry_after },
        }
    }

    fn what(&self) -> String {
        match self {
            Self::Passing { what, .. } => what.clone(),
            Self::Lasting(error) => error.to_string(),
        }
    }

    fn error(self, place: &str) -> IndexError {
        match self {
            Self::Passing { what, .. } => IndexError::Unavailable(format!("{place}: {what}")),
            Self::Lasting(error) => error,
        }
    }
}

impl Transient for Trouble {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Passing { .. })
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Passing { retry_after, .. } => *retry_after,
            Self::Lasting(_) => None,
        }
    }

    fn open_circuit() -> Self {
        Self::Passing {
            what: "it failed too often of late and is left alone for a while".to_owned(),
            retry_after: None,
        }
    }

    fn timed_out() -> Self {
        Self::Passing { what: "it took too long".to_owned(), retry_after: None }
    }
}

/// The address of the gRPC service that belongs to an address as people write it.
fn grpc_address(url: &str) -> Result<String, IndexError> {
    let url = url.trim().trim_end_matches('/');
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split('/').next().unwrap_or_default();
    // A password in an address must not get into errors, so it is refused before it can.
    if !matches!(scheme, "http" | "https") || authority.is_empty() || authority.contains('@') {
        return Err(IndexError::Unusable(
            "the address of the Qdrant server must look like http://localhost:6334".to_owned(),
        ));
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !port.ends_with(']') => {
            let port = port.parse().map_err(|_| {
                IndexError::Unusable(format!("`{authority}` has no port number after its colon"))
            })?;
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
    fn the_grpc_service_is_found_from_any_address() {
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
    fn what_is_no_address_is_refused_without_repeating_a_password() {
        for url in ["ftp://host", "https://", "https://me:secret@host:6334", "http://host:port"] {
            let error = grpc_address(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
