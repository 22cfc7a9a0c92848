//! SEAM: the reranker, an optional external model that reorders passages.
//!
//! A reranker reads question and passage together, which is better but slower than comparing vectors. It
//! reorders the best passages of the merged ranking.
//!
//! Invariant: reranking changes the order, never the set of passages. If it fails, the merged order is kept.

use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;

use crate::fuse::Fused;

/// Scores passages for a question.
///
/// Implementations keep input order and return exactly one score per passage. They log their failures;
/// callers continue without scores.
#[async_trait]
pub trait Reranker: Send + Sync {
    /// Provider and model, such as `cohere/rerank-v3.5`.
    fn name(&self) -> &str;

    /// How well each passage answers the question, 0–1, in order.
    async fn rerank(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>, RerankError>;
}

/// Why reranking failed, sorted by what the caller can do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RerankError {
    /// Retry later; the request itself was valid.
    #[error("the reranker is unavailable: {0}")]
    Unavailable(String),

    /// Fix the installation or the configuration; retrying does not help.
    #[error("the reranker cannot be used: {0}")]
    Unusable(String),
}

/// A reranker, and how many passages it gets.
#[derive(Clone)]
pub struct Reranking {
    /// The reranker.
    pub reranker: Arc<dyn Reranker>,
    /// Number of passages to rerank.
    pub candidates: usize,
}

/// A passage at its final position.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The passage, with the score of its position.
    pub fused: Fused,
    /// Score by the reranker, 0–1; none if it did not score the passage.
    pub rerank_score: Option<f32>,
}

impl Reranking {
    /// Reorders the best passages. Scores belong to positions and are not moved, so that they still descend.
    pub async fn place(&self, query: &str, ranking: Vec<Fused>) -> Vec<Placed> {
        let judged = ranking.len().min(self.candidates);
        let texts: Vec<String> = ranking[..judged].iter().map(|hit| hit.chunk.embedded_text()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let scores = match texts.as_slice() {
            [] => return unplaced(ranking),
            texts => self.reranker.rerank(query, texts).await.unwrap_or_default(),
        };
        if scores.len() != judged || scores.iter().any(|score| !score.is_finite()) {
            return unplaced(ranking);
        }
        let mut order: Vec<usize> = (0..judged).collect();
        // The sort is stable: passages with equal scores keep their order.
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let moved = order.into_iter().zip(&ranking).map(|(from, place)| Placed {
            fused: Fused { score: place.score, ..ranking[from].clone() },
            rerank_score: Some(scores[from].clamp(0.0, 1.0)),
        });
        moved.chain(unplaced(ranking[judged..].to_vec())).collect()
    }
}

/// The ranking in its original order.
pub fn unplaced(ranking: Vec<Fused>) -> Vec<Placed> {
    ranking.into_iter().map(|fused| Placed { fused, rerank_score: None }).collect()
}
