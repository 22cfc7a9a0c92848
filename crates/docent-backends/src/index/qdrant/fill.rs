//! A new collection is filled.
//!
//! Points are named after their passages: what an interrupted run has written is found again.
//!
//! Invariant: the manifest says "complete" only after everything was counted there.

use std::collections::{HashMap, HashSet};

use docent_core::chunk::Chunk;
use docent_core::index::IndexError;
use docent_core::terms::Analyzer;
use qdrant_client::qdrant::{
    CountPointsBuilder, NamedVectors, PointId, PointStruct, ScrollPointsBuilder, UpsertPointsBuilder, Vector,
};
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::collection::{self, DENSE, FORMAT, KEYWORDS, Manifest};
use super::keywords::Counted;
use super::{QdrantIndex, payload};
use crate::index::parts::Parts;

/// Points sent at once.
const TOGETHER: usize = 128;

/// Fills a new collection.
pub(super) struct Writer<'a> {
    index: &'a QdrantIndex,
    name: &'a str,
    parts: &'a Parts<'a>,
    counted: Vec<Counted>,
    average_terms: f32,
}

impl<'a> Writer<'a> {
    /// Counts the terms of all passages, which every weight depends on.
    pub(super) fn new(index: &'a QdrantIndex, name: &'a str, parts: &'a Parts<'a>) -> Self {
        let analyzer = Analyzer::new(parts.language);
        let counted: Vec<Counted> =
            parts.chunks.par_iter().map(|chunk| Counted::new(&chunk.embedded_text(), &analyzer)).collect();
        let total: u64 = counted.iter().map(|passage| u64::from(passage.length)).sum();
        let average_terms = total as f32 / counted.len().max(1) as f32;
        Self { index, name, parts, counted, average_terms }
    }

    /// Writes what is not there yet.
    pub(super) async fn write(&self, written: &(dyn Fn(usize, usize) + Sync)) -> Result<(), IndexError> {
        // The unfinished manifest comes first: it marks the collection as Docent's own.
        self.upsert(vec![self.manifest(false)]).await?;
        let there = self.there().await?;
        let missing = |id: &Uuid| !there.contains(&id.to_string());
        let ids = point_ids(self.parts.chunks);
        let total = self.parts.chunks.len();
        let rows: Vec<usize> = (0..total).filter(|row| missing(&ids[*row])).collect();
        let mut done = total - rows.len();
        written(done, total);
        for batch in rows.chunks(TOGETHER) {
            self.upsert(batch.iter().map(|row| self.passage(*row, ids[*row])).collect()).await?;
            done += batch.len();
            written(done, total);
        }
        let pages: Vec<(Uuid, PointStruct)> = self.pages().filter(|(id, _)| missing(id)).collect();
        for batch in pages.chunks(TOGETHER) {
            self.upsert(batch.iter().map(|(_, point)| point.clone()).collect()).await?;
        }
        let expected = total + self.parts.pages.len() + 1;
        let count = CountPointsBuilder::new(self.name).exact(true);
        let counted = self.index.connection.write(|client| client.count(count.clone())).await?;
        let counted = counted.result.unwrap_or_default().count;
        if counted != expected as u64 {
            return Err(IndexError::Damaged(format!(
                "`{}` has {counted} points where {expected} were written; run the same command again",
                self.name
            )));
        }
        self.upsert(vec![self.manifest(true)]).await
    }

    async fn upsert(&self, points: Vec<PointStruct>) -> Result<(), IndexError> {
        let request = UpsertPointsBuilder::new(self.name, points).wait(true).build();
        self.index.connection.write(|client| client.upsert_points(request.clone())).await?;
        Ok(())
    }

    /// The points an interrupted run has written.
    async fn there(&self) -> Result<HashSet<String>, IndexError> {
        let request = ScrollPointsBuilder::new(self.name).with_payload(false).with_vectors(false);
        let mut there = HashSet::new();
        collection::scroll(&self.index.connection, request, |point| {
            there.insert(collection::point_name(&point));
            Ok(true)
        })
        .await?;
        Ok(there)
    }

    fn passage(&self, row: usize, id: Uuid) -> PointStruct {
        let sparse = self.counted[row].sparse(self.average_terms);
        let mut vectors =
            NamedVectors::default().add_vector(KEYWORDS, Vector::new_sparse(sparse.indices, sparse.values));
        if let Some(dense) = self.parts.vector(row) {
            vectors = vectors.add_vector(DENSE, dense.to_vec());
        }
        let key = self.parts.keys.get(row).copied();
        let payload = payload::own(&self.parts.chunks[row], row, key, &self.parts.created_at);
        PointStruct::new(id.to_string(), vectors, payload)
    }

    fn pages(&self) -> impl Iterator<Item = (Uuid, PointStruct)> {
        self.parts.pages.iter().enumerate().map(|(number, page)| {
            let id =
                Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("docent:page:{number}:{}", page.id).as_bytes());
            let fields = [("docent", json!("page")), ("number", json!(number)), ("page", json!(page))];
            (id, about_the_book(id.to_string().into(), fields))
        })
    }

    fn manifest(&self, complete: bool) -> PointStruct {
        let parts = self.parts;
        let manifest = Manifest {
            format: FORMAT,
            generation: self.name.to_owned(),
            complete,
            embedder: parts.embedder.clone(),
            language: parts.language,
            pages: parts.pages.len(),
            chunks: parts.chunks.len(),
            modules: parts.modules(),
            books: parts.books(),
            sources: parts.sources.clone(),
            created_at: parts.created_at.clone(),
            average_terms: self.average_terms,
            layout: self.index.settings.layout.clone(),
        };
        about_the_book(
            collection::manifest_id(),
            [("docent", json!("manifest")), ("manifest", json!(manifest))],
        )
    }
}

/// A point without vectors, which no search finds.
fn about_the_book<const N: usize>(id: PointId, fields: [(&str, Value); N]) -> PointStruct {
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    PointStruct::new(id, NamedVectors::default(), payload::payload(fields))
}

/// The ids of points: those of their chunks, and another for each chunk that stands there twice.
fn point_ids(chunks: &[Chunk]) -> Vec<Uuid> {
    let mut seen: HashMap<Uuid, u32> = HashMap::new();
    let id = |chunk: &Chunk| {
        let times = seen.entry(chunk.id).or_default();
        *times += 1;
        match *times {
            1 => chunk.id,
            times => Uuid::new_v5(&chunk.id, &times.to_le_bytes()),
        }
    };
    chunks.iter().map(id).collect()
}
