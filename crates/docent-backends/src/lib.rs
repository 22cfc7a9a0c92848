//! What Docent uses outside its process: book sources, models, indexes and conversation stores.
//!
//! Ingest a folder and ask it a question. Without an embedder, passages are found by their words; without a model,
//! answers quote the book:
//!
//! ```
//! use std::sync::Arc;
//!
//! use docent_backends::clock::SystemClock;
//! use docent_backends::index::contents::SourceRecord;
//! use docent_backends::index::embedded::{EmbeddedIndex, FolderTarget};
//! use docent_backends::ingest::{Plan, ingest};
//! use docent_core::agent::{Agent, Ask};
//! use docent_core::index::Index;
//! use docent_core::retrieve::{Retriever, Settings};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (book, data) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! std::fs::write(book.path().join("pumps.md"), "# Pumps\n\nThe pump starts at a pressure of 3 bar.\n")?;
//!
//! let target = FolderTarget { folder: data.path().to_owned() };
//! let plan = Plan::new(vec![SourceRecord::new(book.path().to_string_lossy())]);
//! ingest(data.path(), &target, None, &plan, &()).await?;
//!
//! let index = EmbeddedIndex::open(data.path())?;
//! let language = index.identity().await?.language;
//! let clock = Arc::new(SystemClock);
//! let retriever = Retriever::new(Arc::new(index), None, language, Settings::default(), clock.clone());
//! let agent = Agent::builder(retriever, clock).build();
//! let response = agent.ask(&Ask::new("At which pressure does the pump start?"), &|_| {}).await?;
//! assert_eq!(response.citations[0].quote, "The pump starts at a pressure of 3 bar.");
//! # Ok(())
//! # }
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod source;
pub mod embed;
pub mod figures;
pub mod export;
pub mod index;
pub mod ingest;
pub mod progress;
pub mod generate;
pub mod session;
pub mod rerank;
pub mod reader;
pub mod provider;
mod onnx;
pub mod resilience;
pub mod clock;
pub mod failpoint;

/// The current time, in the format in which times are stored and shown.
pub fn now_rfc3339() -> String {
    rfc3339_days_ago(0)
}

/// The time `days` days ago.
pub fn rfc3339_days_ago(days: u32) -> String {
    days_before(time::OffsetDateTime::now_utc(), days)
}

/// The time `days` days before `moment`; returns `moment` unchanged if it is not RFC 3339.
pub fn rfc3339_days_before(moment: &str, days: u32) -> String {
    match time::OffsetDateTime::parse(moment, &time::format_description::well_known::Rfc3339) {
        Ok(moment) => days_before(moment, days),
        Err(_) => moment.to_owned(),
    }
}

/// Always in UTC and with milliseconds: these times are compared as text, also by databases, and `10.5Z`
/// would sort after `10.51Z`.
fn days_before(moment: time::OffsetDateTime, days: u32) -> String {
    let moment = moment.saturating_sub(time::Duration::days(days.into())).to_offset(time::UtcOffset::UTC);
    let (date, (hour, minute, second, millisecond)) = (moment.date(), moment.to_hms_milli());
    format!("{date}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

#[cfg(test)]
mod tests {
    use super::rfc3339_days_before;

    #[test]
    fn formatted_times_sort_chronologically() {
        let at = |fraction: &str| rfc3339_days_before(&format!("2026-03-01T10:00:00{fraction}Z"), 1);
        assert_eq!(at(".5"), "2026-02-28T10:00:00.500Z");
        assert!(at("") < at(".5") && at(".5") < at(".51"));
    }
}
