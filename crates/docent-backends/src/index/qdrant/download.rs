//! Reads a whole book back from a collection, to copy it to another index.
//!
//! Invariant: vectors have unit length and are in the order of the book.

use std::collections::BTreeMap;

use docent_core::chunk::Chunk;
use docent_core::embed::{EmbedderId, Vector};
use docent_core::index::IndexError;
use qdrant_client::qdrant::{Condition, Filter, RetrievedPoint, ScrollPointsBuilder, VectorsSelector};
use serde_json::Value;

use super::collection::{self, ROLE, Reading};
use super::{QdrantIndex, payload, read};
use crate::index::contents::{Key, Labels, PageRecord, WholeBook, labels};

impl QdrantIndex {
    /// Reads all points as a book.
    pub(super) async fn read_back(&self) -> Result<WholeBook, IndexError> {
        let collection = self.collection().await?;
        let vector = collection.vector.as_ref();
        let mut request =
            ScrollPointsBuilder::new(&collection.name).filter(collection.passages()).with_payload(true);
        request = match vector.map(|field| &field.name) {
            Some(Some(name)) => request.with_vectors(VectorsSelector { names: vec![name.clone()] }),
            Some(None) => request.with_vectors(true),
            None => request,
        };
        let mut rows: Vec<Taken> = Vec::new();
        collection::scroll(&self.connection, request, |point| {
            let vector = vector.and_then(|field| dense(&point, field.name.as_deref()));
            let name = collection::point_name(&point);
            let payload = payload::json_of(point.payload);
            if let Some(chunk) = read(&collection, &name, &payload) {
                let row = payload.get("row").and_then(Value::as_u64);
                rows.push(Taken { row, key: key_of(&payload).unwrap_or_default(), chunk, vector });
            }
            Ok(true)
        })
        .await?;
        rows.sort_by(|a, b| {
            (a.row, &a.chunk.document_id, a.chunk.index).cmp(&(b.row, &b.chunk.document_id, b.chunk.index))
        });
        let mut embedder = collection.description.embedder.clone();
        if rows.iter().any(|row| row.vector.as_ref().map_or(0, Vec::len) != embedder.width) {
            embedder = EmbedderId::none();
        }
        let (pages, labels, sources) = match &collection.reading {
            Reading::Own(manifest) => {
                let labels = labels(&manifest.modules, &manifest.books);
                (self.pages(&collection.name).await?, labels, manifest.sources.clone())
            }
            Reading::Foreign(_) => (pages_of(&rows), Labels::new(), Vec::new()),
        };
        Ok(WholeBook {
            language: collection.description.language,
            pages,
            keys: if embedder.width == 0 { Vec::new() } else { rows.iter().map(|row| row.key).collect() },
            vectors: match embedder.width {
                0 => Vec::new(),
                _ => rows.iter().flat_map(|row| unit(row.vector.as_deref().unwrap_or_default())).collect(),
            },
            embedder,
            labels,
            sources,
            created_at: crate::now_rfc3339(),
            chunks: rows.into_iter().map(|row| row.chunk).collect(),
        })
    }

    /// The pages of a collection of Docent's own, in order.
    pub(super) async fn pages(&self, name: &str) -> Result<Vec<PageRecord>, IndexError> {
        let request = ScrollPointsBuilder::new(name)
            .filter(Filter::must([Condition::matches(ROLE, "page".to_owned())]))
            .with_payload(true);
        let mut pages: Vec<(u64, PageRecord)> = Vec::new();
        collection::scroll(&self.connection, request, |point| {
            let payload = payload::json_of(point.payload);
            let number = payload.get("number").and_then(Value::as_u64).unwrap_or_default();
            let page = serde_json::from_value(payload.get("page").cloned().unwrap_or_default())
                .map_err(|error| IndexError::Damaged(format!("a page of `{name}`: {error}")))?;
            pages.push((number, page));
            Ok(true)
        })
        .await?;
        pages.sort_by_key(|(number, _)| *number);
        Ok(pages.into_iter().map(|(_, page)| page).collect())
    }
}

/// A point read back.
struct Taken {
    row: Option<u64>,
    key: Key,
    chunk: Chunk,
    vector: Option<Vector>,
}

/// The pages of a collection of another system, derived from its passages.
fn pages_of(rows: &[Taken]) -> Vec<PageRecord> {
    let mut pages: Vec<PageRecord> = Vec::new();
    for Taken { chunk, .. } in rows {
        match pages.last_mut().filter(|page| page.id == chunk.document_id) {
            Some(page) => page.chunks += 1,
            None => pages.push(PageRecord {
                id: chunk.document_id.clone(),
                url: chunk.url.split('#').next().unwrap_or_default().to_owned(),
                title: chunk.page_title.clone(),
                book: chunk.book_name.clone(),
                module: chunk.module_name.clone(),
                edition: chunk.edition.clone(),
                chunks: 1,
                sections: BTreeMap::new(),
            }),
        }
    }
    pages
}

/// Normalizes a vector to length 1, as every index stores it.
pub(super) fn unit(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if (length - 1.0).abs() < 1e-4 || length == 0.0 {
        return vector.to_vec();
    }
    vector.iter().map(|value| value / length).collect()
}

/// The key of a vector written by Docent.
pub(super) fn key_of(payload: &Value) -> Option<Key> {
    payload.get("key").and_then(Value::as_str).and_then(|key| Key::from_str_radix(key, 16).ok())
}

/// A point's dense vector.
pub(super) fn dense(point: &RetrievedPoint, name: Option<&str>) -> Option<Vector> {
    use qdrant_client::qdrant::vector_output::Vector as Kind;
    use qdrant_client::qdrant::vectors_output::VectorsOptions;
    let vector = match (point.vectors.as_ref()?.vectors_options.as_ref()?, name) {
        (VectorsOptions::Vector(vector), _) => vector,
        (VectorsOptions::Vectors(named), Some(name)) => named.vectors.get(name)?,
        (VectorsOptions::Vectors(named), None) => named.vectors.get("")?,
    };
    match vector.clone().into_vector() {
        Kind::Dense(dense) => Some(dense.data),
        _ => None,
    }
}
