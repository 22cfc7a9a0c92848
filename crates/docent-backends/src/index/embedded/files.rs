//! The files of a generation, opened once and kept open while it is in use.
//!
//! All files of a small generation are read into memory. For a large one, only what every search scans is in
//! memory; the rest is read from the file on demand. Files are not memory-mapped: if a file is truncated
//! while it is in use, a search fails, but no signal kills the process.
//!
//! Invariant: data in memory was verified against its checksum. Data on disk is always read through the
//! handle opened at the start, even if the file was replaced since.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;
use docent_core::index::IndexError;
use serde::{Deserialize, Serialize};
use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, WatchCallback, WatchHandle, WritePtr,
};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Bytes read at a time when computing a checksum.
const BLOCK: usize = 256 * 1024;

/// The folder of the keyword index.
pub(super) const LEXICAL: &str = "lexical";

/// A file's size and checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSum {
    /// In bytes.
    pub size: u64,
    /// xxh3 of its bytes.
    pub sum: u64,
}

/// The files of a generation.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
    held: BTreeMap<String, Arc<Held>>,
    in_memory: bool,
}

/// An open file of a generation.
#[derive(Debug)]
pub struct Held {
    file: File,
    expected: FileSum,
}

impl Files {
    /// Opens every file listed in a manifest and compares their sizes. If they have at most `most_in_memory`
    /// bytes in total, they are read into memory.
    pub fn open(
        root: &Path,
        listed: &BTreeMap<String, FileSum>,
        most_in_memory: u64,
    ) -> Result<Self, IndexError> {
        let mut held = BTreeMap::new();
        for (name, expected) in listed {
            let path = root.join(name);
            let file = File::open(&path).map_err(|error| unreadable(&path, error))?;
            let size = file.metadata().map_err(|error| unreadable(&path, error))?.len();
            same_size(&path, size, expected)?;
            held.insert(name.clone(), Arc::new(Held { file, expected: *expected }));
        }
        let in_memory = listed.values().map(|file| file.size).sum::<u64>() <= most_in_memory;
        Ok(Self { root: root.to_owned(), held, in_memory })
    }

    /// Whether everything is in memory, so that later changes to the files do not matter.
    pub fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// An open file.
    pub fn file(&self, name: &str) -> Result<Arc<Held>, IndexError> {
        let missing =
            || IndexError::Damaged(format!("the manifest of {} does not list {name}", self.root.display()));
        self.held.get(name).cloned().ok_or_else(missing)
    }

    /// How many values of `T` a file contains.
    pub fn values<T>(&self, name: &str) -> Result<usize, IndexError> {
        Ok(self.file(name)?.expected.size as usize / size_of::<T>())
    }

    /// The verified content of a whole file.
    pub fn column<T: Pod>(&self, name: &str) -> Result<Vec<T>, IndexError> {
        let held = self.file(name)?;
        let path = self.root.join(name);
        let size = held.expected.size as usize;
        if !size.is_multiple_of(size_of::<T>()) {
            let message = format!("{}: its length is not a whole number of values", path.display());
            return Err(IndexError::Damaged(message));
        }
        let mut values = vec![T::zeroed(); size / size_of::<T>()];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        held.read_at(bytes, 0).map_err(|error| unreadable(&path, error))?;
        if xxh3_64(bytes) != held.expected.sum {
            return Err(changed(&path));
        }
        Ok(values)
    }

    /// Verifies the checksum of every file.
    pub fn check(&self) -> Result<(), IndexError> {
        for (name, held) in &self.held {
            let path = self.root.join(name);
            if held.sum().map_err(|error| unreadable(&path, error))? != held.expected.sum {
                return Err(changed(&path));
            }
        }
        Ok(())
    }

    /// The files of the keyword index as a tantivy directory.
    pub fn lexical(&self) -> Result<LexicalFiles, IndexError> {
        let mut files: BTreeMap<PathBuf, Arc<dyn FileHandle>> = BTreeMap::new();
        for (name, held) in &self.held {
            let Some(inner) = name.strip_prefix(LEXICAL).and_then(|name| name.strip_prefix('/')) else {
                continue;
            };
            let handle: Arc<dyn FileHandle> = match self.in_memory {
                true => Arc::new(OwnedBytes::new(self.column::<u8>(name)?)),
                false => held.clone(),
            };
            files.insert(PathBuf::from(inner), handle);
        }
        Ok(LexicalFiles { files: Arc::new(files) })
    }
}

impl Held {
    /// Fills `buffer` from the bytes at `offset`; an error if the file has become too short.
    #[cfg(unix)]
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset)
    }

    /// Fills `buffer` from the bytes at `offset`; an error if the file has become too short.
    #[cfg(windows)]
    pub fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(&self.file, buffer, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
            }
        }
        Ok(())
    }

    /// Its size in bytes when it was published.
    pub fn size(&self) -> usize {
        self.expected.size as usize
    }

    fn sum(&self) -> io::Result<u64> {
        let mut hasher = Xxh3Default::new();
        let mut buffer = vec![0; BLOCK.min(self.size())];
        let mut offset = 0;
        while offset < self.size() {
            let length = buffer.len().min(self.size() - offset);
            self.read_at(&mut buffer[..length], offset as u64)?;
            hasher.update(&buffer[..length]);
            offset += length;
        }
        Ok(hasher.digest())
    }
}

impl HasLen for Held {
    fn len(&self) -> usize {
        self.size()
    }
}

impl FileHandle for Held {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        if range.start > range.end || range.end > self.size() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut bytes = vec![0; range.len()];
        self.read_at(&mut bytes, range.start as u64)?;
        Ok(OwnedBytes::new(bytes))
    }
}

/// The files of the keyword index as a read-only directory. It needs no lock, so it may be on a read-only
/// disk.
#[derive(Debug, Clone)]
pub struct LexicalFiles {
    files: Arc<BTreeMap<PathBuf, Arc<dyn FileHandle>>>,
}

impl Directory for LexicalFiles {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.files.get(path).cloned().ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.files.contains_key(path))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let file = self.get_file_handle(path)?;
        let bytes = file
            .read_bytes(0..file.len())
            .map_err(|error| OpenReadError::wrap_io_error(error, path.to_owned()))?;
        Ok(bytes.to_vec())
    }

    fn acquire_lock(&self, _: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError { io_error: Arc::new(read_only()), filepath: path.to_owned() })
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(read_only(), path.to_owned()))
    }

    fn atomic_write(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(read_only())
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "a published generation is read-only")
}

/// A missing or truncated file means that the generation is damaged; other errors, such as missing
/// permissions, do not.
pub(super) fn unreadable(path: &Path, error: io::Error) -> IndexError {
    match error.kind() {
        io::ErrorKind::NotFound => IndexError::Damaged(format!("{} is missing", path.display())),
        io::ErrorKind::UnexpectedEof => {
            IndexError::Damaged(format!("{} has been truncated since it was published", path.display()))
        }
        _ => io_error("cannot read", path, error),
    }
}

pub(super) fn same_size(path: &Path, size: u64, expected: &FileSum) -> Result<(), IndexError> {
    if size == expected.size {
        return Ok(());
    }
    let message = format!("{} has {size} bytes, expected {}", path.display(), expected.size);
    Err(IndexError::Damaged(message))
}

pub(super) fn changed(path: &Path) -> IndexError {
    IndexError::Damaged(format!("{} has changed since it was published", path.display()))
}

/// An I/O error with the path where it happened.
pub(super) fn io_error(what: &str, path: &Path, source: io::Error) -> IndexError {
    IndexError::Io { context: format!("{what} {}", path.display()), source }
}
