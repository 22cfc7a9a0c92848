//! Everything Docent does with a book, without any I/O: chunking, retrieval, reading, answering, checking and citing.
//!
//! What reaches outside (indexes, models, stores, the clock) is behind traits; `docent-backends` implements them. Read
//! the modules in this order: ingest ([`chunk`], [`embed`], [`index`]), then a question ([`query`] to [`turn_log`]).
//!
//! Cut a page into passages:
//!
//! ```
//! use docent_core::chunk::chunk;
//! use docent_parse::layout::{Base, Layout, Site};
//! use docent_parse::parse_page;
//!
//! let site = Site::new(Layout::Plain, Base::Published("https://example.org".to_owned()));
//! let source = b"# Pumps\n\nA pump moves water.\n\n## Starting\n\nOpen the valve, then press the button.\n";
//! let (page, _) = parse_page("pumps.md", source, &site, &mut |_| None);
//! // At most 256 tokens each, counted roughly.
//! let passages = chunk(&page.expect("text"), 256, &|text| text.len().div_ceil(4));
//! assert_eq!(passages.len(), 2);
//! assert_eq!(passages[1].breadcrumb(), "Pumps > Starting");
//! ```
//!
//! Check a sentence against a passage:
//!
//! ```
//! use std::sync::Arc;
//!
//! use docent_core::language::Language;
//! use docent_core::terms::Analyzer;
//! use docent_core::verify::{Evidence, SUPPORTED, Verifier};
//!
//! # futures_util::future::FutureExt::now_or_never(async {
//! let verifier = Verifier::new(Arc::new(Analyzer::new(Language::default())), None, None);
//! let passage = [Evidence { heading: "Pumps", content: "The pump starts at 3 bar. It stops at 5 bar." }];
//! let score = |support: Vec<docent_core::verify::Support>| support.first().map_or(0.0, |best| best.score);
//! assert!(score(verifier.support("The pump starts at 3 bar.", &passage).await) >= SUPPORTED);
//! assert!(score(verifier.support("The pump starts at 9 bar.", &passage).await) < SUPPORTED);
//! # }).expect("no I/O, so nothing to wait for");
//! ```
//!
//! Invariant: no I/O, and no time that was not passed in.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod section_kind;
pub mod chunk;
pub mod edition;
pub mod embed;
pub mod index;

pub mod query;
pub mod question_kind;
pub mod definition;
pub mod key_term;
mod premise;
mod spelling;
pub mod small_talk;
pub mod followup;
pub mod library;
pub mod retrieve;
pub mod fuse;
pub mod rerank;
pub mod relevance;
pub mod read;
pub mod reader;
pub mod search_response;
pub mod quiz;
pub mod typeahead;
pub mod agent;
pub mod excerpt;
pub mod prompt;
pub mod generate;
pub mod extract;
pub mod verify;
pub mod cite;
pub mod answer;
pub mod session;
pub mod turn_log;

pub mod language;
pub mod terms;
pub mod sentence;
pub mod unit;
pub mod statement;
pub mod cache;
pub mod clock;

#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used)]
pub mod testing;
