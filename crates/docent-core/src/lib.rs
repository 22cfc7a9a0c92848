//! What Docent does with a book, free of any input or output.
//!
//! Read the modules in order: they are the two flows of `ARCHITECTURE.md`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod document;
pub mod parse;
pub mod layout;
pub mod chunk;
pub mod embed;
pub mod index;

pub mod query;
pub mod followup;
pub mod retrieve;
pub mod fuse;
pub mod rerank;
pub mod relevance;
pub mod sources;
pub mod agent;
pub mod prompt;
pub mod generate;
pub mod extract;
pub mod verify;
pub mod cite;
pub mod answer;
pub mod session;
pub mod log;

pub mod language;
pub mod terms;
pub mod sentence;
pub mod units;
pub mod recent;
pub mod clock;

#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used)]
pub mod testing;
