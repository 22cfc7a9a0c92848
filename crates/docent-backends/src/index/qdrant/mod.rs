//! An index on a Qdrant server: one that Docent filled, or a collection somebody else made.
//!
//! The name that is configured is an alias; behind it stands one immutable collection per
//! generation of the book. A collection that another system made is used as it is.
//!
//! Invariant: a search asks one collection by its own name, so it never sees two generations,
//! and it is one round trip; a collection Docent did not make is never changed.

mod collection;
mod connection;
mod keywords;
mod payload;
mod write;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use docent_core::chunk::Chunk;
use docent_core::index::{Candidate, Candidates, Description, Index, IndexError, IndexQuery, PageOutline};
use docent_core::language::Language;
use qdrant_client::qdrant::{
    Condition, Filter, QuantizationSearchParamsBuilder, Query, QueryBatchPoints, QueryPoints,
    QueryPointsBuilder, ScoredPoint, ScrollPointsBuilder, SearchParamsBuilder, VectorInput, VectorsSelector,
};
use serde_json::Value;

use collection::{Collection, KEYWORDS, Reading};
use connection::Connection;
pub use connection::Server;
use keywords::Counted;
pub use payload::Fields;
pub use write::{Layout, Quantization};

/// How long it is taken for granted that the alias still leads to the same collection.
const TRUSTED: Duration = Duration::from_secs(1);

/// Terms whose weights are asked for in one search: more than the longest question has.
const MOST_ASKED: usize = 512;

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

/// What one search asks of the server, all at once.
struct Asked {
    /// The question's distinct terms.
    terms: Vec<String>,
    /// The terms whose weights are not known yet.
    unknown: Vec<u32>,
    has_dense: bool,
    has_keywords: bool,
    /// The dense one, the keywords, then one for each unknown term.
    queries: Vec<QueryPoints>,
}

impl Asked {
    fn new(collection: &Collection, query: &IndexQuery<'_>) -> Result<Self, IndexError> {
        let vector = match (query.vector, &collection.vector) {
            (Some(vector), Some(field)) if vector.len() != field.width => {
                return Err(IndexError::WrongWidth { expected: field.width, actual: vector.len() });
            }
            (Some(vector), Some(field)) => Some((vector, field)),
            _ => None,
        };
        if vector.is_none() && !collection.is_own() {
            return Err(IndexError::Unusable(format!(
                "the collection `{}` can only be searched by vectors; configure the embedder that made them",
                collection.name
            )));
        }
        let terms = collection.analyzer.distinct(query.text);
        let filter = module_filter(collection, query);
        let start = || {
            let start = QueryPointsBuilder::new(&collection.name).limit(query.depth as u64);
            match &filter {
                Some(filter) => start.filter(filter.clone()),
                None => start,
            }
        };
        let mut queries = Vec::new();
        if let Some((vector, field)) = vector {
            // Where vectors were made smaller, the full ones have the last word.
            let rescored = QuantizationSearchParamsBuilder::default().rescore(true);
            let mut dense = start()
                .query(Query::new_nearest(vector.to_vec()))
                .params(SearchParamsBuilder::default().quantization(rescored))
                .with_payload(true);
            if let Some(name) = &field.name {
                dense = dense.using(name);
            }
            queries.push(dense.build());
        }
        let has_keywords = collection.is_own() && !terms.is_empty();
        let mut unknown = Vec::new();
        if has_keywords {
            let by = |sparse: keywords::Sparse| {
                Query::new_nearest(VectorInput::new_sparse(sparse.indices, sparse.values))
            };
            queries.push(
                start().query(by(keywords::question(&terms))).using(KEYWORDS).with_payload(true).build(),
            );
            // The server keeps to itself how rare a term is, but a search for the term alone
            // gives it away: the score is the rarity times the weight in the passage found.
            let asked = terms.iter().map(|term| keywords::number(term));
            unknown = asked.filter(|term| collection.rarity(*term).is_none()).take(MOST_ASKED).collect();
            for term in &unknown {
                let alone = keywords::Sparse { indices: vec![*term], values: vec![1.0] };
                let names = VectorsSelector { names: vec![KEYWORDS.to_owned()] };
                queries.push(
                    QueryPointsBuilder::new(&collection.name)
                        .query(by(alone))
                        .using(KEYWORDS)
                        .limit(1)
                        .with_payload(false)
                        .with_vectors(names)
                        .build(),
                );
            }
        }
        Ok(Self { terms, unknown, has_dense: vector.is_some(), has_keywords, queries })
    }

    fn candidates(self, collection: &Collection, answers: Vec<Vec<ScoredPoint>>) -> Candidates {
        let mut answers = answers.into_iter();
        let mut next = |wanted: bool| if wanted { answers.next().unwrap_or_default() } else { Vec::new() };
        let cosine = |score| collection.vector.as_ref().map_or(score, |field| field.cosine(score));
        let dense = ranked(collection, next(self.has_dense), cosine);
        let mut lexical = ranked(collection, next(self.has_keywords), |score| score);
        let mut terms: Vec<(String, f32)> = Vec::with_capacity(self.terms.len());
        if collection.is_own() {
            let rarest = keywords::rarity(collection.description.chunks, 0);
            for (term, found) in self.unknown.iter().zip(answers) {
                let weight = found.first().and_then(|point| rarity_of(*term, point)).unwrap_or(rarest);
                collection.remember_rarity(*term, weight);
            }
            for term in self.terms {
                let weight = collection.rarity(keywords::number(&term)).unwrap_or(rarest);
                terms.push((term, weight));
            }
        } else {
            (lexical, terms) = by_words(self.terms, &dense, collection);
        }
        Candidates { lexical, dense, terms, version: collection.description.version.clone() }
    }
}

fn module_filter(collection: &Collection, query: &IndexQuery<'_>) -> Option<Filter> {
    let module = query.filter.module.clone()?;
    let field = match &collection.reading {
        Reading::Own(_) => "module_name",
        // Without such a field no passage is in a module: the condition finds nothing.
        Reading::Foreign(fields) => fields.module.as_deref().unwrap_or("module_name"),
    };
    Some(Filter::must([Condition::matches(field, module)]))
}

/// Passages with their scores, best first; equal ones in the order of the book.
fn ranked(collection: &Collection, points: Vec<ScoredPoint>, score: impl Fn(f32) -> f32) -> Vec<Candidate> {
    let mut found: Vec<(u64, Candidate)> = points
        .into_iter()
        .filter_map(|point| {
            let name = point.id.as_ref().map(collection::id_text).unwrap_or_default();
            let payload = payload::json_of(point.payload);
            let chunk = read(collection, &name, &payload)?;
            let row = payload.get("row").and_then(Value::as_u64).unwrap_or_default();
            Some((row, Candidate { chunk: Arc::new(chunk), score: score(point.score) }))
        })
        .collect();
    found.sort_by(|(row, a), (other, b)| b.score.total_cmp(&a.score).then(row.cmp(other)));
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

fn read(collection: &Collection, name: &str, payload: &Value) -> Option<Chunk> {
    match &collection.reading {
        Reading::Own(_) => payload::read_own(payload),
        Reading::Foreign(fields) => fields.chunk(name, payload),
    }
}

/// How rare a term is, from the best passage that holds it.
fn rarity_of(term: u32, point: &ScoredPoint) -> Option<f32> {
    use qdrant_client::qdrant::vector_output::Vector;
    let vectors = point.vectors.as_ref()?;
    let qdrant_client::qdrant::vectors_output::VectorsOptions::Vectors(named) =
        vectors.vectors_options.as_ref()?
    else {
        return None;
    };
    let Vector::Sparse(sparse) = named.vectors.get(KEYWORDS)?.clone().into_vector() else { return None };
    let at = sparse.indices.iter().position(|index| *index == term)?;
    let weight = sparse.values.get(at).copied().filter(|weight| *weight > 0.0)?;
    Some(point.score / weight)
}

/// The keyword ranking of a collection that has none: what is close in meaning, ranked by
/// the question's words. How rare a word is, is told from those passages too.
fn by_words(
    terms: Vec<String>,
    dense: &[Candidate],
    collection: &Collection,
) -> (Vec<Candidate>, Vec<(String, f32)>) {
    let counted: Vec<Counted> =
        dense.iter().map(|hit| Counted::new(&hit.chunk.embedded_text(), &collection.analyzer)).collect();
    let total: u32 = counted.iter().map(|passage| passage.length).sum();
    let average = total as f32 / counted.len().max(1) as f32;
    let vectors: Vec<keywords::Sparse> = counted.iter().map(|passage| passage.sparse(average)).collect();
    let weight_in = |term: u32, vector: &keywords::Sparse| {
        vector.indices.binary_search(&term).ok().map(|at| vector.values[at])
    };
    let weighted: Vec<(String, f32)> = terms
        .into_iter()
        .map(|term| {
            let number = keywords::number(&term);
            let holding = vectors.iter().filter(|vector| weight_in(number, vector).is_some()).count();
            (term, keywords::rarity(vectors.len(), holding))
        })
        .collect();
    let mut lexical: Vec<Candidate> = dense
        .iter()
        .zip(&vectors)
        .map(|(hit, vector)| {
            let of = |(term, rarity): &(String, f32)| {
                weight_in(keywords::number(term), vector).map_or(0.0, |weight| weight * rarity)
            };
            Candidate { chunk: hit.chunk.clone(), score: weighted.iter().map(of).sum() }
        })
        .filter(|hit| hit.score > 0.0)
        .collect();
    lexical.sort_by(|a, b| b.score.total_cmp(&a.score));
    (lexical, weighted)
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
            Reading::Foreign(Fields { document: Some(field), .. }) => {
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
