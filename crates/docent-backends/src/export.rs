//! A book moves from one index to another: its vectors go along, nothing is embedded again.

use std::path::Path;

use docent_core::embed::EmbedderId;
use docent_core::index::IndexError;
use serde::Serialize;

use crate::index::shelf::Shelf;
use crate::ingest::{IngestError, Progress, lock};

/// What an export did.
#[derive(Debug, Clone, Serialize)]
pub struct Exported {
    /// The generation that answers now.
    pub generation: String,
    /// Pages that went along.
    pub pages: usize,
    /// Chunks that went along.
    pub chunks: usize,
    /// What made their vectors.
    pub embedder: String,
}

/// Copies the whole book. `embedder` names who made the vectors where the book does not know;
/// `folder` is locked meanwhile, as for an ingest.
pub async fn export(
    folder: &Path,
    from: &dyn Shelf,
    to: &dyn Shelf,
    embedder: Option<EmbedderId>,
    progress: &dyn Progress,
) -> Result<Exported, IngestError> {
    let _lock = lock(folder)?;
    progress.step("reading");
    let mut book = from.take().await?;
    if let Some(embedder) = embedder.filter(|embedder| book.embedder.accepts(embedder)) {
        book.embedder = embedder;
    }
    if book.chunks.is_empty() {
        return Err(IndexError::Empty.into());
    }
    progress.step("writing");
    let generation = to.publish(&book.parts(), &|done, total| progress.passages(done, total)).await?;
    Ok(Exported {
        generation,
        pages: book.pages.len(),
        chunks: book.chunks.len(),
        embedder: book.embedder.to_string(),
    })
}
