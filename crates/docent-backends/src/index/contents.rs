//! The contents of a book as they are written to an index or read back from one.

use std::collections::{BTreeMap, BTreeSet};

use docent_core::chunk::Chunk;
use docent_core::edition::{Edition, Variant, variants};
use docent_core::embed::EmbedderId;
use docent_core::index::Modules;
use docent_core::language::Language;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// Identifies the text that a vector was made from, and the embedder.
pub type Key = u128;

/// The key of `text` as embedded by `embedder`.
pub fn key(embedder: &EmbedderId, text: &str) -> Key {
    xxh3_128(format!("{}\u{0}{text}", embedder.name).as_bytes())
}

/// The contents of a generation. Chunks are grouped by page, in the order of `pages`.
#[derive(Debug)]
pub struct BookContents<'a> {
    /// The embedder that made the vectors.
    pub embedder: EmbedderId,
    /// The language of the book.
    pub language: Language,
    /// The pages, each with its number of chunks.
    pub pages: &'a [PageRecord],
    /// The chunks of all pages.
    pub chunks: &'a [Chunk],
    /// One row per chunk with its vector; empty without an embedder.
    pub vectors: &'a [f32],
    /// The key of each vector; empty without an embedder.
    pub keys: &'a [Key],
    /// The author's labels of the modules.
    pub labels: Labels,
    /// Where the book came from.
    pub sources: Vec<SourceRecord>,
    /// When the book was ingested, RFC 3339.
    pub created_at: String,
}

impl BookContents<'_> {
    /// Number of pages and chunks per module, with the module's label.
    pub fn modules(&self) -> Modules {
        self.modules_of(self.pages.iter())
    }

    /// The same for each book that has a name.
    pub fn books(&self) -> BTreeMap<String, Modules> {
        let names: BTreeSet<&str> = self.pages.iter().map(|page| page.book.as_str()).collect();
        let named = names.into_iter().filter(|name| !name.is_empty());
        named
            .map(|name| {
                (name.to_owned(), self.modules_of(self.pages.iter().filter(|page| page.book == name)))
            })
            .collect()
    }

    /// The versions and the locales of all books, with the number of their pages.
    pub fn variants(&self) -> (Vec<Variant>, Vec<Variant>) {
        variants(self.pages.iter().map(|page| (page.book.as_str(), &page.edition)))
    }

    /// The distinct editions of the pages; empty if no page has a version or a locale.
    pub fn editions(&self) -> Vec<Edition> {
        let distinct: BTreeSet<&Edition> = self.pages.iter().map(|page| &page.edition).collect();
        match distinct.iter().all(|edition| edition.is_plain()) {
            true => Vec::new(),
            false => distinct.into_iter().cloned().collect(),
        }
    }

    fn modules_of<'p>(&self, pages: impl Iterator<Item = &'p PageRecord>) -> Modules {
        let mut modules = Modules::new();
        for page in pages {
            let module = modules.entry(page.module.clone()).or_default();
            if module.label.is_none() {
                module.label = self.label(page).cloned();
            }
            module.pages += 1;
            module.chunks += page.chunks;
        }
        modules
    }

    /// The label of a page's module.
    pub fn label(&self, page: &PageRecord) -> Option<&String> {
        self.labels.get(&(page.book.clone(), page.module.clone()))
    }

    /// The vector of a row; `None` without an embedder.
    pub fn vector(&self, row: usize) -> Option<&[f32]> {
        let width = self.embedder.width;
        self.vectors.get(row * width..(row + 1) * width).filter(|vector| !vector.is_empty())
    }
}

/// Owned [`BookContents`], read back from an index.
#[derive(Debug)]
pub struct WholeBook {
    /// The embedder that made the vectors.
    pub embedder: EmbedderId,
    /// The language of the book.
    pub language: Language,
    /// The pages.
    pub pages: Vec<PageRecord>,
    /// The chunks of all pages.
    pub chunks: Vec<Chunk>,
    /// One vector per chunk.
    pub vectors: Vec<f32>,
    /// The key of each vector.
    pub keys: Vec<Key>,
    /// The author's labels of the modules.
    pub labels: Labels,
    /// Where the book came from.
    pub sources: Vec<SourceRecord>,
    /// When it was published.
    pub created_at: String,
}

impl WholeBook {
    /// A borrowed view, as an index target expects it.
    pub fn contents(&self) -> BookContents<'_> {
        BookContents {
            embedder: self.embedder.clone(),
            language: self.language,
            pages: &self.pages,
            chunks: &self.chunks,
            vectors: &self.vectors,
            keys: &self.keys,
            labels: self.labels.clone(),
            sources: self.sources.clone(),
            created_at: self.created_at.clone(),
        }
    }
}

/// Module labels by book (empty if it has no name) and module.
pub type Labels = BTreeMap<(String, String), String>;

/// Collects the labels from the module counts that an index stores.
pub fn labels(modules: &Modules, books: &BTreeMap<String, Modules>) -> Labels {
    let unnamed = String::new();
    let all = books.iter().chain([(&unnamed, modules)]);
    let label = |(book, modules): (&String, &Modules)| -> Labels {
        let labels = modules
            .iter()
            .filter_map(|(name, module)| Some(((book.clone(), name.clone()), module.label.clone()?)));
        labels.collect()
    };
    all.flat_map(label).collect()
}

/// A source as it was configured, so that `docent ingest` without arguments can read it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SourceRecord {
    /// The name of the book, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder, file or address.
    pub location: String,
    /// Where it is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The site generator, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// The version of the book that this is, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The locale that it is written in, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// Options for crawling a site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteOptions>,
}

impl SourceRecord {
    /// A source without further options.
    pub fn new(location: impl Into<String>) -> Self {
        Self { location: location.into(), ..Self::default() }
    }
}

/// Options for crawling a site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SiteOptions {
    /// Only crawl pages that match one of these globs; all pages if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Skip pages that match one of these globs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Maximum number of pages to fetch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<usize>,
    /// Maximum link depth from the start page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<usize>,
    /// Whether addresses in private networks may be requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_private: bool,
}

/// What is stored about a page, for the next ingest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRecord {
    /// The page's id in its source.
    pub id: String,
    /// Where it is published.
    pub url: String,
    /// Its title.
    pub title: String,
    /// The name of its book; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub book: String,
    /// Its module.
    pub module: String,
    /// Its version and locale.
    #[serde(default, skip_serializing_if = "Edition::is_plain")]
    pub edition: Edition,
    /// Its number of chunks, which are consecutive rows.
    pub chunks: usize,
    /// A hash of the searchable text of each section, by its anchor or position on the page.
    pub sections: BTreeMap<String, String>,
}

#[cfg(test)]
pub(crate) mod made {
    use super::*;
    use docent_core::embed::Vector;

    /// Calls `use_them` with the contents of a book made of these chunks.
    pub(crate) fn with_contents<T>(
        chunks: &[(Chunk, Vector)],
        use_them: impl FnOnce(&BookContents<'_>) -> T,
    ) -> T {
        let (chunks, vectors): (Vec<Chunk>, Vec<Vector>) = chunks.iter().cloned().unzip();
        let mut pages: Vec<PageRecord> = Vec::new();
        for chunk in &chunks {
            match pages.last_mut() {
                Some(page) if page.id == chunk.document_id => page.chunks += 1,
                _ => pages.push(PageRecord {
                    id: chunk.document_id.clone(),
                    url: chunk.url.clone(),
                    title: chunk.page_title.clone(),
                    book: chunk.book_name.clone(),
                    module: chunk.module_name.clone(),
                    edition: chunk.edition.clone(),
                    chunks: 1,
                    sections: BTreeMap::from([("0".to_owned(), chunk.content.clone())]),
                }),
            }
        }
        use_them(&BookContents {
            embedder: EmbedderId { name: "test/letters".into(), width: 26 },
            language: Language::default(),
            pages: &pages,
            keys: &(1..=chunks.len() as u128).collect::<Vec<_>>(),
            chunks: &chunks,
            vectors: &vectors.concat(),
            labels: Labels::from([((String::new(), "m".to_owned()), "Module M".to_owned())]),
            sources: Vec::new(),
            created_at: "2026-01-01T00:00:00Z".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_has_different_keys_for_different_embedders() {
        let a = EmbedderId { name: "a".into(), width: 2 };
        let b = EmbedderId { name: "b".into(), width: 2 };
        assert_ne!(key(&a, "text"), key(&b, "text"));
    }
}
