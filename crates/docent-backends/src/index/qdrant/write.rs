//! A book becomes a collection, and the alias is moved to it.
//!
//! A collection is named after what it holds, and its points after their passages: an ingest
//! that was interrupted finds its own collection again and writes what is missing.
//!
//! Invariant: readers see the old collection until the alias is moved, which is one atomic
//! step; only collections that carry Docent's manifest are ever removed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use docent_core::embed::Vector;
use docent_core::index::IndexError;
use qdrant_client::qdrant::quantization_config::Quantization as QuantizationConfig;
use qdrant_client::qdrant::{
    BinaryQuantizationBuilder, CollectionStatus, Condition, CreateAliasBuilder, CreateCollectionBuilder,
    CreateFieldIndexCollectionBuilder, Distance, FieldType, Filter, Modifier, PayloadIncludeSelector,
    QuantizationType, ScalarQuantizationBuilder, ScrollPointsBuilder, SparseVectorParamsBuilder,
    SparseVectorsConfigBuilder, VectorParamsBuilder, VectorsConfigBuilder, VectorsSelector,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::sleep;
use xxhash_rust::xxh3::xxh3_64;

use super::collection::{self, DENSE, FORMAT, KEYWORDS, Manifest, ROLE};
use super::fill::Writer;
use super::take::{dense, key_of};
use super::{QdrantIndex, payload};
use crate::index::parts::{Key, PageRecord, Parts, SourceRecord, WholeBook};
use crate::index::shelf::{Published, Shelf};

/// How long a new collection may be arranged before readers get it anyway.
const MOST_ARRANGING: Duration = Duration::from_secs(3600);

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
            .with_payload(PayloadIncludeSelector { fields: vec!["key".to_owned()] })
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
        self.read_back().await
    }
}

impl QdrantIndex {
    /// Names what a collection holds: the same book, cut, embedded and laid out the same way,
    /// has the same.
    fn fingerprint(&self, parts: &Parts<'_>) -> u64 {
        let page = |page: &PageRecord| json!([page, parts.label(page)]).to_string();
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
        for field in ["document_id", "book_name", "module_name", ROLE] {
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
