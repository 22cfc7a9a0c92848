//! Queries: the nearest points by a dense or a sparse vector, or points by id.
//!
//! Invariant: results are exact; equal scores are ordered by id, which the real server does not guarantee.

use std::cmp::Ordering;

use qdrant_client::qdrant::query::Variant;
use qdrant_client::qdrant::vector_input::Variant as Input;
use qdrant_client::qdrant::{PointId, QueryPoints, ScoredPoint, VectorInput};
use tonic::Status;

use super::collection::{Collection, Point, Shown};
use super::id::Id;
use super::vectors::{self, Space, Vector};
use super::{errors, payload};

pub(super) fn run(collection: &Collection, query: QueryPoints) -> Result<Vec<ScoredPoint>, Status> {
    if query.limit == Some(0) {
        return Err(errors::invalid_body("limit", "value 0 invalid, must be 1 or larger"));
    }
    if !query.prefetch.is_empty() {
        return Err(errors::unsupported("prefetch"));
    }
    if query.lookup_from.is_some() {
        return Err(errors::unsupported("lookup_from"));
    }
    if query.params.as_ref().is_some_and(|params| params.idf.is_some()) {
        return Err(errors::unsupported("an IDF corpus"));
    }
    let filter = collection.filter(query.filter)?;
    let shown = Shown {
        payload: payload::Shown::read(query.with_payload, payload::Shown::Nothing)?,
        vectors: vectors::Shown::read(query.with_vectors),
    };
    let candidates = collection.passing(&filter);
    let ranked = match query.query {
        // Without a query, points are returned by id, all with score 1.
        None => candidates.map(|(id, point)| Hit { score: 1.0, id, point }).collect(),
        Some(sent) => {
            let name = query.using.unwrap_or_default();
            let (asked, except) = asked_vector(collection, sent.variant, &name)?;
            let space = collection.config.space(&name).ok_or_else(|| errors::no_vector_name(&name))?;
            space.check(&asked)?;
            let candidates = candidates.filter(|(id, _)| Some(*id) != except);
            let mut hits = nearest(collection, &name, space, space.settle(asked), candidates);
            hits.sort_by(|a, b| a.compare(b, space));
            if let Some(threshold) = query.score_threshold {
                hits.retain(|hit| match space.prefers_small() {
                    true => hit.score < threshold,
                    false => hit.score > threshold,
                });
            }
            hits
        }
    };
    let page = ranked
        .into_iter()
        .skip(query.offset.unwrap_or(0) as usize)
        .take(query.limit.map_or(10, |limit| limit as usize));
    page.map(|hit| {
        let point = collection.show(&shown, hit.id, hit.point)?;
        Ok(ScoredPoint {
            id: Some(PointId::from(hit.id)),
            payload: point.payload,
            score: hit.score,
            version: hit.point.version,
            vectors: point.vectors,
            ..Default::default()
        })
    })
    .collect()
}

struct Hit<'a> {
    score: f32,
    id: Id,
    point: &'a Point,
}

impl Hit<'_> {
    fn compare(&self, other: &Self, space: Space) -> Ordering {
        let by_score = match space.prefers_small() {
            true => self.score.total_cmp(&other.score),
            false => other.score.total_cmp(&self.score),
        };
        by_score.then(self.id.cmp(&other.id))
    }
}

/// The vector to search for, and the point it was taken from, which is excluded from the results.
fn asked_vector(
    collection: &Collection,
    sent: Option<Variant>,
    name: &str,
) -> Result<(Vector, Option<Id>), Status> {
    let input = match sent {
        Some(Variant::Nearest(VectorInput { variant: Some(input) })) => input,
        Some(Variant::Nearest(VectorInput { variant: None })) => {
            return Err(Status::invalid_argument("VectorInput variant is missing"));
        }
        Some(_) => return Err(errors::unsupported("any query but nearest")),
        None => return Err(Status::invalid_argument("Query variant is missing")),
    };
    match input {
        Input::Dense(dense) => Ok((Vector::Dense(dense.data), None)),
        Input::Sparse(sparse) => {
            Ok((vectors::sparse_from(&sparse.indices, &sparse.values, "query.variant")?, None))
        }
        Input::Id(id) => {
            let id = Id::read(Some(id))?;
            let point = collection.points.get(&id).ok_or_else(|| errors::no_point(id))?;
            let vector = point.vectors.get(name).ok_or_else(|| errors::no_vector_on_point(name))?;
            Ok((vector.clone(), Some(id)))
        }
        Input::MultiDense(_) => Err(errors::unsupported("multi-vectors")),
        _ => Err(errors::unsupported("inference")),
    }
}

fn nearest<'a>(
    collection: &'a Collection,
    name: &str,
    space: Space,
    asked: Vector,
    candidates: impl Iterator<Item = (Id, &'a Point)>,
) -> Vec<Hit<'a>> {
    match (space, asked) {
        (Space::Dense { distance, .. }, Vector::Dense(asked)) => candidates
            .filter_map(|(id, point)| match point.vectors.get(name)? {
                Vector::Dense(stored) => {
                    Some(Hit { score: Space::score(distance, &asked, stored), id, point })
                }
                Vector::Sparse(_) => None,
            })
            .collect(),
        (Space::Sparse { rare_counts_more }, Vector::Sparse(mut asked)) => {
            if rare_counts_more {
                weigh(collection, name, &mut asked);
            }
            candidates
                .filter_map(|(id, point)| match point.vectors.get(name)? {
                    Vector::Sparse(stored) => Some(Hit { score: dot(&asked, stored)?, id, point }),
                    Vector::Dense(_) => None,
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The dot product over the indices that both have; nothing if they share none.
fn dot(asked: &[(u32, f32)], stored: &[(u32, f32)]) -> Option<f32> {
    let shared = asked.iter().filter_map(|(index, weight)| {
        let at = stored.binary_search_by_key(index, |(index, _)| *index).ok()?;
        Some(weight * stored[at].1)
    });
    shared.fold(None, |sum, product| Some(sum.unwrap_or(0.0) + product))
}

/// Multiplies each weight by how rare its index is among the points that have this vector. All of them count,
/// regardless of the query's filter; an empty vector does not.
fn weigh(collection: &Collection, name: &str, asked: &mut [(u32, f32)]) {
    let stored: Vec<_> = collection
        .points
        .values()
        .filter_map(|point| match point.vectors.get(name)? {
            Vector::Sparse(stored) if !stored.is_empty() => Some(stored),
            _ => None,
        })
        .collect();
    let all = stored.len() as f32;
    for (index, weight) in asked {
        let has_it =
            |stored: &&&Vec<(u32, f32)>| stored.binary_search_by_key(index, |(index, _)| *index).is_ok();
        let with_it = stored.iter().filter(has_it).count() as f32;
        *weight *= ((all - with_it + 0.5) / (with_it + 0.5) + 1.0).ln();
    }
}
