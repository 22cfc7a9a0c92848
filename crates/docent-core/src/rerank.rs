//! SEAM: a question and passages in, how well each answers it out.
//!
//! A reranker reads question and passage together, which is better and slower than comparing
//! vectors. It sees the best of the fused ranking and puts them in its own order.
//!
//! Invariant: reranking changes places, never what was found; without a judgement the fused
//! order stands.

use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;

use crate::fuse::Fused;

/// Judges passages for a question. One call is one question.
///
/// Implementations keep input order and return exactly one score per passage. They log
/// their failures: whoever asks goes on without them.
#[async_trait]
pub trait Reranker: Send + Sync {
    /// The provider and the model: `cohere/rerank-v3.5`.
    fn name(&self) -> &str;

    /// How well each passage answers the question, 0–1, in order.
    async fn rerank(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>, RerankError>;
}

/// Why there is no judgement, sorted by what the caller can do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RerankError {
    /// Try again later; the request itself was fine.
    #[error("the reranker is unavailable: {0}")]
    Unavailable(String),

    /// Fix the installation or the configuration; trying again will not help.
    #[error("the reranker cannot be used: {0}")]
    Unusable(String),
}

/// A reranker and how much it is given.
#[derive(Clone)]
pub struct Reranking {
    /// Who judges.
    pub reranker: Arc<dyn Reranker>,
    /// How many of the best it sees.
    pub candidates: usize,
}

/// A passage in its final place.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The passage, with the score of its place.
    pub fused: Fused,
    /// What the reranker says of it; none if it was not asked or did not answer.
    pub rerank_score: Option<f32>,
}

impl Reranking {
    /// The ranking with its best in the reranker's order. The scores stay where they are:
    /// they tell places apart, and descend.
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
        // Stable: of equals, the one that was before stays before.
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let moved = order.into_iter().zip(&ranking).map(|(from, place)| Placed {
            fused: Fused { chunk: ranking[from].chunk.clone(), score: place.score },
            rerank_score: Some(scores[from].clamp(0.0, 1.0)),
        });
        moved.chain(unplaced(ranking[judged..].to_vec())).collect()
    }
}

/// The ranking as it is.
pub fn unplaced(ranking: Vec<Fused>) -> Vec<Placed> {
    ranking.into_iter().map(|fused| Placed { fused, rerank_score: None }).collect()
}
