//! The folder of an embedded index as a place for books.

use std::collections::HashMap;
use std::path::PathBuf;

use async_trait::async_trait;
use docent_core::chunk::Chunk;
use docent_core::embed::Vector;
use docent_core::index::IndexError;

use super::build::build;
use super::generation::{self, Generation};
use crate::index::parts::{Key, Parts, SourceRecord, WholeBook, labels};
use crate::index::shelf::{Published, Shelf};

/// The index in a folder.
#[derive(Debug, Clone)]
pub struct FolderShelf {
    /// Where its generations are.
    pub folder: PathBuf,
}

#[async_trait]
impl Shelf for FolderShelf {
    /// A damaged or foreign generation is no reason not to make a new one.
    async fn published(&self) -> Result<Option<Published>, IndexError> {
        let Ok(Some(name)) = generation::current(&self.folder) else { return Ok(None) };
        let root = self.folder.join(&name);
        let whole = generation::read_manifest(&root)
            .and_then(|manifest| generation::check_files(&root, &manifest, true).map(|()| manifest))
            .and_then(|manifest| Ok((generation::read_pages(&root)?, manifest)));
        match whole {
            Ok((pages, manifest)) => Ok(Some(Published {
                name,
                embedder: manifest.embedder,
                language: manifest.language,
                sources: manifest.sources,
                pages,
                as_configured: true,
            })),
            Err(error) => {
                tracing::warn!(%error, "the published generation cannot be reused");
                Ok(None)
            }
        }
    }

    async fn sources(&self) -> Result<Vec<SourceRecord>, IndexError> {
        let Some(name) = generation::current(&self.folder)? else { return Ok(Vec::new()) };
        generation::read_sources(&self.folder.join(name))
    }

    async fn vectors(&self) -> Result<HashMap<Key, Vector>, IndexError> {
        let Some(name) = generation::current(&self.folder)? else { return Ok(HashMap::new()) };
        let root = self.folder.join(name);
        let width = generation::read_manifest(&root)?.embedder.width;
        generation::read_keyed_vectors(&root, width)
    }

    async fn publish(
        &self,
        parts: &Parts<'_>,
        _written: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<String, IndexError> {
        build(&self.folder, parts)
    }

    async fn take(&self) -> Result<WholeBook, IndexError> {
        let generation = Generation::open_current(&self.folder)?;
        let root = self.folder.join(&generation.name);
        let damaged =
            |error: tantivy::TantivyError| IndexError::Damaged(format!("{}: {error}", root.display()));
        let rows = 0..u32::try_from(generation.lexical.rows()).unwrap_or(u32::MAX);
        let chunks: Result<Vec<Chunk>, IndexError> =
            rows.map(|row| Ok(generation.lexical.chunk(row).map_err(damaged)?.as_ref().clone())).collect();
        let (keys, vectors) = generation::read_vectors(&root)?;
        let manifest = &generation.manifest;
        Ok(WholeBook {
            embedder: manifest.embedder.clone(),
            language: manifest.language,
            pages: generation::read_pages(&root)?,
            chunks: chunks?,
            vectors,
            keys,
            labels: labels(&manifest.modules, &manifest.books),
            sources: manifest.sources.clone(),
            created_at: manifest.created_at.clone(),
        })
    }
}
