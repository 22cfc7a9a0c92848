//! One layer around every outside call: retry, circuit breaker, deadline.
//!
//! [`call`] repeats an operation while repeating can help: the failure may pass, the circuit
//! is closed, attempts are left, and the caller still waits.
//!
//! Invariant: an operation runs at most [`Policy::attempts`] times, never past the deadline,
//! and not at all while the circuit is open.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

mod breaker;
pub(crate) mod http;

#[cfg(test)]
mod tests;

pub use breaker::{Breaker, BreakerState, Permit};

/// What [`call`] must know about an error.
pub trait Transient: Sized {
    /// Whether the same call may succeed later.
    fn is_transient(&self) -> bool;

    /// How long the service asks to wait.
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// The call was not made: the service failed too often of late.
    fn open_circuit() -> Self;

    /// The call took too long.
    fn timed_out() -> Self;
}

/// How often and how patiently to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The most runs of the operation, the first included; kept within 1–10.
    pub attempts: u32,
    /// The longest wait before the second attempt; it doubles with each one after.
    pub first_delay: Duration,
    /// The longest wait that is not the service's own wish.
    pub max_delay: Duration,
    /// The longest a single attempt may take.
    pub attempt_timeout: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            attempts: 3,
            first_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(5),
            attempt_timeout: Duration::from_secs(8),
        }
    }
}

/// A service that asks for more patience than this is not waited for, deadline or none.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Runs `operation` until it succeeds, or until trying again is pointless.
///
/// The last real error is returned, not the reason for giving up.
pub async fn call<T, E, F, Work>(
    policy: &Policy,
    breaker: &Breaker,
    deadline: Option<Instant>,
    operation: F,
) -> Result<T, E>
where
    E: Transient,
    F: FnMut() -> Work,
    Work: Future<Output = Result<T, E>>,
{
    let (value, permit) = begin(policy, breaker, deadline, operation).await?;
    permit.succeeded();
    Ok(value)
}

/// Like [`call`], for an operation that only begins something, such as a stream: whether it
/// went well is reported through the [`Permit`] when it is over.
pub async fn begin<T, E, F, Work>(
    policy: &Policy,
    breaker: &Breaker,
    deadline: Option<Instant>,
    mut operation: F,
) -> Result<(T, Permit), E>
where
    E: Transient,
    F: FnMut() -> Work,
    Work: Future<Output = Result<T, E>>,
{
    let attempts = policy.attempts.clamp(1, 10);
    let mut last: Option<E> = None;
    for attempt in 1..=attempts {
        let left = time_left(deadline);
        if left.is_zero() {
            return Err(last.unwrap_or_else(E::timed_out));
        }
        let Some(mut permit) = breaker.acquire() else {
            return Err(last.unwrap_or_else(E::open_circuit));
        };
        let error = match timeout(policy.attempt_timeout.min(left), operation()).await {
            Ok(Ok(value)) => {
                permit.answered();
                return Ok((value, permit));
            }
            // A refusal is an answer too: the service works, the request is at fault.
            Ok(Err(error)) if !error.is_transient() => {
                permit.succeeded();
                return Err(error);
            }
            Ok(Err(error)) => error,
            Err(_) => E::timed_out(),
        };
        permit.failed();

        let wait = error.retry_after().unwrap_or_else(|| policy.delay(attempt));
        let hopeless = breaker.state() == BreakerState::Open;
        if attempt == attempts || hopeless || wait >= time_left(deadline) || wait > LONGEST_WAIT {
            return Err(error);
        }
        sleep(wait).await;
        last = Some(error);
    }
    Err(last.unwrap_or_else(E::timed_out))
}

fn time_left(deadline: Option<Instant>) -> Duration {
    deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()))
}

impl Policy {
    /// Anything up to the full delay: callers that failed together must not return together.
    fn delay(&self, attempt: u32) -> Duration {
        let doubled = self.first_delay.saturating_mul(1 << (attempt - 1).min(16));
        doubled.min(self.max_delay).mul_f64(chance())
    }
}

/// Between 0 and 1. The keys of a hasher are the randomness the standard library has.
fn chance() -> f64 {
    (RandomState::new().hash_one(0u8) >> 11) as f64 / (1u64 << 53) as f64
}
