//! Who may do what, and how much.
//!
//! Invariant: a key is only ever compared by its hash, in constant time; a turn runs only
//! while it holds a place.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Server;
use super::error::{ApiError, Code};
use crate::settings::{Rights, Serve};

/// Keys, limits and places.
pub struct Guard {
    keys: Vec<(String, [u8; 32], Rights)>,
    limiter: Option<DefaultKeyedRateLimiter<String>>,
    trust_proxy: bool,
    places: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    queue: usize,
    patience: Duration,
    tokens: TokenBudget,
}

impl Guard {
    /// As configured; `spent` tokens were used today already.
    pub fn new(settings: &Serve, spent: u64) -> Self {
        let keys = settings.keys.iter().map(|key| {
            let mut hash = [0; 32];
            for (byte, pair) in hash.iter_mut().zip(key.sha256.as_bytes().chunks(2)) {
                let digits = std::str::from_utf8(pair).unwrap_or_default();
                *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
            }
            (key.name.clone(), hash, key.rights)
        });
        Self {
            keys: keys.collect(),
            limiter: NonZeroU32::new(settings.requests_per_minute)
                .map(|limit| RateLimiter::keyed(Quota::per_minute(limit))),
            trust_proxy: settings.trust_proxy,
            places: Arc::new(Semaphore::new(settings.concurrent_turns)),
            waiting: Arc::default(),
            queue: settings.queue,
            patience: Duration::from_secs_f64(settings.queue_seconds),
            tokens: TokenBudget::new(settings.daily_tokens, spent),
        }
    }

    /// The tokens the model may still use today.
    pub fn tokens(&self) -> &TokenBudget {
        &self.tokens
    }

    /// How many questions wait and how many are being answered.
    pub fn load(&self, places: usize) -> (usize, usize) {
        (self.waiting.load(Ordering::Relaxed), places - self.places.available_permits().min(places))
    }

    /// A place for a turn; waits a little when all are taken.
    pub async fn place(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(place);
        }
        let overloaded = || {
            metrics::counter!("docent_overloaded_total").increment(1);
            ApiError::new(Code::Overloaded, "Too many questions at once; please try again in a moment")
                .retry_after(self.patience.as_secs().max(1))
        };
        let waiting = Waiting::new(&self.waiting);
        if waiting.place > self.queue {
            return Err(overloaded());
        }
        match tokio::time::timeout(self.patience, self.places.clone().acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(overloaded()),
        }
    }

    fn rights(
        &self,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<(Option<String>, Rights), ApiError> {
        if self.keys.is_empty() {
            // Behind a proxy everybody seems to be this machine, but the proxy says so.
            let forwarded =
                headers.contains_key("x-forwarded-for") || headers.contains_key(header::FORWARDED);
            let here = peer.is_some_and(|peer| peer.is_loopback()) && !forwarded;
            return Ok((None, if here { Rights::Admin } else { Rights::Read }));
        }
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
        let Some(shown) = shown else {
            return Err(ApiError::new(Code::Unauthorized, "This book needs a key")
                .detail("send it as `Authorization: Bearer KEY`"));
        };
        let hash: [u8; 32] = Sha256::digest(shown.as_bytes()).into();
        // All keys are compared, so that the time tells nothing about which came close.
        let mut found = None;
        for (name, known, rights) in &self.keys {
            if bool::from(known.ct_eq(&hash)) {
                found = Some((Some(name.clone()), *rights));
            }
        }
        found.ok_or_else(|| ApiError::new(Code::Unauthorized, "The key is not known"))
    }

    fn limit(&self, who: String) -> Result<(), ApiError> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        limiter.check_key(&who).map_err(|early| {
            metrics::counter!("docent_rate_limited_total").increment(1);
            let wait = early.wait_time_from(DefaultClock::default().now());
            ApiError::new(Code::RateLimited, "Too many requests; please slow down")
                .retry_after(wait.as_secs() + 1)
        })
    }

    fn address(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> String {
        // The proxy adds the address it saw at the end; what stands before anybody can write.
        let forwarded = headers
            .get("x-forwarded-for")
            .filter(|_| self.trust_proxy)
            .and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse::<IpAddr>().ok());
        forwarded.or(peer).map(|address| address.to_string()).unwrap_or_default()
    }
}

/// A question in the queue; it leaves when dropped.
struct Waiting<'a> {
    count: &'a AtomicUsize,
    place: usize,
}

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        Self { place: count.fetch_add(1, Ordering::Relaxed) + 1, count }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tokens a day.
pub struct TokenBudget {
    daily: u64,
    used: AtomicU64,
    day: AtomicU64,
}

impl TokenBudget {
    fn new(daily: u64, spent: u64) -> Self {
        Self { daily, used: AtomicU64::new(spent), day: AtomicU64::new(today()) }
    }

    /// Whether the model may still be used.
    pub fn is_left(&self) -> bool {
        let now = today();
        if self.day.swap(now, Ordering::Relaxed) != now {
            self.used.store(0, Ordering::Relaxed);
        }
        self.daily == 0 || self.used.load(Ordering::Relaxed) < self.daily
    }

    /// Counts what a turn used.
    pub fn spend(&self, tokens: u32) {
        self.used.fetch_add(u64::from(tokens), Ordering::Relaxed);
        metrics::counter!("docent_tokens_total").increment(u64::from(tokens));
    }
}

/// Days since the epoch.
fn today() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs() / 86_400)
}

/// May read, within the limit.
pub struct Reader;

/// May read; what it does costs next to nothing.
pub struct Visitor;

/// May administrate.
pub struct Admin;

fn identify(parts: &Parts, server: &Server) -> Result<(String, Rights), ApiError> {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let (name, rights) = server.guard.rights(&parts.headers, peer)?;
    let who = name.unwrap_or_else(|| server.guard.address(&parts.headers, peer));
    Ok((who, rights))
}

impl FromRequestParts<Arc<Server>> for Reader {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        let (who, _) = identify(parts, server)?;
        server.guard.limit(who)?;
        Ok(Self)
    }
}

impl FromRequestParts<Arc<Server>> for Visitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        identify(parts, server).map(|_| Self)
    }
}

impl FromRequestParts<Arc<Server>> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, ApiError> {
        match identify(parts, server)? {
            (_, Rights::Admin) => Ok(Self),
            _ => Err(ApiError::new(Code::Unauthorized, "This needs a key with admin rights")),
        }
    }
}
