//! The ingest flow: source → parse → chunk → embed → build → publish.
//!
//! The listed sources are the whole book: pages that no longer exist are removed. Unchanged passages keep
//! their vectors, and passages embedded before a crash are not embedded again.
//!
//! Invariant: the old generation stays in use until the new one is published.

mod book;
mod changes;
mod editions;
mod embedding;
mod journal;
mod volume;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use docent_core::chunk::{Chunk, chunk};
use docent_core::embed::{EmbedError, Embedder, EmbedderId, Vector};
use docent_core::index::IndexError;
use docent_core::language::Language;
use docent_parse::document::{Document, Warning};
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::failpoint;
use crate::figures;
use crate::index::contents::{BookContents, Key, PageRecord, SourceRecord};
use crate::index::target::{IndexTarget, Published};
use crate::progress::Progress;
use crate::source::site::{self, SiteReport};
use crate::source::{Reading, SourceError};
use book::{language_sample, read_book};
pub use changes::{Change, Changes, PageChange, page_record};
use editions::Editions;
use embedding::{Embedded, Embedding};
use journal::journal_path;
use volume::Volume;

/// Estimated characters per token when no embedder can count them.
const CHARACTERS_PER_TOKEN: usize = 4;

/// Maximum tokens per chunk when no embedder sets a limit.
const TOKENS_WITHOUT_EMBEDDER: usize = 256;

/// What to ingest.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// All sources of the book.
    pub sources: Vec<SourceRecord>,
    /// The book's language; detected if not set.
    pub language: Option<Language>,
    /// Limits for crawling sites.
    pub limits: site::Limits,
    /// How sources are read. Its `stop` token cancels the ingest between files, pages and batches.
    pub reading: Reading,
}

impl Plan {
    /// A plan with the default limits.
    pub fn new(sources: Vec<SourceRecord>) -> Self {
        Self { sources, language: None, limits: site::Limits::default(), reading: Reading::default() }
    }
}

/// What an ingest did.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The current generation.
    pub generation: String,
    /// Whether this run published it; nothing is published if the book is unchanged.
    pub published: bool,
    /// How many pages were added, changed, removed or unchanged.
    pub pages: Changes,
    /// How many sections were added, changed, removed or unchanged.
    pub sections: Changes,
    /// The pages that were added, changed or removed; empty for the first ingest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<PageChange>,
    /// Chunks in the book.
    pub chunks: usize,
    /// Chunks embedded by this run.
    pub embedded: usize,
    /// Tokens embedded by this run, which is what embedding APIs bill.
    pub embedded_tokens: usize,
    /// Chunks whose vectors were reused from the last generation or an interrupted run.
    pub reused: usize,
    /// Of the reused chunks, those embedded by an interrupted run.
    pub resumed: usize,
    /// The book's language.
    pub language: Language,
    /// The embedder that made the vectors.
    pub embedder: String,
    /// The detected kind of each source.
    pub kinds: Vec<String>,
    /// Number of files that are not pages, by extension.
    pub other_files: BTreeMap<String, usize>,
    /// One report per crawled site.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<SiteReport>,
    /// Content that was skipped or not understood.
    pub warnings: Vec<Warning>,
    /// How long each step took.
    pub steps: Vec<StepTime>,
}

impl Report {
    /// The report if nothing were published: compares the pages with those of the published generation.
    fn unchanged(published: Option<&Published>, pages: &[PageRecord], chunks: usize) -> Self {
        let before = published.map(|published| published.pages.as_slice()).unwrap_or_default();
        Self {
            generation: published.map(|published| published.name.clone()).unwrap_or_default(),
            published: false,
            pages: changes::pages(before, pages),
            sections: changes::sections(before, pages),
            changed: match published {
                Some(_) => changes::changed_pages(before, pages),
                None => Vec::new(),
            },
            chunks,
            embedded: 0,
            embedded_tokens: 0,
            reused: chunks,
            resumed: 0,
            language: Language::default(),
            embedder: String::new(),
            kinds: Vec::new(),
            other_files: BTreeMap::new(),
            sites: Vec::new(),
            warnings: Vec::new(),
            steps: Vec::new(),
        }
    }
}

/// How long a step took.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct StepTime {
    /// The name of the step.
    pub name: String,
    /// Its duration in seconds.
    pub seconds: f64,
}

/// Reports steps and measures their duration.
struct Steps<'a> {
    progress: &'a dyn Progress,
    done: Vec<StepTime>,
    open: Option<(&'static str, Instant)>,
}

impl<'a> Steps<'a> {
    fn new(progress: &'a dyn Progress) -> Self {
        Self { progress, done: Vec::new(), open: None }
    }

    fn begin(&mut self, name: &'static str) {
        self.end();
        self.progress.step(name);
        self.open = Some((name, Instant::now()));
    }

    fn end(&mut self) {
        if let Some((name, start)) = self.open.take() {
            self.done.push(StepTime { name: name.to_owned(), seconds: start.elapsed().as_secs_f64() });
        }
    }

    fn finish(mut self) -> Vec<StepTime> {
        self.end();
        self.done
    }
}

/// Why an ingest stopped, sorted by what the caller can do about it. The old generation stays current.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IngestError {
    /// Fix the source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Use a source that contains pages.
    #[error("no pages found in {0}")]
    NoPages(String),
    /// Use a source whose pages have text.
    #[error("the pages in {0} have no text")]
    NoText(String),
    /// Wait for the other ingest.
    #[error("another ingest is writing to {}", .0.display())]
    Busy(PathBuf),
    /// Fix the embedder or the connection to it; vectors made so far are kept.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// Free disk space or fix permissions; nothing was lost.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Nothing to fix: the ingest was cancelled. Vectors made so far are kept.
    #[error("stopped before the end")]
    Stopped,
}

impl IngestError {
    /// Whether the disk has no space left.
    fn is_full(&self) -> bool {
        matches!(self, Self::Index(IndexError::Io { source, .. })
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

/// Reads all sources and publishes them on the target as a new generation. The journal and the lock are
/// kept in `folder`. If the disk is full, the journal is shortened to free space.
///
/// When `plan.reading.stop` is cancelled, the ingest ends at its next await point or after the current file
/// or batch; publishing is not interrupted.
pub async fn ingest(
    folder: &Path,
    target: &dyn IndexTarget,
    embedder: Option<&dyn Embedder>,
    plan: &Plan,
    progress: &dyn Progress,
) -> Result<Report, IngestError> {
    let _lock = lock(folder)?;
    let done = tokio::select! {
        biased;
        () = plan.reading.stop.cancelled() => Err(IngestError::Stopped),
        done = run(folder, target, embedder, plan, progress) => done,
    };
    if let (Err(error), Some(embedder)) = (&done, embedder)
        && error.is_full()
        && let Err(error) = journal::give_space_back(&journal_path(folder), embedder.id().width)
    {
        tracing::warn!(%error, "cannot shrink the journal");
    }
    done.map_err(|error| match error {
        IngestError::Source(SourceError::Stopped) => IngestError::Stopped,
        error => error,
    })
}

async fn run(
    folder: &Path,
    target: &dyn IndexTarget,
    embedder: Option<&dyn Embedder>,
    plan: &Plan,
    progress: &dyn Progress,
) -> Result<Report, IngestError> {
    let go_on = || if plan.reading.stop.is_cancelled() { Err(IngestError::Stopped) } else { Ok(()) };
    let mut steps = Steps::new(progress);
    steps.begin("reading");
    let mut book = read_book(plan, folder, progress).await?;
    let language = plan.language.unwrap_or_else(|| Language::detect(&language_sample(&book.volumes)));

    steps.begin("chunking");
    let (chunks, pages) = cut(std::mem::take(&mut book.volumes), &book.editions, embedder);
    go_on()?;

    let id = embedder.map_or_else(EmbedderId::none, |embedder| embedder.id().clone());
    let published = target.published().await?;
    let mut report = Report {
        language,
        embedder: id.to_string(),
        kinds: book.kinds,
        other_files: book.other_files,
        sites: book.sites,
        warnings: book.warnings,
        ..Report::unchanged(published.as_ref(), &pages, chunks.len())
    };
    if published.as_ref().is_some_and(|before| is_published(before, &pages, &id, language, &plan.sources)) {
        report.steps = steps.finish();
        return Ok(report);
    }

    let mut vectors = Embedded::default();
    if let Some(embedder) = embedder {
        steps.begin("embedding");
        let known = reusable_vectors(target, published.as_ref(), &id).await?;
        let embedding = Embedding { folder, embedder, progress, stop: &plan.reading.stop };
        vectors = embedding.run(&chunks, known, &mut report).await?;
    }

    go_on()?;
    steps.begin("building");
    let contents = BookContents {
        embedder: id,
        language,
        pages: &pages,
        chunks: &chunks,
        vectors: &vectors.rows,
        keys: &vectors.keys,
        labels: book.labels,
        sources: plan.sources.clone(),
        created_at: crate::now_rfc3339(),
    };
    report.generation = target.publish(&contents, &|done, total| progress.passages(done, total)).await?;
    report.published = true;
    report.steps = steps.finish();
    if let Err(error) = figures::forget_others(folder, &chunks) {
        tracing::warn!(%error, "cannot remove images that are no longer in the book");
    }
    remove_journal(folder)?;
    Ok(report)
}

/// The published vectors by key; none if another embedder made them.
async fn reusable_vectors(
    target: &dyn IndexTarget,
    published: Option<&Published>,
    embedder: &EmbedderId,
) -> Result<HashMap<Key, Vector>, IndexError> {
    match published {
        Some(before) if before.embedder == *embedder => target.vectors().await,
        _ => Ok(HashMap::new()),
    }
}

/// Removes the journal once its vectors are in a generation. If that fails, the next ingest just reads it again.
fn remove_journal(folder: &Path) -> Result<(), IngestError> {
    let journal = journal_path(folder);
    failpoint::reach("journal.remove").map_err(|error| disk("cannot remove", &journal, error))?;
    let _ = fs::remove_file(journal);
    Ok(())
}

/// The lock held while an ingest writes; searches do not need it.
pub(crate) fn lock(folder: &Path) -> Result<File, IngestError> {
    fs::create_dir_all(folder).map_err(|error| disk("cannot create", folder, error))?;
    let path = folder.join("ingest.lock");
    failpoint::reach("ingest.lock").map_err(|error| disk("cannot create", &path, error))?;
    let file = File::create(&path).map_err(|error| disk("cannot create", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(IngestError::Busy(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(disk("cannot lock", &path, error)),
    }
}

fn disk(what: &str, path: &Path, source: io::Error) -> IngestError {
    IndexError::Io { context: format!("{what} {}", path.display()), source }.into()
}

/// Cuts pages into passages. Each page is dropped as soon as it is cut, to save memory: its passages contain
/// its text.
fn cut(
    volumes: Vec<Volume>,
    editions: &Editions,
    embedder: Option<&dyn Embedder>,
) -> (Vec<Chunk>, Vec<PageRecord>) {
    let limit = embedder.map_or(TOKENS_WITHOUT_EMBEDDER, Embedder::max_tokens);
    let count = |text: &str| match embedder {
        Some(embedder) => embedder.count_tokens(text),
        None => text.len().div_ceil(CHARACTERS_PER_TOKEN),
    };
    let cut_page = |book: &str, document: Document| {
        let mut chunks = chunk(&document, limit, &count);
        let edition = editions.of(book, &document);
        for chunk in &mut chunks {
            chunk.book_name = book.to_owned();
            chunk.edition.clone_from(&edition);
            chunk.figures.retain(figures::is_known);
        }
        (PageRecord { edition, ..changes::page_record(book, &document, &chunks) }, chunks)
    };
    let (pages, chunks): (Vec<PageRecord>, Vec<Vec<Chunk>>) = volumes
        .into_iter()
        .flat_map(|Volume { name, documents }| {
            let pages: Vec<_> = documents.into_par_iter().map(|document| cut_page(&name, document)).collect();
            pages
        })
        .unzip();
    (chunks.into_iter().flatten().collect(), pages)
}

/// Whether the published generation already has exactly this content and configuration.
fn is_published(
    published: &Published,
    pages: &[PageRecord],
    embedder: &EmbedderId,
    language: Language,
    sources: &[SourceRecord],
) -> bool {
    published.as_configured
        && published.pages == pages
        && published.embedder == *embedder
        && published.language == language
        && published.sources == sources
}

#[cfg(test)]
mod tests;
