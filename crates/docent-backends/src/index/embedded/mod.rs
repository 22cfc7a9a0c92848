//! An index in a folder: immutable generations, one of which is published.
//!
//! Any number of processes may search while one ingests. Every search checks which generation is published
//! and opens it if it is not open already; a single query never mixes two generations.
//!
//! Invariant: once a search has succeeded, later ones do too, whatever happens to newer generations. A new
//! generation is opened by a single request, and a damaged one is tried only once.

pub mod build;
mod files;
pub mod generation;
mod lexical;
mod target;
pub mod vectors;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use docent_core::chunk::Chunk;
use docent_core::index::{
    Candidate, Candidates, Description, Filter, Identity, Index, IndexError, IndexQuery, PageOutline, RowId,
};
use tokio::task::JoinError;

use generation::{Generation, MOST_IN_MEMORY};
pub use target::FolderTarget;

/// How long to wait before opening a generation again that could not be read. A damaged one is not retried.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// The index in a folder, or one in memory.
#[derive(Clone)]
pub struct EmbeddedIndex {
    folder: Option<PathBuf>,
    open: Arc<RwLock<Open>>,
    /// Held while a generation is being opened.
    opening: Arc<tokio::sync::Mutex<()>>,
    most_in_memory: u64,
}

#[derive(Default)]
struct Open {
    generation: Option<Arc<Generation>>,
    /// The previous generation, kept until the new one has been checked.
    before: Option<Arc<Generation>>,
    /// The last generation that could not be opened, when that was, and the error.
    failed: Option<(String, Instant, IndexError)>,
}

/// Which generation to use, according to the folder.
enum Look {
    /// Use this one, which is open.
    At(Arc<Generation>),
    /// Another one is published; the open one, if any, can be used until that one is open.
    Moved(Option<Arc<Generation>>),
}

impl EmbeddedIndex {
    /// Opens the published generation, and switches to later ones when they are published.
    pub fn open(folder: &Path) -> Result<Self, IndexError> {
        let index = Self::follow(folder);
        index.generation()?;
        Ok(index)
    }

    /// Uses whatever is published in a folder, now or later. Until then, searches fail with
    /// [`IndexError::Empty`].
    pub fn follow(folder: &Path) -> Self {
        Self::new(Some(folder.to_owned()), Open::default())
    }

    /// An index that exists only in memory.
    pub fn in_memory(generation: Generation) -> Self {
        Self::fixed(Arc::new(generation))
    }

    /// An index that always uses this generation.
    fn fixed(generation: Arc<Generation>) -> Self {
        Self::new(None, Open { generation: Some(generation), ..Open::default() })
    }

    fn new(folder: Option<PathBuf>, open: Open) -> Self {
        Self {
            folder,
            open: Arc::new(RwLock::new(open)),
            opening: Arc::default(),
            most_in_memory: MOST_IN_MEMORY,
        }
    }

    /// The published generation. Opens it on the current thread if it is not open yet.
    pub fn generation(&self) -> Result<Arc<Generation>, IndexError> {
        match self.look()? {
            Look::At(generation) => Ok(generation),
            Look::Moved(open) => match (self.opening.try_lock(), open) {
                (Ok(_opening), _) => self.move_over(),
                (Err(_), Some(open)) => Ok(open),
                (Err(_), None) => {
                    let _opening = self.opening.blocking_lock();
                    self.move_over()
                }
            },
        }
    }

    /// Like [`Self::generation`], for asynchronous callers: one of them opens the new generation on a
    /// blocking thread, while the others keep using the old one.
    async fn current(&self) -> Result<Arc<Generation>, IndexError> {
        let open = match self.look()? {
            Look::At(generation) => return Ok(generation),
            Look::Moved(open) => open,
        };
        let opening = match (self.opening.clone().try_lock_owned(), open) {
            (Ok(opening), _) => opening,
            (Err(_), Some(open)) => return Ok(open),
            (Err(_), None) => self.opening.clone().lock_owned().await,
        };
        // Opening continues even if the caller is cancelled.
        let index = self.clone();
        aside(move || {
            let _opening = opening;
            index.move_over()
        })
        .await
    }

    /// Determines which generation to use. Reads a file of a few bytes.
    fn look(&self) -> Result<Look, IndexError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let published = match &self.folder {
            Some(folder) => generation::current(folder),
            None => Ok(None),
        };
        match (published, &open.generation) {
            (Ok(Some(name)), Some(generation)) if name == generation.name => Ok(Look::At(generation.clone())),
            (Ok(Some(name)), generation) => match (&open.failed, generation) {
                (Some((failed, when, error)), generation)
                    if *failed == name && !(is_transient(error) && when.elapsed() > RETRY_AFTER) =>
                {
                    generation.clone().map(Look::At).ok_or_else(|| again(error))
                }
                (_, generation) => Ok(Look::Moved(generation.clone())),
            },
            (_, Some(generation)) => Ok(Look::At(generation.clone())),
            (Ok(None), None) => Err(IndexError::Empty),
            (Err(error), None) => Err(error),
        }
    }

    /// Opens the published generation, unless another request has opened it meanwhile. The caller holds
    /// `opening`.
    fn move_over(&self) -> Result<Arc<Generation>, IndexError> {
        let (folder, before) = match (self.look()?, &self.folder) {
            (Look::At(generation), _) => return Ok(generation),
            (Look::Moved(open), Some(folder)) => (folder, open),
            (Look::Moved(_), None) => return Err(IndexError::Empty),
        };
        let name = generation::current(folder)?.ok_or(IndexError::Empty)?;
        let opened = Generation::open_current(folder, self.most_in_memory);
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        match opened {
            Ok(newer) => {
                let newer = Arc::new(newer);
                if let Some(before) = &before {
                    tracing::info!(from = %before.name, to = %newer.name, "switched to a new generation");
                }
                let unchecked = newer.needs_check();
                *open = Open {
                    generation: Some(newer.clone()),
                    before: before.filter(|_| unchecked),
                    failed: None,
                };
                drop(open);
                if unchecked {
                    self.check_in_background(newer.clone());
                }
                Ok(newer)
            }
            Err(error) => {
                if let Some(before) = &before {
                    tracing::error!(%error, still = %before.name, "cannot open the new generation; still using the old one");
                }
                let answer = before.ok_or_else(|| again(&error));
                open.failed = Some((name, Instant::now(), error));
                answer
            }
        }
    }

    /// A large generation is used at once, and its checksums are verified in the background.
    fn check_in_background(&self, generation: Arc<Generation>) {
        let index = self.clone();
        let check = move || index.check(&generation);
        if let Err(error) = std::thread::Builder::new().name("docent-check".to_owned()).spawn(check) {
            tracing::error!(%error, "cannot start the index check");
        }
    }

    /// Verifies the checksums of a generation. If that fails, the generation is rejected and the previous one
    /// is used again.
    fn check(&self, generation: &Arc<Generation>) {
        let checked = generation.check();
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if open.generation.as_ref().is_none_or(|open| !Arc::ptr_eq(open, generation)) {
            return;
        }
        let before = open.before.take();
        if let Err(error) = checked {
            let still = before.as_ref().map(|before| before.name.as_str());
            tracing::error!(%error, refused = %generation.name, still, "the generation is damaged and will not be used");
            *open = Open {
                generation: before,
                before: None,
                failed: Some((generation.name.clone(), Instant::now(), error)),
            };
        }
    }
}

/// Runs blocking work outside the async worker threads.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IndexError> + Send + 'static,
) -> Result<T, IndexError> {
    // Interrupted work does not mean that the files are damaged.
    let interrupted = |error: JoinError| IndexError::Unavailable(format!("task interrupted: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(interrupted)?
}

/// Whether trying again may help.
fn is_transient(error: &IndexError) -> bool {
    matches!(error, IndexError::Io { .. })
}

/// A copy of the error for the next caller.
fn again(error: &IndexError) -> IndexError {
    match error {
        IndexError::Empty => IndexError::Empty,
        IndexError::OtherFormat { found, expected } => {
            IndexError::OtherFormat { found: *found, expected: *expected }
        }
        IndexError::Io { context, source } => IndexError::Io {
            context: context.clone(),
            source: std::io::Error::new(source.kind(), source.to_string()),
        },
        IndexError::Damaged(message) => IndexError::Damaged(message.clone()),
        other => IndexError::Unusable(other.to_string()),
    }
}

#[async_trait]
impl Index for EmbeddedIndex {
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        let generation = self.current().await?;
        let (text, filter) = (query.text.to_owned(), query.filter.clone());
        let (depth, analyzed) = (query.depth, query.analyzed);
        let vector = query.vector.map(<[f32]>::to_vec);
        aside(move || {
            let query =
                IndexQuery { text: &text, vector: vector.as_deref(), filter: &filter, depth, analyzed };
            generation.search(&query)
        })
        .await
    }

    async fn chunks(&self, rows: &[RowId]) -> Result<Vec<Option<Arc<Chunk>>>, IndexError> {
        let (generation, rows) = (self.current().await?, rows.to_vec());
        aside(move || generation.chunks(&rows)).await
    }

    async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError> {
        let (generation, document_id) = (self.current().await?, document_id.to_owned());
        aside(move || {
            generation.sound()?;
            generation.page_rows(&document_id)?.map(|row| generation.chunk(row)).collect()
        })
        .await
    }

    async fn outline(&self) -> Result<Vec<PageOutline>, IndexError> {
        let generation = self.current().await?;
        aside(move || {
            generation.sound()?;
            let rows = 0..u32::try_from(generation.manifest.chunks).unwrap_or(u32::MAX);
            let chunks: Result<Vec<Arc<Chunk>>, _> = rows.map(|row| generation.chunk(row)).collect();
            Ok(PageOutline::of(chunks?.iter().map(AsRef::as_ref)))
        })
        .await
    }

    async fn vocabulary(&self) -> Result<Vec<(String, u32)>, IndexError> {
        let generation = self.current().await?;
        aside(move || {
            generation.sound()?;
            generation.lexical.vocabulary().map_err(|error| generation.damaged(&error))
        })
        .await
    }

    async fn describe(&self) -> Result<Description, IndexError> {
        Ok(self.current().await?.describe())
    }

    async fn identity(&self) -> Result<Identity, IndexError> {
        let generation = self.current().await?;
        Ok(Identity {
            version: generation.name.clone(),
            embedder: generation.manifest.embedder.clone(),
            language: generation.manifest.language,
        })
    }

    async fn pinned(self: Arc<Self>) -> Result<Arc<dyn Index>, IndexError> {
        Ok(Arc::new(Self::fixed(self.current().await?)))
    }
}

impl Generation {
    /// Both rankings for a query, on the calling thread.
    pub fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        self.sound()?;
        let damaged = |error| self.damaged(&error);
        let unread = |error: std::io::Error| files::unreadable(Path::new(&self.name), error);
        let editions = self.admitted_editions(query.filter);
        let lexical = self.lexical.best(query, editions.as_deref()).map_err(damaged)?;
        let dense = match (&self.vectors, query.vector) {
            (Some(vectors), Some(vector)) if vector.len() != vectors.width() => {
                return Err(IndexError::WrongWidth { expected: vectors.width(), actual: vector.len() });
            }
            (Some(vectors), Some(vector))
                if editions.is_none() && query.filter.book.is_none() && query.filter.module.is_none() =>
            {
                vectors.nearest(vector, query.depth, None).map_err(unread)?
            }
            (Some(vectors), Some(vector)) => match self.allowed(query.filter, editions) {
                Some(allowed) => vectors.nearest(vector, query.depth, Some(&allowed)).map_err(unread)?,
                None => Vec::new(),
            },
            _ => Vec::new(),
        };
        let candidate = |(row, score): (u32, f32)| {
            let page = self.row_pages.get(row as usize).copied().unwrap_or_default();
            Candidate { row: RowId::Number(row.into()), page, score }
        };
        let found = Candidates {
            lexical: lexical.rows.into_iter().map(candidate).collect(),
            dense: dense.into_iter().map(candidate).collect(),
            terms: lexical.terms,
            absent: lexical.absent,
            version: self.name.clone(),
        };
        // The background check may have found damage during the search.
        self.sound()?;
        Ok(found)
    }

    /// The chunks in these rows, on the calling thread; none for a row that does not exist.
    pub fn chunks(&self, rows: &[RowId]) -> Result<Vec<Option<Arc<Chunk>>>, IndexError> {
        let read = |row: &RowId| match row {
            RowId::Number(row) if *row < self.manifest.chunks as u64 => self.chunk(*row as u32).map(Some),
            _ => Ok(None),
        };
        let chunks = rows.iter().map(read).collect::<Result<_, _>>()?;
        self.sound()?;
        Ok(chunks)
    }

    /// The chunk in a row.
    fn chunk(&self, row: u32) -> Result<Arc<Chunk>, IndexError> {
        self.lexical.chunk(row).map_err(|error| self.damaged(&error))
    }

    fn damaged(&self, error: &tantivy::TantivyError) -> IndexError {
        IndexError::Damaged(format!("{}: {error}", self.name))
    }

    /// The numbers of the editions that the filter admits; none if it admits all.
    fn admitted_editions(&self, filter: &Filter) -> Option<Vec<u16>> {
        let numbered = (0..).zip(&self.manifest.editions);
        let admitted: Vec<u16> = numbered
            .filter(|(_, edition)| filter.admits_edition(edition))
            .map(|(number, _)| number)
            .collect();
        (admitted.len() < self.manifest.editions.len()).then_some(admitted)
    }

    /// A predicate for the rows that match the filter; `None` if the book or module does not exist.
    fn allowed(
        &self,
        filter: &Filter,
        editions: Option<Vec<u16>>,
    ) -> Option<impl Fn(u32) -> bool + Sync + '_> {
        fn number<T>(names: &BTreeMap<String, T>, wanted: Option<&String>) -> Option<Option<u16>> {
            let Some(wanted) = wanted else { return Some(None) };
            names.keys().zip(0..).find(|(name, _)| *name == wanted).map(|(_, number)| Some(number))
        }
        let book = number(&self.manifest.books, filter.book.as_ref())?;
        let module = number(&self.manifest.modules, filter.module.as_ref())?;
        let editions = editions.map(|admitted| {
            (0..self.manifest.editions.len() as u16)
                .map(|number| admitted.contains(&number))
                .collect::<Vec<_>>()
        });
        let is_admitted = move |row: u32| match &editions {
            Some(admitted) => {
                let number = self.row_editions.get(row as usize).copied().unwrap_or_default();
                admitted.get(usize::from(number)).copied().unwrap_or_default()
            }
            None => true,
        };
        Some(move |row: u32| {
            is_admitted(row)
                && book.is_none_or(|book| self.row_books[row as usize] == book)
                && module.is_none_or(|module| self.row_modules[row as usize] == module)
        })
    }
}

#[cfg(test)]
mod tests;
