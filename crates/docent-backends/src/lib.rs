//! The outside world as Docent uses it: files, models, indexes.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod source;
pub mod embed;
pub mod export;
pub mod index;
pub mod ingest;
pub mod generate;
pub mod session;
pub mod rerank;
pub mod provider;
mod onnx;
pub mod resilience;
pub mod clock;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

/// The time, as it is stored and shown.
pub fn now_rfc3339() -> String {
    rfc3339_days_ago(0)
}

/// The time so many days ago.
pub fn rfc3339_days_ago(days: u32) -> String {
    let now = time::OffsetDateTime::now_utc() - time::Duration::days(days.into());
    let now = now.replace_nanosecond(now.millisecond() as u32 * 1_000_000).unwrap_or(now);
    now.format(&time::format_description::well_known::Rfc3339).unwrap_or_default()
}
