//! The built-in sample book, used until a book is ingested.
//!
//! Its vectors are built in, too, so the first search does not have to embed it, and so is its description, so that
//! describing it needs no model to count tokens.
//!
//! Invariant: `vectors.bin` and `description.json` match the text of `sample-book/`; tests compute them again and
//! compare.

use std::collections::HashMap;

use docent_backends::index::contents::{BookContents, Key, Labels, key};
use docent_backends::index::embedded::EmbeddedIndex;
use docent_backends::index::embedded::build::build_in_memory;
use docent_backends::ingest::page_record;
use docent_core::chunk::{Chunk, chunk};
use docent_core::embed::{Embedder, EmbedderId};
use docent_core::index::Description;
use docent_core::language::Language;
use docent_parse::document::Document;
use docent_parse::layout::{Base, Layout, Site, category_label};
use docent_parse::{Format, parse_page};
use include_dir::{Dir, include_dir};

use crate::exit::{Exit, Failure};

static BOOK: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../sample-book");
static VECTORS: &[u8] = include_bytes!("sample/vectors.bin");
static DESCRIPTION: &str = include_str!("sample/description.json");

/// The version of the sample index.
pub const VERSION: &str = concat!("sample-", env!("CARGO_PKG_VERSION"));

/// The sample book as an in-memory index. Its vectors only fit the embedder that made them; with
/// another embedder or none, search uses keywords only.
pub fn index(embedder: Option<&dyn Embedder>, counter: &dyn Embedder) -> Result<EmbeddedIndex, Failure> {
    let documents = documents();
    let cut: Vec<Vec<Chunk>> = documents.iter().map(|document| cut(document, counter)).collect();
    let pages: Vec<_> =
        documents.iter().zip(&cut).map(|(document, chunks)| page_record("", document, chunks)).collect();
    let chunks: Vec<Chunk> = cut.into_iter().flatten().collect();
    let shipped = embedder.and_then(|embedder| shipped_rows(&chunks, embedder.id()));
    let (id, rows, keys) = match (embedder, shipped) {
        (Some(embedder), Some((rows, keys))) => (embedder.id().clone(), rows, keys),
        _ => (EmbedderId::none(), Vec::new(), Vec::new()),
    };
    let contents = BookContents {
        embedder: id,
        language: Language::default(),
        pages: &pages,
        chunks: &chunks,
        vectors: &rows,
        keys: &keys,
        labels: labels(),
        sources: Vec::new(),
        created_at: String::new(),
    };
    let generation =
        build_in_memory(VERSION, &contents).map_err(|error| Failure::new(Exit::Failed, error))?;
    Ok(EmbeddedIndex::in_memory(generation))
}

/// Describes the sample book without parsing it.
pub fn description() -> Result<Description, Failure> {
    let mut description: Description =
        serde_json::from_str(DESCRIPTION).map_err(|error| Failure::new(Exit::Failed, error))?;
    description.version = VERSION.to_owned();
    Ok(description)
}

fn cut(document: &Document, counter: &dyn Embedder) -> Vec<Chunk> {
    chunk(document, counter.max_tokens(), &|text| counter.count_tokens(text))
}

/// The book's pages, in order.
fn documents() -> Vec<Document> {
    let base = Base::Local("sample-book".to_owned());
    let site = Site::new(Layout::Docusaurus, base).with_root_module("intro");
    let mut files: Vec<_> = files(&BOOK);
    files.sort_by_key(|(path, _)| *path);
    files.iter().filter_map(|(path, bytes)| parse_page(path, bytes, &site, &mut |_| None).0).collect()
}

/// The book's labels for its modules.
fn labels() -> Labels {
    let label = |folder: &Dir<'static>| {
        let name = folder.path().to_str()?;
        let file = folder.get_file(format!("{name}/_category_.json"))?;
        Some(((String::new(), name.to_owned()), category_label(file.contents_utf8()?)?))
    };
    BOOK.dirs().filter_map(label).collect()
}

fn files(folder: &Dir<'static>) -> Vec<(&'static str, &'static [u8])> {
    let own = folder.files().filter_map(|file| Some((file.path().to_str()?, file.contents())));
    let mut files: Vec<_> = own.filter(|(path, _)| Format::of(path).is_some()).collect();
    for folder in folder.dirs() {
        files.extend(self::files(folder));
    }
    files
}

/// The built-in vectors in the order of `chunks`; `None` if one is missing.
fn shipped_rows(chunks: &[Chunk], embedder: &EmbedderId) -> Option<(Vec<f32>, Vec<Key>)> {
    let record = size_of::<Key>() + embedder.width * 4;
    let rows: HashMap<Key, &[u8]> = VECTORS
        .chunks_exact(record)
        .filter_map(|record| Some((Key::from_le_bytes(*record.first_chunk()?), &record[size_of::<Key>()..])))
        .collect();
    let keys: Vec<Key> = chunks.iter().map(|chunk| key(embedder, &chunk.embedded_text())).collect();
    let mut values = Vec::with_capacity(chunks.len() * embedder.width);
    for key in &keys {
        let bytes = rows.get(key)?;
        values.extend(
            bytes.chunks_exact(4).map(|value| f32::from_le_bytes([value[0], value[1], value[2], value[3]])),
        );
    }
    Some((values, keys))
}

#[cfg(test)]
mod tests {
    use super::*;
    use docent_backends::embed::local::LocalEmbedder;

    /// `DOCENT_TEST_UPDATE_SAMPLE=1 cargo test -p docent sample` rewrites the file.
    #[test]
    fn the_built_in_vectors_match_the_book() {
        let embedder = LocalEmbedder::bundled().unwrap();
        let chunks: Vec<Chunk> = documents().iter().flat_map(|document| cut(document, &embedder)).collect();
        let texts: Vec<String> = chunks.iter().map(Chunk::embedded_text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = embedder.embed_now(&texts).unwrap();
        if std::env::var_os("DOCENT_TEST_UPDATE_SAMPLE").is_some() {
            let mut bytes = Vec::new();
            for (text, vector) in texts.iter().zip(&vectors) {
                bytes.extend_from_slice(&key(embedder.id(), text).to_le_bytes());
                vector.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
            }
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sample/vectors.bin"), bytes).unwrap();
            return;
        }
        let (shipped, _) = shipped_rows(&chunks, embedder.id()).expect("a passage has no built-in vector");
        // Other processors round slightly differently.
        for (row, vector) in shipped.chunks_exact(384).zip(&vectors) {
            let cosine: f32 = row.iter().zip(vector).map(|(a, b)| a * b).sum();
            assert!(cosine > 0.98, "cosine {cosine}");
        }
        assert_eq!(VECTORS.len(), chunks.len() * (16 + 384 * 4), "vectors of passages that no longer exist");
    }

    /// Rewritten by the same command.
    #[test]
    fn the_built_in_description_matches_the_book() {
        let embedder = LocalEmbedder::bundled().unwrap();
        let described = index(Some(&embedder), &embedder).unwrap().generation().unwrap().describe();
        if std::env::var_os("DOCENT_TEST_UPDATE_SAMPLE").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sample/description.json");
            let text = serde_json::to_string_pretty(&Description { version: String::new(), ..described });
            std::fs::write(path, text.unwrap() + "\n").unwrap();
            return;
        }
        assert_eq!(description().unwrap(), described);
    }

    #[test]
    fn the_book_has_its_five_modules() {
        let mut modules: Vec<String> = documents().into_iter().map(|document| document.module).collect();
        modules.dedup();
        assert_eq!(modules, ["intro", "isaac", "ros2", "simulation", "vla"]);
    }
}
