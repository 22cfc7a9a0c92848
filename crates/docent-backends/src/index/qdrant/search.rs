//! One search: a single batch of queries, whose results are turned into two rankings.
//!
//! In a collection of Docent's own, the batch returns only what ranking needs; the chunks of the best rows are
//! read afterwards. In one of another system, the keyword ranking is computed here and needs all texts.
//!
//! Invariant: rankings do not depend on earlier searches; a cached weight is the one the server would return.

use std::collections::{HashMap, HashSet};

use docent_core::edition::Choice;
use docent_core::index::{Candidate, Candidates, IndexError, IndexQuery, RowId};
use qdrant_client::qdrant::with_payload_selector::SelectorOptions;
use qdrant_client::qdrant::{
    Condition, Filter, PayloadIncludeSelector, PointId, QuantizationSearchParamsBuilder, Query, QueryPoints,
    QueryPointsBuilder, ScoredPoint, SearchParamsBuilder, VectorInput, VectorsSelector,
};
use uuid::Uuid;

use super::collection::{self, Collection, KEYWORDS, Reading};
use super::keywords::{self, Counted};
use super::payload::{self, LOCALE, OTHER_LOCALE, OTHER_VERSION, VERSION};

/// Maximum number of terms whose weights are queried in one search; more than the longest question has.
const MOST_ASKED: usize = 512;

/// The queries of one search, sent as one batch.
pub(super) struct Asked {
    /// The distinct terms of the query.
    terms: Vec<String>,
    /// The terms whose weights are not cached yet.
    unknown: Vec<u32>,
    has_dense: bool,
    has_keywords: bool,
    /// The dense query, the keyword query, then one query per unknown term.
    pub(super) queries: Vec<QueryPoints>,
}

impl Asked {
    /// Builds the queries.
    pub(super) fn new(collection: &Collection, query: &IndexQuery<'_>) -> Result<Self, IndexError> {
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
        let terms = query.terms(&collection.analyzer);
        let filter = part_filter(collection, query);
        let start = || {
            let start = QueryPointsBuilder::new(&collection.name)
                .limit(query.depth as u64)
                .with_payload(ranked_fields(collection));
            match &filter {
                Some(filter) => start.filter(filter.clone()),
                None => start,
            }
        };
        let mut queries = Vec::new();
        if let Some((vector, field)) = vector {
            // If vectors are quantized, rescore the best hits with the full vectors.
            let rescored = QuantizationSearchParamsBuilder::default().rescore(true);
            let mut dense = start()
                .query(Query::new_nearest(vector.to_vec()))
                .params(SearchParamsBuilder::default().quantization(rescored));
            if let Some(name) = &field.name {
                dense = dense.using(name);
            }
            queries.push(dense.build());
        }
        let has_keywords = collection.is_own() && !terms.is_empty();
        let mut unknown = Vec::new();
        if has_keywords {
            queries.push(start().query(weighed(keywords::question(&terms))).using(KEYWORDS).build());
            let asked = terms.iter().map(|term| keywords::number(term));
            unknown = asked.filter(|term| collection.rarity(*term).is_none()).take(MOST_ASKED).collect();
            queries.extend(unknown.iter().map(|term| alone(collection, *term)));
        }
        Ok(Self { terms, unknown, has_dense: vector.is_some(), has_keywords, queries })
    }

    /// Turns the results, one list per query, into candidates.
    pub(super) fn candidates(self, collection: &Collection, answers: Vec<Vec<ScoredPoint>>) -> Candidates {
        let mut answers = answers.into_iter();
        let mut next = |wanted: bool| if wanted { answers.next().unwrap_or_default() } else { Vec::new() };
        let cosine = |score| collection.vector.as_ref().map_or(score, |field| field.cosine(score));
        let mut pages = Pages::default();
        let dense = next(self.has_dense);
        let lexical = next(self.has_keywords);
        let version = collection.description.version.clone();
        match &collection.reading {
            Reading::Own(_) => {
                let dense = ranked(dense, &mut pages, cosine);
                let lexical = ranked(lexical, &mut pages, |score| score);
                let rarest = keywords::rarity(collection.description.chunks, 0);
                for (term, found) in self.unknown.iter().zip(answers) {
                    let weight = found.first().and_then(|point| rarity_of(*term, point)).unwrap_or(rarest);
                    collection.remember_rarity(*term, weight);
                }
                let weighted = |term: String| {
                    let weight = collection.rarity(keywords::number(&term)).unwrap_or(rarest);
                    (term, weight)
                };
                let terms: Vec<(String, f32)> = self.terms.into_iter().map(weighted).collect();
                // A term in at least one passage weighs less.
                let absent = terms.iter().filter(|(_, weight)| *weight >= rarest);
                let absent = absent.map(|(term, _)| term.clone()).collect();
                Candidates { lexical, dense, terms, absent, version }
            }
            Reading::Foreign(fields) => {
                let texts = read_texts(fields, dense, &mut pages, cosine);
                let (lexical, terms, absent) = by_words(self.terms, &texts, collection);
                let dense = texts.into_iter().map(|(candidate, _)| candidate).collect();
                Candidates { lexical, dense, terms, absent, version }
            }
        }
    }
}

fn weighed(sparse: keywords::Sparse) -> Query {
    Query::new_nearest(VectorInput::new_sparse(sparse.indices, sparse.values))
}

/// Searches for one term, for its weight: Qdrant does not expose the IDF of a term, but in a search for the term alone,
/// the score is the IDF times the weight in the passage found.
fn alone(collection: &Collection, term: u32) -> QueryPoints {
    QueryPointsBuilder::new(&collection.name)
        .query(weighed(keywords::Sparse { indices: vec![term], values: vec![1.0] }))
        .using(KEYWORDS)
        .limit(1)
        .with_payload(false)
        .with_vectors(VectorsSelector { names: vec![KEYWORDS.to_owned()] })
        .build()
}

/// The payload that ranking needs.
fn ranked_fields(collection: &Collection) -> SelectorOptions {
    match &collection.reading {
        Reading::Own(_) => {
            let fields = vec![PAGE.to_owned(), ROW.to_owned()];
            SelectorOptions::Include(PayloadIncludeSelector { fields })
        }
        Reading::Foreign(_) => SelectorOptions::Enable(true),
    }
}

/// The field with the id of a passage's page in Docent's own collections.
const PAGE: &str = "document_id";

/// The field with the position of a passage in the book in Docent's own collections.
const ROW: &str = "row";

/// Numbers the pages of the candidates.
#[derive(Default)]
struct Pages(HashMap<String, u32>);

impl Pages {
    fn number(&mut self, document_id: &str) -> u32 {
        match self.0.get(document_id) {
            Some(number) => *number,
            None => {
                let number = self.0.len() as u32;
                self.0.insert(document_id.to_owned(), number);
                number
            }
        }
    }
}

/// The row that a point is.
pub(super) fn row_id(id: &PointId) -> Option<RowId> {
    use qdrant_client::qdrant::point_id::PointIdOptions;
    match id.point_id_options.as_ref()? {
        PointIdOptions::Num(number) => Some(RowId::Number(*number)),
        PointIdOptions::Uuid(uuid) => Uuid::parse_str(uuid).ok().map(RowId::Uuid),
    }
}

/// The point that a row is.
pub(super) fn point_id(row: RowId) -> PointId {
    match row {
        RowId::Number(number) => number.into(),
        RowId::Uuid(uuid) => uuid.to_string().into(),
    }
}

fn part_filter(collection: &Collection, query: &IndexQuery<'_>) -> Option<Filter> {
    let module = match &collection.reading {
        Reading::Own(_) => "module_name",
        // Without such a field no passage belongs to a module, and the condition matches nothing.
        Reading::Foreign(fields) => fields.module.as_deref().unwrap_or("module_name"),
    };
    let named = [("book_name", &query.filter.book), (module, &query.filter.module)];
    let mut conditions: Vec<Condition> = named
        .into_iter()
        .filter_map(|(field, name)| Some(Condition::matches(field, name.clone()?)))
        .collect();
    if let Reading::Own(manifest) = &collection.reading {
        let version =
            (!manifest.versions.is_empty()).then_some((&query.filter.version, VERSION, OTHER_VERSION));
        let locale = (!manifest.locales.is_empty()).then_some((&query.filter.locale, LOCALE, OTHER_LOCALE));
        let chosen = [version, locale].into_iter().flatten();
        conditions.extend(chosen.filter_map(|(choice, field, other)| of_choice(choice, field, other)));
    }
    (!conditions.is_empty()).then(|| Filter::must(conditions))
}

/// The condition for a version or a locale; none if all are admitted.
fn of_choice(choice: &Choice, field: &str, other: &str) -> Option<Condition> {
    match choice {
        Choice::All => None,
        Choice::Default => Some(Condition::is_empty(other)),
        // A passage without a version belongs to every version.
        Choice::Named(name) => {
            let any = [Condition::matches(field, name.clone()), Condition::is_empty(field)];
            Some(Condition::from(Filter::should(any)))
        }
    }
}

/// The points of a collection of Docent's own as candidates, best first; equal scores keep the order of the book.
fn ranked(points: Vec<ScoredPoint>, pages: &mut Pages, score: impl Fn(f32) -> f32) -> Vec<Candidate> {
    let mut found: Vec<(i64, Candidate)> = points
        .into_iter()
        .filter_map(|point| {
            let row = row_id(point.id.as_ref()?)?;
            let page = pages.number(point.payload.get(PAGE)?.as_str()?);
            let place = point.payload.get(ROW).and_then(|row| row.as_integer()).unwrap_or_default();
            Some((place, Candidate { row, page, score: score(point.score) }))
        })
        .collect();
    found.sort_by(|(place, a), (other, b)| b.score.total_cmp(&a.score).then(place.cmp(other)));
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The points of a collection of another system as candidates with their texts, best first.
fn read_texts(
    fields: &payload::Fields,
    points: Vec<ScoredPoint>,
    pages: &mut Pages,
    score: impl Fn(f32) -> f32,
) -> Vec<(Candidate, String)> {
    let mut found: Vec<(Candidate, String)> = points
        .into_iter()
        .filter_map(|point| {
            let id = point.id.as_ref()?;
            let chunk = fields.chunk(&collection::id_text(id), &payload::json_of(point.payload))?;
            let page = pages.number(&chunk.document_id);
            Some((Candidate { row: row_id(id)?, page, score: score(point.score) }, chunk.embedded_text()))
        })
        .collect();
    found.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score));
    found
}

/// The IDF of a term, computed from the best passage that contains it.
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

/// The keyword ranking for a collection without keyword vectors: reranks the dense hits by BM25. The IDF is
/// estimated from these hits, too.
fn by_words(
    terms: Vec<String>,
    dense: &[(Candidate, String)],
    collection: &Collection,
) -> (Vec<Candidate>, Vec<(String, f32)>, HashSet<String>) {
    let counted: Vec<Counted> =
        dense.iter().map(|(_, text)| Counted::new(text, &collection.analyzer)).collect();
    let total: u32 = counted.iter().map(|passage| passage.length).sum();
    let average = total as f32 / counted.len().max(1) as f32;
    let vectors: Vec<keywords::Sparse> = counted.iter().map(|passage| passage.sparse(average)).collect();
    let weight_in = |term: u32, vector: &keywords::Sparse| {
        vector.indices.binary_search(&term).ok().map(|at| vector.values[at])
    };
    let mut absent = HashSet::new();
    let weighted: Vec<(String, f32)> = terms
        .into_iter()
        .map(|term| {
            let number = keywords::number(&term);
            let holding = vectors.iter().filter(|vector| weight_in(number, vector).is_some()).count();
            if holding == 0 {
                absent.insert(term.clone());
            }
            (term, keywords::rarity(vectors.len(), holding))
        })
        .collect();
    let mut lexical: Vec<Candidate> = dense
        .iter()
        .zip(&vectors)
        .map(|((hit, _), vector)| {
            let of = |(term, rarity): &(String, f32)| {
                weight_in(keywords::number(term), vector).map_or(0.0, |weight| weight * rarity)
            };
            Candidate { score: weighted.iter().map(of).sum(), ..*hit }
        })
        .filter(|hit| hit.score > 0.0)
        .collect();
    lexical.sort_by(|a, b| b.score.total_cmp(&a.score));
    (lexical, weighted, absent)
}
