//! The journal: vectors made by an ingest that has not published yet.
//!
//! Each vector is appended with the key of its text and a checksum, and the file is synced after every
//! batch. The next ingest reads all intact records and resumes from there.
//!
//! Invariant: once [`Journal::append`] has returned, its vectors are never embedded again, unless the disk
//! becomes full before they are published.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use docent_core::embed::Vector;
use xxhash_rust::xxh3::xxh3_64;

use crate::failpoint;
use crate::index::contents::Key;

/// Minimum number of bytes that [`give_space_back`] frees, if the journal is that large.
const LEAST_GIVEN_BACK: u64 = 4 << 20;

/// The file in the folder of an index.
pub fn journal_path(folder: &Path) -> PathBuf {
    folder.join("journal")
}

/// A file of keyed vectors.
#[derive(Debug)]
pub struct Journal {
    file: File,
    width: usize,
    vectors: HashMap<Key, Vector>,
}

impl Journal {
    /// Opens or creates the journal and reads all intact records; an incomplete end is truncated.
    pub fn open(path: &Path, width: usize) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut bytes = Vec::new();
        // Only a regular file can be resumed from (not /dev/full, which tests use).
        if file.metadata()?.is_file() {
            file.read_to_end(&mut bytes)?;
        }
        let record = record_length(width);
        let mut vectors = HashMap::new();
        let mut whole = 0;
        for bytes in bytes.chunks_exact(record) {
            let Some((key, vector)) = decode(bytes) else { break };
            vectors.insert(key, vector);
            whole += record;
        }
        if whole < bytes.len() {
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
        }
        Ok(Self { file, width, vectors })
    }

    /// The vectors read when the journal was opened.
    pub fn vectors(&self) -> &HashMap<Key, Vector> {
        &self.vectors
    }

    /// Like [`Journal::vectors`], but moves them out of the journal.
    pub fn take_vectors(&mut self) -> HashMap<Key, Vector> {
        std::mem::take(&mut self.vectors)
    }

    /// Discards the vectors read when the journal was opened.
    pub fn clear(&mut self) -> io::Result<()> {
        if self.vectors.is_empty() {
            return Ok(());
        }
        self.vectors.clear();
        self.file.set_len(0)
    }

    /// Writes vectors so that they survive a crash.
    pub fn append(&mut self, vectors: &[(Key, Vector)]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(vectors.len() * record_length(self.width));
        for (key, vector) in vectors {
            encode(*key, vector, &mut bytes);
        }
        failpoint::reach("journal.write")?;
        self.file.write_all(&bytes)?;
        failpoint::reach("journal.sync")?;
        self.file.sync_data()?;
        failpoint::reach("journal.synced")
    }
}

/// Shortens the journal of an ingest that filled the disk, so that other programs can write again. The rest
/// can still be resumed from; a small journal is removed.
pub fn give_space_back(path: &Path, width: usize) -> io::Result<()> {
    let length = match std::fs::metadata(path) {
        Ok(file) => file.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let record = record_length(width) as u64;
    let kept = length.saturating_sub((length / 16).max(LEAST_GIVEN_BACK)) / record * record;
    match kept {
        0 => std::fs::remove_file(path),
        kept => OpenOptions::new().write(true).open(path)?.set_len(kept),
    }
}

fn record_length(width: usize) -> usize {
    16 + width * 4 + 8
}

fn encode(key: Key, vector: &[f32], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&key.to_le_bytes());
    out.extend_from_slice(bytemuck::cast_slice(vector));
    out.extend_from_slice(&xxh3_64(&out[start..]).to_le_bytes());
}

fn decode(record: &[u8]) -> Option<(Key, Vector)> {
    let (body, sum) = record.split_at(record.len() - 8);
    if xxh3_64(body).to_le_bytes() != sum {
        return None;
    }
    let (key, vector) = body.split_at(16);
    let key = Key::from_le_bytes(key.try_into().ok()?);
    let vector =
        vector.chunks_exact(4).map(|value| f32::from_le_bytes([value[0], value[1], value[2], value[3]]));
    Some((key, vector.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn give_space_back_shortens_the_journal_and_keeps_the_rest_usable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        give_space_back(&path, 2).unwrap();
        let entries: Vec<_> = (0..200_000).map(|key| (key, vec![0.5, 0.25])).collect();
        Journal::open(&path, 2).unwrap().append(&entries).unwrap();
        give_space_back(&path, 2).unwrap();
        let left = Journal::open(&path, 2).unwrap().vectors().len() as u64;
        assert_eq!(left, 200_000 - LEAST_GIVEN_BACK / 32);
        give_space_back(&path, 2).unwrap();
        assert!(!path.exists(), "too small to be worth keeping");
    }

    #[test]
    fn appended_vectors_are_read_back_and_an_incomplete_end_is_truncated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let entries = [(1, vec![0.5, 0.25]), (2, vec![1.0, -1.0])];
        Journal::open(&path, 2).unwrap().append(&entries).unwrap();
        let length = std::fs::metadata(&path).unwrap().len();
        for cut in 0..length {
            let bytes = std::fs::read(&path).unwrap();
            let torn = folder.path().join("torn");
            std::fs::write(&torn, &bytes[..(length - cut) as usize]).unwrap();
            let mut journal = Journal::open(&torn, 2).unwrap();
            let whole = ((length - cut) / 32) as usize;
            assert_eq!(journal.vectors().len(), whole);
            journal.append(&entries).unwrap();
            drop(journal);
            assert_eq!(Journal::open(&torn, 2).unwrap().vectors().len(), 2);
        }
    }
}
