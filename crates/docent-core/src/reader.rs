//! SEAM: the reader, a model that reads a question or a claim together with passages.
//!
//! Retrieval compares separate vectors of question and passage. A reader sees both at once and judges how
//! relevant a passage is, whether it answers, which piece of it answers, and whether it supports a claim.
//!
//! Invariant: there is one judgement per passage, in order, and one number per piece. Docent also works
//! without a reader.

mod pieces;

use async_trait::async_trait;
use thiserror::Error;

pub use pieces::pieces;

/// A passage as the reader gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage<'a> {
    /// The page title and the headings above the passage.
    pub heading: String,
    /// Sentences, list items, table rows and code blocks of the passage, in order.
    pub pieces: Vec<&'a str>,
}

/// The judgement of one passage. All numbers are logits: above 0 means a probability above 50 %.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// How relevant the passage is; only comparable within one question.
    pub relevance: f32,
    /// Whether the passage answers the question.
    pub answers: f32,
    /// Whether each piece answers the question; none for pieces that did not fit into the model's input.
    pub pieces: Vec<Option<f32>>,
    /// Whether the passage supports a claim.
    pub verdict: Entailment,
}

/// Probabilities that a passage supports a claim, contradicts it or does not mention it; they add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entailment {
    /// The passage supports the claim.
    pub supported: f32,
    /// The passage contradicts the claim.
    pub contradicted: f32,
    /// The passage does not mention the claim.
    pub not_mentioned: f32,
}

/// Judges passages for a question or a claim.
///
/// Implementations log their failures; callers continue without a judgement.
#[async_trait]
pub trait Reader: Send + Sync {
    /// Name of the model, such as `local/docent-reader-6`.
    fn name(&self) -> &str;

    /// Judges each passage for the question or claim, in order.
    async fn read(&self, query: &str, passages: &[Passage<'_>]) -> Result<Vec<Judgement>, ReaderError>;
}

/// Why a reader could not judge.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReaderError {
    /// Too many requests are waiting; continue without the reader.
    #[error("the reader is busy")]
    Busy,

    /// The model cannot run.
    #[error("the reader cannot be used: {0}")]
    Unusable(String),
}
