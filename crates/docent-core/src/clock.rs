//! Time and chance, given from outside so that this crate has none of its own.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use uuid::Uuid;

/// Tells the time, waits, and names things.
pub trait Clock: Send + Sync {
    /// Time since some fixed moment.
    fn now(&self) -> Duration;

    /// The date and time, RFC 3339, UTC.
    fn timestamp(&self) -> String;

    /// Waits.
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// A name nobody used before.
    fn new_id(&self) -> Uuid;
}
