//! SEAM: store chunks and search them.
//!
//! An index returns a keyword ranking and a vector ranking of rows. [`crate::retrieve`] merges them, so that
//! every index gives the same answers, and loads the chunks of the best rows.
//!
//! Invariant: a search uses one generation. To make several calls on the same generation, pin the index with
//! [`Index::pinned`]; [`crate::library`] does so for every turn.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::chunk::Chunk;
use crate::edition::{Choice, Edition, Variant};
use crate::embed::EmbedderId;
use crate::language::Language;
use crate::terms::Analyzer;

/// Stores chunks and finds them.
#[async_trait]
pub trait Index: Send + Sync {
    /// The best rows by keywords and, if the query has a vector, by cosine similarity.
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError>;

    /// The chunks in rows that a search of this generation returned, in the same order; none for a row that
    /// does not exist. In a collection of another system, a row can be removed between two calls.
    async fn chunks(&self, rows: &[RowId]) -> Result<Vec<Option<Arc<Chunk>>>, IndexError>;

    /// All chunks of a page, in order; empty if there is no such page.
    async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError>;

    /// Every page with its sections, in the order of the book.
    async fn outline(&self) -> Result<Vec<PageOutline>, IndexError>;

    /// The terms of the text, in any order, each with the number of chunks that contain it; empty if the index
    /// cannot list them.
    async fn vocabulary(&self) -> Result<Vec<(String, u32)>, IndexError>;

    /// Describes the current generation.
    async fn describe(&self) -> Result<Description, IndexError>;

    /// Identifies the current generation. Called for every turn, so it must be cheap. It has no default
    /// implementation, so that decorators cannot forget to forward it.
    async fn identity(&self) -> Result<Identity, IndexError>;

    /// Pins the index to its current generation: the result does not see later ones.
    async fn pinned(self: Arc<Self>) -> Result<Arc<dyn Index>, IndexError>;
}

/// Identifies a generation, and says how queries for it must be embedded and analyzed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Name of the generation; changes with every publication.
    pub version: String,
    /// The embedder that made the vectors.
    pub embedder: EmbedderId,
    /// Language of the book.
    pub language: Language,
}

/// A page and its sections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageOutline {
    /// Id of the page.
    pub document_id: String,
    /// URL of the published page, without an anchor.
    pub url: String,
    /// Title of the page.
    pub title: String,
    /// Name of the book; empty if the index has only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub book_name: String,
    /// Name of the module.
    pub module_name: String,
    /// Version and locale.
    #[serde(default, skip_serializing_if = "Edition::is_plain")]
    pub edition: Edition,
    /// The sections that contain text, in order.
    pub sections: Vec<SectionOutline>,
}

/// A section of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionOutline {
    /// Heading of the section; none before the first heading.
    pub heading: Option<String>,
    /// URL of the page with the anchor of the section.
    pub url: String,
}

impl PageOutline {
    /// Builds the outline from chunks, which must be in the order of the book.
    pub fn of<'a>(chunks: impl IntoIterator<Item = &'a Chunk>) -> Vec<Self> {
        let mut pages: Vec<Self> = Vec::new();
        for chunk in chunks {
            if pages.last().is_none_or(|page| page.document_id != chunk.document_id) {
                pages.push(Self {
                    document_id: chunk.document_id.clone(),
                    url: chunk.url.split('#').next().unwrap_or_default().to_owned(),
                    title: chunk.title().to_owned(),
                    book_name: chunk.book_name.clone(),
                    module_name: chunk.module_name.clone(),
                    edition: chunk.edition.clone(),
                    sections: Vec::new(),
                });
            }
            if let Some(page) = pages.last_mut()
                && page.sections.last().is_none_or(|section| section.url != chunk.url)
            {
                page.sections.push(SectionOutline { heading: chunk.heading.clone(), url: chunk.url.clone() });
            }
        }
        pages
    }
}

/// A search in an index.
#[derive(Debug, Clone, Copy)]
pub struct IndexQuery<'a> {
    /// The query text, for the keyword search.
    pub text: &'a str,
    /// The query vector; none searches by keywords only.
    pub vector: Option<&'a [f32]>,
    /// Which chunks may be returned.
    pub filter: &'a Filter,
    /// Number of candidates in each ranking.
    pub depth: usize,
    /// Whether the text consists of terms of the vocabulary already, separated by spaces. A whole identifier in lower case
    /// would otherwise be taken for a word.
    pub analyzed: bool,
}

impl IndexQuery<'_> {
    /// The terms of the keyword search, each once.
    pub fn terms(&self, analyzer: &Analyzer) -> Vec<String> {
        if !self.analyzed {
            return analyzer.distinct(self.text);
        }
        let mut seen = HashSet::new();
        self.text.split_whitespace().filter(|term| seen.insert(*term)).map(str::to_owned).collect()
    }
}

/// Restricts a search to part of the index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Only chunks of this book.
    pub book: Option<String>,
    /// Only chunks of this module.
    pub module: Option<String>,
    /// Only chunks of these versions.
    pub version: Choice,
    /// Only chunks in these locales.
    pub locale: Choice,
}

impl Filter {
    /// Only chunks of this module; of any module if none is given.
    pub fn of_module(module: Option<String>) -> Self {
        Self { module, ..Self::default() }
    }

    /// The filter of a request, in which all names are optional.
    pub fn requested(
        book: Option<String>,
        module: Option<String>,
        version: Option<String>,
        locale: Option<String>,
    ) -> Self {
        Self { book, module, version: version.into(), locale: locale.into() }
    }

    /// Only chunks of this version and locale.
    pub fn of_edition(edition: &Edition) -> Self {
        Self::requested(None, None, edition.version.clone(), edition.locale.clone())
    }

    /// Whether the filter names nothing. It then admits the default version and the default locale.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The same filter for a page that was requested by its id: without a version or a locale, it admits all.
    pub fn for_one_page(&self) -> Self {
        Self { version: self.version.or_all(), locale: self.locale.or_all(), ..self.clone() }
    }

    /// Whether the filter admits a chunk.
    pub fn admits(&self, chunk: &Chunk) -> bool {
        self.admits_part(&chunk.book_name, &chunk.module_name) && self.admits_edition(&chunk.edition)
    }

    /// Whether the filter admits a page.
    pub fn admits_page(&self, page: &PageOutline) -> bool {
        self.admits_part(&page.book_name, &page.module_name) && self.admits_edition(&page.edition)
    }

    /// Whether the filter admits a version and a locale.
    pub fn admits_edition(&self, edition: &Edition) -> bool {
        self.version.admits(edition.version.as_deref(), edition.is_other_version)
            && self.locale.admits(edition.locale.as_deref(), edition.is_other_locale)
    }

    fn admits_part(&self, book_name: &str, module_name: &str) -> bool {
        self.book.as_ref().is_none_or(|book| book_name == book)
            && self.module.as_ref().is_none_or(|module| module_name == module)
    }
}

/// A filter names a book, module, version or locale that is not in the index.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoSuchPart {
    /// There is no such book.
    #[error("there is no book `{name}` in this index")]
    Book {
        /// The requested name.
        name: String,
        /// The names of all books.
        known: Vec<String>,
    },
    /// There is no such module.
    #[error("there is no module `{name}` in {}", .book.as_ref().map_or("this book".to_owned(), |book| format!("the book `{book}`")))]
    Module {
        /// The requested name.
        name: String,
        /// The book that was searched, if one was named.
        book: Option<String>,
        /// The names of all modules.
        known: Vec<String>,
    },
    /// There is no such version.
    #[error("there is no version `{name}` of this book")]
    Version {
        /// The requested name.
        name: String,
        /// The names of all versions, the default first.
        known: Vec<String>,
    },
    /// There is no such locale.
    #[error("there is no locale `{name}` of this book")]
    Locale {
        /// The requested name.
        name: String,
        /// The names of all locales, the default first.
        known: Vec<String>,
    },
}

impl NoSuchPart {
    /// What was named, in the plural: `books`, `modules`, `versions` or `locales`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Book { .. } => "books",
            Self::Module { .. } => "modules",
            Self::Version { .. } => "versions",
            Self::Locale { .. } => "locales",
        }
    }

    /// The name that does not exist.
    pub fn name(&self) -> &str {
        let (Self::Book { name, .. }
        | Self::Module { name, .. }
        | Self::Version { name, .. }
        | Self::Locale { name, .. }) = self;
        name
    }

    /// The names that exist.
    pub fn known(&self) -> &[String] {
        let (Self::Book { known, .. }
        | Self::Module { known, .. }
        | Self::Version { known, .. }
        | Self::Locale { known, .. }) = self;
        known
    }
}

/// Identifies a chunk within one generation of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowId {
    /// A number, such as its position in the book.
    Number(u64),
    /// A UUID, as a database may assign it.
    Uuid(Uuid),
}

/// A chunk in one of the rankings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The row of the chunk; [`Index::chunks`] loads it.
    pub row: RowId,
    /// A number that the candidates of a search share if and only if they are on the same page.
    pub page: u32,
    /// BM25 score or cosine similarity.
    pub score: f32,
}

/// The result of a search in an index: two rankings, best first.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    /// Ranked by keywords (BM25).
    pub lexical: Vec<Candidate>,
    /// Ranked by vectors (cosine similarity).
    pub dense: Vec<Candidate>,
    /// The distinct terms of the query with their weights; rare terms weigh more.
    pub terms: Vec<(String, f32)>,
    /// Those terms of the query that no chunk contains. In a collection of another system, only the candidates
    /// are considered.
    pub absent: HashSet<String>,
    /// The generation that was searched.
    pub version: String,
}

/// Describes a generation of the index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Name of the generation; changes with every publication.
    pub version: String,
    /// The embedder that made the vectors.
    pub embedder: EmbedderId,
    /// Language of the book.
    pub language: Language,
    /// Number of pages.
    pub pages: usize,
    /// Number of chunks.
    pub chunks: usize,
    /// Pages and chunks per module, sorted by name.
    pub modules: Modules,
    /// The same for each book; empty if the index has only one book.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub books: BTreeMap<String, Modules>,
    /// The versions of the book, the default first; empty if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Variant>,
    /// The locales of the book, the default first; empty if it has only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locales: Vec<Variant>,
    /// The sources it was built from.
    pub sources: Vec<String>,
    /// Time of publication, RFC 3339.
    pub created_at: String,
}

impl Description {
    /// The identity of this generation.
    pub fn identity(&self) -> Identity {
        Identity { version: self.version.clone(), embedder: self.embedder.clone(), language: self.language }
    }

    /// Checks that everything a filter names exists.
    pub fn check(&self, filter: &Filter) -> Result<(), NoSuchPart> {
        let modules = match &filter.book {
            None => &self.modules,
            Some(book) => self.books.get(book).ok_or_else(|| NoSuchPart::Book {
                name: book.clone(),
                known: self.books.keys().cloned().collect(),
            })?,
        };
        match &filter.module {
            Some(module) if !modules.contains_key(module) => Err(NoSuchPart::Module {
                name: module.clone(),
                book: filter.book.clone(),
                known: modules.keys().cloned().collect(),
            }),
            _ => Ok(()),
        }?;
        if let Some((name, known)) = unknown(&filter.version, &self.versions, filter.book.as_ref()) {
            return Err(NoSuchPart::Version { name, known });
        }
        match unknown(&filter.locale, &self.locales, filter.book.as_ref()) {
            Some((name, known)) => Err(NoSuchPart::Locale { name, known }),
            None => Ok(()),
        }
    }

    /// The names of the versions, the default first, without duplicates.
    pub fn version_names(&self) -> Vec<String> {
        names(&self.versions, None)
    }

    /// The names of the locales, the default first, without duplicates.
    pub fn locale_names(&self) -> Vec<String> {
        names(&self.locales, None)
    }
}

/// The name that was chosen and those that exist, if the chosen one does not.
fn unknown(choice: &Choice, variants: &[Variant], book: Option<&String>) -> Option<(String, Vec<String>)> {
    let (name, known) = (choice.name()?, names(variants, book));
    (!known.iter().any(|known| known == name)).then(|| (name.to_owned(), known))
}

/// The names of the versions or locales of one book, or of all books.
fn names(variants: &[Variant], book: Option<&String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for variant in variants.iter().filter(|variant| book.is_none_or(|book| variant.book == *book)) {
        if !names.contains(&variant.name) {
            names.push(variant.name.clone());
        }
    }
    names
}

/// Modules by name.
pub type Modules = BTreeMap<String, Module>;

/// A module of the book.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// The author's label for the module, if it differs from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Number of pages.
    pub pages: usize,
    /// Number of chunks.
    pub chunks: usize,
}

/// Why an index failed, sorted by what the caller can do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// Nothing has been published yet; ingest a book.
    #[error("no book has been ingested")]
    Empty,

    /// The files differ from what was published; ingest again.
    #[error("the index is damaged: {0}")]
    Damaged(String),

    /// Written by a version of Docent with another file format; ingest again.
    #[error("the index has format {found}, but this version of Docent reads format {expected}")]
    OtherFormat {
        /// The format of the index.
        found: u32,
        /// The format this version reads and writes.
        expected: u32,
    },

    /// Configure the embedder that made the index, or ingest again.
    #[error("the index was made with {made_with}, but {running} is configured")]
    OtherEmbedder {
        /// The embedder that made the vectors of the index.
        made_with: EmbedderId,
        /// The embedder that is configured.
        running: EmbedderId,
    },

    /// The query does not fit the index.
    #[error("the index has vectors of width {expected}, but the query vector has width {actual}")]
    WrongWidth {
        /// The width of the index.
        expected: usize,
        /// The width of the query vector.
        actual: usize,
    },

    /// Retry later; the published index is not affected.
    #[error("the index is unavailable: {0}")]
    Unavailable(String),

    /// Fix the configuration; retrying does not help.
    #[error("the index cannot be used: {0}")]
    Unusable(String),

    /// The index, or the pinned generation, does not exist or was removed.
    #[error("the index does not exist: {0}")]
    Gone(String),

    /// Reading or writing a file failed; the published index is not affected.
    #[error("{context}: {source}")]
    Io {
        /// The operation and the path.
        context: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
}
