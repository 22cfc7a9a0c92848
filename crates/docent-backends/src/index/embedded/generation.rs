//! One immutable version of an index: written whole, published by a rename, opened by many.
//!
//! ```text
//! index/
//!   CURRENT              the name of the published generation
//!   g000007/
//!     manifest.json      what is here: embedder, counts, and the size and sum of every file
//!     pages.jsonl        the pages and a hash per section, for the next ingest
//!     keys               what each row's vector was made from, 16 bytes a row
//!     modules.u16        the module of each row
//!     books.u16          the book of each row
//!     vectors.f32 vectors.i8 vectors.scale
//!     lexical/           tantivy
//! ```
//!
//! Invariant: a folder named by `CURRENT` is complete and on disk. A crash at any moment
//! leaves the old name in place.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use docent_core::embed::EmbedderId;
use docent_core::index::{Description, IndexError, Modules};
use docent_core::language::Language;
use serde::{Deserialize, Serialize};
use tantivy::directory::MmapDirectory;
use xxhash_rust::xxh3::Xxh3Default;

use super::column::Column;
use super::lexical::Lexical;
use super::vectors::Vectors;
use crate::index::parts::{Key, PageRecord, SourceRecord};

/// Raised when files of older versions can no longer be read.
pub const FORMAT: u32 = 2;

const CURRENT: &str = "CURRENT";
const MANIFEST: &str = "manifest.json";
pub(super) const PAGES: &str = "pages.jsonl";
pub(super) const KEYS: &str = "keys";
pub(super) const FULL: &str = "vectors.f32";
pub(super) const ROUNDED: &str = "vectors.i8";
pub(super) const SCALES: &str = "vectors.scale";
pub(super) const ROW_MODULES: &str = "modules.u16";
pub(super) const ROW_BOOKS: &str = "books.u16";
pub(super) const LEXICAL: &str = "lexical";

/// What a generation holds, and how to tell whether it still does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The layout of the files.
    pub format: u32,
    /// What made the vectors.
    pub embedder: EmbedderId,
    /// What the book is written in.
    pub language: Language,
    /// How many pages.
    pub pages: usize,
    /// How many chunks.
    pub chunks: usize,
    /// Pages and chunks by module.
    pub modules: Modules,
    /// The same for each book that has a name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub books: BTreeMap<String, Modules>,
    /// The sources it was made from, to read again.
    pub sources: Vec<SourceRecord>,
    /// When it was published, RFC 3339.
    pub created_at: String,
    /// Every other file, by path.
    pub files: BTreeMap<String, FileSum>,
}

/// A file's size and checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSum {
    /// In bytes.
    pub size: u64,
    /// xxh3 of its bytes.
    pub sum: u64,
}

/// An open generation.
pub struct Generation {
    /// Its name, which is the version of the index.
    pub name: String,
    /// What it holds.
    pub manifest: Manifest,
    /// The keyword side.
    pub lexical: Lexical,
    /// The vector side; none when the book was ingested without an embedder.
    pub vectors: Option<Vectors>,
    /// The module of each row, as its place among the manifest's.
    pub row_modules: Column<u16>,
    /// The book of each row, as its place among the manifest's; [`NO_BOOK`] without a name.
    pub row_books: Column<u16>,
    /// The rows of each page; read when a page is first asked for.
    pub(super) page_rows: OnceLock<HashMap<String, Range<u32>>>,
    /// Its folder; none in memory.
    pub(super) root: Option<PathBuf>,
}

/// The book of a row that is of none with a name.
pub const NO_BOOK: u16 = u16::MAX;

/// Checking sums reads every byte; above this the check is left to `docent doctor`.
const CHECKED_AT_OPEN: u64 = 64 << 20;

/// The name of the published generation, if any.
pub fn current(folder: &Path) -> Result<Option<String>, IndexError> {
    let path = folder.join(CURRENT);
    match fs::read_to_string(&path) {
        Ok(name) => {
            let name = name.trim();
            let sound = name.len() > 1
                && name.starts_with('g')
                && name[1..].bytes().all(|byte| byte.is_ascii_digit());
            if sound {
                Ok(Some(name.to_owned()))
            } else {
                Err(IndexError::Damaged(format!("{} names no generation", path.display())))
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("cannot read", &path, error)),
    }
}

impl Generation {
    /// Opens the published generation of an index folder.
    pub fn open_current(folder: &Path) -> Result<Self, IndexError> {
        // The generation may be replaced and removed between reading its name and opening
        // it; then there is a newer one.
        let mut name = current(folder)?.ok_or(IndexError::Empty)?;
        loop {
            match Self::open(folder, &name) {
                Ok(generation) => return Ok(generation),
                Err(error) => {
                    let now = current(folder)?.ok_or(IndexError::Empty)?;
                    if now == name {
                        return Err(error);
                    }
                    name = now;
                }
            }
        }
    }

    fn open(folder: &Path, name: &str) -> Result<Self, IndexError> {
        let root = folder.join(name);
        let manifest = read_manifest(&root)?;
        let total: u64 = manifest.files.values().map(|file| file.size).sum();
        check_files(&root, &manifest, total <= CHECKED_AT_OPEN)?;
        let damaged = |what: &str| IndexError::Damaged(format!("{}: {what}", root.display()));
        let directory =
            MmapDirectory::open(root.join(LEXICAL)).map_err(|error| damaged(&error.to_string()))?;
        let index = tantivy::Index::open(directory).map_err(|error| damaged(&error.to_string()))?;
        let lexical =
            Lexical::open(&index, manifest.language).map_err(|error| damaged(&error.to_string()))?;
        let width = manifest.embedder.width;
        let vectors = match width {
            0 => None,
            width => {
                let (full, rounded, scales) =
                    (open_column(&root, FULL)?, open_column(&root, ROUNDED)?, open_column(&root, SCALES)?);
                let vectors = Vectors::new(width, full, rounded, scales);
                Some(vectors.ok_or_else(|| damaged("the vector files do not agree"))?)
            }
        };
        let row_modules: Column<u16> = open_column(&root, ROW_MODULES)?;
        let row_books: Column<u16> = open_column(&root, ROW_BOOKS)?;
        if [lexical.rows(), row_modules.len(), row_books.len()].iter().any(|rows| *rows != manifest.chunks) {
            return Err(damaged("the number of chunks does not agree with the manifest"));
        }
        Ok(Self {
            name: name.to_owned(),
            manifest,
            lexical,
            vectors,
            row_modules,
            row_books,
            page_rows: OnceLock::new(),
            root: Some(root),
        })
    }

    /// The rows of a page; none when there is no such page.
    pub fn page_rows(&self, document_id: &str) -> Result<Range<u32>, IndexError> {
        let rows = match (self.page_rows.get(), &self.root) {
            (Some(rows), _) => rows,
            (None, Some(root)) => {
                let rows = rows_by_page(&read_pages(root)?);
                self.page_rows.get_or_init(|| rows)
            }
            (None, None) => return Ok(0..0),
        };
        Ok(rows.get(document_id).cloned().unwrap_or(0..0))
    }

    /// What the seam reports.
    pub fn describe(&self) -> Description {
        Description {
            version: self.name.clone(),
            embedder: self.manifest.embedder.clone(),
            language: self.manifest.language,
            pages: self.manifest.pages,
            chunks: self.manifest.chunks,
            modules: self.manifest.modules.clone(),
            books: self.manifest.books.clone(),
            sources: self.manifest.sources.iter().map(|source| source.location.clone()).collect(),
            created_at: self.manifest.created_at.clone(),
        }
    }
}

fn open_column<T: bytemuck::Pod>(root: &Path, name: &str) -> Result<Column<T>, IndexError> {
    let path = root.join(name);
    Column::open(&path).map_err(|error| IndexError::Damaged(format!("{}: {error}", path.display())))
}

/// Where the chunks of each page stand.
pub(super) fn rows_by_page(pages: &[PageRecord]) -> HashMap<String, Range<u32>> {
    let mut next = 0;
    let rows = pages.iter().map(|page| {
        let first = next;
        next += page.chunks as u32;
        (page.id.clone(), first..next)
    });
    rows.collect()
}

/// The pages of a generation.
pub fn read_pages(root: &Path) -> Result<Vec<PageRecord>, IndexError> {
    let path = root.join(PAGES);
    let text = fs::read_to_string(&path).map_err(|error| io_error("cannot read", &path, error))?;
    text.lines()
        .map(|line| {
            serde_json::from_str(line)
                .map_err(|error| IndexError::Damaged(format!("{}: {error}", path.display())))
        })
        .collect()
}

/// The vectors of a generation by what they were made from.
pub fn read_keyed_vectors(root: &Path, width: usize) -> Result<HashMap<Key, Vec<f32>>, IndexError> {
    let keys: Column<Key> = open_column(root, KEYS)?;
    let full: Column<f32> = open_column(root, FULL)?;
    Ok(keys.iter().copied().zip(full.chunks_exact(width.max(1)).map(<[f32]>::to_vec)).collect())
}

/// The vectors of a generation in the order of its rows, with what they were made from.
pub fn read_vectors(root: &Path) -> Result<(Vec<Key>, Vec<f32>), IndexError> {
    let keys: Column<Key> = open_column(root, KEYS)?;
    let full: Column<f32> = open_column(root, FULL)?;
    Ok((keys.to_vec(), full.to_vec()))
}

/// The manifest of a generation's folder.
pub fn read_manifest(root: &Path) -> Result<Manifest, IndexError> {
    let path = root.join(MANIFEST);
    let text = fs::read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => IndexError::Damaged(format!("{} is missing", path.display())),
        _ => io_error("cannot read", &path, error),
    })?;
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let damaged = |error: serde_json::Error| IndexError::Damaged(format!("{}: {error}", path.display()));
    let format = serde_json::from_slice::<Format>(&text).map_err(damaged)?.format;
    if format != FORMAT {
        return Err(IndexError::OtherFormat { found: format, expected: FORMAT });
    }
    serde_json::from_slice(&text).map_err(damaged)
}

/// Where a book came from. Versions of Docent with other files say it in the same words.
pub fn read_sources(root: &Path) -> Result<Vec<SourceRecord>, IndexError> {
    #[derive(Deserialize)]
    struct Sources {
        sources: Vec<SourceRecord>,
    }
    let path = root.join(MANIFEST);
    let text = fs::read(&path).map_err(|error| io_error("cannot read", &path, error))?;
    let sources: Sources = serde_json::from_slice(&text)
        .map_err(|error| IndexError::Damaged(format!("{}: {error}", path.display())))?;
    Ok(sources.sources)
}

/// Compares the files with the manifest: sizes always, every byte when asked.
pub fn check_files(root: &Path, manifest: &Manifest, sums: bool) -> Result<(), IndexError> {
    for (name, expected) in &manifest.files {
        let path = root.join(name);
        let size = fs::metadata(&path)
            .map_err(|_| IndexError::Damaged(format!("{} is missing", path.display())))?
            .len();
        if size != expected.size {
            let message = format!("{} has {size} bytes, expected {}", path.display(), expected.size);
            return Err(IndexError::Damaged(message));
        }
        if sums && file_sum(&path).map_err(|error| io_error("cannot read", &path, error))? != *expected {
            return Err(IndexError::Damaged(format!(
                "{} has changed since it was published",
                path.display()
            )));
        }
    }
    Ok(())
}

fn file_sum(path: &Path) -> io::Result<FileSum> {
    let mut file = File::open(path)?;
    let mut hasher = Xxh3Default::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut size = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(FileSum { size, sum: hasher.digest() }),
            read => {
                hasher.update(&buffer[..read]);
                size += read as u64;
            }
        }
    }
}

/// Makes the finished folder `root` the published generation of `folder`.
pub fn publish(folder: &Path, root: &Path, name: &str, mut manifest: Manifest) -> Result<(), IndexError> {
    manifest.files = sums_of(root)?;
    let path = root.join(MANIFEST);
    let write = |path: &Path, bytes: &[u8]| -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    let json = serde_json::to_vec_pretty(&manifest)
        .map_err(|error| io_error("cannot write", &path, error.into()))?;
    write(&path, &json).map_err(|error| io_error("cannot write", &path, error))?;
    sync_folder(root)?;
    let target = folder.join(name);
    fs::rename(root, &target).map_err(|error| io_error("cannot rename to", &target, error))?;
    sync_folder(folder)?;
    let (new, path) = (folder.join("CURRENT.new"), folder.join(CURRENT));
    write(&new, format!("{name}\n").as_bytes()).map_err(|error| io_error("cannot write", &new, error))?;
    fs::rename(&new, &path).map_err(|error| io_error("cannot replace", &path, error))?;
    sync_folder(folder)
}

/// Sizes and sums of all files under `root`, each of them synced to disk.
fn sums_of(root: &Path) -> Result<BTreeMap<String, FileSum>, IndexError> {
    let mut files = BTreeMap::new();
    for entry in walkdir::WalkDir::new(root) {
        let entry = entry.map_err(|error| io_error("cannot read", root, error.into()))?;
        if !entry.file_type().is_file() {
            continue;
        }
        let path = entry.path();
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
        if name.ends_with(".lock") {
            continue;
        }
        let sum = File::open(path).and_then(|file| file.sync_all()).and_then(|()| file_sum(path));
        files.insert(name, sum.map_err(|error| io_error("cannot read", path, error))?);
    }
    sync_folder(&root.join(LEXICAL))?;
    Ok(files)
}

fn sync_folder(folder: &Path) -> Result<(), IndexError> {
    // Only Unix can sync a folder; elsewhere the rename itself is durable.
    if cfg!(unix) {
        File::open(folder)
            .and_then(|file| file.sync_all())
            .map_err(|error| io_error("cannot sync", folder, error))?;
    }
    Ok(())
}

/// The name after the newest generation in `folder`, published or not.
pub fn next_name(folder: &Path) -> Result<String, IndexError> {
    let newest = generations(folder)?.into_iter().max().unwrap_or(0);
    Ok(format!("g{:06}", newest + 1))
}

/// Removes generations that are neither published nor the one before.
pub fn prune(folder: &Path) -> Result<(), IndexError> {
    let Some(published) = current(folder)?.and_then(|name| name[1..].parse::<u64>().ok()) else {
        return Ok(());
    };
    let mut numbers = generations(folder)?;
    numbers.sort_unstable();
    let keep_from = numbers.iter().rev().find(|number| **number < published).copied().unwrap_or(published);
    for number in numbers.into_iter().filter(|number| *number < keep_from) {
        // A reader on another system may hold it open; the next ingest tries again.
        let _ = fs::remove_dir_all(folder.join(format!("g{number:06}")));
    }
    Ok(())
}

fn generations(folder: &Path) -> Result<Vec<u64>, IndexError> {
    let entries = fs::read_dir(folder).map_err(|error| io_error("cannot list", folder, error))?;
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix('g')?.parse().ok())
        .collect())
}

/// An error of the disk, with the path it happened at.
pub(super) fn io_error(what: &str, path: &Path, source: io::Error) -> IndexError {
    IndexError::Io { context: format!("{what} {}", path.display()), source }
}
