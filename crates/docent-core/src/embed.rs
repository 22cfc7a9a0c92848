//! SEAM: turn text into vectors.
//!
//! Invariant: vectors have unit length, so that their dot product is their cosine similarity.

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
    /// A sentence of an answer, to be compared with passages. Models treat it as a passage, but a user waits for it.
    Sentence,
}

/// Identifies the embedder that produced a vector. Vectors of different embedders must never be compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EmbedderId {
    /// Provider and model, such as `local/granite-embedding-30m-english-int8`.
    pub name: String,
    /// Number of dimensions of the vectors; 0 if there are none.
    pub width: usize,
}

impl EmbedderId {
    /// The id recorded in an index without vectors.
    pub fn none() -> Self {
        Self { name: "none".to_owned(), width: 0 }
    }

    /// The id for an index made by another system that does not record its embedder.
    pub fn unknown(width: usize) -> Self {
        Self { name: "unknown".to_owned(), width }
    }

    /// Whether the embedder was not recorded.
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
    /// Identifies this embedder; recorded in the index.
    fn id(&self) -> &EmbedderId;

    /// Maximum length of a text in this model's tokens; longer texts are truncated.
    fn max_tokens(&self) -> usize;

    /// Whether a lower-case word is common in the model's language. Defaults to true if the embedder cannot
    /// tell.
    fn is_common_word(&self, _word: &str) -> bool {
        true
    }

    /// The common words of the model's language that an uncommon lower-case word may be a misspelling of, most common first;
    /// `None` if the word is common, or if the embedder cannot tell.
    fn similar_words(&self, _word: &str) -> Option<Vec<String>> {
        None
    }

    /// Preferred number of texts per call.
    fn batch_size(&self) -> usize;

    /// Number of tokens in `text`, without the special tokens the model adds.
    fn count_tokens(&self, text: &str) -> usize;

    /// One unit vector per text, in order.
    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vector>, EmbedError>;
}

/// Why an embedding failed, sorted by what the caller can do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// Retry later; the request itself was valid.
    #[error("the embedder is unavailable: {0}")]
    Unavailable(String),

    /// Retry soon; too many questions are waiting already.
    #[error("the embedder is busy: too many questions are waiting")]
    Busy,

    /// Fix the installation or the configuration; retrying does not help.
    #[error("the embedder cannot be used: {0}")]
    Unusable(String),

    /// Fix the configuration; the index has vectors of another width.
    #[error("expected vectors of width {expected}, got {actual}")]
    WrongWidth {
        /// The width of the index.
        expected: usize,
        /// The width of the vector.
        actual: usize,
    },
}
