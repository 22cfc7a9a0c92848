//! A book becomes a collection, and the alias is moved to it.
//!
//! A collection is named after what it holds, and its points after their passages: an ingest
//! that was interrupted finds its own collection again and writes what is missing.
//!
//! Invariant: readers see the old collection until the alias is moved, which is one atomic
//! step; only collections that carry Docent's manifest are ever removed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use docent_core::chunk::Chunk;
use docent_core::embed::Vector;
use docent_core::index::{IndexError, Module};
use docent_core::terms::Analyzer;
use qdrant_client::qdrant::quantization_config::Quantization as QuantizationConfig;
use qdrant_client::qdrant::{
    BinaryQuantizationBuilder, CollectionStatus, Condition, CountPointsBuilder, CreateAliasBuilder,
    CreateCollectionBuilder, CreateFieldIndexCollectionBuilder, Distance, FieldType, Filter, Modifier,
    NamedVectors, PointId, PointStruct, QuantizationType, RetrievedPoint, ScalarQuantizationBuilder,
    ScrollPointsBuilder, SparseVectorParamsBuilder, SparseVectorsConfigBuilder, UpsertPointsBuilder,
    VectorParamsBuilder, VectorsConfigBuilder, VectorsSelector,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use super::collection::{self, DENSE, FORMAT, KEYWORDS, Manifest, ROLE, Reading};
use super::keywords::Counted;
use super::{QdrantIndex, payload};
use crate::index::parts::{Key, PageRecord, Parts, SourceRecord, WholeBook, labels};
use crate::index::shelf::{Published, Shelf};

/// How long a new collection may be arranged before readers get it anyway.
const MOST_ARRANGING: Duration = Duration::from_secs(3600);

/// Points sent at once.
const TOGETHER: usize = 128;

/// How new collections are laid out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Parts a collection is split into; the server chooses when not given.
    pub shards: Option<u32>,
    /// Copies of each part.
    pub replicas: Option<u32>,
    /// How vectors are made smaller for the first look.
    pub quantization: Quantization,
    /// Whether full vectors and texts stay on the disk.
    pub on_disk: bool,
}

/// How vectors are made smaller for the first look; the full ones decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantization {
    /// Not at all.
    #[default]
    None,
    /// A byte a number.
    Scalar,
    /// A bit a number; for wide vectors.
    Binary,
}

#[async_trait]
impl Shelf for QdrantIndex {
    async fn published(&self) -> Result<Option<Published>, IndexError> {
        let Some(manifest) = self.own_manifest().await? else { return Ok(None) };
        Ok(Some(Published {
            as_configured: manifest.layout == self.settings.layout,
            pages: self.pages(&manifest.generation).await?,
            name: manifest.generation,
            embedder: manifest.embedder,
            language: manifest.language,
            sources: manifest.sources,
        }))
    }

    async fn sources(&self) -> Result<Vec<SourceRecord>, IndexError> {
        Ok(self.own_manifest().await?.map(|manifest| manifest.sources).unwrap_or_default())
    }

    async fn vectors(&self) -> Result<HashMap<Key, Vector>, IndexError> {
        let Some(manifest) = self.own_manifest().await? else { return Ok(HashMap::new()) };
        let request = ScrollPointsBuilder::new(&manifest.generation)
            .filter(Filter::must([Condition::is_empty(ROLE)]))
            .with_payload(qdrant_client::qdrant::PayloadIncludeSelector { fields: vec!["key".to_owned()] })
            .with_vectors(VectorsSelector { names: vec![DENSE.to_owned()] });
        let mut vectors = HashMap::new();
        collection::scroll(&self.connection, request, |point| {
            let vector = dense(&point, Some(DENSE));
            let key = key_of(&payload::json_of(point.payload));
            vectors.extend(key.zip(vector));
            Ok(true)
        })
        .await?;
        Ok(vectors)
    }

    async fn publish(
        &self,
        parts: &Parts<'_>,
        written: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<String, IndexError> {
        self.refuse_foreign().await?;
        let alias = self.settings.collection.as_str();
        let previous = self.own_manifest().await?.map(|manifest| manifest.generation);
        let name = format!("{alias}-{:016x}", self.fingerprint(parts));
        let exists = self.connection.write(|client| client.collection_exists(name.as_str())).await?;
        let known = match exists {
            true => collection::manifest(&self.connection, &name).await?,
            false => {
                self.create(&name, parts).await?;
                None
            }
        };
        if !known.is_some_and(|manifest| manifest.complete) {
            Writer::new(self, &name, parts).write(written).await?;
        }
        self.wait_until_quick(&name).await?;
        let moved = CreateAliasBuilder::new(name.as_str(), alias);
        self.connection.write(|client| client.create_alias(moved.clone())).await?;
        self.forget();
        self.prune(&[Some(name.clone()), previous]).await;
        Ok(name)
    }

    async fn take(&self) -> Result<WholeBook, IndexError> {
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
            if let Some(chunk) = super::read(&collection, &name, &payload) {
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
            embedder = docent_core::embed::EmbedderId::none();
        }
        let (pages, modules, sources) = match &collection.reading {
            Reading::Own(manifest) => {
                (self.pages(&collection.name).await?, manifest.modules.clone(), manifest.sources.clone())
            }
            Reading::Foreign(_) => (pages_of(&rows), BTreeMap::<String, Module>::new(), Vec::new()),
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
            labels: labels(&modules),
            sources,
            created_at: crate::now_rfc3339(),
            chunks: rows.into_iter().map(|row| row.chunk).collect(),
        })
    }
}

/// A point read back.
struct Taken {
    row: Option<u64>,
    key: Key,
    chunk: Chunk,
    vector: Option<Vector>,
}

/// The pages of passages that somebody else wrote.
fn pages_of(rows: &[Taken]) -> Vec<PageRecord> {
    let mut pages: Vec<PageRecord> = Vec::new();
    for Taken { chunk, .. } in rows {
        match pages.last_mut().filter(|page| page.id == chunk.document_id) {
            Some(page) => page.chunks += 1,
            None => pages.push(PageRecord {
                id: chunk.document_id.clone(),
                url: chunk.url.split('#').next().unwrap_or_default().to_owned(),
                title: chunk.page_title.clone(),
                module: chunk.module_name.clone(),
                chunks: 1,
                sections: BTreeMap::new(),
            }),
        }
    }
    pages
}

/// The same direction with length one, as every index keeps it.
fn unit(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if (length - 1.0).abs() < 1e-4 || length == 0.0 {
        return vector.to_vec();
    }
    vector.iter().map(|value| value / length).collect()
}

fn key_of(payload: &Value) -> Option<Key> {
    payload.get("key").and_then(Value::as_str).and_then(|key| Key::from_str_radix(key, 16).ok())
}

fn dense(point: &RetrievedPoint, name: Option<&str>) -> Option<Vector> {
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

impl QdrantIndex {
    /// Names what a collection holds: the same book, cut, embedded and laid out the same way,
    /// has the same.
    fn fingerprint(&self, parts: &Parts<'_>) -> u64 {
        let page = |page: &PageRecord| json!([page, parts.labels.get(&page.module)]).to_string();
        let pages: Vec<String> = parts.pages.iter().map(page).collect();
        let name =
            json!([FORMAT, parts.embedder, parts.language, parts.sources, pages, self.settings.layout]);
        xxh3_64(name.to_string().as_bytes())
    }

    /// The manifest behind the alias; none when there is no book of Docent's own.
    async fn own_manifest(&self) -> Result<Option<Manifest>, IndexError> {
        match collection::manifest(&self.connection, &self.settings.collection).await {
            Err(IndexError::Gone(_)) => Ok(None),
            Ok(Some(manifest)) if manifest.format != FORMAT || !manifest.complete => Ok(None),
            manifest => manifest,
        }
    }

    /// An alias cannot have the name of a collection, and what is there is not ours to change.
    async fn refuse_foreign(&self) -> Result<(), IndexError> {
        let alias = &self.settings.collection;
        if self.collections().await?.contains(alias) {
            return Err(IndexError::Unusable(format!(
                "the collection `{alias}` was not made by Docent and is never changed; choose another name with qdrant.collection_name"
            )));
        }
        let taken = match collection::manifest(&self.connection, alias).await {
            Err(IndexError::Gone(_)) => false,
            found => found?.is_none(),
        };
        if taken {
            return Err(IndexError::Unusable(format!(
                "`{alias}` is an alias of a collection that was not made by Docent; choose another name with qdrant.collection_name"
            )));
        }
        Ok(())
    }

    async fn pages(&self, name: &str) -> Result<Vec<PageRecord>, IndexError> {
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

    async fn create(&self, name: &str, parts: &Parts<'_>) -> Result<(), IndexError> {
        let layout = &self.settings.layout;
        let mut sparse = SparseVectorsConfigBuilder::default();
        sparse
            .add_named_vector_params(KEYWORDS, SparseVectorParamsBuilder::default().modifier(Modifier::Idf));
        let mut request = CreateCollectionBuilder::new(name).sparse_vectors_config(sparse);
        if parts.embedder.width > 0 {
            let mut vectors = VectorsConfigBuilder::default();
            let dense = VectorParamsBuilder::new(parts.embedder.width as u64, Distance::Cosine);
            vectors.add_named_vector_params(DENSE, dense.on_disk(layout.on_disk));
            request = request.vectors_config(vectors);
        }
        if let Some(shards) = layout.shards {
            request = request.shard_number(shards);
        }
        if let Some(replicas) = layout.replicas {
            request = request.replication_factor(replicas);
        }
        let quantization: Option<QuantizationConfig> = match layout.quantization {
            Quantization::None => None,
            Quantization::Scalar => Some(
                ScalarQuantizationBuilder::default()
                    .r#type(QuantizationType::Int8.into())
                    .always_ram(true)
                    .into(),
            ),
            Quantization::Binary => Some(BinaryQuantizationBuilder::new(true).into()),
        };
        if let Some(quantization) = quantization {
            request = request.quantization_config(quantization);
        }
        // Otherwise the server decides about texts; it has its own default.
        if layout.on_disk {
            #[allow(deprecated, reason = "its successor is unknown to servers of last year")]
            let on_disk = request.on_disk_payload(true);
            request = on_disk;
        }
        let request = request.build();
        let created = self.connection.write(|client| client.create_collection(request.clone())).await;
        if let Err(error) = created {
            // A call that was repeated may find its own work.
            if !self.connection.write(|client| client.collection_exists(name)).await? {
                return Err(error);
            }
        }
        for field in ["document_id", "module_name", ROLE] {
            let index = CreateFieldIndexCollectionBuilder::new(name, field, FieldType::Keyword).wait(true);
            self.connection.write(|client| client.create_field_index(index.clone())).await?;
        }
        Ok(())
    }

    /// A large collection is slow until the server has arranged it; the old one answers meanwhile.
    async fn wait_until_quick(&self, name: &str) -> Result<(), IndexError> {
        let end = Instant::now() + MOST_ARRANGING;
        loop {
            let info = collection::info(&self.connection, name).await?;
            if info.status() != CollectionStatus::Yellow || Instant::now() > end {
                return Ok(());
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Removes generations nobody needs. Not being able to is no reason to fail.
    async fn prune(&self, kept: &[Option<String>]) {
        let Ok(names) = self.collections().await else { return };
        let start = format!("{}-", self.settings.collection);
        for name in names {
            let generation = name
                .strip_prefix(&start)
                .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
            if !generation || kept.iter().flatten().any(|kept| *kept == name) {
                continue;
            }
            let Ok(Some(manifest)) = collection::manifest(&self.connection, &name).await else { continue };
            // Another machine may be writing it just now.
            let recent = manifest.created_at > crate::rfc3339_days_ago(1);
            if manifest.complete || !recent {
                match self.connection.read(|client| client.delete_collection(name.as_str())).await {
                    Ok(_) => tracing::info!(collection = %name, "removed"),
                    Err(error) => tracing::warn!(%error, collection = %name, "could not be removed"),
                }
            }
        }
    }
}

/// Fills a new collection.
struct Writer<'a> {
    index: &'a QdrantIndex,
    name: &'a str,
    parts: &'a Parts<'a>,
    counted: Vec<Counted>,
    average_terms: f32,
}

impl<'a> Writer<'a> {
    fn new(index: &'a QdrantIndex, name: &'a str, parts: &'a Parts<'a>) -> Self {
        let analyzer = Analyzer::new(parts.language);
        let counted: Vec<Counted> =
            parts.chunks.par_iter().map(|chunk| Counted::new(&chunk.embedded_text(), &analyzer)).collect();
        let total: u64 = counted.iter().map(|passage| u64::from(passage.length)).sum();
        let average_terms = total as f32 / counted.len().max(1) as f32;
        Self { index, name, parts, counted, average_terms }
    }

    async fn write(&self, written: &(dyn Fn(usize, usize) + Sync)) -> Result<(), IndexError> {
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
        let mut vectors = NamedVectors::default()
            .add_vector(KEYWORDS, qdrant_client::qdrant::Vector::new_sparse(sparse.indices, sparse.values));
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
