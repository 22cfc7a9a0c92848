//! One layer around every external call: retries, circuit breaker, deadline.
//!
//! [`call`] retries an operation as long as the failure is transient, the circuit is closed, attempts are
//! left and the deadline has not passed.
//!
//! Invariant: an operation runs at most [`Policy::attempts`] times, never past the deadline, and not at all
//! while the circuit is open.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

mod breaker;
pub(crate) mod http;

#[cfg(test)]
mod tests;

pub use breaker::{Breaker, BreakerState, Permit};

/// What [`call`] needs to know about an error.
pub trait Transient: Sized {
    /// Whether the same call may succeed later.
    fn is_transient(&self) -> bool;

    /// The delay that the service requests.
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// The call was not made, because the circuit breaker is open after repeated failures.
    fn open_circuit() -> Self;

    /// The call timed out.
    fn timed_out() -> Self;
}

/// Number of attempts, delays and timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Maximum number of attempts, including the first; clamped to 1–10.
    pub attempts: u32,
    /// Maximum delay before the second attempt; it doubles with each further one.
    pub first_delay: Duration,
    /// Upper limit of the delay, unless the service requests a longer one.
    pub max_delay: Duration,
    /// Timeout of a single attempt.
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

/// If a service requests a longer delay than this, the call fails at once, even without a deadline.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Runs `operation` until it succeeds or a retry is pointless.
///
/// Returns the last error of the operation, not the reason for giving up.
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

/// Like [`call`], for an operation that only starts something, such as a stream. Report its outcome through
/// the [`Permit`] when it ends.
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
            // A permanent error counts as success: the service works, but the request is wrong.
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
    /// A random part of the full delay, so that callers that failed together do not retry together.
    fn delay(&self, attempt: u32) -> Duration {
        let doubled = self.first_delay.saturating_mul(1 << (attempt - 1).min(16));
        doubled.min(self.max_delay).mul_f64(fastrand::f64())
    }
}
