//! The ingest flow: source → parse → chunk → embed → build → publish.
//!
//! The sources named are the whole book: a page that is no longer there disappears. What
//! did not change keeps its vectors; what was embedded before a crash is not embedded again.
//!
//! Invariant: until the new generation is published, the old one answers.

mod changes;
mod journal;

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use docent_core::chunk::{Chunk, chunk};
use docent_core::document::{Document, Warning};
use docent_core::embed::{EmbedError, Embedder, EmbedderId, Purpose};
use docent_core::index::IndexError;
use docent_core::language::Language;
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::index::parts::{Key, Labels, PageRecord, Parts, SourceRecord, key};
use crate::index::shelf::{Published, Shelf};
use crate::source::site::{self, SiteReport};
use crate::source::{self, SourceError};
pub use changes::{Change, Changes, PageChange, page_record};
use journal::Journal;

/// Without an embedder to ask, a token is taken for this many characters.
const CHARACTERS_PER_TOKEN: usize = 4;

/// The most tokens of a chunk when no embedder limits it.
const TOKENS_WITHOUT_EMBEDDER: usize = 256;

/// Text looked at to tell the book's language.
const LANGUAGE_SAMPLE: usize = 40_000;

/// What to ingest.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The whole book.
    pub sources: Vec<SourceRecord>,
    /// What it is written in; detected when not given.
    pub language: Option<Language>,
    /// The bounds for sites among the sources.
    pub limits: site::Limits,
}

/// Hears how far an ingest is.
pub trait Progress: Send + Sync {
    /// A step of the flow begins.
    fn step(&self, name: &str);
    /// So many of so many passages are through the step.
    fn passages(&self, done: usize, total: usize);
    /// So many of the pages known so far were read from a site.
    fn pages(&self, _done: usize, _known: usize) {}
}

/// What an ingest did.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The generation that answers now.
    pub generation: String,
    /// Whether it is a new one; an unchanged book publishes nothing.
    pub published: bool,
    /// What happened to pages.
    pub pages: Changes,
    /// What happened to sections.
    pub sections: Changes,
    /// Which pages came, changed and went; none when nothing was there before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<PageChange>,
    /// Chunks in the book.
    pub chunks: usize,
    /// Chunks embedded by this run.
    pub embedded: usize,
    /// Their tokens, which is what an embedder that costs money is paid for.
    pub embedded_tokens: usize,
    /// Chunks whose vectors were there, from the last generation or an interrupted run.
    pub reused: usize,
    /// Of those, the ones an interrupted run had made.
    pub resumed: usize,
    /// The book's language.
    pub language: Language,
    /// What made the vectors.
    pub embedder: String,
    /// What each source turned out to be.
    pub kinds: Vec<String>,
    /// Files that are no pages, by extension.
    pub other_files: std::collections::BTreeMap<String, usize>,
    /// What happened to the pages of sites.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<SiteReport>,
    /// What was not understood or left out.
    pub warnings: Vec<Warning>,
    /// How long each step took.
    pub steps: Vec<StepTime>,
}

/// How long a step took.
#[derive(Debug, Clone, Serialize)]
pub struct StepTime {
    /// What was done.
    pub name: String,
    /// How long.
    pub seconds: f64,
}

/// Tells of steps, and takes their time.
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

/// Why an ingest stopped, sorted by what the caller can do about it. The old generation still answers.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IngestError {
    /// Fix the source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Name a folder that has pages.
    #[error("no pages found in {0}")]
    NoPages(String),
    /// Wait for the other one.
    #[error("another ingest is writing to {}", .0.display())]
    Busy(PathBuf),
    /// Fix or reach the embedder; what it has embedded so far is kept.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// Free the disk, fix the permissions; nothing was lost.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// Makes the sources the book on the shelf. What is under way is kept in `folder`.
pub async fn ingest(
    folder: &Path,
    shelf: &dyn Shelf,
    embedder: Option<&dyn Embedder>,
    plan: &Plan,
    progress: &dyn Progress,
) -> Result<Report, IngestError> {
    let _lock = lock(folder)?;

    let mut steps = Steps::new(progress);
    steps.begin("reading");
    let mut book = read_book(plan, folder, progress).await?;
    let language = plan.language.unwrap_or_else(|| Language::detect(&language_sample(&book.volumes)));

    steps.begin("cutting");
    let (chunks, pages) = cut(std::mem::take(&mut book.volumes), embedder);

    let id = embedder.map_or_else(EmbedderId::none, |embedder| embedder.id().clone());
    let published = shelf.published().await?;
    let before = published.as_ref().map(|published| published.pages.as_slice()).unwrap_or_default();
    let mut report = Report {
        generation: published.as_ref().map(|published| published.name.clone()).unwrap_or_default(),
        published: false,
        pages: changes::pages(before, &pages),
        sections: changes::sections(before, &pages),
        changed: match published {
            Some(_) => changes::changed_pages(before, &pages),
            None => Vec::new(),
        },
        chunks: chunks.len(),
        embedded: 0,
        embedded_tokens: 0,
        reused: chunks.len(),
        resumed: 0,
        language,
        embedder: id.to_string(),
        kinds: book.kinds,
        other_files: book.other_files,
        sites: book.sites,
        warnings: book.warnings,
        steps: Vec::new(),
    };
    if published.as_ref().is_some_and(|before| is_published(before, &pages, &id, language, &plan.sources)) {
        report.steps = steps.finish();
        return Ok(report);
    }

    let vectors = match embedder {
        Some(embedder) => {
            steps.begin("embedding");
            // Vectors of another embedder say nothing about this one's.
            let known = match published {
                Some(before) if before.embedder == id => shelf.vectors().await?,
                _ => HashMap::new(),
            };
            Embedding { folder, embedder, progress }.run(&chunks, known, &mut report).await?
        }
        None => Embedded::default(),
    };

    steps.begin("building");
    let parts = Parts {
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
    report.generation = shelf.publish(&parts, &|done, total| progress.passages(done, total)).await?;
    report.published = true;
    report.steps = steps.finish();
    // The vectors are in the generation now. Should this fail, they are read once more for nothing.
    let _ = fs::remove_file(journal_path(folder));
    Ok(report)
}

/// Held while an ingest writes; readers do not need it.
pub(crate) fn lock(folder: &Path) -> Result<File, IngestError> {
    fs::create_dir_all(folder).map_err(|error| disk("cannot create", folder, error))?;
    let path = folder.join("ingest.lock");
    let file = File::create(&path).map_err(|error| disk("cannot create", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(IngestError::Busy(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(disk("cannot lock", &path, error)),
    }
}

fn journal_path(folder: &Path) -> PathBuf {
    folder.join("journal")
}

fn disk(what: &str, path: &Path, source: io::Error) -> IngestError {
    IndexError::Io { context: format!("{what} {}", path.display()), source }.into()
}

/// Everything that was read.
#[derive(Default)]
struct Book {
    volumes: Vec<Volume>,
    warnings: Vec<Warning>,
    kinds: Vec<String>,
    labels: Labels,
    other_files: std::collections::BTreeMap<String, usize>,
    sites: Vec<SiteReport>,
}

/// The pages of one source.
struct Volume {
    /// What the book is called; empty without a name.
    name: String,
    documents: Vec<Document>,
}

async fn read_book(plan: &Plan, folder: &Path, progress: &dyn Progress) -> Result<Book, IngestError> {
    let mut book = Book::default();
    for source in &plan.sources {
        let is_site = site::is_address(&source.location);
        let mut read = match is_site {
            true => site::read(source, &plan.limits, folder, progress).await?,
            false => source::read(source)?,
        };
        // The id of a page of a site is its address, which no other source has; elsewhere two
        // sources may both have an `index.md`.
        let above = match &source.name {
            _ if is_site => None,
            Some(name) => Some(name.as_str()),
            None => (plan.sources.len() > 1).then(|| source.location.trim_end_matches('/')),
        };
        if let Some(above) = above {
            let ids = read.documents.iter_mut().map(|document| &mut document.id);
            for id in ids.chain(read.warnings.iter_mut().map(|warning| &mut warning.path)) {
                *id = format!("{above}/{id}");
            }
        }
        let name = source.name.clone().unwrap_or_default();
        book.labels.extend(read.labels.into_iter().map(|(module, label)| ((name.clone(), module), label)));
        book.volumes.push(Volume { name, documents: read.documents });
        book.warnings.extend(read.warnings);
        book.kinds.push(read.kind);
        book.sites.extend(read.site);
        for (extension, count) in read.other_files {
            *book.other_files.entry(extension).or_default() += count;
        }
    }
    if let Err(error) = site::forget_others(folder, &plan.sources) {
        tracing::warn!(%error, "pages of other sites could not be removed");
    }
    if book.volumes.iter().all(|volume| volume.documents.is_empty()) {
        let named: Vec<_> = plan.sources.iter().map(|source| source.location.as_str()).collect();
        return Err(IngestError::NoPages(named.join(", ")));
    }
    Ok(book)
}

/// Prose from all over the book.
fn language_sample(volumes: &[Volume]) -> String {
    let mut sample = String::new();
    let documents = volumes.iter().flat_map(|volume| &volume.documents);
    let blocks = documents.flat_map(|document| &document.sections).flat_map(|section| &section.blocks);
    for block in blocks.filter(|block| !block.kind.is_atomic()) {
        if sample.len() > LANGUAGE_SAMPLE {
            break;
        }
        sample.push_str(&block.text);
        sample.push('\n');
    }
    sample
}

/// Cuts the pages; each goes as soon as it is cut, for its passages have its text.
fn cut(volumes: Vec<Volume>, embedder: Option<&dyn Embedder>) -> (Vec<Chunk>, Vec<PageRecord>) {
    let limit = embedder.map_or(TOKENS_WITHOUT_EMBEDDER, Embedder::max_tokens);
    let count = |text: &str| match embedder {
        Some(embedder) => embedder.count_tokens(text),
        None => text.len().div_ceil(CHARACTERS_PER_TOKEN),
    };
    let cut_page = |book: &str, document: Document| {
        let mut chunks = chunk(&document, limit, &count);
        chunks.iter_mut().for_each(|chunk| chunk.book_name = book.to_owned());
        (changes::page_record(book, &document, &chunks), chunks)
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

/// Whether this is the book that is published already.
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

#[derive(Default)]
struct Embedded {
    keys: Vec<Key>,
    rows: Vec<f32>,
}

/// The embedding step: reuse, resume, then work.
struct Embedding<'a> {
    folder: &'a Path,
    embedder: &'a dyn Embedder,
    progress: &'a dyn Progress,
}

impl Embedding<'_> {
    async fn run(
        &self,
        chunks: &[Chunk],
        mut known: HashMap<Key, Vec<f32>>,
        report: &mut Report,
    ) -> Result<Embedded, IngestError> {
        let width = self.embedder.id().width;
        let path = journal_path(self.folder);
        let mut journal = Journal::open(&path, width).map_err(|error| disk("cannot open", &path, error))?;
        let keys: Vec<Key> =
            chunks.par_iter().map(|chunk| key(self.embedder.id(), &chunk.embedded_text())).collect();

        report.resumed =
            keys.iter().filter(|key| !known.contains_key(key) && journal.vectors().contains_key(key)).count();
        known.extend(journal.take_vectors());

        let mut wanted: Vec<(Key, &Chunk)> = Vec::new();
        let mut asked = std::collections::HashSet::new();
        for (key, chunk) in keys.iter().zip(chunks) {
            if !known.contains_key(key) && asked.insert(*key) {
                wanted.push((*key, chunk));
                report.embedded_tokens += chunk.token_count as usize;
            }
        }
        report.embedded = wanted.len();
        report.reused = chunks.len() - wanted.len();
        let mut done = 0;
        self.progress.passages(done, wanted.len());
        for batch in wanted.chunks(self.embedder.batch_size().max(1)) {
            let texts: Vec<String> = batch.iter().map(|(_, chunk)| chunk.embedded_text()).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let vectors = self.embedder.embed(&texts, Purpose::Passage).await?;
            if let Some(odd) = vectors.iter().find(|vector| vector.len() != width) {
                return Err(EmbedError::WrongWidth { expected: width, actual: odd.len() }.into());
            }
            let made: Vec<_> = batch.iter().map(|(key, _)| *key).zip(vectors).collect();
            journal.append(&made).map_err(|error| disk("cannot write", &path, error))?;
            known.extend(made);
            done += batch.len();
            self.progress.passages(done, wanted.len());
        }
        let rows = keys.iter().filter_map(|key| known.get(key)).flatten().copied().collect();
        Ok(Embedded { keys, rows })
    }
}
