//! The system clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use docent_core::clock::Clock;
use uuid::Uuid;

/// The system clock. [`Clock::now`] counts from its first call in this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    fn timestamp(&self) -> String {
        crate::now_rfc3339()
    }

    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(time))
    }

    fn new_id(&self) -> Uuid {
        Uuid::new_v4()
    }
}
