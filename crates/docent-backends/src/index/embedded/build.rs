//! Chunks and vectors become a generation's files, or an index in memory.
//!
//! Invariant: nothing here is visible to readers until [`super::generation::publish`] renames it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use docent_core::chunk::Chunk;
use docent_core::index::IndexError;
use tantivy::directory::{MmapDirectory, RamDirectory};

use super::column::Column;
use super::generation::{self, FORMAT, Generation, Manifest, NO_BOOK, io_error};
use super::lexical::{Lexical, LexicalWriter};
use super::vectors::{Vectors, round};
use crate::index::parts::Parts;

/// What the generation says about itself; its files are added when they are written.
fn manifest(parts: &Parts<'_>) -> Manifest {
    Manifest {
        format: FORMAT,
        embedder: parts.embedder.clone(),
        language: parts.language,
        pages: parts.pages.len(),
        chunks: parts.chunks.len(),
        modules: parts.modules(),
        books: parts.books(),
        sources: parts.sources.clone(),
        created_at: parts.created_at.clone(),
        files: BTreeMap::new(),
    }
}

/// What each row is of, as its place among `names`; [`NO_BOOK`] for what is not among them.
fn places<T>(names: &BTreeMap<String, T>, chunks: &[Chunk], name: impl Fn(&Chunk) -> &String) -> Vec<u16> {
    let numbers: BTreeMap<&String, u16> = names.keys().zip(0..).collect();
    chunks.iter().map(|chunk| numbers.get(name(chunk)).copied().unwrap_or(NO_BOOK)).collect()
}

fn row_modules(manifest: &Manifest, parts: &Parts<'_>) -> Vec<u16> {
    places(&manifest.modules, parts.chunks, |chunk| &chunk.module_name)
}

fn row_books(manifest: &Manifest, parts: &Parts<'_>) -> Vec<u16> {
    places(&manifest.books, parts.chunks, |chunk| &chunk.book_name)
}

/// Writes a generation into `folder` and publishes it; returns its name.
pub fn build(folder: &Path, parts: &Parts<'_>) -> Result<String, IndexError> {
    let name = generation::next_name(folder)?;
    let root = folder.join("building");
    if root.exists() {
        fs::remove_dir_all(&root).map_err(|error| io_error("cannot remove", &root, error))?;
    }
    let lexical = root.join(generation::LEXICAL);
    fs::create_dir_all(&lexical).map_err(|error| io_error("cannot create", &lexical, error))?;

    let failed = |error: tantivy::TantivyError| io_error("cannot write", &lexical, tantivy_io(error));
    let directory = MmapDirectory::open(&lexical).map_err(|error| failed(error.into()))?;
    let mut writer = LexicalWriter::create(directory, parts.language).map_err(failed)?;
    for chunk in parts.chunks {
        writer.add(chunk).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;

    let manifest = manifest(parts);
    let (rounded, scales) = round(parts.vectors, parts.embedder.width);
    let mut pages = Vec::new();
    for page in parts.pages {
        serde_json::to_writer(&mut pages, page)
            .map_err(|error| io_error("cannot write", &root, error.into()))?;
        pages.push(b'\n');
    }
    for (name, bytes) in [
        (generation::PAGES, pages.as_slice()),
        (generation::KEYS, bytemuck::cast_slice(parts.keys)),
        (generation::ROW_MODULES, bytemuck::cast_slice(&row_modules(&manifest, parts))),
        (generation::ROW_BOOKS, bytemuck::cast_slice(&row_books(&manifest, parts))),
        (generation::FULL, bytemuck::cast_slice(parts.vectors)),
        (generation::ROUNDED, bytemuck::cast_slice(&rounded)),
        (generation::SCALES, bytemuck::cast_slice(&scales)),
    ] {
        let path = root.join(name);
        let written = File::create(&path).and_then(|file| {
            let mut file = BufWriter::new(file);
            file.write_all(bytes)?;
            file.flush()
        });
        written.map_err(|error| io_error("cannot write", &path, error))?;
    }
    generation::publish(folder, &root, &name, manifest)?;
    generation::prune(folder)?;
    Ok(name)
}

/// The same index, without a disk.
pub fn build_in_memory(name: &str, parts: &Parts<'_>) -> Result<Generation, IndexError> {
    let failed = |error: tantivy::TantivyError| IndexError::Damaged(error.to_string());
    let mut writer = LexicalWriter::create(RamDirectory::create(), parts.language).map_err(failed)?;
    for chunk in parts.chunks {
        writer.add(chunk).map_err(failed)?;
    }
    let index = writer.finish().map_err(failed)?;
    let lexical = Lexical::open(&index, parts.language).map_err(failed)?;
    let manifest = manifest(parts);
    let vectors = match parts.embedder.width {
        0 => None,
        width => Vectors::in_memory(width, parts.vectors.to_vec()),
    };
    Ok(Generation {
        name: name.to_owned(),
        lexical,
        vectors,
        row_modules: Column::Owned(row_modules(&manifest, parts)),
        row_books: Column::Owned(row_books(&manifest, parts)),
        page_rows: generation::rows_by_page(parts.pages).into(),
        root: None,
        manifest,
    })
}

/// What the disk said, if tantivy's error is about the disk.
fn tantivy_io(error: tantivy::TantivyError) -> std::io::Error {
    match error {
        tantivy::TantivyError::IoError(error) => std::io::Error::new(error.kind(), error.to_string()),
        other => std::io::Error::other(other.to_string()),
    }
}
