//! SEAM: time and random ids.
//!
//! Invariant: this crate gets time and randomness only from here, so that tests can control both.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use uuid::Uuid;

/// Tells the time, sleeps, and creates ids.
pub trait Clock: Send + Sync {
    /// Monotonic time since an arbitrary fixed moment.
    fn now(&self) -> Duration;

    /// The current date and time, RFC 3339, UTC.
    fn timestamp(&self) -> String;

    /// Sleeps for `time`.
    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// A new, unique id.
    fn new_id(&self) -> Uuid;
}

/// Waits for `work`, but no longer than `time`.
pub async fn within<T>(clock: &dyn Clock, time: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(Box::pin(work), clock.sleep(time)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
