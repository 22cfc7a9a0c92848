//! One immutable version of an index: written completely, then published by a rename.
//!
//! ```text
//! index/
//!   CURRENT              the name of the published generation
//!   g000007/
//!     manifest.json      embedder, counts, and the size and checksum of every file
//!     manifest.sum       the checksum of the manifest; absent in generations of older versions
//!     pages.jsonl        the pages and a hash per section, for the next ingest
//!     keys               the key of each row's vector, 16 bytes per row
//!     modules.u16        the module of each row
//!     books.u16          the book of each row
//!     editions.u16       the version and locale of each row; absent if the book has none
//!     pages.u32          the page of each row; absent in generations of older versions
//!     vectors.f32 vectors.i8 vectors.scale
//!     lexical/           the keyword index (tantivy)
//! ```
//!
//! Invariant: the folder named in `CURRENT` is complete and synced to disk. After a crash at any moment,
//! `CURRENT` still names the old generation.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use docent_core::edition::{Edition, Variant};
use docent_core::embed::EmbedderId;
use docent_core::index::{Description, IndexError, Modules};
use docent_core::language::Language;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::files::{FileSum, Files, LEXICAL, changed, io_error, same_size, unreadable};
use super::lexical::Lexical;
use super::vectors::{FullPrecision, Vectors};
use crate::failpoint;
use crate::index::contents::{Key, PageRecord, SourceRecord};

/// Version of the file format; increased when files of older versions can no longer be read.
pub const FORMAT: u32 = 2;

const CURRENT: &str = "CURRENT";
const MANIFEST: &str = "manifest.json";
const MANIFEST_SUM: &str = "manifest.sum";
pub(super) const PAGES: &str = "pages.jsonl";
pub(super) const KEYS: &str = "keys";
pub(super) const FULL: &str = "vectors.f32";
pub(super) const ROUNDED: &str = "vectors.i8";
pub(super) const SCALES: &str = "vectors.scale";
pub(super) const ROW_MODULES: &str = "modules.u16";
pub(super) const ROW_BOOKS: &str = "books.u16";
pub(super) const ROW_EDITIONS: &str = "editions.u16";
pub(super) const ROW_PAGES: &str = "pages.u32";

/// Describes a generation and its files, so that damage can be detected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the file format.
    pub format: u32,
    /// The embedder that made the vectors.
    pub embedder: EmbedderId,
    /// The language of the book.
    pub language: Language,
    /// Number of pages.
    pub pages: usize,
    /// Number of chunks.
    pub chunks: usize,
    /// Pages and chunks by module.
    pub modules: Modules,
    /// The same for each book that has a name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub books: BTreeMap<String, Modules>,
    /// The distinct versions and locales of the pages; empty if the book has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub editions: Vec<Edition>,
    /// The versions, as they are described.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Variant>,
    /// The locales, as they are described.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locales: Vec<Variant>,
    /// The sources it was read from, for the next ingest.
    pub sources: Vec<SourceRecord>,
    /// When it was published, RFC 3339.
    pub created_at: String,
    /// Every other file, by path.
    pub files: BTreeMap<String, FileSum>,
}

/// An open generation.
pub struct Generation {
    /// Its name, which is the version of the index.
    pub name: String,
    /// Its description.
    pub manifest: Manifest,
    /// The keyword index.
    pub lexical: Lexical,
    /// The vectors; `None` if the book was ingested without an embedder.
    pub vectors: Option<Vectors>,
    /// The module of each row, as its position in the manifest's `modules`.
    pub row_modules: Vec<u16>,
    /// The book of each row, as its position in the manifest's `books`; [`NO_BOOK`] if it has no name.
    pub row_books: Vec<u16>,
    /// The edition of each row, as its position in the manifest's `editions`; empty if the book has none.
    pub row_editions: Vec<u16>,
    /// The page of each row, as its position in the book.
    pub row_pages: Vec<u32>,
    /// The rows of each page; read when a page is first requested.
    pub(super) page_rows: OnceLock<HashMap<String, Range<u32>>>,
    /// Its files; `None` if it was built in memory.
    pub(super) files: Option<Files>,
    /// Damage found after it was opened.
    pub(super) damage: OnceLock<String>,
}

/// Stands for the book of a row whose book has no name.
pub const NO_BOOK: u16 = u16::MAX;

/// Generations of up to this many bytes are read into memory and verified when they are opened. Larger ones
/// are verified by [`Generation::check`] while they are already in use.
pub const MOST_IN_MEMORY: u64 = 64 << 20;

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
                Err(IndexError::Damaged(format!("{} does not name a generation", path.display())))
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("cannot read", &path, error)),
    }
}

impl Generation {
    /// Opens the published generation of an index folder.
    pub fn open_current(folder: &Path, most_in_memory: u64) -> Result<Self, IndexError> {
        // The generation may be replaced and removed after its name was read; then open the newer one.
        let mut name = current(folder)?.ok_or(IndexError::Empty)?;
        loop {
            match catch_panic(&name, || Self::open(folder, &name, most_in_memory)) {
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

    fn open(folder: &Path, name: &str, most_in_memory: u64) -> Result<Self, IndexError> {
        let root = folder.join(name);
        let manifest = read_manifest(&root)?;
        let files = Files::open(&root, &manifest.files, most_in_memory)?;
        let damaged = |what: &str| IndexError::Damaged(format!("{}: {what}", root.display()));
        let index = tantivy::Index::open(files.lexical()?).map_err(|error| damaged(&error.to_string()))?;
        let lexical =
            Lexical::open(&index, manifest.language).map_err(|error| damaged(&error.to_string()))?;
        let row_modules: Vec<u16> = files.column(ROW_MODULES)?;
        let row_books: Vec<u16> = files.column(ROW_BOOKS)?;
        let row_editions: Vec<u16> = match manifest.editions.is_empty() {
            true => Vec::new(),
            false => files.column(ROW_EDITIONS)?,
        };
        let row_pages: Vec<u32> = match manifest.files.contains_key(ROW_PAGES) {
            true => files.column(ROW_PAGES)?,
            false => pages_by_row(&parse_pages(&files.column::<u8>(PAGES)?, &root)?),
        };
        let mut rows = vec![lexical.rows(), row_modules.len(), row_books.len(), row_pages.len()];
        if !manifest.editions.is_empty() {
            rows.push(row_editions.len());
        }
        let vectors = match manifest.embedder.width {
            0 => None,
            width => {
                let full = match files.is_in_memory() {
                    true => FullPrecision::Memory(files.column(FULL)?),
                    false => FullPrecision::File(files.file(FULL)?),
                };
                let vectors = Vectors::new(width, full, files.column(ROUNDED)?, files.column(SCALES)?)
                    .ok_or_else(|| damaged("the sizes of the vector files do not match"))?;
                rows.extend([vectors.rows(), files.values::<Key>(KEYS)?]);
                Some(vectors)
            }
        };
        if rows.iter().any(|rows| *rows != manifest.chunks) {
            return Err(damaged("the number of chunks does not match the manifest"));
        }
        if files.is_in_memory() {
            // The other files are read on demand, but verified now.
            for name in manifest.files.keys().filter(|name| [PAGES, KEYS].contains(&name.as_str())) {
                files.column::<u8>(name)?;
            }
        }
        Ok(Self {
            name: name.to_owned(),
            manifest,
            lexical,
            vectors,
            row_modules,
            row_books,
            row_editions,
            row_pages,
            page_rows: OnceLock::new(),
            files: Some(files),
            damage: OnceLock::new(),
        })
    }

    /// Whether its files still have to be verified by [`Self::check`].
    pub fn needs_check(&self) -> bool {
        self.files.as_ref().is_some_and(|files| !files.is_in_memory())
    }

    /// Verifies the checksums of its files. If that fails, all further searches fail.
    pub fn check(&self) -> Result<(), IndexError> {
        let checked = self.files.as_ref().map_or(Ok(()), Files::check);
        if let Err(error) = &checked {
            let _ = self.damage.set(error.to_string());
        }
        checked
    }

    /// Returns an error if damage was found.
    pub fn sound(&self) -> Result<(), IndexError> {
        match self.damage.get() {
            Some(damage) => Err(IndexError::Damaged(format!("{}: {damage}", self.name))),
            None => Ok(()),
        }
    }

    /// The rows of a page; empty if there is no such page.
    pub fn page_rows(&self, document_id: &str) -> Result<Range<u32>, IndexError> {
        let rows = match (self.page_rows.get(), &self.files) {
            (Some(rows), _) => rows,
            (None, Some(_)) => {
                let pages = self.pages()?;
                if pages.iter().map(|page| page.chunks).sum::<usize>() != self.manifest.chunks {
                    let message = format!("{}: {PAGES} does not match the manifest", self.name);
                    return Err(IndexError::Damaged(message));
                }
                let rows = rows_by_page(&pages);
                self.page_rows.get_or_init(|| rows)
            }
            (None, None) => return Ok(0..0),
        };
        Ok(rows.get(document_id).cloned().unwrap_or(0..0))
    }

    /// Its pages, read from the file that is already open: the folder may have been removed.
    pub fn pages(&self) -> Result<Vec<PageRecord>, IndexError> {
        let Some(files) = &self.files else { return Ok(Vec::new()) };
        parse_pages(&files.column::<u8>(PAGES)?, Path::new(&self.name))
    }

    /// The keys and vectors of all rows.
    pub fn keyed_vectors(&self) -> Result<(Vec<Key>, Vec<f32>), IndexError> {
        let Some(files) = &self.files else { return Ok(Default::default()) };
        Ok((files.column(KEYS)?, files.column(FULL)?))
    }

    /// Its description, as [`docent_core::index::Index`] reports it.
    pub fn describe(&self) -> Description {
        self.manifest.describe(&self.name)
    }
}

impl Manifest {
    fn describe(&self, name: &str) -> Description {
        Description {
            version: name.to_owned(),
            embedder: self.embedder.clone(),
            language: self.language,
            pages: self.pages,
            chunks: self.chunks,
            modules: self.modules.clone(),
            books: self.books.clone(),
            versions: self.versions.clone(),
            locales: self.locales.clone(),
            sources: self.sources.iter().map(|source| source.location.clone()).collect(),
            created_at: self.created_at.clone(),
        }
    }
}

/// Describes the published generation from its manifest; checks only the sizes of its files.
pub fn describe(folder: &Path) -> Result<Description, IndexError> {
    let name = current(folder)?.ok_or(IndexError::Empty)?;
    let root = folder.join(&name);
    let manifest = read_manifest(&root)?;
    check_files(&root, &manifest, false)?;
    Ok(manifest.describe(&name))
}

/// Turns a panic into an error: tantivy panics on damaged files, and those of a large generation are opened
/// before they are verified.
fn catch_panic<T>(name: &str, open: impl FnOnce() -> Result<T, IndexError>) -> Result<T, IndexError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(open))
        .unwrap_or_else(|_| Err(IndexError::Damaged(format!("{name}: cannot read the keyword index"))))
}

/// The range of rows of each page.
pub(super) fn rows_by_page(pages: &[PageRecord]) -> HashMap<String, Range<u32>> {
    let mut next = 0;
    let rows = pages.iter().map(|page| {
        let first = next;
        next += page.chunks as u32;
        (page.id.clone(), first..next)
    });
    rows.collect()
}

/// The page of each row, as its position in the book.
pub(super) fn pages_by_row(pages: &[PageRecord]) -> Vec<u32> {
    (0..).zip(pages).flat_map(|(number, page)| std::iter::repeat_n(number, page.chunks)).collect()
}

/// The pages of a generation.
pub fn read_pages(root: &Path) -> Result<Vec<PageRecord>, IndexError> {
    let path = root.join(PAGES);
    parse_pages(&fs::read(&path).map_err(|error| unreadable(&path, error))?, &path)
}

fn parse_pages(bytes: &[u8], path: &Path) -> Result<Vec<PageRecord>, IndexError> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            serde_json::from_slice(line)
                .map_err(|error| IndexError::Damaged(format!("{}: {error}", path.display())))
        })
        .collect()
}

/// The vectors of a generation by key.
pub fn read_keyed_vectors(root: &Path) -> Result<HashMap<Key, Vec<f32>>, IndexError> {
    let manifest = read_manifest(root)?;
    let files = Files::open(root, &manifest.files, 0)?;
    let (keys, full): (Vec<Key>, Vec<f32>) = (files.column(KEYS)?, files.column(FULL)?);
    let width = manifest.embedder.width.max(1);
    Ok(keys.into_iter().zip(full.chunks_exact(width).map(<[f32]>::to_vec)).collect())
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
    let sum = root.join(MANIFEST_SUM);
    match fs::read_to_string(&sum) {
        Ok(expected) if expected.trim() == in_hexadecimal(xxh3_64(&text)) => {}
        Ok(_) => return Err(changed(&path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(changed(&sum)),
        Err(error) => return Err(unreadable(&sum, error)),
    }
    serde_json::from_slice(&text).map_err(damaged)
}

fn in_hexadecimal(sum: u64) -> String {
    format!("{sum:016x}")
}

/// The sources of a book. The field is the same in all file formats.
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

/// Compares the files with the manifest: always their sizes, and with `sums` also their checksums.
pub fn check_files(root: &Path, manifest: &Manifest, sums: bool) -> Result<(), IndexError> {
    for (name, expected) in &manifest.files {
        let path = root.join(name);
        let size = fs::metadata(&path).map_err(|error| unreadable(&path, error))?.len();
        same_size(&path, size, expected)?;
        if sums && file_sum(&path).map_err(|error| unreadable(&path, error))? != *expected {
            return Err(changed(&path));
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
    same_modes(root)?;
    manifest.files = sums_of(root)?;
    let path = root.join(MANIFEST);
    let write = |path: &Path, bytes: &[u8]| -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    let json = serde_json::to_vec_pretty(&manifest)
        .map_err(|error| io_error("cannot write", &path, error.into()))?;
    let reach = |name| failpoint::reach(name).map_err(|error| io_error("cannot publish", root, error));
    reach("publish.manifest")?;
    write(&path, &json).map_err(|error| io_error("cannot write", &path, error))?;
    let sum = root.join(MANIFEST_SUM);
    write(&sum, format!("{}\n", in_hexadecimal(xxh3_64(&json))).as_bytes())
        .map_err(|error| io_error("cannot write", &sum, error))?;
    sync_folder(root)?;
    reach("publish.rename")?;
    let target = folder.join(name);
    fs::rename(root, &target).map_err(|error| io_error("cannot rename to", &target, error))?;
    sync_folder(folder)?;
    reach("publish.current.new")?;
    let (new, path) = (folder.join("CURRENT.new"), folder.join(CURRENT));
    write(&new, format!("{name}\n").as_bytes()).map_err(|error| io_error("cannot write", &new, error))?;
    reach("publish.current")?;
    fs::rename(&new, &path).map_err(|error| io_error("cannot replace", &path, error))?;
    sync_folder(folder)
}

/// Gives every file the mode that the umask gave the first. Tantivy creates some files readable only by their
/// owner, but all files of an index should have the same permissions.
#[cfg(unix)]
fn same_modes(root: &Path) -> Result<(), IndexError> {
    let first = root.join(PAGES);
    let mode = fs::metadata(&first).map_err(|error| unreadable(&first, error))?.permissions();
    for entry in walkdir::WalkDir::new(root) {
        let entry = entry.map_err(|error| io_error("cannot read", root, error.into()))?;
        if entry.file_type().is_file() {
            fs::set_permissions(entry.path(), mode.clone())
                .map_err(|error| io_error("cannot change the mode of", entry.path(), error))?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn same_modes(_: &Path) -> Result<(), IndexError> {
    Ok(())
}

/// Sizes and checksums of all files under `root`; syncs each of them to disk.
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
            // Lock files are not needed: the generation is immutable from now on.
            fs::remove_file(path).map_err(|error| io_error("cannot remove", path, error))?;
            continue;
        }
        let sum = File::open(path).and_then(|file| file.sync_all()).and_then(|()| file_sum(path));
        files.insert(name, sum.map_err(|error| io_error("cannot read", path, error))?);
    }
    sync_folder(&root.join(LEXICAL))?;
    Ok(files)
}

fn sync_folder(folder: &Path) -> Result<(), IndexError> {
    // Folders can only be synced on Unix; elsewhere the rename itself is durable.
    if cfg!(unix) {
        File::open(folder)
            .and_then(|file| file.sync_all())
            .map_err(|error| io_error("cannot sync", folder, error))?;
    }
    Ok(())
}

/// The name that follows the newest generation in `folder`, published or not.
pub fn next_name(folder: &Path) -> Result<String, IndexError> {
    let newest = generations(folder)?.into_iter().max().unwrap_or(0);
    Ok(format!("g{:06}", newest + 1))
}

/// Removes all generations except the published one and the one before it.
pub fn prune(folder: &Path) -> Result<(), IndexError> {
    let Some(published) = current(folder)?.and_then(|name| name[1..].parse::<u64>().ok()) else {
        return Ok(());
    };
    let mut numbers = generations(folder)?;
    numbers.sort_unstable();
    let keep_from = numbers.iter().rev().find(|number| **number < published).copied().unwrap_or(published);
    for number in numbers.into_iter().filter(|number| *number < keep_from) {
        // This can fail, for example while another process has it open; the next ingest tries again.
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
