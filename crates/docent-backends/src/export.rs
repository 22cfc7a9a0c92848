//! Copies a book from one index to another, with its vectors: nothing is embedded again.

use std::path::Path;

use docent_core::embed::EmbedderId;
use docent_core::index::IndexError;
use serde::Serialize;

use crate::index::target::IndexTarget;
use crate::ingest::{IngestError, lock};
use crate::progress::Progress;

/// What an export did.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Exported {
    /// The generation that was published.
    pub generation: String,
    /// Number of pages copied.
    pub pages: usize,
    /// Number of chunks copied.
    pub chunks: usize,
    /// The embedder that made the vectors.
    pub embedder: String,
}

/// Copies the whole book. `embedder` names the embedder that made the vectors, for an index that does not
/// record it. Holds the ingest lock of `folder` while it runs.
pub async fn export(
    folder: &Path,
    from: &dyn IndexTarget,
    to: &dyn IndexTarget,
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
    let generation = to.publish(&book.contents(), &|done, total| progress.passages(done, total)).await?;
    Ok(Exported {
        generation,
        pages: book.pages.len(),
        chunks: book.chunks.len(),
        embedder: book.embedder.to_string(),
    })
}
