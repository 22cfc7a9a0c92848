//! Vectors: their deprecated and current wire formats, their spaces, and their similarity.
//!
//! Invariant: a stored sparse vector is sorted by index and has every index once; a dense one in a cosine
//! space has length one, unless it is all zeros.

use std::collections::BTreeMap;

use qdrant_client::qdrant::vectors::VectorsOptions;
use qdrant_client::qdrant::vectors_output::VectorsOptions as ShownOptions;
use qdrant_client::qdrant::with_vectors_selector::SelectorOptions;
use qdrant_client::qdrant::{
    DenseVector, Distance, NamedVectorsOutput, SparseVector, Vector as Sent, VectorOutput, Vectors,
    VectorsOutput, WithVectorsSelector, vector, vector_output,
};
use tonic::Status;

use super::errors;

/// The vectors of one point by name; the unnamed one has an empty name.
pub(super) type Named = BTreeMap<String, Vector>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Vector {
    Dense(Vec<f32>),
    Sparse(Vec<(u32, f32)>),
}

/// The configuration of one of a collection's vectors.
#[derive(Debug, Clone, Copy)]
pub(super) enum Space {
    Dense { width: usize, distance: Distance },
    Sparse { rare_counts_more: bool },
}

/// Decodes the vectors of the point at this position of the request.
pub(super) fn from_wire(sent: Option<Vectors>, place: usize) -> Result<Named, Status> {
    let sent = sent.ok_or_else(|| Status::invalid_argument("Expected some vectors"))?;
    match sent.vectors_options {
        None => Err(Status::invalid_argument("No Vector Provided")),
        Some(VectorsOptions::Vector(one)) => match read(one, &format!("points[{place}].vectors"))? {
            Vector::Sparse(_) => Err(Status::invalid_argument("Sparse vector must be named")),
            dense => Ok(Named::from([(String::new(), dense)])),
        },
        Some(VectorsOptions::Vectors(named)) => named
            .vectors
            .into_iter()
            .map(|(name, one)| Ok((name, read(one, &format!("points[{place}].vectors.vectors[]"))?)))
            .collect(),
    }
}

#[allow(deprecated, reason = "clients before 1.16 still send these fields, and so do some newer ones")]
fn read(sent: Sent, field: &str) -> Result<Vector, Status> {
    match sent.vector {
        Some(vector::Vector::Dense(dense)) => dense_from(dense.data),
        Some(vector::Vector::Sparse(sparse)) => sparse_from(&sparse.indices, &sparse.values, field),
        Some(vector::Vector::MultiDense(_)) => Err(errors::unsupported("multi-vectors")),
        Some(_) => Err(errors::unsupported("inference")),
        None if sent.vectors_count.is_some() => Err(errors::unsupported("multi-vectors")),
        None => match sent.indices {
            Some(indices) => sparse_from(&indices.data, &sent.data, field),
            None => dense_from(sent.data),
        },
    }
}

fn dense_from(data: Vec<f32>) -> Result<Vector, Status> {
    if data.is_empty() {
        return Err(errors::wrong_input("vector: dense vector must not be empty"));
    }
    Ok(Vector::Dense(data))
}

/// A sorted sparse vector, or an error if it is invalid.
pub(super) fn sparse_from(indices: &[u32], values: &[f32], field: &str) -> Result<Vector, Status> {
    if indices.len() != values.len() {
        return Err(errors::invalid_body(&format!("{field}.values"), "must be the same length as indices"));
    }
    let mut entries: Vec<_> = indices.iter().copied().zip(values.iter().copied()).collect();
    entries.sort_by_key(|(index, _)| *index);
    if entries.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(errors::invalid_body(&format!("{field}.indices"), "must be unique"));
    }
    Ok(Vector::Sparse(entries))
}

impl Space {
    /// Whether a vector fits this space. For a named vector, the error about its width includes the name.
    pub(super) fn check(self, vector: &Vector) -> Result<(), Status> {
        match (self, vector) {
            (Self::Dense { width, .. }, Vector::Dense(data)) if data.len() != width => {
                Err(errors::wrong_width(width, data.len()))
            }
            (Self::Dense { .. }, Vector::Dense(_)) | (Self::Sparse { .. }, Vector::Sparse(_)) => Ok(()),
            _ => Err(errors::sparse_for_dense()),
        }
    }

    /// The vector as it is stored and compared in this space.
    pub(super) fn settle(self, vector: Vector) -> Vector {
        match (self, vector) {
            (Self::Dense { distance: Distance::Cosine, .. }, Vector::Dense(data)) => {
                let square: f32 = data.iter().map(|x| x * x).sum();
                if square < f32::EPSILON || (square - 1.0).abs() <= 1.0e-6 {
                    return Vector::Dense(data);
                }
                let length = square.sqrt();
                Vector::Dense(data.into_iter().map(|x| x / length).collect())
            }
            (_, vector) => vector,
        }
    }

    /// Whether smaller scores are better.
    pub(super) fn prefers_small(self) -> bool {
        matches!(self, Self::Dense { distance: Distance::Euclid | Distance::Manhattan, .. })
    }

    /// The similarity of two dense vectors, as the server reports it.
    pub(super) fn score(distance: Distance, a: &[f32], b: &[f32]) -> f32 {
        let pairs = a.iter().zip(b);
        match distance {
            Distance::Euclid => pairs.map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt(),
            Distance::Manhattan => pairs.map(|(a, b)| (a - b).abs()).sum(),
            _ => pairs.map(|(a, b)| a * b).sum(),
        }
    }
}

/// The vectors to return.
pub(super) enum Shown {
    All,
    Nothing,
    Only(Vec<String>),
}

impl Shown {
    pub(super) fn read(selector: Option<WithVectorsSelector>) -> Self {
        match selector.and_then(|selector| selector.selector_options) {
            Some(SelectorOptions::Enable(true)) => Self::All,
            Some(SelectorOptions::Include(list)) => Self::Only(list.names),
            Some(SelectorOptions::Enable(false)) | None => Self::Nothing,
        }
    }

    /// A point with only an unnamed vector returns it without a map.
    pub(super) fn apply(&self, vectors: &Named) -> Option<VectorsOutput> {
        let mut shown = match self {
            Self::Nothing => return None,
            Self::All => vectors.clone(),
            Self::Only(names) => {
                let wanted = |name: &String| vectors.get(name).map(|vector| (name.clone(), vector.clone()));
                names.iter().filter_map(wanted).collect()
            }
        };
        let options = match (shown.len(), shown.remove("")) {
            (1, Some(unnamed)) => ShownOptions::Vector(to_wire(unnamed)),
            (_, unnamed) => {
                shown.extend(unnamed.map(|vector| (String::new(), vector)));
                let vectors = shown.into_iter().map(|(name, vector)| (name, to_wire(vector))).collect();
                ShownOptions::Vectors(NamedVectorsOutput { vectors })
            }
        };
        Some(VectorsOutput { vectors_options: Some(options) })
    }
}

fn to_wire(vector: Vector) -> VectorOutput {
    let vector = match vector {
        Vector::Dense(data) => vector_output::Vector::Dense(DenseVector { data }),
        Vector::Sparse(entries) => {
            let (indices, values) = entries.into_iter().unzip();
            vector_output::Vector::Sparse(SparseVector { values, indices })
        }
    };
    VectorOutput { vector: Some(vector), ..Default::default() }
}
