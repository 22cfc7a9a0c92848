//! An index in a folder: immutable generations, one of them published.
//!
//! Any number of processes may search while one ingests. A search looks up which
//! generation is published, keeps the one it has open if that is it, and moves over if
//! not; a query never sees two.
//!
//! Invariant: once a search has succeeded, later ones do too, whatever happens to newer
//! generations.

pub mod build;
mod column;
pub mod generation;
pub mod journal;
mod lexical;
pub mod vectors;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use docent_core::index::{Candidate, Candidates, Description, Index, IndexError, IndexQuery};

use generation::Generation;

/// The index in a folder, or one in memory.
#[derive(Clone)]
pub struct EmbeddedIndex {
    folder: Option<PathBuf>,
    open: Arc<RwLock<Arc<Generation>>>,
}

impl EmbeddedIndex {
    /// Opens the published generation; it follows later ones by itself.
    pub fn open(folder: &Path) -> Result<Self, IndexError> {
        let generation = Generation::open_current(folder)?;
        Ok(Self { folder: Some(folder.to_owned()), open: Arc::new(RwLock::new(Arc::new(generation))) })
    }

    /// An index without a disk.
    pub fn in_memory(generation: Generation) -> Self {
        Self { folder: None, open: Arc::new(RwLock::new(Arc::new(generation))) }
    }

    /// The published generation, opened now if it is a new one.
    pub fn generation(&self) -> Arc<Generation> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(folder) = &self.folder else { return open };
        match generation::current(folder) {
            Ok(Some(name)) if name != open.name => {}
            _ => return open,
        }
        let mut slot = self.open.write().unwrap_or_else(PoisonError::into_inner);
        match Generation::open_current(folder) {
            Ok(newer) => {
                tracing::info!(from = %slot.name, to = %newer.name, "moved to a new generation of the book");
                *slot = Arc::new(newer);
            }
            Err(error) => {
                tracing::warn!(%error, still = %slot.name, "the new generation cannot be opened; the old one answers");
            }
        }
        slot.clone()
    }
}

#[async_trait]
impl Index for EmbeddedIndex {
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        let index = self.clone();
        let (text, filter, depth) = (query.text.to_owned(), query.filter.clone(), query.depth);
        let vector = query.vector.map(<[f32]>::to_vec);
        let search = move || {
            let query = IndexQuery { text: &text, vector: vector.as_deref(), filter: &filter, depth };
            index.generation().search(&query)
        };
        tokio::task::spawn_blocking(search)
            .await
            .unwrap_or_else(|error| Err(IndexError::Damaged(format!("the search failed: {error}"))))
    }

    async fn describe(&self) -> Result<Description, IndexError> {
        Ok(self.generation().describe())
    }
}

impl Generation {
    /// Both rankings for a query, on the calling thread.
    pub fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        let damaged = |error: tantivy::TantivyError| IndexError::Damaged(format!("{}: {error}", self.name));
        let (lexical, terms) = self.lexical.best(query.text, query.filter, query.depth).map_err(damaged)?;
        let dense = match (&self.vectors, query.vector) {
            (Some(vectors), Some(vector)) if vector.len() != vectors.width() => {
                return Err(IndexError::WrongWidth { expected: vectors.width(), actual: vector.len() });
            }
            (Some(vectors), Some(vector)) => match &query.filter.module {
                None => vectors.nearest(vector, query.depth, None),
                Some(module) => match self.modules.binary_search(module) {
                    Ok(number) => {
                        let allowed = |row: u32| self.row_modules[row as usize] == number as u16;
                        vectors.nearest(vector, query.depth, Some(&allowed))
                    }
                    Err(_) => Vec::new(),
                },
            },
            _ => Vec::new(),
        };
        let load = |rows: Vec<(u32, f32)>| -> tantivy::Result<Vec<Candidate>> {
            rows.into_iter().map(|(row, score)| Ok(Candidate { chunk: self.lexical.chunk(row)?, score })).collect()
        };
        Ok(Candidates {
            lexical: load(lexical).map_err(damaged)?,
            dense: load(dense).map_err(damaged)?,
            terms,
            version: self.name.clone(),
        })
    }
}
