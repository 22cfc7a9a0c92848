//! SEAM: where chunks are kept and candidates are found.
//!
//! An index ranks by keywords and by vectors and reports both lists; putting them
//! together is [`crate::retrieve`]'s business, so that every index gives the same answers.
//!
//! Invariant: one search sees one generation; a book published meanwhile is seen by the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::chunk::Chunk;
use crate::embed::EmbedderId;
use crate::language::Language;

/// Finds chunks.
#[async_trait]
pub trait Index: Send + Sync {
    /// The best chunks by keywords and, when the query has a vector, by closeness.
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError>;

    /// All chunks of a page, in order; none when there is no such page.
    async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError>;

    /// Every page with its sections, in the order of the book.
    async fn outline(&self) -> Result<Vec<PageOutline>, IndexError>;

    /// What the index holds now.
    async fn describe(&self) -> Result<Description, IndexError>;

    /// [`Description::version`] alone, which every turn asks for.
    async fn version(&self) -> Result<String, IndexError> {
        Ok(self.describe().await?.version)
    }
}

/// A page and its sections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageOutline {
    /// Names the page.
    pub document_id: String,
    /// Where it is published, without an anchor.
    pub url: String,
    /// Its title.
    pub title: String,
    /// The book, when there are several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub book_name: String,
    /// The part of the book.
    pub module_name: String,
    /// Its sections that have text, in order.
    pub sections: Vec<SectionOutline>,
}

/// A section of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionOutline {
    /// Its heading; none for what comes before the first.
    pub heading: Option<String>,
    /// The page with the section's anchor.
    pub url: String,
}

impl PageOutline {
    /// The outline of chunks in the order of the book.
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

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct IndexQuery<'a> {
    /// The question, for keywords.
    pub text: &'a str,
    /// The question's vector; none searches by keywords alone.
    pub vector: Option<&'a [f32]>,
    /// What may be found.
    pub filter: &'a Filter,
    /// How many candidates to return of each kind.
    pub depth: usize,
}

/// Restricts a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Only chunks of this book.
    pub book: Option<String>,
    /// Only chunks of this module.
    pub module: Option<String>,
}

impl Filter {
    /// Only chunks of this module, if one is named.
    pub fn of_module(module: Option<String>) -> Self {
        Self { book: None, module }
    }

    /// Whether nothing is left out.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a chunk may be found.
    pub fn admits(&self, chunk: &Chunk) -> bool {
        self.book.as_ref().is_none_or(|book| chunk.book_name == *book)
            && self.module.as_ref().is_none_or(|module| chunk.module_name == *module)
    }
}

/// What was asked for and is not in the index.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoSuchPart {
    /// Name another book.
    #[error("there is no book `{name}` here")]
    Book {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Name another module.
    #[error("there is no module `{name}` in {}", .book.as_ref().map_or("this book".to_owned(), |book| format!("the book `{book}`")))]
    Module {
        /// What was asked for.
        name: String,
        /// In which of several books.
        book: Option<String>,
        /// What there is.
        known: Vec<String>,
    },
}

/// A chunk found, with the score of one ranking.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The passage.
    pub chunk: Arc<Chunk>,
    /// BM25, or cosine.
    pub score: f32,
}

/// What an index found: two rankings, best first.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    /// By keywords (BM25).
    pub lexical: Vec<Candidate>,
    /// By vector (cosine).
    pub dense: Vec<Candidate>,
    /// The question's distinct terms with their weights: rare terms weigh more.
    pub terms: Vec<(String, f32)>,
    /// The generation that answered.
    pub version: String,
}

/// What an index holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Names the generation; changes whenever the book does.
    pub version: String,
    /// What made its vectors.
    pub embedder: EmbedderId,
    /// What the book is written in.
    pub language: Language,
    /// How many pages.
    pub pages: usize,
    /// How many chunks.
    pub chunks: usize,
    /// Pages and chunks by module, in name order.
    pub modules: Modules,
    /// The same for each book that has a name; none when there is only one book.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub books: BTreeMap<String, Modules>,
    /// The sources it was made from.
    pub sources: Vec<String>,
    /// When it was published, RFC 3339.
    pub created_at: String,
}

impl Description {
    /// Whether there is what a filter asks for.
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
        }
    }
}

/// Modules by name.
pub type Modules = BTreeMap<String, Module>;

/// A part of the book.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// What the author calls it, when that is not its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Pages in it.
    pub pages: usize,
    /// Chunks in it.
    pub chunks: usize,
}

/// Why an index could not answer, sorted by what the caller can do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// Nothing was published yet: ingest a book.
    #[error("no book has been ingested")]
    Empty,

    /// The files are not what was published: ingest again.
    #[error("the index is damaged: {0}")]
    Damaged(String),

    /// Written by a version of Docent with another file format: ingest again.
    #[error("the index has format {found}, this version reads {expected}")]
    OtherFormat {
        /// In the manifest.
        found: u32,
        /// What this program writes.
        expected: u32,
    },

    /// The query does not fit the index.
    #[error("the index holds vectors of width {expected}, the question's has {actual}")]
    WrongWidth {
        /// The width of the index.
        expected: usize,
        /// The width of the question's vector.
        actual: usize,
    },

    /// Try again later; what was published is untouched.
    #[error("the index is unavailable: {0}")]
    Unavailable(String),

    /// Fix the configuration; trying again will not help.
    #[error("the index cannot be used: {0}")]
    Unusable(String),

    /// What was asked for is not there, or no longer.
    #[error("the index is gone: {0}")]
    Gone(String),

    /// The disk failed; what was published is untouched.
    #[error("{context}: {source}")]
    Io {
        /// What was being done, with the path.
        context: String,
        /// What the system said.
        source: std::io::Error,
    },
}
