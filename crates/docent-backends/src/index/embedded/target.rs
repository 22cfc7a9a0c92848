//! The folder of an embedded index as an index target.

use std::collections::HashMap;
use std::path::PathBuf;

use async_trait::async_trait;
use docent_core::chunk::Chunk;
use docent_core::embed::Vector;
use docent_core::index::IndexError;

use super::build::build;
use super::generation::{self, Generation};
use crate::index::contents::{BookContents, Key, SourceRecord, WholeBook, labels};
use crate::index::target::{IndexTarget, Published};

/// The index in a folder.
#[derive(Debug, Clone)]
pub struct FolderTarget {
    /// The folder of its generations.
    pub folder: PathBuf,
}

#[async_trait]
impl IndexTarget for FolderTarget {
    /// A damaged generation, or one of another format, is only a warning: the ingest builds a new one.
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
        generation::read_keyed_vectors(&self.folder.join(name))
    }

    async fn publish(
        &self,
        contents: &BookContents<'_>,
        _written: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<String, IndexError> {
        build(&self.folder, contents)
    }

    async fn take(&self) -> Result<WholeBook, IndexError> {
        let generation = Generation::open_current(&self.folder, generation::MOST_IN_MEMORY)?;
        generation.check()?;
        let damaged =
            |error: tantivy::TantivyError| IndexError::Damaged(format!("{}: {error}", generation.name));
        let rows = 0..u32::try_from(generation.lexical.rows()).unwrap_or(u32::MAX);
        let chunks: Result<Vec<Chunk>, IndexError> =
            rows.map(|row| Ok(generation.lexical.chunk(row).map_err(damaged)?.as_ref().clone())).collect();
        let (keys, vectors) = generation.keyed_vectors()?;
        let manifest = &generation.manifest;
        Ok(WholeBook {
            embedder: manifest.embedder.clone(),
            language: manifest.language,
            pages: generation.pages()?,
            chunks: chunks?,
            vectors,
            keys,
            labels: labels(&manifest.modules, &manifest.books),
            sources: manifest.sources.clone(),
            created_at: manifest.created_at.clone(),
        })
    }
}
