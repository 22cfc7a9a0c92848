//! How many tokens the model may use per day (`serve.daily_tokens`).
//!
//! Invariant: days are counted from the start of the server by its monotonic clock, so setting the machine's
//! clock forward or back does not refill the budget.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

const DAY: u64 = 24 * 60 * 60;

/// Tokens used today (UTC), and how many are allowed.
pub struct TokenBudget {
    /// 0: no limit.
    daily: u64,
    used: AtomicU64,
    /// The day that `used` counts, in days since the epoch.
    day: AtomicU64,
    started: Instant,
    /// Seconds since the epoch when the server started.
    started_at: u64,
}

impl TokenBudget {
    /// A budget of `daily` tokens, of which `spent` were already used today; `daily` 0 means no limit.
    pub fn new(daily: u64, spent: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Self::starting_at(now, daily, spent)
    }

    fn starting_at(seconds: u64, daily: u64, spent: u64) -> Self {
        Self {
            daily,
            used: AtomicU64::new(spent),
            day: AtomicU64::new(seconds / DAY),
            started: Instant::now(),
            started_at: seconds,
        }
    }

    /// Whether the model may still be used today.
    pub fn is_left(&self) -> bool {
        let today = (self.started_at + self.started.elapsed().as_secs()) / DAY;
        if self.day.fetch_max(today, Ordering::Relaxed) < today {
            self.used.store(0, Ordering::Relaxed);
        }
        self.daily == 0 || self.used.load(Ordering::Relaxed) < self.daily
    }

    /// Counts the tokens of a turn.
    pub fn spend(&self, tokens: u32) {
        self.used.fetch_add(u64::from(tokens), Ordering::Relaxed);
        metrics::counter!("docent_tokens_total").increment(u64::from(tokens));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_budget_is_refilled_at_midnight_utc() {
        let one_minute_to_midnight = 20_000 * DAY - 60;
        let budget = TokenBudget::starting_at(one_minute_to_midnight, 100, 40);
        budget.spend(60);
        assert!(!budget.is_left());
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(!budget.is_left());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(budget.is_left());
        budget.spend(100);
        assert!(!budget.is_left());
    }

    #[tokio::test]
    async fn zero_means_no_limit() {
        let budget = TokenBudget::new(0, 1_000_000);
        budget.spend(1_000_000);
        assert!(budget.is_left());
    }
}
