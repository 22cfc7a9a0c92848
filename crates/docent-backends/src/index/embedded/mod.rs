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
mod lexical;
mod shelf;
pub mod vectors;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use docent_core::chunk::Chunk;
use docent_core::index::{
    Candidate, Candidates, Description, Filter, Index, IndexError, IndexQuery, PageOutline,
};

use generation::Generation;
pub use shelf::FolderShelf;

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

    async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError> {
        let generation = self.generation();
        let damaged =
            |error: tantivy::TantivyError| IndexError::Damaged(format!("{}: {error}", generation.name));
        let rows = generation.page_rows(document_id)?;
        rows.map(|row| generation.lexical.chunk(row).map_err(damaged)).collect()
    }

    async fn outline(&self) -> Result<Vec<PageOutline>, IndexError> {
        let generation = self.generation();
        let read = move || {
            let damaged =
                |error: tantivy::TantivyError| IndexError::Damaged(format!("{}: {error}", generation.name));
            let rows = 0..u32::try_from(generation.describe().chunks).unwrap_or(u32::MAX);
            let chunks: Result<Vec<Arc<Chunk>>, _> =
                rows.map(|row| generation.lexical.chunk(row).map_err(damaged)).collect();
            Ok(PageOutline::of(chunks?.iter().map(AsRef::as_ref)))
        };
        tokio::task::spawn_blocking(read)
            .await
            .unwrap_or_else(|error| Err(IndexError::Damaged(format!("reading it failed: {error}"))))
    }

    async fn describe(&self) -> Result<Description, IndexError> {
        Ok(self.generation().describe())
    }

    async fn version(&self) -> Result<String, IndexError> {
        Ok(self.generation().name.clone())
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
            (Some(vectors), Some(vector)) if query.filter.is_open() => {
                vectors.nearest(vector, query.depth, None)
            }
            (Some(vectors), Some(vector)) => match self.allowed(query.filter) {
                Some(allowed) => vectors.nearest(vector, query.depth, Some(&allowed)),
                None => Vec::new(),
            },
            _ => Vec::new(),
        };
        let load = |rows: Vec<(u32, f32)>| -> tantivy::Result<Vec<Candidate>> {
            rows.into_iter()
                .map(|(row, score)| Ok(Candidate { chunk: self.lexical.chunk(row)?, score }))
                .collect()
        };
        Ok(Candidates {
            lexical: load(lexical).map_err(damaged)?,
            dense: load(dense).map_err(damaged)?,
            terms,
            version: self.name.clone(),
        })
    }

    /// Whether a row may be found; none when there is nothing of what the filter names.
    fn allowed(&self, filter: &Filter) -> Option<impl Fn(u32) -> bool + Sync + '_> {
        fn number<T>(names: &BTreeMap<String, T>, wanted: Option<&String>) -> Option<Option<u16>> {
            let Some(wanted) = wanted else { return Some(None) };
            names.keys().zip(0..).find(|(name, _)| *name == wanted).map(|(_, number)| Some(number))
        }
        let book = number(&self.manifest.books, filter.book.as_ref())?;
        let module = number(&self.manifest.modules, filter.module.as_ref())?;
        Some(move |row: u32| {
            book.is_none_or(|book| self.row_books[row as usize] == book)
                && module.is_none_or(|module| self.row_modules[row as usize] == module)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docent_core::embed::Vector;
    use docent_core::testing::{LetterEmbedder, chunk, index_contract};

    use super::build::{build, build_in_memory};
    use crate::index::parts::made::with_parts;

    fn one(content: &str) -> Vec<(Chunk, Vector)> {
        let chunk = chunk("page", 0, content);
        let vector = LetterEmbedder::vector(&chunk.embedded_text());
        vec![(chunk, vector)]
    }

    #[tokio::test]
    async fn an_index_on_disk_keeps_the_contract() {
        let folder = tempfile::tempdir().unwrap();
        index_contract(async |chunks| {
            with_parts(&chunks, |parts| build(folder.path(), parts)).unwrap();
            Arc::new(EmbeddedIndex::open(folder.path()).unwrap()) as Arc<dyn Index>
        })
        .await;
    }

    #[tokio::test]
    async fn an_index_in_memory_keeps_the_contract() {
        index_contract(async |chunks| {
            let generation = with_parts(&chunks, |parts| build_in_memory("memory", parts)).unwrap();
            Arc::new(EmbeddedIndex::in_memory(generation)) as Arc<dyn Index>
        })
        .await;
    }

    fn answer(index: &EmbeddedIndex) -> String {
        let query = IndexQuery { text: "node", vector: None, filter: &Default::default(), depth: 5 };
        index.generation().search(&query).unwrap().lexical[0].chunk.content.clone()
    }

    #[test]
    fn an_open_index_moves_to_what_is_published() {
        let folder = tempfile::tempdir().unwrap();
        with_parts(&one("old node"), |parts| build(folder.path(), parts)).unwrap();
        let index = EmbeddedIndex::open(folder.path()).unwrap();
        assert_eq!(answer(&index), "old node");
        with_parts(&one("new node"), |parts| build(folder.path(), parts)).unwrap();
        assert_eq!(answer(&index), "new node");
    }

    #[test]
    fn a_broken_new_generation_leaves_the_old_one_answering() {
        let folder = tempfile::tempdir().unwrap();
        with_parts(&one("old node"), |parts| build(folder.path(), parts)).unwrap();
        let index = EmbeddedIndex::open(folder.path()).unwrap();
        let name = with_parts(&one("new node"), |parts| build(folder.path(), parts)).unwrap();
        std::fs::remove_file(folder.path().join(name).join("manifest.json")).unwrap();
        assert_eq!(answer(&index), "old node");
    }

    #[test]
    fn generations_nobody_needs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..5 {
            with_parts(&one(&format!("node {number}")), |parts| build(folder.path(), parts)).unwrap();
        }
        let kept: Vec<bool> =
            (1..=5).map(|number| folder.path().join(format!("g00000{number}")).exists()).collect();
        assert_eq!(kept, [false, false, false, true, true]);
    }

    #[test]
    fn any_file_cut_or_changed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let name = with_parts(&one("a node"), |parts| build(folder.path(), parts)).unwrap();
        let root = folder.path().join(&name);
        let manifest = generation::read_manifest(&root).unwrap();
        assert!(manifest.files.len() >= 8, "{:?}", manifest.files);
        for file in manifest.files.keys().map(String::as_str).chain(["manifest.json"]) {
            let path = root.join(file);
            let whole = std::fs::read(&path).unwrap();
            let mut changed = whole.clone();
            let middle = changed.len() / 2;
            changed[middle] ^= 0x55;
            for broken in [&whole[..whole.len() - 1], &changed, &[]] {
                std::fs::write(&path, broken).unwrap();
                match EmbeddedIndex::open(folder.path()) {
                    Err(IndexError::Damaged(_) | IndexError::OtherFormat { .. }) => {}
                    // The last byte of the manifest is a bracket; some bytes in it are only a date.
                    Ok(_) if file == "manifest.json" => {}
                    Ok(_) => panic!("{file} was broken and nobody noticed"),
                    Err(other) => panic!("{file}: {other}"),
                }
            }
            std::fs::write(&path, whole).unwrap();
        }
        assert!(EmbeddedIndex::open(folder.path()).is_ok());
    }
}
