//! Rate limits per client, and permits that limit how many lookups run at once.
//!
//! Invariant: memory does not grow with the number of clients ever seen, and one client can use at most half
//! of the lookup permits.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Inactive clients are removed after this many checks, or when this many clients are known.
const CHECKS: usize = 1024;

/// A rate limit per client, in requests per minute.
pub struct RateLimits<C: Clock = DefaultClock> {
    limiter: RateLimiter<String, DashMapStateStore<String>, C, NoOpMiddleware<C::Instant>>,
    clock: C,
    checks: AtomicUsize,
}

impl RateLimits {
    /// Allows each client `per_minute` requests per minute.
    pub fn new(per_minute: NonZeroU32) -> Self {
        Self::with_clock(per_minute, DefaultClock::default())
    }
}

impl<C: Clock + Clone> RateLimits<C> {
    fn with_clock(per_minute: NonZeroU32, clock: C) -> Self {
        let limiter =
            RateLimiter::new(Quota::per_minute(per_minute), DashMapStateStore::default(), clock.clone());
        Self { limiter, clock, checks: AtomicUsize::new(0) }
    }

    /// Counts a request. If the limit is exceeded, the error is the time to wait.
    pub fn check(&self, who: &String) -> Result<(), Duration> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % CHECKS == CHECKS - 1 {
            // A client with a full allowance needs no state.
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        self.limiter.check_key(who).map_err(|early| early.wait_time_from(self.clock.now()))
    }
}

/// Permits for work that costs CPU time, such as searches and rendered pages.
pub struct Permits {
    all: Arc<Semaphore>,
    clients: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// How many permits one client may hold.
    share: usize,
    waiting: AtomicUsize,
    most_waiting: usize,
    queue_timeout: Duration,
}

/// A permit; dropping it releases it.
pub struct Permit {
    _own: OwnedSemaphorePermit,
    _shared: OwnedSemaphorePermit,
}

impl Permits {
    /// `permits` permits; at most `most_waiting` clients wait for one, each for at most `queue_timeout`.
    pub fn new(permits: usize, most_waiting: usize, queue_timeout: Duration) -> Self {
        let permits = permits.max(2);
        Self {
            all: Arc::new(Semaphore::new(permits)),
            clients: Mutex::default(),
            share: permits / 2,
            waiting: AtomicUsize::new(0),
            most_waiting,
            queue_timeout,
        }
    }

    /// Acquires a permit for the client `who`. None if too many are waiting, or on a timeout.
    pub async fn acquire(&self, who: &str) -> Option<Permit> {
        let waiting = Waiting::new(&self.waiting);
        if waiting.position > self.most_waiting {
            return None;
        }
        let own = self.own(who);
        let entering = async move {
            let own = own.acquire_owned().await.ok()?;
            let shared = self.all.clone().acquire_owned().await.ok()?;
            Some(Permit { _own: own, _shared: shared })
        };
        tokio::time::timeout(self.queue_timeout, entering).await.ok().flatten()
    }

    /// Whether somebody waits for a permit.
    pub fn are_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn own(&self, who: &str) -> Arc<Semaphore> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CHECKS {
            clients.retain(|_, own| Arc::strong_count(own) > 1 || own.available_permits() < self.share);
        }
        clients.entry(who.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.share))).clone()
    }
}

/// An entry in the queue; dropping it leaves the queue.
pub struct Waiting<'a> {
    count: &'a AtomicUsize,
    /// Position in the queue, from 1.
    pub position: usize,
}

impl<'a> Waiting<'a> {
    /// Joins the queue.
    pub fn new(count: &'a AtomicUsize) -> Self {
        Self { position: count.fetch_add(1, Ordering::Relaxed) + 1, count }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;

    #[test]
    fn inactive_clients_are_removed() {
        let clock = FakeRelativeClock::default();
        let limits = RateLimits::with_clock(NonZeroU32::new(60).unwrap(), clock.clone());
        for number in 0..CHECKS - 1 {
            limits.check(&number.to_string()).unwrap();
        }
        assert_eq!(limits.limiter.len(), CHECKS - 1);
        clock.advance(Duration::from_secs(120));
        limits.check(&"last".to_owned()).unwrap();
        assert_eq!(limits.limiter.len(), 1);
    }

    #[test]
    fn exceeding_the_limit_returns_the_time_to_wait() {
        let limits = RateLimits::with_clock(NonZeroU32::new(1).unwrap(), FakeRelativeClock::default());
        limits.check(&"one".to_owned()).unwrap();
        assert_eq!(limits.check(&"one".to_owned()).unwrap_err(), Duration::from_secs(60));
        limits.check(&"other".to_owned()).unwrap();
    }

    #[tokio::test]
    async fn one_client_gets_at_most_half_of_the_permits() {
        let permits = Permits::new(4, 10, Duration::ZERO);
        let _first = permits.acquire("greedy").await.unwrap();
        let second = permits.acquire("greedy").await.unwrap();
        assert!(permits.acquire("greedy").await.is_none());
        let _third = permits.acquire("modest").await.unwrap();
        drop(second);
        assert!(permits.acquire("greedy").await.is_some());
    }

    #[tokio::test]
    async fn a_client_that_waits_is_noticed() {
        let permits = Permits::new(2, 10, Duration::from_secs(60));
        let first = permits.acquire("one").await.unwrap();
        assert!(!permits.are_awaited());
        let mut second = std::pin::pin!(permits.acquire("one"));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        assert!(permits.are_awaited());
        drop(first);
        second.await.unwrap();
        assert!(!permits.are_awaited());
    }

    #[tokio::test]
    async fn clients_without_a_permit_are_removed() {
        let permits = Permits::new(4, 10, Duration::ZERO);
        let _kept = permits.acquire("kept").await.unwrap();
        for number in 0..3 * CHECKS {
            permits.acquire(&number.to_string()).await.unwrap();
        }
        let clients = permits.clients.lock().unwrap();
        assert!(clients.len() <= CHECKS && clients.contains_key("kept"), "{}", clients.len());
    }
}
