//! The embedder inside the binary: a sentence model in ONNX, run by `rten` on this machine.
//!
//! One text per worker, one worker per core: on the machines measured this beats batches,
//! which waste work on padding (`docs/performance.md`).
//!
//! Invariant: the same text gives the same vector, whatever it is embedded together with.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use docent_core::embed::{EmbedError, Embedder, EmbedderId, Purpose, Vector};
use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};
use tokenizers::{Tokenizer, TruncationParams};

static MODEL: &[u8] = include_bytes!("../../../../models/minilm/model.onnx");
static TOKENIZER: &[u8] = include_bytes!("../../../../models/minilm/tokenizer.json");

/// What the bundled model reads at most, marks included.
const MAX_TOKENS: usize = 256;

/// Names the bundled model; a new model needs a new name, or old indexes would be trusted.
const BUNDLED_NAME: &str = "local/all-MiniLM-L6-v2-int8";

/// A sentence model on this machine.
#[derive(Clone)]
pub struct LocalEmbedder {
    shared: Arc<Shared>,
}

struct Shared {
    id: EmbedderId,
    tokenizer: Tokenizer,
    model: Model,
    input_ids: NodeId,
    attention_mask: NodeId,
    output: NodeId,
    /// One thread a pool, one pool a core: workers that shared the runtime's pool would
    /// wait for one another.
    pools: Vec<Arc<ThreadPool>>,
    last_pool: AtomicUsize,
}

impl LocalEmbedder {
    /// The model that comes with the program.
    pub fn bundled() -> Result<Self, EmbedError> {
        let model = options().load_static_slice(MODEL).map_err(unusable)?;
        let tokenizer = Tokenizer::from_bytes(TOKENIZER).map_err(unusable)?;
        Self::new(BUNDLED_NAME.to_owned(), model, tokenizer)
    }

    /// A model of the same shape in a folder: `model.onnx` and `tokenizer.json`.
    pub fn from_folder(folder: &Path) -> Result<Self, EmbedError> {
        let file = |name: &str| {
            let path = folder.join(name);
            std::fs::read(&path).map_err(|error| EmbedError::Unusable(format!("{}: {error}", path.display())))
        };
        let bytes = file("model.onnx")?;
        // The contents name the model: replacing the file must not pass for the same vectors.
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = format!("onnx/{name}-{:016x}", xxhash_rust::xxh3::xxh3_64(&bytes));
        let model = options().load(bytes).map_err(unusable)?;
        let tokenizer = Tokenizer::from_bytes(file("tokenizer.json")?).map_err(unusable)?;
        Self::new(name, model, tokenizer)
    }

    fn new(name: String, model: Model, mut tokenizer: Tokenizer) -> Result<Self, EmbedError> {
        let truncation = TruncationParams { max_length: MAX_TOKENS, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(unusable)?;
        tokenizer.with_padding(None);
        let node = |name: &str| model.node_id(name).map_err(unusable);
        let (input_ids, attention_mask, output) =
            (node("input_ids")?, node("attention_mask")?, node("embedding")?);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let pools = (0..cores).map(|_| Arc::new(ThreadPool::with_num_threads(1))).collect();
        let mut shared = Shared {
            id: EmbedderId { name, width: 0 },
            tokenizer,
            model,
            input_ids,
            attention_mask,
            output,
            pools,
            last_pool: AtomicUsize::new(0),
        };
        shared.id.width = shared.embed_one("width", shared.any_pool())?.len();
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Embeds on the calling thread's time; [`Embedder::embed`] moves this off the runtime.
    pub fn embed_now(&self, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        if let [text] = texts {
            return Ok(vec![self.shared.embed_one(text, self.shared.any_pool())?]);
        }
        // Long texts first: the last worker to finish then holds a short one.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|&number| std::cmp::Reverse(texts[number].len()));
        let next = AtomicUsize::new(0);
        let work = |pool: &Arc<ThreadPool>| -> Result<Vec<(usize, Vector)>, EmbedError> {
            let mut vectors = Vec::new();
            while let Some(&number) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                vectors.push((number, self.shared.embed_one(texts[number], pool)?));
            }
            Ok(vectors)
        };
        let mut vectors = std::thread::scope(|scope| {
            let workers: Vec<_> = self.shared.pools.iter().map(|pool| scope.spawn(|| work(pool))).collect();
            let results = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| Err(panicked())));
            results.collect::<Result<Vec<_>, _>>()
        })?
        .concat();
        vectors.sort_by_key(|(number, _)| *number);
        Ok(vectors.into_iter().map(|(_, vector)| vector).collect())
    }
}

fn panicked() -> EmbedError {
    EmbedError::Unusable("the model failed on a text".to_owned())
}

fn options() -> ModelOptions {
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(true);
    options
}

fn unusable(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Unusable(error.to_string())
}

impl Shared {
    /// Callers that come one by one take turns.
    fn any_pool(&self) -> &Arc<ThreadPool> {
        &self.pools[self.last_pool.fetch_add(1, Ordering::Relaxed) % self.pools.len()]
    }

    fn embed_one(&self, text: &str, pool: &Arc<ThreadPool>) -> Result<Vector, EmbedError> {
        let encoding = self.tokenizer.encode_fast(text, true).map_err(unusable)?;
        let ids: Vec<i32> = encoding.get_ids().iter().map(|&id| id as i32).collect();
        let length = ids.len();
        let ids = NdTensor::from_data([1, length], ids);
        let mask = NdTensor::from_data([1, length], vec![1i32; length]);
        let options = RunOptions::default().with_thread_pool(Some(pool.clone()));
        let [output] = self
            .model
            .run_n(
                vec![(self.input_ids, ids.view().into()), (self.attention_mask, mask.view().into())],
                [self.output],
                Some(options),
            )
            .map_err(unusable)?;
        let output: Tensor<f32> = output.try_into().map_err(unusable)?;
        Ok(output.to_vec())
    }
}

#[async_trait]
impl Embedder for LocalEmbedder {
    fn id(&self) -> &EmbedderId {
        &self.shared.id
    }

    fn max_tokens(&self) -> usize {
        MAX_TOKENS
    }

    fn batch_size(&self) -> usize {
        // Enough for the workers to even out, few enough to lose little in a crash.
        16 * self.shared.pools.len()
    }

    fn count_tokens(&self, text: &str) -> usize {
        // Counting must see the whole text, so it goes around the truncation.
        let without_cut = self.shared.tokenizer.encode_fast(text, false);
        without_cut.map_or(0, |encoding| {
            encoding.len() + encoding.get_overflowing().iter().map(tokenizers::Encoding::len).sum::<usize>()
        })
    }

    async fn embed(&self, texts: &[&str], _purpose: Purpose) -> Result<Vec<Vector>, EmbedError> {
        let embedder = self.clone();
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        tokio::task::spawn_blocking(move || {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            embedder.embed_now(&texts)
        })
        .await
        .map_err(unusable)?
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

    #[test]
    fn a_folder_without_a_model_is_a_clear_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = LocalEmbedder::from_folder(folder.path()).err().unwrap().to_string();
        assert!(error.contains("model.onnx"), "{error}");
    }
}
