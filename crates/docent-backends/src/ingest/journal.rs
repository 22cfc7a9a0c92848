//! Vectors made by an ingest that has not published yet.
//!
//! Each vector is appended with the key of the text it was made from and a checksum, and
//! the file is synced batch by batch. The next ingest reads what is whole and goes on.
//!
//! Invariant: what [`Journal::append`] returned for is never embedded again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use docent_core::embed::Vector;
use xxhash_rust::xxh3::xxh3_64;

use crate::index::parts::Key;

/// A file of keyed vectors.
#[derive(Debug)]
pub struct Journal {
    file: File,
    width: usize,
    vectors: HashMap<Key, Vector>,
}

impl Journal {
    /// Opens or creates the journal and reads what is whole; a torn end is cut off.
    pub fn open(path: &Path, width: usize) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut bytes = Vec::new();
        // A journal that is no regular file holds nothing to resume from.
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

    /// The vectors found at opening.
    pub fn vectors(&self) -> &HashMap<Key, Vector> {
        &self.vectors
    }

    /// The same, to keep; the journal holds them no longer.
    pub fn take_vectors(&mut self) -> HashMap<Key, Vector> {
        std::mem::take(&mut self.vectors)
    }

    /// Writes vectors so that they survive a crash.
    pub fn append(&mut self, vectors: &[(Key, Vector)]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(vectors.len() * record_length(self.width));
        for (key, vector) in vectors {
            encode(*key, vector, &mut bytes);
        }
        self.file.write_all(&bytes)?;
        self.file.sync_data()
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
    fn what_was_appended_is_found_again_and_a_torn_end_is_cut_off() {
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
