//! The embedding step of an ingest: reuses published vectors, resumes from the journal, embeds the rest.
//!
//! Invariant: a vector is in the journal before the next batch is sent, so no interruption costs more than one batch.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use docent_core::chunk::Chunk;
use docent_core::embed::{EmbedError, Embedder, Purpose, Vector};
use rayon::prelude::*;
use tokio_util::sync::CancellationToken;

use super::journal::{Journal, journal_path};
use super::{IngestError, Report, disk};
use crate::index::contents::{Key, key};
use crate::progress::Progress;

/// The vectors of a book, in the order of its passages.
#[derive(Default)]
pub(super) struct Embedded {
    pub(super) keys: Vec<Key>,
    pub(super) rows: Vec<f32>,
}

/// What the embedding step needs.
pub(super) struct Embedding<'a> {
    pub(super) folder: &'a Path,
    pub(super) embedder: &'a dyn Embedder,
    pub(super) progress: &'a dyn Progress,
    pub(super) stop: &'a CancellationToken,
}

impl Embedding<'_> {
    pub(super) async fn run(
        &self,
        chunks: &[Chunk],
        mut known: HashMap<Key, Vec<f32>>,
        report: &mut Report,
    ) -> Result<Embedded, IngestError> {
        let width = self.embedder.id().width;
        let path = journal_path(self.folder);
        let mut journal = Journal::open(&path, width).map_err(|error| disk("cannot open", &path, error))?;
        let keys: Vec<Key> =
            chunks.par_iter().map(|chunk| key(self.embedder.id(), &chunk.embedded_text())).collect();

        if keys.iter().all(|key| !journal.vectors().contains_key(key)) {
            // The journal is from another book or embedder, so nothing can resume from it.
            journal.clear().map_err(|error| disk("cannot write", &path, error))?;
        }
        report.resumed =
            keys.iter().filter(|key| !known.contains_key(key) && journal.vectors().contains_key(key)).count();
        known.extend(journal.take_vectors());

        let mut asked = HashSet::new();
        let wanted: Vec<(Key, &Chunk)> = (keys.iter().copied().zip(chunks))
            .filter(|(key, _)| !known.contains_key(key) && asked.insert(*key))
            .collect();
        report.embedded = wanted.len();
        report.embedded_tokens = wanted.iter().map(|(_, chunk)| chunk.token_count as usize).sum();
        report.reused = chunks.len() - wanted.len();
        let mut done = 0;
        self.progress.passages(done, wanted.len());
        for batch in wanted.chunks(self.embedder.batch_size().max(1)) {
            if self.stop.is_cancelled() {
                return Err(IngestError::Stopped);
            }
            let vectors = self.embed(batch).await?;
            let made: Vec<_> = batch.iter().map(|(key, _)| *key).zip(vectors).collect();
            journal.append(&made).map_err(|error| disk("cannot write", &path, error))?;
            known.extend(made);
            done += batch.len();
            self.progress.passages(done, wanted.len());
        }
        let mut rows = Vec::with_capacity(keys.len() * width);
        for key in &keys {
            // A missing row would shift all rows after it.
            let missing = || EmbedError::Unusable("it did not return a vector for every text".to_owned());
            rows.extend_from_slice(known.get(key).ok_or_else(missing)?);
        }
        Ok(Embedded { keys, rows })
    }

    /// The vectors of a batch; an error if their number or width is wrong.
    async fn embed(&self, batch: &[(Key, &Chunk)]) -> Result<Vec<Vector>, EmbedError> {
        let texts: Vec<String> = batch.iter().map(|(_, chunk)| chunk.embedded_text()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = self.embedder.embed(&texts, Purpose::Passage).await?;
        if vectors.len() != batch.len() {
            let (asked, got) = (batch.len(), vectors.len());
            return Err(EmbedError::Unusable(format!("it returned {got} vectors for {asked} texts")));
        }
        let expected = self.embedder.id().width;
        match vectors.iter().find(|vector| vector.len() != expected) {
            Some(odd) => Err(EmbedError::WrongWidth { expected, actual: odd.len() }),
            None => Ok(vectors),
        }
    }
}
