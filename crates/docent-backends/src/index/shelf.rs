//! SEAM: where an ingest puts a book.
//!
//! Invariant: until [`Shelf::publish`] returns, readers see the book that was there before.

use std::collections::HashMap;

use async_trait::async_trait;
use docent_core::embed::{EmbedderId, Vector};
use docent_core::index::IndexError;
use docent_core::language::Language;

use super::parts::{Key, PageRecord, Parts, SourceRecord, WholeBook};

/// A place for one book, in its newest generation.
#[async_trait]
pub trait Shelf: Send + Sync {
    /// What is there; none when there is nothing an ingest could build on.
    async fn published(&self) -> Result<Option<Published>, IndexError>;

    /// Where the book came from, even if the rest of it is damaged.
    async fn sources(&self) -> Result<Vec<SourceRecord>, IndexError>;

    /// The vectors that are there, by what they were made from.
    async fn vectors(&self) -> Result<HashMap<Key, Vector>, IndexError>;

    /// Makes this the book. `written` hears how many of its chunks are there.
    async fn publish(
        &self,
        parts: &Parts<'_>,
        written: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<String, IndexError>;

    /// The whole book, to put it elsewhere.
    async fn take(&self) -> Result<WholeBook, IndexError>;
}

/// The generation that is there, as the next ingest needs it.
#[derive(Debug, Clone)]
pub struct Published {
    /// Its name.
    pub name: String,
    /// What made its vectors.
    pub embedder: EmbedderId,
    /// What it is written in.
    pub language: Language,
    /// Where it came from.
    pub sources: Vec<SourceRecord>,
    /// Its pages.
    pub pages: Vec<PageRecord>,
    /// Whether it is kept as the settings now say.
    pub as_configured: bool,
}
