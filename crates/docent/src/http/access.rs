//! Authentication, rate limits, permits and the daily token budget.
//!
//! Invariant: keys are compared by their hashes, in constant time; a turn runs only while it holds a permit.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{ApiError, Code};
use super::limits::{Permit, Permits, RateLimits, Waiting};
use super::network::network;
use super::token_budget::TokenBudget;
use super::{Server, read_cookie};
use crate::settings::{Rights, Serve};

/// How many keystrokes a client may send for every other request it may send.
const KEYSTROKES_PER_REQUEST: u32 = 20;

/// API keys, limits and permits.
pub struct Access {
    keys: Vec<(String, [u8; 32], Rights)>,
    /// Whether reading needs no key, although keys are configured.
    public: bool,
    limiter: Option<RateLimits>,
    /// Limits requests that are sent with every keystroke.
    keystrokes: Option<RateLimits>,
    trust_proxy: bool,
    turns: Arc<Semaphore>,
    lookups: Permits,
    waiting: Arc<AtomicUsize>,
    queue: usize,
    queue_timeout: Duration,
    tokens: TokenBudget,
}

impl Access {
    /// Applies the settings; `spent` is the number of tokens already used today.
    pub fn new(settings: &Serve, spent: u64) -> Self {
        let keys = settings.keys.iter().map(|key| {
            let mut hash = [0; 32];
            // The settings were checked; a hash that is not one would match no key.
            let _ = hex::decode_to_slice(&key.sha256, &mut hash);
            (key.name.clone(), hash, key.rights)
        });
        Self {
            keys: keys.collect(),
            public: settings.public,
            limiter: NonZeroU32::new(settings.requests_per_minute).map(RateLimits::new),
            keystrokes: NonZeroU32::new(settings.requests_per_minute.saturating_mul(KEYSTROKES_PER_REQUEST))
                .map(RateLimits::new),
            trust_proxy: settings.trust_proxy,
            turns: Arc::new(Semaphore::new(settings.concurrent_turns)),
            lookups: Permits::new(
                2 * std::thread::available_parallelism().map_or(1, usize::from),
                settings.concurrent_turns,
                Duration::from_secs_f64(settings.queue_seconds),
            ),
            waiting: Arc::default(),
            queue: settings.queue,
            queue_timeout: Duration::from_secs_f64(settings.queue_seconds),
            tokens: TokenBudget::new(settings.daily_tokens, spent),
        }
    }

    /// The daily token budget of the model.
    pub fn tokens(&self) -> &TokenBudget {
        &self.tokens
    }

    /// How many questions are waiting, and how many are being answered.
    pub fn load(&self, permits: usize) -> (usize, usize) {
        (self.waiting.load(Ordering::Relaxed), permits - self.turns.available_permits().min(permits))
    }

    /// A permit for a turn. Waits for one if all are in use, up to the queue timeout.
    pub async fn turn_permit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        if let Ok(permit) = self.turns.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let waiting = Waiting::new(&self.waiting);
        if waiting.position > self.queue {
            return Err(self.overloaded());
        }
        match tokio::time::timeout(self.queue_timeout, self.turns.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(self.overloaded()),
        }
    }

    /// A permit for a call of the model beside the questions of users, which come first; none if all are in use.
    pub fn spare_turn_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.turns.clone().try_acquire_owned().ok()
    }

    /// A permit for a lookup by `client`: a search, a page or a list. Waits for one if all are in use, up to
    /// the queue timeout.
    pub async fn lookup(&self, client: &str) -> Result<Permit, ApiError> {
        self.lookups.acquire(client).await.ok_or_else(|| self.overloaded())
    }

    /// Whether lookups are waiting for a permit.
    pub fn lookups_wait(&self) -> bool {
        self.lookups.are_awaited()
    }

    fn overloaded(&self) -> ApiError {
        metrics::counter!("docent_overloaded_total").increment(1);
        ApiError::new(Code::Overloaded, "Too many questions at once; please try again in a moment")
            .retry_after(self.queue_timeout.as_secs().max(1))
    }

    /// The name of the key, if one was sent, and the client's rights. The peer address grants no rights:
    /// behind a proxy or a tunnel, every request comes from this machine.
    fn rights(&self, headers: &HeaderMap, path: &str) -> Result<(Option<String>, Rights), ApiError> {
        if self.keys.is_empty() {
            return Ok((None, Rights::Read));
        }
        if let Some(shown) = shown(headers) {
            let known = self.key(&shown).map(|(name, _, rights)| (Some(name.clone()), *rights));
            return known.ok_or_else(|| ApiError::new(Code::Unauthorized, "Invalid API key"));
        }
        if self.public {
            return Ok((None, Rights::Read));
        }
        if path.starts_with("/read/")
            && let Some((name, ..)) =
                self.keys.iter().find(|(_, hash, _)| read_cookie::is_valid(headers, hash))
        {
            return Ok((Some(name.clone()), Rights::Read));
        }
        Err(ApiError::new(Code::Unauthorized, "An API key is required")
            .detail("send it as `Authorization: Bearer KEY`"))
    }

    /// The hash of the key in the request, if the key is valid.
    pub fn key_shown(&self, headers: &HeaderMap) -> Option<&[u8; 32]> {
        self.key(&shown(headers)?).map(|(_, hash, _)| hash)
    }

    fn key(&self, shown: &[u8; 32]) -> Option<&(String, [u8; 32], Rights)> {
        // Compare all keys, so that the time taken reveals nothing about which one matched.
        let mut found = None;
        for key in &self.keys {
            if bool::from(key.1.ct_eq(shown)) {
                found = Some(key);
            }
        }
        found
    }

    fn limit(&self, limiter: Option<&RateLimits>, who: &String) -> Result<(), ApiError> {
        let Some(limiter) = limiter else { return Ok(()) };
        limiter.check(who).map_err(|wait| {
            metrics::counter!("docent_rate_limited_total").increment(1);
            ApiError::new(Code::RateLimited, "Too many requests; please slow down")
                .retry_after(wait.as_secs() + 1)
        })
    }

    fn address(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> String {
        // The proxy appends the address it saw; clients can forge everything before it.
        let forwarded = headers
            .get("x-forwarded-for")
            .filter(|_| self.trust_proxy)
            .and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse::<IpAddr>().ok());
        forwarded.or(peer).map(|address| network(address).to_string()).unwrap_or_default()
    }
}

/// The hash of the key in the `Authorization` header.
fn shown(headers: &HeaderMap) -> Option<[u8; 32]> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| Sha256::digest(key.trim().as_bytes()).into())
}

/// A client that may read, within the rate limit.
pub struct RateLimited {
    /// Identifies the client for limits: the name of its key, or its address.
    pub client: String,
}

/// A client that may read, within the rate limit, and holds a lookup permit, because lookups cost CPU time.
pub struct Lookup {
    _permit: Permit,
}

/// A client that may read and holds a lookup permit. Its rate limit is higher, because it sends a request with every
/// keystroke.
pub struct Keystroke {
    _permit: Permit,
}

/// A client that may read, with the rate limit of [`Keystroke`] but without a lookup permit: for pages of PDFs, whose
/// drawing has limits of its own and may take long.
pub struct Viewer {
    /// Identifies the client for limits, as in [`RateLimited`].
    pub client: String,
}

/// A client that may read. Not rate-limited: for cheap requests only.
pub struct Allowed;

/// A client with an admin key, whose request does not come from another site's page.
pub struct Admin;

/// Identifies the client that sent a request, and its rights.
pub fn identify(parts: &Parts, server: &Server) -> Result<(String, Rights), ApiError> {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let (name, rights) = server.access.rights(&parts.headers, parts.uri.path())?;
    let who = name.unwrap_or_else(|| server.access.address(&parts.headers, peer));
    Ok((who, rights))
}

impl FromRequestParts<Arc<Server>> for RateLimited {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        let (client, _) = identify(parts, server)?;
        server.access.limit(server.access.limiter.as_ref(), &client)?;
        Ok(Self { client })
    }
}

impl FromRequestParts<Arc<Server>> for Lookup {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        let RateLimited { client } = RateLimited::from_request_parts(parts, server).await?;
        Ok(Self { _permit: server.access.lookup(&client).await? })
    }
}

impl FromRequestParts<Arc<Server>> for Viewer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        let (client, _) = identify(parts, server)?;
        server.access.limit(server.access.keystrokes.as_ref(), &client)?;
        Ok(Self { client })
    }
}

impl FromRequestParts<Arc<Server>> for Keystroke {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        let Viewer { client } = Viewer::from_request_parts(parts, server).await?;
        Ok(Self { _permit: server.access.lookup(&client).await? })
    }
}

impl FromRequestParts<Arc<Server>> for Allowed {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        identify(parts, server).map(|_| Self)
    }
}

impl FromRequestParts<Arc<Server>> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        match identify(parts, server)? {
            (_, Rights::Admin) if server.hosts.is_own_page(&parts.headers) => Ok(Self),
            (_, Rights::Admin) => {
                Err(ApiError::new(Code::Forbidden, "Pages of other sites cannot use admin rights"))
            }
            _ => Err(ApiError::new(Code::Unauthorized, "This requires an API key with admin rights")
                .detail("create one with `docent key NAME --admin`")),
        }
    }
}
