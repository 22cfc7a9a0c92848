//! An index on a Qdrant server: written by Docent, or an existing collection of another system.
//!
//! The configured name is an alias for the current generation of the book; each generation is an immutable
//! collection. A collection of another system is used as it is.
//!
//! Invariant: a search queries one collection by its own name, in one round trip, so it never mixes two
//! generations; so does reading the chunks it found. A collection that Docent did not create is never changed.

mod collection;
mod connection;
mod layout;
mod upload;
mod keywords;
mod embedder_check;
mod payload;
mod search;
mod download;
mod write;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use docent_core::chunk::Chunk;
use docent_core::index::{
    Candidates, Description, Identity, Index, IndexError, IndexQuery, PageOutline, RowId,
};
use docent_core::language::Language;
use qdrant_client::qdrant::{
    Condition, Filter, GetPointsBuilder, PointId, QueryBatchPoints, ScrollPointsBuilder,
};
use serde_json::Value;

use collection::{Collection, Reading};
use connection::Connection;
pub use connection::Server;
pub use layout::{Layout, Quantization};
pub use payload::Fields;
use search::{Asked, point_id, row_id};

/// How long the collection behind the alias is cached before the alias is looked up again.
const ALIAS_TTL: Duration = Duration::from_secs(1);

/// Which collection to use, on which server, and how to read and create it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The server.
    pub server: Server,
    /// The alias, or the name of a collection of another system.
    pub collection: String,
    /// The vector to search, if there are several.
    pub vector: Option<String>,
    /// The meaning of the payload fields in a collection of another system.
    pub fields: Fields,
    /// The language of a collection of another system; detected if not set.
    pub language: Option<Language>,
    /// How new collections are laid out.
    pub layout: Layout,
}

impl Settings {
    /// Settings for a collection, with defaults for everything else.
    pub fn new(server: Server, collection: impl Into<String>) -> Self {
        Self {
            server,
            collection: collection.into(),
            vector: None,
            fields: Fields::default(),
            language: None,
            layout: Layout::default(),
        }
    }
}

/// The index on a server.
pub struct QdrantIndex {
    connection: Connection,
    settings: Settings,
    open: RwLock<Option<(Option<Instant>, Arc<Collection>)>>,
}

impl QdrantIndex {
    /// Creates the client; does not connect yet.
    pub fn new(settings: Settings) -> Result<Self, IndexError> {
        Ok(Self { connection: Connection::new(&settings.server)?, settings, open: RwLock::new(None) })
    }

    /// The server's version.
    pub async fn server_version(&self) -> Result<String, IndexError> {
        Ok(self.connection.read(|client| client.health_check()).await?.version)
    }

    /// Describes the collection in a sentence.
    pub async fn explain(&self) -> Result<String, IndexError> {
        let collection = self.collection().await?;
        let name = &self.settings.collection;
        Ok(match &collection.reading {
            Reading::Own(manifest) => {
                format!(
                    "`{name}` is {}: {} pages, {} passages",
                    collection.name, manifest.pages, manifest.chunks
                )
            }
            Reading::Foreign(fields) => format!(
                "`{name}` was created by another system, so Docent only reads it: {} passages; {fields}",
                collection.description.chunks
            ),
        })
    }

    /// The names of all collections.
    pub async fn collections(&self) -> Result<Vec<String>, IndexError> {
        let listed = self.connection.read(|client| client.list_collections()).await?;
        let mut names: Vec<String> =
            listed.collections.into_iter().map(|collection| collection.name).collect();
        names.sort();
        Ok(names)
    }

    /// The collection that the configured name currently stands for.
    async fn collection(&self) -> Result<Arc<Collection>, IndexError> {
        let known = self.open.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, collection)) = known.as_ref().filter(|(checked, _)| is_fresh(*checked)) {
            return Ok(collection.clone());
        }
        let known = known.map(|(_, collection)| collection);
        let collection = match known {
            Some(known) => match self.is_still(&known).await {
                Ok(true) => known,
                Ok(false) => self.open_now().await?,
                Err(error) => return Err(error),
            },
            None => self.open_now().await?,
        };
        *self.open.write().unwrap_or_else(PoisonError::into_inner) =
            Some((Some(Instant::now()), collection.clone()));
        Ok(collection)
    }

    async fn open_now(&self) -> Result<Arc<Collection>, IndexError> {
        match Collection::open(&self.connection, &self.settings).await {
            Ok(collection) => {
                tracing::info!(collection = %collection.name, "opened");
                Ok(Arc::new(collection))
            }
            Err(IndexError::Gone(_)) => Err(IndexError::Empty),
            Err(error) => Err(error),
        }
    }

    async fn is_still(&self, known: &Collection) -> Result<bool, IndexError> {
        let name = &self.settings.collection;
        if known.is_own() {
            let manifest = match collection::manifest(&self.connection, name).await {
                Err(IndexError::Gone(_)) => None,
                manifest => manifest?,
            };
            return Ok(manifest.is_some_and(|manifest| manifest.generation == known.name));
        }
        let info = collection::info(&self.connection, name).await?;
        Ok(info.points_count.unwrap_or_default() as usize == known.description.chunks)
    }

    /// Makes the next call look up the alias again.
    fn doubt(&self) {
        if let Some((checked, _)) = &mut *self.open.write().unwrap_or_else(PoisonError::into_inner) {
            *checked = None;
        }
    }

    /// After this error, what is known about the collection may be outdated.
    fn suspect(&self, error: &IndexError) {
        match error {
            IndexError::Gone(_) => self.forget(),
            _ => self.doubt(),
        }
    }

    fn forget(&self) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    async fn search_in(
        &self,
        collection: &Collection,
        query: &IndexQuery<'_>,
    ) -> Result<Candidates, IndexError> {
        let asked = Asked::new(collection, query)?;
        let request = QueryBatchPoints {
            collection_name: collection.name.clone(),
            query_points: asked.queries.clone(),
            ..Default::default()
        };
        if asked.queries.is_empty() {
            return Ok(asked.candidates(collection, Vec::new()));
        }
        let answers = self.connection.read(|client| client.query_batch(request.clone())).await?;
        Ok(asked.candidates(collection, answers.result.into_iter().map(|batch| batch.result).collect()))
    }

    async fn chunks_in(
        &self,
        collection: &Collection,
        rows: &[RowId],
    ) -> Result<Vec<Option<Arc<Chunk>>>, IndexError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<PointId> = rows.iter().map(|row| point_id(*row)).collect();
        let request = GetPointsBuilder::new(&collection.name, ids).with_payload(true).build();
        let answer = self.connection.read(|client| client.get_points(request.clone())).await?;
        let mut found: HashMap<RowId, Arc<Chunk>> = HashMap::with_capacity(rows.len());
        for point in answer.result {
            let (row, name) = (point.id.as_ref().and_then(row_id), collection::point_name(&point));
            let chunk = read(collection, &name, &payload::json_of(point.payload));
            found.extend(row.zip(chunk.map(Arc::new)));
        }
        Ok(rows.iter().map(|row| found.get(row).cloned()).collect())
    }

    async fn page_in(
        &self,
        collection: &Collection,
        document_id: &str,
    ) -> Result<Vec<Arc<Chunk>>, IndexError> {
        let condition = match &collection.reading {
            Reading::Own(_) => Condition::matches("document_id", document_id.to_owned()),
            Reading::Foreign(fields) if let Some(field) = &fields.document => {
                Condition::matches(field, document_id.to_owned())
            }
            // A page is identified by its address, but its sections may have addresses of their own.
            Reading::Foreign(fields) => {
                let listing = collection.listing(&self.connection).await?;
                let page = listing.outline.iter().find(|page| page.document_id == document_id);
                let mut addresses = vec![document_id.to_owned()];
                addresses.extend(
                    page.into_iter().flat_map(|page| &page.sections).map(|section| section.url.clone()),
                );
                Condition::matches(fields.url.as_deref().unwrap_or("url"), addresses)
            }
        };
        let request =
            ScrollPointsBuilder::new(&collection.name).filter(Filter::must([condition])).with_payload(true);
        let mut chunks: Vec<Chunk> = Vec::new();
        collection::scroll(&self.connection, request, |point| {
            let name = collection::point_name(&point);
            chunks.extend(read(collection, &name, &payload::json_of(point.payload)));
            Ok(true)
        })
        .await?;
        chunks.sort_by_key(|chunk| chunk.index);
        Ok(chunks.into_iter().map(Arc::new).collect())
    }

    async fn outline_of(&self, collection: &Collection) -> Result<Vec<PageOutline>, IndexError> {
        Ok(collection.listing(&self.connection).await?.outline.clone())
    }

    async fn describe_one(&self, collection: &Collection) -> Result<Description, IndexError> {
        let mut description = collection.description.clone();
        if !collection.is_own() {
            let listing = collection.listing(&self.connection).await?;
            description.pages = listing.outline.len();
            description.modules = listing.modules.clone();
        }
        Ok(description)
    }
}

fn is_fresh(checked: Option<Instant>) -> bool {
    checked.is_some_and(|checked| checked.elapsed() < ALIAS_TTL)
}

/// The passage stored in a point.
fn read(collection: &Collection, name: &str, payload: &Value) -> Option<Chunk> {
    match &collection.reading {
        Reading::Own(_) => payload::read_own(payload),
        Reading::Foreign(fields) => fields.chunk(name, payload),
    }
}

#[async_trait]
impl Index for QdrantIndex {
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        let collection = self.collection().await?;
        match self.search_in(&collection, query).await {
            // A newer generation was published and this one was removed.
            Err(IndexError::Gone(_)) => {
                self.forget();
                let collection = self.collection().await?;
                self.search_in(&collection, query).await
            }
            found => found.inspect_err(|error| self.suspect(error)),
        }
    }

    async fn chunks(&self, rows: &[RowId]) -> Result<Vec<Option<Arc<Chunk>>>, IndexError> {
        let collection = self.collection().await?;
        self.chunks_in(&collection, rows).await.inspect_err(|error| self.suspect(error))
    }

    async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError> {
        self.page_in(&*self.collection().await?, document_id).await
    }

    async fn outline(&self) -> Result<Vec<PageOutline>, IndexError> {
        self.outline_of(&*self.collection().await?).await
    }

    async fn vocabulary(&self) -> Result<Vec<(String, u32)>, IndexError> {
        // The server does not list the terms of sparse vectors.
        Ok(Vec::new())
    }

    async fn describe(&self) -> Result<Description, IndexError> {
        self.describe_one(&*self.collection().await?).await
    }

    async fn identity(&self) -> Result<Identity, IndexError> {
        Ok(self.collection().await?.description.identity())
    }

    async fn pinned(self: Arc<Self>) -> Result<Arc<dyn Index>, IndexError> {
        let collection = self.collection().await?;
        Ok(Arc::new(Pinned { index: self, collection }))
    }
}

/// The index pinned to one collection.
struct Pinned {
    index: Arc<QdrantIndex>,
    collection: Arc<Collection>,
}

#[async_trait]
impl Index for Pinned {
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        self.index.search_in(&self.collection, query).await.inspect_err(|error| self.index.suspect(error))
    }

    async fn chunks(&self, rows: &[RowId]) -> Result<Vec<Option<Arc<Chunk>>>, IndexError> {
        let read = self.index.chunks_in(&self.collection, rows).await;
        read.inspect_err(|error| self.index.suspect(error))
    }

    async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError> {
        self.index.page_in(&self.collection, document_id).await
    }

    async fn outline(&self) -> Result<Vec<PageOutline>, IndexError> {
        self.index.outline_of(&self.collection).await
    }

    async fn vocabulary(&self) -> Result<Vec<(String, u32)>, IndexError> {
        self.index.vocabulary().await
    }

    async fn describe(&self) -> Result<Description, IndexError> {
        self.index.describe_one(&self.collection).await
    }

    async fn identity(&self) -> Result<Identity, IndexError> {
        Ok(self.collection.description.identity())
    }

    async fn pinned(self: Arc<Self>) -> Result<Arc<dyn Index>, IndexError> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests;
