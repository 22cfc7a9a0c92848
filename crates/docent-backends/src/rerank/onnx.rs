//! Any cross-encoder in a folder: a model that reads question and passage as one text.
//!
//! Invariant: a score is a probability. Models with one output are read through a sigmoid,
//! models with two through a softmax whose second is "yes".

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
    /// The model in a folder: `model.onnx` or `onnx/model.onnx`, and `tokenizer.json`.
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
        // A model of the wrong kind is noticed here, not by the first reader.
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
            // A softmax of two is a sigmoid of their difference.
            ([1, 2], [no, yes]) => sigmoid(yes - no),
            (shape, _) => {
                return Err(format!(
                    "the model's output has the shape {shape:?}; a cross-encoder gives one or two numbers"
                ));
            }
        };
        if score.is_nan() { Err("the model gave no number".to_owned()) } else { Ok(score) }
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
            tracing::warn!(reranker = self.shared.name, error, "not reranked: the order stays as it was");
            RerankError::Unusable(error)
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
            // Both share three words with the question, less two: a logit of 1.
            let scores = read(graph).unwrap().rerank("a node is", &["a node is", "is a node"]).await.unwrap();
            assert!(scores.iter().all(|score| (score - 0.731_058_6).abs() < 1e-5), "{graph}: {scores:?}");
        }
    }

    #[test]
    fn a_model_of_another_kind_is_refused() {
        assert!(read("tokens.onnx").err().unwrap().contains("a cross-encoder gives one or two numbers"));
        assert!(read("unknown_operator.onnx").err().unwrap().contains("cannot be run here"));
    }
}
