//! Writes the points of a new collection.
//!
//! Point ids are derived from the passages, so points written by an interrupted run are recognized.
//!
//! Invariant: the manifest is marked complete only after the number of points on the server was verified.

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
use crate::index::contents::BookContents;

/// Points per request.
const BATCH_SIZE: usize = 128;

/// Writes the points of a new collection.
pub(super) struct Writer<'a> {
    index: &'a QdrantIndex,
    name: &'a str,
    contents: &'a BookContents<'a>,
    counted: Vec<Counted>,
    average_terms: f32,
}

impl<'a> Writer<'a> {
    /// Counts the terms of all passages: every keyword weight depends on the average length.
    pub(super) fn new(index: &'a QdrantIndex, name: &'a str, contents: &'a BookContents<'a>) -> Self {
        let analyzer = Analyzer::new(contents.language);
        let counted: Vec<Counted> =
            contents.chunks.par_iter().map(|chunk| Counted::new(&chunk.embedded_text(), &analyzer)).collect();
        let total: u64 = counted.iter().map(|passage| u64::from(passage.length)).sum();
        let average_terms = total as f32 / counted.len().max(1) as f32;
        Self { index, name, contents, counted, average_terms }
    }

    /// Writes the points that do not exist yet.
    pub(super) async fn write(&self, written: &(dyn Fn(usize, usize) + Sync)) -> Result<(), IndexError> {
        // Write the incomplete manifest first: it marks the collection as Docent's own.
        self.upsert(vec![self.manifest(false)]).await?;
        let existing = self.existing_ids().await?;
        let missing = |id: &Uuid| !existing.contains(&id.to_string());
        let ids = point_ids(self.contents.chunks);
        let total = self.contents.chunks.len();
        let rows: Vec<usize> = (0..total).filter(|row| missing(&ids[*row])).collect();
        let mut done = total - rows.len();
        written(done, total);
        for batch in rows.chunks(BATCH_SIZE) {
            self.upsert(batch.iter().map(|row| self.passage(*row, ids[*row])).collect()).await?;
            done += batch.len();
            written(done, total);
        }
        let pages: Vec<(Uuid, PointStruct)> = self.pages().filter(|(id, _)| missing(id)).collect();
        for batch in pages.chunks(BATCH_SIZE) {
            self.upsert(batch.iter().map(|(_, point)| point.clone()).collect()).await?;
        }
        let expected = total + self.contents.pages.len() + 1;
        let count = CountPointsBuilder::new(self.name).exact(true);
        let counted = self.index.connection.write(|client| client.count(count.clone())).await?;
        let counted = counted.result.unwrap_or_default().count;
        if counted != expected as u64 {
            return Err(IndexError::Damaged(format!(
                "`{}` has {counted} points, expected {expected}; run the same command again",
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

    /// The ids of the points that an interrupted run has written.
    async fn existing_ids(&self) -> Result<HashSet<String>, IndexError> {
        let request = ScrollPointsBuilder::new(self.name).with_payload(false).with_vectors(false);
        let mut existing = HashSet::new();
        collection::scroll(&self.index.connection, request, |point| {
            existing.insert(collection::point_name(&point));
            Ok(true)
        })
        .await?;
        Ok(existing)
    }

    fn passage(&self, row: usize, id: Uuid) -> PointStruct {
        let sparse = self.counted[row].sparse(self.average_terms);
        let mut vectors =
            NamedVectors::default().add_vector(KEYWORDS, Vector::new_sparse(sparse.indices, sparse.values));
        if let Some(dense) = self.contents.vector(row) {
            vectors = vectors.add_vector(DENSE, dense.to_vec());
        }
        let key = self.contents.keys.get(row).copied();
        let payload = payload::own(&self.contents.chunks[row], row, key, &self.contents.created_at);
        PointStruct::new(id.to_string(), vectors, payload)
    }

    fn pages(&self) -> impl Iterator<Item = (Uuid, PointStruct)> {
        self.contents.pages.iter().enumerate().map(|(number, page)| {
            let id =
                Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("docent:page:{number}:{}", page.id).as_bytes());
            let fields = [("docent", json!("page")), ("number", json!(number)), ("page", json!(page))];
            (id, about_the_book(id.to_string().into(), fields))
        })
    }

    fn manifest(&self, complete: bool) -> PointStruct {
        let contents = self.contents;
        let (versions, locales) = contents.variants();
        let manifest = Manifest {
            format: FORMAT,
            generation: self.name.to_owned(),
            complete,
            embedder: contents.embedder.clone(),
            language: contents.language,
            pages: contents.pages.len(),
            chunks: contents.chunks.len(),
            modules: contents.modules(),
            books: contents.books(),
            versions,
            locales,
            sources: contents.sources.clone(),
            created_at: contents.created_at.clone(),
            average_terms: self.average_terms,
            layout: self.index.settings.layout.clone(),
        };
        about_the_book(
            collection::manifest_id(),
            [("docent", json!("manifest")), ("manifest", json!(manifest))],
        )
    }
}

/// A point without vectors, which searches do not find.
fn about_the_book<const N: usize>(id: PointId, fields: [(&str, Value); N]) -> PointStruct {
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    PointStruct::new(id, NamedVectors::default(), payload::payload(fields))
}

/// The ids of the points: the ids of their chunks, or a derived id for repeated chunks.
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
