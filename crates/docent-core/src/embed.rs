//! SEAM: text in, vectors out.
//!
//! Invariant: vectors have unit length, so that their product is their cosine.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A unit-length embedding.
pub type Vector = Vec<f32>;

/// Why a text is embedded; some models treat questions and passages differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A question, to be compared with passages.
    Query,
    /// A passage, to be found.
    Passage,
}

/// Names what made a vector. Vectors of different makers must never be compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EmbedderId {
    /// The provider and the model: `local/all-MiniLM-L6-v2-int8`.
    pub name: String,
    /// Length of the vectors; 0 when there are none.
    pub width: usize,
}

impl EmbedderId {
    /// What an index without vectors records.
    pub fn none() -> Self {
        Self { name: "none".to_owned(), width: 0 }
    }

    /// What an index records that another system made: nobody wrote down who made its vectors.
    pub fn unknown(width: usize) -> Self {
        Self { name: "unknown".to_owned(), width }
    }

    /// Whether nobody wrote down who made the vectors.
    pub fn is_unknown(&self) -> bool {
        self.name == "unknown"
    }

    /// Whether vectors of `other` may be compared with these.
    pub fn accepts(&self, other: &Self) -> bool {
        self == other || (self.is_unknown() && self.width == other.width)
    }
}

impl fmt::Display for EmbedderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.width == 0 {
            f.write_str(&self.name)
        } else {
            write!(f, "{} ({} wide)", self.name, self.width)
        }
    }
}

/// Turns text into vectors. One call is one batch.
///
/// Implementations keep input order and return exactly one vector per text.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// What made the vectors; recorded in the index.
    fn id(&self) -> &EmbedderId;

    /// The longest text it reads, in its own tokens; what is longer is cut off.
    fn max_tokens(&self) -> usize;

    /// How many texts are best given to one call.
    fn batch_size(&self) -> usize;

    /// How many tokens it reads in `text`, without the marks it adds around it.
    fn count_tokens(&self, text: &str) -> usize;

    /// One unit vector per text, in order.
    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vector>, EmbedError>;
}

/// Why an embedding failed, sorted by what the caller can do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// Try again later; the request itself was fine.
    #[error("the embedder is unavailable: {0}")]
    Unavailable(String),

    /// Fix the installation or the configuration; trying again will not help.
    #[error("the embedder cannot be used: {0}")]
    Unusable(String),

    /// Fix the configuration; the index holds vectors of another width.
    #[error("expected vectors of width {expected}, got {actual}")]
    WrongWidth {
        /// The width of the index.
        expected: usize,
        /// The width of the vector.
        actual: usize,
    },
}
