//! What Docent does with a book, free of any input or output.
//!
//! Read the modules in order: they are the two flows of `ARCHITECTURE.md`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod document;
pub mod parse;
pub mod language;
pub mod terms;
