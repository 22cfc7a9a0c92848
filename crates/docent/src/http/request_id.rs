//! The id of the request that is being handled.
//!
//! Invariant: everything that runs for a request, including the sending of its body, sees the same id.

use std::sync::Arc;

tokio::task_local! {
    /// Set by [`super::request`] around everything that a request runs.
    pub static REQUEST_ID: Arc<str>;
}

/// The id of the current request; empty outside of requests.
pub fn request_id() -> String {
    REQUEST_ID.try_with(|id| id.to_string()).unwrap_or_default()
}
