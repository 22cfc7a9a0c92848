//! The machine's clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use docent_core::clock::Clock;
use uuid::Uuid;

/// The machine's clock; its fixed moment is when the program first asked.
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
