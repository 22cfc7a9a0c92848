//! One search: a single batch of queries, whose results are turned into two rankings.
//!
//! Invariant: rankings do not depend on earlier searches; a cached weight is the one the server would return.

use std::sync::Arc;

use docent_core::index::{Candidate, Candidates, IndexError, IndexQuery};
use qdrant_client::qdrant::{
    Condition, Filter, QuantizationSearchParamsBuilder, Query, QueryPoints, QueryPointsBuilder, ScoredPoint,
    SearchParamsBuilder, VectorInput, VectorsSelector,
};
use serde_json::Value;

use super::collection::{self, Collection, KEYWORDS, Reading};
use super::keywords::{self, Counted};
use super::{payload, read};

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
        let terms = collection.analyzer.distinct(query.text);
        let filter = part_filter(collection, query);
        let start = || {
            let start = QueryPointsBuilder::new(&collection.name).limit(query.depth as u64);
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
            // Qdrant does not expose the IDF of a term. But in a search for the term alone, the score is the
            // IDF times the weight in the passage found.
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

    /// Turns the results, one list per query, into candidates.
    pub(super) fn candidates(self, collection: &Collection, answers: Vec<Vec<ScoredPoint>>) -> Candidates {
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

fn part_filter(collection: &Collection, query: &IndexQuery<'_>) -> Option<Filter> {
    let module = match &collection.reading {
        Reading::Own(_) => "module_name",
        // Without such a field no passage belongs to a module, and the condition matches nothing.
        Reading::Foreign(fields) => fields.module.as_deref().unwrap_or("module_name"),
    };
    let named = [("book_name", &query.filter.book), (module, &query.filter.module)];
    let conditions: Vec<Condition> = named
        .into_iter()
        .filter_map(|(field, name)| Some(Condition::matches(field, name.clone()?)))
        .collect();
    (!conditions.is_empty()).then(|| Filter::must(conditions))
}

/// Passages with their scores, best first; equal scores keep the order of the book.
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
