//! A whole book on its way into an index, whichever index that is.

use std::collections::{BTreeMap, BTreeSet};

use docent_core::chunk::Chunk;
use docent_core::embed::EmbedderId;
use docent_core::index::Modules;
use docent_core::language::Language;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// Names the text a vector was made from, and what made it.
pub type Key = u128;

/// The key of `text` as embedded by `embedder`.
pub fn key(embedder: &EmbedderId, text: &str) -> Key {
    xxh3_128(format!("{}\u{0}{text}", embedder.name).as_bytes())
}

/// Everything a generation is made of. Chunks are grouped by page, in the order of `pages`.
#[derive(Debug)]
pub struct Parts<'a> {
    /// What made the vectors.
    pub embedder: EmbedderId,
    /// What the book is written in.
    pub language: Language,
    /// The pages, with the number of their chunks.
    pub pages: &'a [PageRecord],
    /// The chunks of all pages.
    pub chunks: &'a [Chunk],
    /// One vector per chunk, in one row each; empty without an embedder.
    pub vectors: &'a [f32],
    /// What each vector was made from; empty without an embedder.
    pub keys: &'a [Key],
    /// What the author calls the modules.
    pub labels: Labels,
    /// Where the book came from.
    pub sources: Vec<SourceRecord>,
    /// When, RFC 3339.
    pub created_at: String,
}

impl Parts<'_> {
    /// Pages and chunks by module, with what the author calls it.
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

    /// What the author calls the module of a page.
    pub fn label(&self, page: &PageRecord) -> Option<&String> {
        self.labels.get(&(page.book.clone(), page.module.clone()))
    }

    /// The vector of a row; none without an embedder.
    pub fn vector(&self, row: usize) -> Option<&[f32]> {
        let width = self.embedder.width;
        self.vectors.get(row * width..(row + 1) * width).filter(|vector| !vector.is_empty())
    }
}

/// The same, read back from an index.
#[derive(Debug)]
pub struct WholeBook {
    /// What made the vectors.
    pub embedder: EmbedderId,
    /// What the book is written in.
    pub language: Language,
    /// The pages.
    pub pages: Vec<PageRecord>,
    /// The chunks of all pages.
    pub chunks: Vec<Chunk>,
    /// One vector per chunk.
    pub vectors: Vec<f32>,
    /// What each vector was made from.
    pub keys: Vec<Key>,
    /// What the author calls the modules.
    pub labels: Labels,
    /// Where the book came from.
    pub sources: Vec<SourceRecord>,
    /// When it was published.
    pub created_at: String,
}

impl WholeBook {
    /// As an index takes it.
    pub fn parts(&self) -> Parts<'_> {
        Parts {
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

/// What the author calls modules, by book (nothing when it has no name) and module.
pub type Labels = BTreeMap<(String, String), String>;

/// The labels that an index remembers.
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

/// A source as it was given, so that `ingest` alone can read it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRecord {
    /// What the book is called, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder, file or address.
    pub location: String,
    /// Where it is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The generator's rules, when they were named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// How a site is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteOptions>,
}

/// What was asked for about a site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteOptions {
    /// Only pages that one of these patterns fits; all when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// No pages that one of these fits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The most pages asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<usize>,
    /// The most links from the start to a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<usize>,
    /// Whether addresses of private networks may be asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_private: bool,
}

/// A page as the next ingest needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRecord {
    /// The page's id in its source.
    pub id: String,
    /// Where it is published.
    pub url: String,
    /// Its title.
    pub title: String,
    /// The book it is of, when it has a name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub book: String,
    /// Its module.
    pub module: String,
    /// Its chunks: they are rows, in order.
    pub chunks: usize,
    /// A hash of what is searched in each section, by its place on the page.
    pub sections: BTreeMap<String, String>,
}

#[cfg(test)]
pub(crate) mod made {
    use super::*;
    use docent_core::embed::Vector;

    /// The parts of a book of these chunks, with the letters' vectors.
    pub(crate) fn with_parts<T>(chunks: &[(Chunk, Vector)], use_them: impl FnOnce(&Parts<'_>) -> T) -> T {
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
                    chunks: 1,
                    sections: BTreeMap::from([("0".to_owned(), chunk.content.clone())]),
                }),
            }
        }
        use_them(&Parts {
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
    fn keys_tell_embedders_apart() {
        let a = EmbedderId { name: "a".into(), width: 2 };
        let b = EmbedderId { name: "b".into(), width: 2 };
        assert_ne!(key(&a, "text"), key(&b, "text"));
    }
}
