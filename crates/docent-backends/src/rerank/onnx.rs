//! Cross-encoders in a folder: models that read question and passage as one text.
//!
//! Invariant: a score is a probability: the sigmoid of the output for models with one output, or the softmax
//! of the second output ("yes") for models with two.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use docent_core::rerank::{RerankError, Reranker};
use rten::ThreadPool;
use rten_tensor::prelude::*;
use tokenizers::Tokenizer;

use crate::onnx::Graph;
use crate::onnx::folder::Folder;
use crate::onnx::workers::{Task, Urgency, Workers};

/// A cross-encoder on this machine.
#[derive(Clone)]
pub struct OnnxReranker {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    tokenizer: Tokenizer,
    graph: Graph,
}

impl OnnxReranker {
    /// Loads a model from a folder: `model.onnx` or `onnx/model.onnx`, and `tokenizer.json`.
    pub fn from_folder(folder: &Path) -> Result<Self, RerankError> {
        Self::read(folder).map_err(RerankError::Unusable)
    }

    fn read(folder: &Path) -> Result<Self, String> {
        let folder = Folder::open(folder)?;
        let (tokenizer, _, _) = folder.tokenizer()?;
        let (model, _) = folder.graph()?;
        let shared = Shared {
            name: format!("onnx/{}", folder.name()),
            tokenizer,
            graph: Graph::new(model, &["logits"])?,
        };
        // Detect a model of the wrong kind now, not with the first question.
        shared.score("question", "passage", &Arc::new(ThreadPool::with_num_threads(1)))?;
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl Shared {
    fn score(&self, query: &str, passage: &str, pool: &Arc<ThreadPool>) -> Result<f32, String> {
        let encoding =
            self.tokenizer.encode_fast((query, passage), true).map_err(|error| error.to_string())?;
        let logits = self.graph.run(&encoding, pool)?;
        let score = match (logits.shape(), logits.to_vec().as_slice()) {
            ([1] | [1, 1], [yes]) => sigmoid(*yes),
            // The softmax of two values is the sigmoid of their difference.
            ([1, 2], [no, yes]) => sigmoid(yes - no),
            (shape, _) => {
                return Err(format!(
                    "the model's output has the shape {shape:?}; a cross-encoder returns one or two numbers"
                ));
            }
        };
        if score.is_nan() { Err("the model returned NaN".to_owned()) } else { Ok(score) }
    }
}

fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}

#[async_trait]
impl Reranker for OnnxReranker {
    fn name(&self) -> &str {
        &self.shared.name
    }

    async fn rerank(&self, query: &str, passages: &[&str]) -> Result<Vec<f32>, RerankError> {
        let task = |passage: &&str| {
            let (shared, query, passage) = (self.shared.clone(), query.to_owned(), (*passage).to_owned());
            Box::new(move |pool: &Arc<ThreadPool>| shared.score(&query, &passage, pool)) as Task<f32>
        };
        let judged = Workers::shared().run(Urgency::Question, passages.iter().map(task).collect()).await;
        judged.map_err(|error| {
            tracing::warn!(reranker = self.shared.name, %error, "reranking failed; keeping the original order");
            RerankError::Unusable(error.to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::fixture::Made;

    fn read(graph: &str) -> Result<OnnxReranker, String> {
        OnnxReranker::from_folder(&Made::new("judge", graph).path()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_cross_encoder_keeps_the_contract() {
        for graph in ["cross_encoder.onnx", "two_labels.onnx"] {
            let reranker = read(graph).unwrap();
            assert_eq!(reranker.name(), "onnx/judge");
            docent_core::testing::reranker_contract(&reranker).await;
        }
    }

    #[tokio::test]
    async fn a_score_is_the_probability_of_yes() {
        for graph in ["cross_encoder.onnx", "two_labels.onnx"] {
            // The test model's logit is the number of shared words minus two, here 1.
            let scores = read(graph).unwrap().rerank("a node is", &["a node is", "is a node"]).await.unwrap();
            assert!(scores.iter().all(|score| (score - 0.731_058_6).abs() < 1e-5), "{graph}: {scores:?}");
        }
    }

    #[test]
    fn other_kinds_of_models_are_rejected() {
        assert!(read("tokens.onnx").err().unwrap().contains("a cross-encoder returns one or two numbers"));
        assert!(read("unknown_operator.onnx").err().unwrap().contains("cannot be run here"));
    }
}
