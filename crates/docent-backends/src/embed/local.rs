//! A sentence model on this machine; the one inside the binary.
//!
//! Invariant: the same text gives the same vector, whatever it is embedded together with.

use std::sync::Arc;

use async_trait::async_trait;
use docent_core::embed::{EmbedError, Embedder, EmbedderId, Purpose, Vector};
use rten::ThreadPool;
use rten_tensor::Tensor;
use rten_tensor::prelude::*;
use tokenizers::{Tokenizer, TruncationParams};

use super::prefixes::Prefixes;
use super::unit_length;
use crate::onnx::workers::{Task, Urgency, Workers};
use crate::onnx::{Graph, options};

static MODEL: &[u8] = include_bytes!("../../../../models/minilm/model.onnx");
static TOKENIZER: &[u8] = include_bytes!("../../../../models/minilm/tokenizer.json");

/// What the bundled model reads at most, marks included. Passages are cut by it for other
/// models too: the same words are found and cited whoever embeds them.
pub(super) const PASSAGE_TOKENS: usize = 256;

/// Names the bundled model; a new model needs a new name, or old indexes would be trusted.
const BUNDLED_NAME: &str = "local/all-MiniLM-L6-v2-int8";

/// A sentence model on this machine.
#[derive(Clone)]
pub struct LocalEmbedder {
    shared: Arc<Shared>,
}

/// What a sentence model is made of.
pub(super) struct Parts {
    pub(super) name: String,
    pub(super) graph: Graph,
    pub(super) tokenizer: Tokenizer,
    pub(super) pooling: Pooling,
    pub(super) prefixes: Prefixes,
    /// The longest text it reads.
    pub(super) most_tokens: usize,
}

/// How the vectors of a text's tokens become the vector of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// Their mean.
    Mean,
    /// The first token's, which stands for the text.
    First,
    /// The last token's.
    Last,
    /// The greatest of each number.
    Max,
    /// The graph does it.
    Inside,
}

struct Shared {
    id: EmbedderId,
    parts: Parts,
    passage_tokens: usize,
}

impl LocalEmbedder {
    /// The model that comes with the program.
    pub fn bundled() -> Result<Self, EmbedError> {
        let model = options().load_static_slice(MODEL).map_err(unusable)?;
        let mut tokenizer = Tokenizer::from_bytes(TOKENIZER).map_err(unusable)?;
        let truncation = TruncationParams { max_length: PASSAGE_TOKENS, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(unusable)?;
        tokenizer.with_padding(None);
        Self::new(Parts {
            name: BUNDLED_NAME.to_owned(),
            graph: Graph::new(model, &["embedding"]).map_err(unusable)?,
            tokenizer,
            pooling: Pooling::Inside,
            prefixes: Prefixes::default(),
            most_tokens: PASSAGE_TOKENS,
        })
    }

    pub(super) fn new(parts: Parts) -> Result<Self, EmbedError> {
        let id = EmbedderId { name: parts.name.clone(), width: 0 };
        let mut shared = Shared { id, parts, passage_tokens: 0 };
        // What stands before a passage takes room from it.
        let prefix = shared.count_tokens(&shared.parts.prefixes.passage);
        shared.passage_tokens = shared.parts.most_tokens.saturating_sub(prefix).min(PASSAGE_TOKENS);
        let width = shared
            .embed_one("width", &Arc::new(ThreadPool::with_num_threads(1)))
            .map_err(EmbedError::Unusable)?;
        shared.id.width = width.len();
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Embeds on the calling thread's time and as the texts are, without prefixes;
    /// [`Embedder::embed`] adds them and waits without a thread.
    pub fn embed_now(&self, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        let done = Workers::shared().run_now(Urgency::Passage, self.tasks(texts));
        done.map_err(EmbedError::Unusable)
    }

    fn tasks(&self, texts: Vec<String>) -> Vec<Task<Vector>> {
        let task = |text: String| {
            let shared = self.shared.clone();
            Box::new(move |pool: &Arc<ThreadPool>| shared.embed_one(&text, pool)) as Task<Vector>
        };
        texts.into_iter().map(task).collect()
    }
}

pub(super) fn unusable(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Unusable(error.to_string())
}

impl Shared {
    fn embed_one(&self, text: &str, pool: &Arc<ThreadPool>) -> Result<Vector, String> {
        let encoding = self.parts.tokenizer.encode_fast(text, true).map_err(|error| error.to_string())?;
        let output = self.parts.graph.run(&encoding, pool)?;
        let vector = pooled(&output, self.parts.pooling)?;
        unit_length(vector).ok_or_else(|| "the model made a vector that points nowhere".to_owned())
    }

    fn count_tokens(&self, text: &str) -> usize {
        // Counting must see the whole text, so it goes around the truncation.
        let without_cut = self.parts.tokenizer.encode_fast(text, false);
        without_cut.map_or(0, |encoding| {
            encoding.len() + encoding.get_overflowing().iter().map(tokenizers::Encoding::len).sum::<usize>()
        })
    }
}

/// The vector of a text: the output itself if it is one, or what its tokens' become.
fn pooled(output: &Tensor<f32>, pooling: Pooling) -> Result<Vector, String> {
    let (tokens, width) = match (output.shape(), pooling) {
        ([1, _], _) => return Ok(output.to_vec()),
        ([1, tokens, width], pooling) if *tokens > 0 && pooling != Pooling::Inside => (*tokens, *width),
        (shape, _) => {
            return Err(format!("the model's output has the shape {shape:?}, which is no embedding"));
        }
    };
    let values = output.to_vec();
    let mut rows = values.chunks_exact(width.max(1));
    let fold = |start: Vector, with: fn(f32, f32) -> f32| {
        values.chunks_exact(width.max(1)).fold(start, |sum, row| {
            sum.into_iter().zip(row).map(|(so_far, value)| with(so_far, *value)).collect()
        })
    };
    Ok(match pooling {
        Pooling::First => rows.next().unwrap_or_default().to_vec(),
        Pooling::Last => rows.nth(tokens - 1).unwrap_or_default().to_vec(),
        Pooling::Max => fold(vec![f32::MIN; width], f32::max),
        // Of unit length a sum is as good as a mean.
        Pooling::Mean | Pooling::Inside => fold(vec![0.0; width], |sum, value| sum + value),
    })
}

#[async_trait]
impl Embedder for LocalEmbedder {
    fn id(&self) -> &EmbedderId {
        &self.shared.id
    }

    fn max_tokens(&self) -> usize {
        self.shared.passage_tokens
    }

    fn batch_size(&self) -> usize {
        // Enough for the workers to even out, few enough to lose little in a crash.
        16 * Workers::shared().count()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.shared.count_tokens(text)
    }

    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vector>, EmbedError> {
        let prefix = self.shared.parts.prefixes.of(purpose);
        let texts = texts.iter().map(|text| format!("{prefix}{text}")).collect();
        let urgency = match purpose {
            Purpose::Query => Urgency::Question,
            Purpose::Passage => Urgency::Passage,
        };
        let done = Workers::shared().run(urgency, self.tasks(texts)).await;
        done.map_err(EmbedError::Unusable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cosine(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn vectors_have_unit_length_and_mean_something() {
        let embedder = LocalEmbedder::bundled().unwrap();
        let texts = [
            "What is a ROS 2 node?",
            "A node is a process in the ROS graph.",
            "Boil the pasta for ten minutes.",
        ];
        let vectors = embedder.embed_now(&texts).unwrap();
        for vector in &vectors {
            assert_eq!(vector.len(), 384);
            assert!((cosine(vector, vector) - 1.0).abs() < 1e-4);
        }
        assert!(cosine(&vectors[0], &vectors[1]) > cosine(&vectors[0], &vectors[2]) + 0.3);
    }

    #[test]
    fn a_vector_does_not_depend_on_its_company() {
        let embedder = LocalEmbedder::bundled().unwrap();
        let long = "A much longer text that would need padding. ".repeat(20);
        let together = embedder.embed_now(&["short", &long, "other"]).unwrap();
        assert_eq!(together[0], embedder.embed_now(&["short"]).unwrap()[0]);
        assert_eq!(together[1], embedder.embed_now(&[&long]).unwrap()[0]);
    }

    #[test]
    fn tokens_are_counted_past_the_limit() {
        let embedder = LocalEmbedder::bundled().unwrap();
        assert_eq!(embedder.count_tokens("a node"), 2);
        assert_eq!(embedder.count_tokens(&"node ".repeat(1000)), 1000);
    }
}
