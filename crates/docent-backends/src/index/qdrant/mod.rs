//! An index on a Qdrant server: one that Docent filled, or a collection somebody else made.
//!
//! The name that is configured is an alias; behind it stands one immutable collection per
//! generation of the book. A collection that another system made is used as it is.
//!
//! Invariant: a search asks one collection by its own name, so it never sees two generations,
//! and it is one round trip; a collection Docent did not make is never changed.

mod collection;
mod connection;
mod fill;
mod keywords;
mod payload;
mod search;
mod take;
mod write;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use docent_core::chunk::Chunk;
use docent_core::index::{Candidates, Description, Index, IndexError, IndexQuery, PageOutline};
use docent_core::language::Language;
use qdrant_client::qdrant::{Condition, Filter, QueryBatchPoints, ScrollPointsBuilder};
use serde_json::Value;

use collection::{Collection, Reading};
use connection::Connection;
pub use connection::Server;
pub use payload::Fields;
use search::Asked;
pub use write::{Layout, Quantization};

/// How long it is taken for granted that the alias still leads to the same collection.
const TRUSTED: Duration = Duration::from_secs(1);

/// Which collection, where, and how it is read and made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server.
    pub server: Server,
    /// The alias, or the name of somebody else's collection.
    pub collection: String,
    /// The vector to search, where there are several.
    pub vector: Option<String>,
    /// Which fields of somebody else's points play which role.
    pub fields: Fields,
    /// What somebody else's collection is written in; detected when not given.
    pub language: Option<Language>,
    /// How new collections are laid out.
    pub layout: Layout,
}

impl Settings {
    /// The usual way to use a collection.
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
    /// The way to an index; nothing is sent yet.
    pub fn new(settings: Settings) -> Result<Self, IndexError> {
        Ok(Self { connection: Connection::new(&settings.server)?, settings, open: RwLock::new(None) })
    }

    /// The server's version.
    pub async fn server_version(&self) -> Result<String, IndexError> {
        Ok(self.connection.read(|client| client.health_check()).await?.version)
    }

    /// What the collection turned out to be, in a sentence.
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
                "`{name}` was made by another system and is only read: {} passages; {fields}",
                collection.description.chunks
            ),
        })
    }

    /// Names of all collections, for messages.
    pub async fn collections(&self) -> Result<Vec<String>, IndexError> {
        let listed = self.connection.read(|client| client.list_collections()).await?;
        let mut names: Vec<String> =
            listed.collections.into_iter().map(|collection| collection.name).collect();
        names.sort();
        Ok(names)
    }

    /// The collection the name leads to now.
    async fn collection(&self) -> Result<Arc<Collection>, IndexError> {
        let known = self.open.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, collection)) = known.as_ref().filter(|(checked, _)| is_trusted(*checked)) {
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

    /// Looks at once whether the collection is still there when it is wanted next.
    fn doubt(&self) {
        if let Some((checked, _)) = &mut *self.open.write().unwrap_or_else(PoisonError::into_inner) {
            *checked = None;
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
}

fn is_trusted(checked: Option<Instant>) -> bool {
    checked.is_some_and(|checked| checked.elapsed() < TRUSTED)
}

/// The passage a point carries.
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
            // A newer generation was published and this one removed.
            Err(IndexError::Gone(_)) => {
                self.forget();
                let collection = self.collection().await?;
                self.search_in(&collection, query).await
            }
            Err(error) => {
                self.doubt();
                Err(error)
            }
            found => found,
        }
    }

    async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError> {
        let collection = self.collection().await?;
        let condition = match &collection.reading {
            Reading::Own(_) => Condition::matches("document_id", document_id.to_owned()),
            Reading::Foreign(fields) if let Some(field) = &fields.document => {
                Condition::matches(field, document_id.to_owned())
            }
            // A page is its address; its sections may have addresses of their own.
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
            chunks.extend(read(&collection, &name, &payload::json_of(point.payload)));
            Ok(true)
        })
        .await?;
        chunks.sort_by_key(|chunk| chunk.index);
        Ok(chunks.into_iter().map(Arc::new).collect())
    }

    async fn outline(&self) -> Result<Vec<PageOutline>, IndexError> {
        let collection = self.collection().await?;
        Ok(collection.listing(&self.connection).await?.outline.clone())
    }

    async fn describe(&self) -> Result<Description, IndexError> {
        let collection = self.collection().await?;
        let mut description = collection.description.clone();
        if !collection.is_own() {
            let listing = collection.listing(&self.connection).await?;
            description.pages = listing.outline.len();
            description.modules = listing.modules.clone();
        }
        Ok(description)
    }

    async fn version(&self) -> Result<String, IndexError> {
        Ok(self.collection().await?.description.version.clone())
    }
}

#[cfg(test)]
mod tests;
