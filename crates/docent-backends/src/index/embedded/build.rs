//! Chunks and vectors become a generation's files, or an index in memory.
//!
//! Invariant: nothing here is visible to readers until [`super::generation::publish`] renames it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use docent_core::chunk::Chunk;
use docent_core::embed::EmbedderId;
use docent_core::index::{IndexError, Module};
use docent_core::language::Language;
use tantivy::directory::{MmapDirectory, RamDirectory};

use super::column::Column;
use super::generation::{self, FORMAT, Generation, Manifest, PageRecord, SourceRecord, io_error};
use super::journal::Key;
use super::lexical::{Lexical, LexicalWriter};
use super::vectors::{Vectors, round};

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
    /// What the author calls the modules, by name.
    pub labels: BTreeMap<String, String>,
    /// Where the book came from.
    pub sources: Vec<SourceRecord>,
    /// When, RFC 3339.
    pub created_at: String,
}

impl Parts<'_> {
    fn manifest(&self) -> Manifest {
        let mut modules: BTreeMap<String, Module> = BTreeMap::new();
        for page in self.pages {
            let module = modules.entry(page.module.clone()).or_default();
            module.label = self.labels.get(&page.module).cloned();
            module.pages += 1;
            module.chunks += page.chunks;
        }
        Manifest {
            format: FORMAT,
            embedder: self.embedder.clone(),
            language: self.language,
            pages: self.pages.len(),
            chunks: self.chunks.len(),
            modules,
            sources: self.sources.clone(),
            created_at: self.created_at.clone(),
            files: BTreeMap::new(),
        }
    }

    fn row_modules(&self) -> Vec<u16> {
        let names: BTreeSet<&str> = self.pages.iter().map(|page| page.module.as_str()).collect();
        let numbers: BTreeMap<&str, u16> = names.into_iter().zip(0..).collect();
        self.chunks
            .iter()
            .map(|chunk| numbers.get(chunk.module_name.as_str()).copied().unwrap_or_default())
            .collect()
    }
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
        (generation::ROW_MODULES, bytemuck::cast_slice(&parts.row_modules())),
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
    generation::publish(folder, &root, &name, parts.manifest())?;
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
    let manifest = parts.manifest();
    let vectors = match parts.embedder.width {
        0 => None,
        width => Vectors::in_memory(width, parts.vectors.to_vec()),
    };
    Ok(Generation {
        name: name.to_owned(),
        lexical,
        vectors,
        row_modules: Column::Owned(parts.row_modules()),
        modules: manifest.modules.keys().cloned().collect(),
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
