//! A collection as it was found: Docent's own, which says what it is, or somebody else's,
//! which is understood by looking at it.
//!
//! Docent's collections hold one point that describes the whole, the manifest, and one point
//! per page for the next ingest; neither has a vector, so no search finds them.
//!
//! Invariant: opening reads and never writes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

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
use super::payload::{self, Fields};
use super::write::Layout;
use crate::index::parts::SourceRecord;

/// The vector of a passage in Docent's own collections.
pub const DENSE: &str = "dense";

/// The sparse vector of a passage in Docent's own collections.
pub const KEYWORDS: &str = "keywords";

/// The field that tells points about the book from passages.
pub const ROLE: &str = "docent";

/// Raised when collections of older versions can no longer be read.
pub const FORMAT: u32 = 1;

/// Points looked at to understand a collection.
const SAMPLE: u32 = 32;

/// Points read at once when all are.
const PAGE: u32 = 1_000;

/// Points of somebody else's collection that are listed. What is beyond is found, not listed.
const MOST_LISTED: usize = 100_000;

/// What a collection of Docent's own says about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The layout of the points.
    pub format: u32,
    /// The collection's own name, whatever alias it was reached by.
    pub generation: String,
    /// Whether everything is there.
    pub complete: bool,
    /// What made the vectors.
    pub embedder: EmbedderId,
    /// What the book is written in.
    pub language: Language,
    /// How many pages.
    pub pages: usize,
    /// How many chunks.
    pub chunks: usize,
    /// Pages and chunks by module.
    pub modules: Modules,
    /// The same for each book that has a name.
    #[serde(default)]
    pub books: BTreeMap<String, Modules>,
    /// The sources it was made from, to read again.
    pub sources: Vec<SourceRecord>,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// Terms in a passage, on average; keyword weights were made with it.
    pub average_terms: f32,
    /// How the collection was laid out.
    #[serde(default)]
    pub layout: Layout,
}

/// The point that holds the manifest.
pub fn manifest_id() -> PointId {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, b"docent:manifest").to_string().into()
}

/// A dense vector that can be searched.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorField {
    /// Its name; none when the collection has only one, unnamed.
    pub name: Option<String>,
    /// How wide it is.
    pub width: usize,
    distance: Distance,
}

impl VectorField {
    /// The cosine a score stands for, given vectors of unit length.
    pub fn cosine(&self, score: f32) -> f32 {
        match self.distance {
            Distance::Euclid => 1.0 - score * score / 2.0,
            _ => score,
        }
    }
}

/// How points become passages.
#[derive(Debug, Clone)]
pub enum Reading {
    /// Docent wrote them.
    Own(Box<Manifest>),
    /// Somebody else did.
    Foreign(Box<Fields>),
}

/// A collection that can be searched.
pub struct Collection {
    /// Its own name.
    pub name: String,
    /// How its points are read.
    pub reading: Reading,
    /// What closeness is measured by; none when it has keywords alone.
    pub vector: Option<VectorField>,
    /// Cuts text as it was cut.
    pub analyzer: Analyzer,
    /// What it holds; of somebody else's, what can be said without reading all of it.
    pub description: Description,
    /// The weights of terms asked for before.
    rarities: Mutex<HashMap<u32, f32>>,
    listing: OnceCell<Listing>,
}

/// What is known only after all points were looked at.
#[derive(Debug, Default)]
pub struct Listing {
    /// Every page with its sections, in the order of the book.
    pub outline: Vec<PageOutline>,
    /// Pages and chunks by module.
    pub modules: Modules,
}

/// Weights of terms that are remembered.
const MOST_RARITIES: usize = 100_000;

impl Collection {
    /// Looks at what is behind a name.
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
            return Err(IndexError::Damaged(format!("{} was not written to its end", manifest.generation)));
        }
        let description = Description {
            version: manifest.generation.clone(),
            embedder: manifest.embedder.clone(),
            language: manifest.language,
            pages: manifest.pages,
            chunks: manifest.chunks,
            modules: manifest.modules.clone(),
            books: manifest.books.clone(),
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
            return Err(unusable(
                "compares vectors by Manhattan distance, which tells nothing about meaning".into(),
            ));
        }
        let request = ScrollPointsBuilder::new(name).limit(SAMPLE).with_payload(true).build();
        let sample = connection.read(|client| client.scroll(request.clone())).await?;
        let points: Vec<Value> =
            sample.result.into_iter().map(|point| payload::json_of(point.payload)).collect();
        let fields = Fields::recognise(&points, &settings.fields);
        let Some(text) = &fields.text else {
            if points.is_empty() {
                return Err(IndexError::Empty);
            }
            return Err(unusable(format!(
                "has no field that looks like the text of a passage (it has {}); name it with qdrant.fields.text",
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
            // Nobody numbers its generations; a collection that grew is another one.
            version: format!("{name}/{chunks}"),
            embedder: EmbedderId::unknown(vector.width),
            language,
            pages: 0,
            chunks,
            modules: Modules::new(),
            books: BTreeMap::new(),
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

    /// Whether Docent made it.
    pub fn is_own(&self) -> bool {
        matches!(self.reading, Reading::Own(_))
    }

    /// The weight of a term, if it was asked for before.
    pub fn rarity(&self, term: u32) -> Option<f32> {
        self.rarities.lock().unwrap_or_else(PoisonError::into_inner).get(&term).copied()
    }

    /// Remembers the weight of a term.
    pub fn remember_rarity(&self, term: u32, weight: f32) {
        let mut rarities = self.rarities.lock().unwrap_or_else(PoisonError::into_inner);
        if rarities.len() >= MOST_RARITIES {
            rarities.clear();
        }
        rarities.insert(term, weight);
    }

    /// All pages; read once.
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

    /// Passages only.
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

/// Shows all points that fit to `see`, until it has seen enough.
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

/// What the server says about a collection or an alias.
pub async fn info(connection: &Connection, name: &str) -> Result<CollectionInfo, IndexError> {
    let info = connection.read(|client| client.collection_info(name)).await?;
    info.result
        .ok_or_else(|| IndexError::Unavailable(format!("{} says nothing of `{name}`", connection.place())))
}

/// What a collection of Docent's own says about itself; none of somebody else's.
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

/// The vector to search: the one that is named, else the only one.
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
            if listed.is_empty() { "an unnamed one" } else { &listed }
        ),
        None => "has no dense vector".to_owned(),
    })
}

/// The fields of some points, for a message.
fn names(points: &[Value]) -> String {
    let names: std::collections::BTreeSet<&str> = points
        .iter()
        .filter_map(Value::as_object)
        .flat_map(|fields| fields.keys().map(String::as_str))
        .collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}
