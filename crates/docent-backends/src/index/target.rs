//! SEAM: the index that an ingest writes to.
//!
//! Invariant: until [`IndexTarget::publish`] returns, searches use the generation published before.

use std::collections::HashMap;

use async_trait::async_trait;
use docent_core::embed::{EmbedderId, Vector};
use docent_core::index::IndexError;
use docent_core::language::Language;

use super::contents::{BookContents, Key, PageRecord, SourceRecord, WholeBook};

/// An index that a book can be written to and read back from.
#[async_trait]
pub trait IndexTarget: Send + Sync {
    /// The published generation; `None` if there is none that an ingest can reuse.
    async fn published(&self) -> Result<Option<Published>, IndexError>;

    /// The sources of the published book, even if the rest of the index is damaged.
    async fn sources(&self) -> Result<Vec<SourceRecord>, IndexError>;

    /// The published vectors by key.
    async fn vectors(&self) -> Result<HashMap<Key, Vector>, IndexError>;

    /// Writes and publishes a new generation; returns its name. `written` is called with the number of chunks
    /// written so far and the total.
    async fn publish(
        &self,
        contents: &BookContents<'_>,
        written: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<String, IndexError>;

    /// Reads the whole book, to copy it to another index.
    async fn take(&self) -> Result<WholeBook, IndexError>;
}

/// What the next ingest needs to know about the published generation.
#[derive(Debug, Clone)]
pub struct Published {
    /// Its name.
    pub name: String,
    /// The embedder that made its vectors.
    pub embedder: EmbedderId,
    /// The language of the book.
    pub language: Language,
    /// The sources it was read from.
    pub sources: Vec<SourceRecord>,
    /// Its pages.
    pub pages: Vec<PageRecord>,
    /// Whether it is stored the way the current settings require.
    pub as_configured: bool,
}
