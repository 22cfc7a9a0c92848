//! An open collection: one of Docent's own, described by its manifest, or one of another system, whose
//! fields are recognized from a sample of its points.
//!
//! Besides the passages, Docent's collections contain one point with the manifest and one point per page for
//! the next ingest. These points have no vectors, so searches do not find them.
//!
//! Invariant: opening a collection never writes to it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use docent_core::edition::Variant;
use docent_core::embed::EmbedderId;
use docent_core::index::{Description, IndexError, Modules, PageOutline};
use docent_core::language::Language;
use docent_core::terms::Analyzer;
use qdrant_client::qdrant::vectors_config::Config;
use qdrant_client::qdrant::{
    CollectionInfo, Condition, Distance, Filter, GetPointsBuilder, PayloadExcludeSelector, PointId,
    RetrievedPoint, ScrollPointsBuilder,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::Settings;
use super::connection::Connection;
use super::layout::Layout;
use super::payload::{self, Fields};
use crate::index::contents::SourceRecord;

/// The vector of a passage in Docent's own collections.
pub const DENSE: &str = "dense";

/// The sparse vector of a passage in Docent's own collections.
pub const KEYWORDS: &str = "keywords";

/// The field that marks points that are not passages (manifest and pages).
pub const ROLE: &str = "docent";

/// Version of the point format; increased when collections of older versions can no longer be read.
pub const FORMAT: u32 = 1;

/// Number of points sampled to recognize the fields of a collection.
const SAMPLE: u32 = 32;

/// Points per request when scrolling through a collection.
const PAGE: u32 = 1_000;

/// Maximum number of points of another system's collection that are listed. Searches find all points.
const MOST_LISTED: usize = 100_000;

/// The description stored in a collection of Docent's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the point format.
    pub format: u32,
    /// The name of the collection itself, not of the alias.
    pub generation: String,
    /// Whether all points were written.
    pub complete: bool,
    /// The embedder that made the vectors.
    pub embedder: EmbedderId,
    /// The language of the book.
    pub language: Language,
    /// Number of pages.
    pub pages: usize,
    /// Number of chunks.
    pub chunks: usize,
    /// Pages and chunks by module.
    pub modules: Modules,
    /// The same for each book that has a name.
    #[serde(default)]
    pub books: BTreeMap<String, Modules>,
    /// The versions, as they are described.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Variant>,
    /// The locales, as they are described.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locales: Vec<Variant>,
    /// The sources it was read from, for the next ingest.
    pub sources: Vec<SourceRecord>,
    /// When it was created, RFC 3339.
    pub created_at: String,
    /// Average number of terms per passage; the keyword weights depend on it.
    pub average_terms: f32,
    /// The layout of the collection.
    #[serde(default)]
    pub layout: Layout,
}

/// The id of the point that contains the manifest.
pub fn manifest_id() -> PointId {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, b"docent:manifest").to_string().into()
}

/// A dense vector that can be searched.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorField {
    /// Its name; `None` for a collection with a single unnamed vector.
    pub name: Option<String>,
    /// Its number of dimensions.
    pub width: usize,
    distance: Distance,
}

impl VectorField {
    /// Converts a score to a cosine, assuming vectors of unit length.
    pub fn cosine(&self, score: f32) -> f32 {
        match self.distance {
            Distance::Euclid => 1.0 - score * score / 2.0,
            _ => score,
        }
    }
}

/// How points are read as passages.
#[derive(Debug, Clone)]
pub enum Reading {
    /// The collection was written by Docent.
    Own(Box<Manifest>),
    /// The collection was written by another system.
    Foreign(Box<Fields>),
}

/// A collection that can be searched.
pub struct Collection {
    /// Its own name.
    pub name: String,
    /// How its points are read.
    pub reading: Reading,
    /// The dense vector to search; `None` if the collection has only keywords.
    pub vector: Option<VectorField>,
    /// Splits queries into terms in the same way as the passages.
    pub analyzer: Analyzer,
    /// Its description; for a collection of another system, as far as known without reading all points.
    pub description: Description,
    /// Cache of term weights.
    rarities: Mutex<HashMap<u32, f32>>,
    listing: OnceCell<Listing>,
}

/// Information that requires reading all points.
#[derive(Debug, Default)]
pub struct Listing {
    /// Every page with its sections, in the order of the book.
    pub outline: Vec<PageOutline>,
    /// Pages and chunks by module.
    pub modules: Modules,
}

/// Maximum number of cached term weights.
const MOST_RARITIES: usize = 100_000;

impl Collection {
    /// Opens the collection with the configured name or alias.
    pub async fn open(connection: &Connection, settings: &Settings) -> Result<Self, IndexError> {
        let info = info(connection, &settings.collection).await?;
        match manifest(connection, &settings.collection).await? {
            Some(manifest) => Self::own(manifest, &info),
            None => Self::foreign(connection, settings, &info).await,
        }
    }

    fn own(manifest: Manifest, info: &CollectionInfo) -> Result<Self, IndexError> {
        if manifest.format != FORMAT {
            return Err(IndexError::OtherFormat { found: manifest.format, expected: FORMAT });
        }
        if !manifest.complete {
            return Err(IndexError::Damaged(format!("{} was not written completely", manifest.generation)));
        }
        let description = Description {
            version: manifest.generation.clone(),
            embedder: manifest.embedder.clone(),
            language: manifest.language,
            pages: manifest.pages,
            chunks: manifest.chunks,
            modules: manifest.modules.clone(),
            books: manifest.books.clone(),
            versions: manifest.versions.clone(),
            locales: manifest.locales.clone(),
            sources: manifest.sources.iter().map(|source| source.location.clone()).collect(),
            created_at: manifest.created_at.clone(),
        };
        let vector = vectors(info).into_iter().find(|vector| vector.name.as_deref() == Some(DENSE));
        Ok(Self::new(manifest.generation.clone(), Reading::Own(Box::new(manifest)), vector, description))
    }

    async fn foreign(
        connection: &Connection,
        settings: &Settings,
        info: &CollectionInfo,
    ) -> Result<Self, IndexError> {
        let name = &settings.collection;
        let unusable = |what: String| IndexError::Unusable(format!("the collection `{name}` {what}"));
        let vector = choose(vectors(info), settings.vector.as_deref()).map_err(unusable)?;
        if vector.distance == Distance::Manhattan {
            return Err(unusable("uses Manhattan distance, which Docent does not support".into()));
        }
        let request = ScrollPointsBuilder::new(name).limit(SAMPLE).with_payload(true).build();
        let sample = connection.read(|client| client.scroll(request.clone())).await?;
        let points: Vec<Value> =
            sample.result.into_iter().map(|point| payload::json_of(point.payload)).collect();
        let fields = Fields::recognize(&points, &settings.fields);
        let Some(text) = &fields.text else {
            if points.is_empty() {
                return Err(IndexError::Empty);
            }
            return Err(unusable(format!(
                "has no field that looks like the text of a passage (fields: {}); set qdrant.fields.text",
                names(&points)
            )));
        };
        let texts: Vec<&str> = points
            .iter()
            .filter_map(|point| payload::look_up(point, text))
            .filter_map(Value::as_str)
            .collect();
        let language = settings.language.unwrap_or_else(|| Language::detect(&texts.join("\n")));
        let chunks = info.points_count.unwrap_or_default() as usize;
        let description = Description {
            // There are no numbered generations, so a different number of points counts as a new version.
            version: format!("{name}/{chunks}"),
            embedder: EmbedderId::unknown(vector.width),
            language,
            pages: 0,
            chunks,
            modules: Modules::new(),
            books: BTreeMap::new(),
            versions: Vec::new(),
            locales: Vec::new(),
            sources: vec![format!("{}/{name}", connection.place())],
            created_at: String::new(),
        };
        Ok(Self::new(name.clone(), Reading::Foreign(Box::new(fields)), Some(vector), description))
    }

    fn new(name: String, reading: Reading, vector: Option<VectorField>, description: Description) -> Self {
        Self {
            name,
            reading,
            vector,
            analyzer: Analyzer::new(description.language),
            description,
            rarities: Mutex::default(),
            listing: OnceCell::new(),
        }
    }

    /// Whether it was created by Docent.
    pub fn is_own(&self) -> bool {
        matches!(self.reading, Reading::Own(_))
    }

    /// The cached weight of a term.
    pub fn rarity(&self, term: u32) -> Option<f32> {
        self.rarities.lock().unwrap_or_else(PoisonError::into_inner).get(&term).copied()
    }

    /// Caches the weight of a term.
    pub fn remember_rarity(&self, term: u32, weight: f32) {
        let mut rarities = self.rarities.lock().unwrap_or_else(PoisonError::into_inner);
        if rarities.len() >= MOST_RARITIES {
            rarities.clear();
        }
        rarities.insert(term, weight);
    }

    /// All pages; read on first use, then cached.
    pub async fn listing(&self, connection: &Connection) -> Result<&Listing, IndexError> {
        self.listing.get_or_try_init(|| self.list(connection)).await
    }

    async fn list(&self, connection: &Connection) -> Result<Listing, IndexError> {
        let (without, most) = match &self.reading {
            Reading::Own(_) => (vec!["content".to_owned(), "key".to_owned()], usize::MAX),
            Reading::Foreign(fields) => (fields.text.clone().into_iter().collect(), MOST_LISTED),
        };
        let request = ScrollPointsBuilder::new(&self.name)
            .filter(self.passages())
            .with_payload(PayloadExcludeSelector { fields: without });
        let mut places = Vec::new();
        scroll(connection, request, |point| {
            let name = point_name(&point);
            let payload = payload::json_of(point.payload);
            let row = payload.get("row").and_then(Value::as_u64);
            let chunk = match &self.reading {
                Reading::Own(_) => payload::read_own(&payload),
                Reading::Foreign(fields) => Some(fields.place(&name, &payload)),
            };
            places.extend(chunk.map(|chunk| (row, chunk)));
            Ok(places.len() < most)
        })
        .await?;
        places.sort_by(|(row, a), (other, b)| {
            (row, &a.document_id, a.index).cmp(&(other, &b.document_id, b.index))
        });
        let outline = PageOutline::of(places.iter().map(|(_, chunk)| chunk));
        let mut modules = Modules::new();
        for page in outline.iter().filter(|page| !page.module_name.is_empty()) {
            modules.entry(page.module_name.clone()).or_default().pages += 1;
        }
        for (_, chunk) in &places {
            if let Some(module) = modules.get_mut(&chunk.module_name) {
                module.chunks += 1;
            }
        }
        Ok(Listing { outline, modules })
    }

    /// A filter for passages only.
    pub fn passages(&self) -> Filter {
        match self.reading {
            Reading::Own(_) => Filter::must([Condition::is_empty(ROLE)]),
            Reading::Foreign(_) => Filter::default(),
        }
    }
}

/// A point's id as text.
pub fn point_name(point: &RetrievedPoint) -> String {
    point.id.as_ref().map(id_text).unwrap_or_default()
}

/// An id as text.
pub fn id_text(id: &PointId) -> String {
    use qdrant_client::qdrant::point_id::PointIdOptions;
    match &id.point_id_options {
        Some(PointIdOptions::Num(number)) => number.to_string(),
        Some(PointIdOptions::Uuid(uuid)) => uuid.clone(),
        None => String::new(),
    }
}

/// Calls `see` with every point that matches the request, until it returns `false`.
pub async fn scroll(
    connection: &Connection,
    request: ScrollPointsBuilder,
    mut see: impl FnMut(RetrievedPoint) -> Result<bool, IndexError>,
) -> Result<(), IndexError> {
    let mut request = request.limit(PAGE).build();
    loop {
        let page = connection.read(|client| client.scroll(request.clone())).await?;
        for point in page.result {
            if !see(point)? {
                return Ok(());
            }
        }
        match page.next_page_offset {
            Some(next) => request.offset = Some(next),
            None => return Ok(()),
        }
    }
}

/// The server's information about a collection or an alias.
pub async fn info(connection: &Connection, name: &str) -> Result<CollectionInfo, IndexError> {
    let info = connection.read(|client| client.collection_info(name)).await?;
    let missing = || format!("{} returned no information about collection `{name}`", connection.place());
    info.result.ok_or_else(|| IndexError::Unavailable(missing()))
}

/// The manifest of a collection of Docent's own; `None` for one of another system.
pub async fn manifest(connection: &Connection, name: &str) -> Result<Option<Manifest>, IndexError> {
    let request = GetPointsBuilder::new(name, [manifest_id()]).with_payload(true).build();
    let found = connection.read(|client| client.get_points(request.clone())).await?;
    let Some(point) = found.result.into_iter().next() else { return Ok(None) };
    let payload = payload::json_of(point.payload);
    let Some(manifest) = payload.get("manifest") else { return Ok(None) };
    serde_json::from_value(manifest.clone())
        .map(Some)
        .map_err(|error| IndexError::Damaged(format!("the manifest of `{name}`: {error}")))
}

/// The dense vectors of a collection.
fn vectors(info: &CollectionInfo) -> Vec<VectorField> {
    let params = info.config.as_ref().and_then(|config| config.params.as_ref());
    let Some(config) = params.and_then(|params| params.vectors_config.as_ref()?.config.as_ref()) else {
        return Vec::new();
    };
    let field = |name: Option<&String>, params: &qdrant_client::qdrant::VectorParams| VectorField {
        name: name.cloned(),
        width: params.size as usize,
        distance: params.distance(),
    };
    match config {
        Config::Params(params) => vec![field(None, params)],
        Config::ParamsMap(map) => {
            let named: BTreeMap<_, _> = map.map.iter().collect();
            named.into_iter().map(|(name, params)| field(Some(name), params)).collect()
        }
    }
}

/// The vector to search: the configured one, or else the only one.
fn choose(vectors: Vec<VectorField>, wanted: Option<&str>) -> Result<VectorField, String> {
    let listed = vectors.iter().filter_map(|vector| vector.name.clone()).collect::<Vec<_>>().join(", ");
    let found = match wanted {
        Some(wanted) => vectors.into_iter().find(|vector| vector.name.as_deref() == Some(wanted)),
        None if vectors.len() > 1 => {
            return Err(format!("has several vectors ({listed}); choose one with qdrant.vector"));
        }
        None => vectors.into_iter().next(),
    };
    found.ok_or_else(|| match wanted {
        Some(wanted) => format!(
            "has no vector `{wanted}`; it has {}",
            if listed.is_empty() { "one unnamed vector" } else { &listed }
        ),
        None => "has no dense vector".to_owned(),
    })
}

/// The field names of some points, for an error message.
fn names(points: &[Value]) -> String {
    let names: std::collections::BTreeSet<&str> = points
        .iter()
        .filter_map(Value::as_object)
        .flat_map(|fields| fields.keys().map(String::as_str))
        .collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}
