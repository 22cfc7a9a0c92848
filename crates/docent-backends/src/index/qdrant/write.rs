//! Writes a book as a new collection, then switches the alias to it.
//!
//! Collection names and point ids are derived from the content: an ingest that was interrupted finds its
//! collection again and writes only the missing points.
//!
//! Invariant: searches use the old collection until the alias is switched, which is atomic. Only collections
//! with a Docent manifest are ever removed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use docent_core::embed::Vector;
use docent_core::index::IndexError;
use qdrant_client::qdrant::{
    CollectionStatus, Condition, CreateAliasBuilder, CreateCollectionBuilder,
    CreateFieldIndexCollectionBuilder, Distance, FieldType, Filter, Modifier, PayloadIncludeSelector,
    ScrollPointsBuilder, SparseVectorParamsBuilder, SparseVectorsConfigBuilder, VectorParamsBuilder,
    VectorsConfigBuilder, VectorsSelector,
};
use serde_json::json;
use tokio::time::sleep;
use xxhash_rust::xxh3::xxh3_64;

use super::collection::{self, DENSE, FORMAT, KEYWORDS, Manifest, ROLE};
use super::download::{dense, key_of};
use super::payload::{LOCALE, OTHER_LOCALE, OTHER_VERSION, VERSION};
use super::upload::Writer;
use super::{QdrantIndex, payload};
use crate::index::contents::{BookContents, Key, PageRecord, SourceRecord, WholeBook};
use crate::index::target::{IndexTarget, Published};

/// How long to wait for the server to optimize a new collection before publishing it anyway.
const OPTIMIZATION_TIMEOUT: Duration = Duration::from_secs(3600);

#[async_trait]
impl IndexTarget for QdrantIndex {
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
        contents: &BookContents<'_>,
        written: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<String, IndexError> {
        self.refuse_foreign().await?;
        let alias = self.settings.collection.as_str();
        let previous = self.own_manifest().await?.map(|manifest| manifest.generation);
        let name = format!("{alias}-{:016x}", self.fingerprint(contents));
        let exists = self.connection.write(|client| client.collection_exists(name.as_str())).await?;
        let known = match exists {
            true => collection::manifest(&self.connection, &name).await?,
            false => {
                self.create(&name, contents).await?;
                None
            }
        };
        if !known.is_some_and(|manifest| manifest.complete) {
            Writer::new(self, &name, contents).write(written).await?;
        }
        self.wait_until_optimized(&name).await?;
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
    /// A hash of the collection's content: the same book with the same chunks, embedder and layout has the
    /// same fingerprint.
    fn fingerprint(&self, contents: &BookContents<'_>) -> u64 {
        let page = |page: &PageRecord| json!([page, contents.label(page)]).to_string();
        let pages: Vec<String> = contents.pages.iter().map(page).collect();
        let name = json!([
            FORMAT,
            contents.embedder,
            contents.language,
            contents.sources,
            pages,
            self.settings.layout
        ]);
        xxh3_64(name.to_string().as_bytes())
    }

    /// The manifest of the collection behind the alias; `None` if Docent has not published one.
    async fn own_manifest(&self) -> Result<Option<Manifest>, IndexError> {
        match collection::manifest(&self.connection, &self.settings.collection).await {
            Err(IndexError::Gone(_)) => Ok(None),
            Ok(Some(manifest)) if manifest.format != FORMAT || !manifest.complete => Ok(None),
            manifest => manifest,
        }
    }

    /// Fails if the configured name belongs to a collection of another system: an alias cannot have the name
    /// of a collection, and Docent does not change collections of other systems.
    async fn refuse_foreign(&self) -> Result<(), IndexError> {
        let alias = &self.settings.collection;
        if self.collections().await?.contains(alias) {
            return Err(IndexError::Unusable(format!(
                "the collection `{alias}` was not created by Docent and will not be changed; \
                 choose another name with qdrant.collection_name"
            )));
        }
        let taken = match collection::manifest(&self.connection, alias).await {
            Err(IndexError::Gone(_)) => false,
            found => found?.is_none(),
        };
        if taken {
            return Err(IndexError::Unusable(format!(
                "`{alias}` is an alias of a collection that was not created by Docent; \
                 choose another name with qdrant.collection_name"
            )));
        }
        Ok(())
    }

    async fn create(&self, name: &str, contents: &BookContents<'_>) -> Result<(), IndexError> {
        let layout = &self.settings.layout;
        let mut sparse = SparseVectorsConfigBuilder::default();
        sparse
            .add_named_vector_params(KEYWORDS, SparseVectorParamsBuilder::default().modifier(Modifier::Idf));
        let mut request = CreateCollectionBuilder::new(name).sparse_vectors_config(sparse);
        if contents.embedder.width > 0 {
            let mut vectors = VectorsConfigBuilder::default();
            let dense = VectorParamsBuilder::new(contents.embedder.width as u64, Distance::Cosine);
            vectors.add_named_vector_params(DENSE, dense.on_disk(layout.on_disk));
            request = request.vectors_config(vectors);
        }
        if let Some(shards) = layout.shards {
            request = request.shard_number(shards);
        }
        if let Some(replicas) = layout.replicas {
            request = request.replication_factor(replicas);
        }
        if let Some(quantization) = layout.quantization.config() {
            request = request.quantization_config(quantization);
        }
        // If this is not set, the server's default applies to payloads.
        if layout.on_disk {
            #[allow(deprecated, reason = "older servers do not know its replacement")]
            let on_disk = request.on_disk_payload(true);
            request = on_disk;
        }
        let request = request.build();
        let created = self.connection.write(|client| client.create_collection(request.clone())).await;
        if let Err(error) = created {
            // After a retry, the collection may exist because the first attempt succeeded.
            if !self.connection.write(|client| client.collection_exists(name)).await? {
                return Err(error);
            }
        }
        let (versions, locales) = contents.variants();
        let mut fields = ["document_id", "book_name", "module_name", ROLE]
            .map(|field| (field, FieldType::Keyword))
            .to_vec();
        if !versions.is_empty() {
            fields.extend([(VERSION, FieldType::Keyword), (OTHER_VERSION, FieldType::Bool)]);
        }
        if !locales.is_empty() {
            fields.extend([(LOCALE, FieldType::Keyword), (OTHER_LOCALE, FieldType::Bool)]);
        }
        for (field, kind) in fields {
            let index = CreateFieldIndexCollectionBuilder::new(name, field, kind).wait(true);
            self.connection.write(|client| client.create_field_index(index.clone())).await?;
        }
        Ok(())
    }

    /// Waits until the server has optimized a new collection: until then, searches in a large one are slow.
    /// The old collection stays in use meanwhile.
    async fn wait_until_optimized(&self, name: &str) -> Result<(), IndexError> {
        let end = Instant::now() + OPTIMIZATION_TIMEOUT;
        loop {
            let info = collection::info(&self.connection, name).await?;
            if info.status() != CollectionStatus::Yellow || Instant::now() > end {
                return Ok(());
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Removes all generations except those in `kept`. Errors are logged but not returned.
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
            // Another machine may be writing it.
            let recent = manifest.created_at > crate::rfc3339_days_ago(1);
            if manifest.complete || !recent {
                match self.connection.read(|client| client.delete_collection(name.as_str())).await {
                    Ok(_) => tracing::info!(collection = %name, "removed an old collection"),
                    Err(error) => {
                        tracing::warn!(%error, collection = %name, "cannot remove an old collection")
                    }
                }
            }
        }
    }
}
