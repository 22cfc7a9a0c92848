//! Writes chunks and vectors as the files of a generation, or builds an index in memory.
//!
//! Invariant: nothing is visible to searches until [`super::generation::publish`] renames it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::OnceLock;

use docent_core::chunk::Chunk;
use docent_core::edition::Edition;
use docent_core::index::IndexError;
use tantivy::directory::error::OpenWriteError;
use tantivy::directory::{MmapDirectory, RamDirectory};

use super::files::{LEXICAL, io_error};
use super::generation::{self, FORMAT, Generation, Manifest, NO_BOOK};
use super::lexical::{Lexical, LexicalWriter};
use super::vectors::{Vectors, round};
use crate::failpoint;
use crate::index::contents::BookContents;

/// The manifest of the generation; the list of files is filled in when they are written.
fn manifest(contents: &BookContents<'_>) -> Manifest {
    let (versions, locales) = contents.variants();
    Manifest {
        format: FORMAT,
        embedder: contents.embedder.clone(),
        language: contents.language,
        pages: contents.pages.len(),
        chunks: contents.chunks.len(),
        modules: contents.modules(),
        books: contents.books(),
        editions: contents.editions(),
        versions,
        locales,
        sources: contents.sources.clone(),
        created_at: contents.created_at.clone(),
        files: BTreeMap::new(),
    }
}

/// The position of each row's name in `names`; [`NO_BOOK`] for a name that is not in it.
fn places<T>(names: &BTreeMap<String, T>, chunks: &[Chunk], name: impl Fn(&Chunk) -> &String) -> Vec<u16> {
    let numbers: BTreeMap<&String, u16> = names.keys().zip(0..).collect();
    chunks.iter().map(|chunk| numbers.get(name(chunk)).copied().unwrap_or(NO_BOOK)).collect()
}

fn row_modules(manifest: &Manifest, contents: &BookContents<'_>) -> Vec<u16> {
    places(&manifest.modules, contents.chunks, |chunk| &chunk.module_name)
}

fn row_books(manifest: &Manifest, contents: &BookContents<'_>) -> Vec<u16> {
    places(&manifest.books, contents.chunks, |chunk| &chunk.book_name)
}

/// The position of each row's edition in the manifest; empty if the book has no editions.
fn row_editions(manifest: &Manifest, contents: &BookContents<'_>) -> Vec<u16> {
    if manifest.editions.is_empty() {
        return Vec::new();
    }
    let numbers: BTreeMap<&Edition, u16> = manifest.editions.iter().zip(0..).collect();
    let number = |chunk: &Chunk| numbers.get(&chunk.edition).copied().unwrap_or_default();
    contents.chunks.iter().map(number).collect()
}

/// Writes a generation into `folder` and publishes it; returns its name. After a failure its files are
/// removed, since they may be what fills the disk.
pub fn build(folder: &Path, contents: &BookContents<'_>) -> Result<String, IndexError> {
    check(contents)?;
    let name = generation::next_name(folder)?;
    let root = folder.join("building");
    write_and_publish(folder, &root, &name, contents).inspect_err(|_| {
        let _ = fs::remove_dir_all(&root);
        if !matches!(generation::current(folder), Ok(Some(current)) if current == name) {
            let _ = fs::remove_dir_all(folder.join(&name));
        }
    })?;
    Ok(name)
}

fn write_and_publish(
    folder: &Path,
    root: &Path,
    name: &str,
    contents: &BookContents<'_>,
) -> Result<(), IndexError> {
    if root.exists() {
        fs::remove_dir_all(root).map_err(|error| io_error("cannot remove", root, error))?;
    }
    let manifest = write(root, contents)?;
    generation::publish(folder, root, name, manifest)?;
    failpoint::reach("build.prune").map_err(|error| io_error("cannot write", root, error))?;
    generation::prune(folder)
}

/// Checks that every chunk has a vector and a key, and that the pages have as many chunks as there are: a
/// missing row would shift all rows after it.
fn check(contents: &BookContents<'_>) -> Result<(), IndexError> {
    let (chunks, width) = (contents.chunks.len(), contents.embedder.width);
    let keys = if width == 0 { 0 } else { chunks };
    let of_pages: usize = contents.pages.iter().map(|page| page.chunks).sum();
    if contents.vectors.len() != chunks * width || contents.keys.len() != keys || of_pages != chunks {
        return Err(IndexError::Unusable(format!(
            "the book has {chunks} chunks but its pages have {of_pages}; {} of {} vector values, {} of {keys} keys",
            contents.vectors.len(),
            chunks * width,
            contents.keys.len()
        )));
    }
    Ok(())
}

/// Writes the files of a generation.
fn write(root: &Path, contents: &BookContents<'_>) -> Result<Manifest, IndexError> {
    let lexical = root.join(LEXICAL);
    let reach = |name| failpoint::reach(name).map_err(|error| io_error("cannot write", root, error));
    reach("build.start")?;
    fs::create_dir_all(&lexical).map_err(|error| io_error("cannot create", &lexical, error))?;

    let failed = |error: tantivy::TantivyError| io_error("cannot write", &lexical, tantivy_io(error));
    let directory = MmapDirectory::open(&lexical).map_err(|error| failed(error.into()))?;
    let manifest = manifest(contents);
    let row_editions = row_editions(&manifest, contents);
    let mut writer = LexicalWriter::create(directory, contents.language).map_err(failed)?;
    for (row, chunk) in contents.chunks.iter().enumerate() {
        writer.add(chunk, row_editions.get(row).copied()).map_err(failed)?;
    }
    reach("build.lexical")?;
    writer.finish().map_err(failed)?;

    let (rounded, scales) = round(contents.vectors, contents.embedder.width);
    let mut pages = Vec::new();
    for page in contents.pages {
        serde_json::to_writer(&mut pages, page)
            .map_err(|error| io_error("cannot write", root, error.into()))?;
        pages.push(b'\n');
    }
    for (name, bytes) in [
        (generation::PAGES, pages.as_slice()),
        (generation::KEYS, bytemuck::cast_slice(contents.keys)),
        (generation::ROW_MODULES, bytemuck::cast_slice(&row_modules(&manifest, contents))),
        (generation::ROW_BOOKS, bytemuck::cast_slice(&row_books(&manifest, contents))),
        (generation::ROW_PAGES, bytemuck::cast_slice(&generation::pages_by_row(contents.pages))),
        (generation::FULL, bytemuck::cast_slice(contents.vectors)),
        (generation::ROUNDED, bytemuck::cast_slice(&rounded)),
        (generation::SCALES, bytemuck::cast_slice(&scales)),
        (generation::ROW_EDITIONS, bytemuck::cast_slice(&row_editions)),
    ] {
        if name == generation::ROW_EDITIONS && row_editions.is_empty() {
            continue;
        }
        let path = root.join(name);
        reach("build.file")?;
        let written = File::create(&path).and_then(|file| {
            let mut file = BufWriter::new(file);
            file.write_all(bytes)?;
            file.flush()
        });
        written.map_err(|error| io_error("cannot write", &path, error))?;
    }
    Ok(manifest)
}

/// Builds the same index in memory.
pub fn build_in_memory(name: &str, contents: &BookContents<'_>) -> Result<Generation, IndexError> {
    check(contents)?;
    let failed = |error: tantivy::TantivyError| IndexError::Damaged(error.to_string());
    let manifest = manifest(contents);
    let row_editions = row_editions(&manifest, contents);
    let mut writer = LexicalWriter::create(RamDirectory::create(), contents.language).map_err(failed)?;
    for (row, chunk) in contents.chunks.iter().enumerate() {
        writer.add(chunk, row_editions.get(row).copied()).map_err(failed)?;
    }
    let index = writer.finish().map_err(failed)?;
    let lexical = Lexical::open(&index, contents.language).map_err(failed)?;
    let vectors = match contents.embedder.width {
        0 => None,
        width => Vectors::in_memory(width, contents.vectors.to_vec()),
    };
    Ok(Generation {
        name: name.to_owned(),
        lexical,
        vectors,
        row_modules: row_modules(&manifest, contents),
        row_books: row_books(&manifest, contents),
        row_editions,
        row_pages: generation::pages_by_row(contents.pages),
        page_rows: generation::rows_by_page(contents.pages).into(),
        files: None,
        damage: OnceLock::new(),
        manifest,
    })
}

/// The I/O error inside a tantivy error, so that its kind is kept (for example a full disk).
fn tantivy_io(error: tantivy::TantivyError) -> std::io::Error {
    match error {
        tantivy::TantivyError::IoError(error)
        | tantivy::TantivyError::OpenWriteError(OpenWriteError::IoError { io_error: error, .. }) => {
            std::io::Error::new(error.kind(), error.to_string())
        }
        other => std::io::Error::other(other.to_string()),
    }
}
