//! Sentence models that run on this machine, among them the one built into the binary.
//!
//! Invariant: a text always has the same vector, whatever it is embedded together with.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use docent_core::embed::{EmbedError, Embedder, EmbedderId, Purpose, Vector};
use rten::ThreadPool;
use rten_tensor::Tensor;
use rten_tensor::prelude::*;
use tokenizers::{Tokenizer, TruncationParams};

use super::prefixes::Prefixes;
use super::unit_length;
use crate::onnx::workers::{Task, Undone, Urgency, Workers};
use crate::onnx::{Graph, options};

static MODEL: &[u8] = include_bytes!("../../../../models/granite/model.onnx");
static TOKENIZER: &[u8] = include_bytes!("../../../../models/granite/tokenizer.json");

/// Maximum number of tokens of a passage, including special tokens. It is the same for every model, so that
/// the passages do not depend on the embedder; and a longer passage would contain more than one answer.
pub(super) const PASSAGE_TOKENS: usize = 256;

/// Input limit of the bundled model, including special tokens.
const BUNDLED_TOKENS: usize = 512;

/// The name of the bundled model. A new model needs a new name, otherwise old indexes would be used with it.
pub const BUNDLED_NAME: &str = "local/granite-embedding-30m-english-int8";

/// A sentence model on this machine.
#[derive(Clone)]
pub struct LocalEmbedder {
    shared: Arc<Shared>,
}

/// The parts of a sentence model.
pub(super) struct Parts {
    pub(super) name: String,
    pub(super) graph: Graph,
    pub(super) tokenizer: Tokenizer,
    pub(super) pooling: Pooling,
    pub(super) prefixes: Prefixes,
    /// Its input limit in tokens.
    pub(super) most_tokens: usize,
}

/// How the vectors of the tokens are combined into the vector of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// Their mean.
    Mean,
    /// The vector of the first token (CLS).
    First,
    /// The vector of the last token.
    Last,
    /// The maximum of each dimension.
    Max,
    /// The graph already returns the vector of the text.
    Inside,
}

struct Shared {
    id: EmbedderId,
    parts: Parts,
    passage_tokens: usize,
}

impl LocalEmbedder {
    /// The bundled model; loaded on first use.
    pub fn bundled() -> Result<Self, EmbedError> {
        static LOADED: OnceLock<Result<LocalEmbedder, String>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| Self::load().map_err(|error| error.to_string()));
        loaded.clone().map_err(EmbedError::Unusable)
    }

    fn load() -> Result<Self, EmbedError> {
        let model = options().load_static_slice(MODEL).map_err(unusable)?;
        let mut tokenizer = Tokenizer::from_bytes(TOKENIZER).map_err(unusable)?;
        let truncation = TruncationParams { max_length: BUNDLED_TOKENS, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(unusable)?;
        tokenizer.with_padding(None);
        Self::new(Parts {
            name: BUNDLED_NAME.to_owned(),
            graph: Graph::new(model, &["embedding"]).map_err(unusable)?,
            tokenizer,
            pooling: Pooling::Inside,
            prefixes: Prefixes::default(),
            most_tokens: BUNDLED_TOKENS,
        })
    }

    pub(super) fn new(parts: Parts) -> Result<Self, EmbedError> {
        let id = EmbedderId { name: parts.name.clone(), width: 0 };
        let mut shared = Shared { id, parts, passage_tokens: 0 };
        // The prefix takes up part of the input limit.
        let prefix = shared.count_tokens(&shared.parts.prefixes.passage);
        shared.passage_tokens = shared.parts.most_tokens.saturating_sub(prefix).min(PASSAGE_TOKENS);
        let width = shared
            .embed_one("width", &Arc::new(ThreadPool::with_num_threads(1)))
            .map_err(EmbedError::Unusable)?;
        shared.id.width = width.len();
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Embeds the texts without prefixes and blocks the calling thread; [`Embedder::embed`] adds prefixes and
    /// is asynchronous.
    pub fn embed_now(&self, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        let done = Workers::shared().run_now(Urgency::Passage, self.tasks(texts));
        done.map_err(undone)
    }

    /// The model's tokenizer.
    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.shared.parts.tokenizer
    }

    /// The input embeddings of these tokens. Only the graph of the bundled model exposes them.
    pub(crate) fn word_vectors(&self, ids: &[u32], pool: &Arc<ThreadPool>) -> Result<Tensor<f32>, String> {
        self.shared.parts.graph.value("word_vectors", ids, pool)
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
        unit_length(vector).ok_or_else(|| "the model returned a zero or non-finite vector".to_owned())
    }

    /// Whether a word is common: common words, and both halves of common compounds, have their own tokens.
    /// This requires a vocabulary that marks the start of words, as in byte-level BPE; with others, all words
    /// count as common.
    fn is_common_word(&self, word: &str) -> bool {
        !self.marks_words()
            || self.is_regular(word)
            || self.is_compound(word)
            || (word.len() >= LEAST_TYPO && one_edit_away(word).any(|other| self.token(&other).is_some()))
    }

    /// Whether the vocabulary marks the start of words.
    fn marks_words(&self) -> bool {
        self.token("the").is_some()
    }

    /// The token of a whole word. Common words have lower numbers.
    fn token(&self, word: &str) -> Option<u32> {
        self.parts.tokenizer.token_to_id(&format!("{WORD_START}{word}"))
    }

    /// Whether a word is common and spelled right.
    fn is_regular(&self, word: &str) -> bool {
        let has_token = |word: &str| self.token(word).is_some();
        let singular = word.strip_suffix('s').unwrap_or(word);
        has_token(word) || has_token(singular) || bases(word).any(|base| has_token(&base))
    }

    /// Whether a word is made of two common ones. "Everthing" is, too.
    fn is_compound(&self, word: &str) -> bool {
        let singular = word.strip_suffix('s').unwrap_or(word);
        singular.char_indices().any(|(at, _)| {
            let (left, right) = singular.split_at(at);
            let is_long_enough = at >= LEAST_HALF && right.len() >= LEAST_HALF;
            is_long_enough && self.token(left).is_some() && self.token(right).is_some()
        })
    }

    fn similar_words(&self, word: &str) -> Option<Vec<String>> {
        if !self.marks_words() || self.is_regular(word) {
            return None;
        }
        let mut found: Vec<(u32, String)> =
            one_edit_away(word).filter_map(|other| Some((self.token(&other)?, other))).collect();
        found.sort_unstable();
        found.dedup();
        Some(found.into_iter().map(|(_, word)| word).collect())
    }

    fn count_tokens(&self, text: &str) -> usize {
        // Truncated tokens count, too.
        let without_cut = self.parts.tokenizer.encode_fast(text, false);
        without_cut.map_or(0, |encoding| {
            encoding.len() + encoding.get_overflowing().iter().map(tokenizers::Encoding::len).sum::<usize>()
        })
    }
}

/// The mark of a token at the start of a word in a byte-level vocabulary.
const WORD_START: char = 'Ġ';

/// Minimum length of each half of a compound.
const LEAST_HALF: usize = 3;

/// Minimum length for typo detection; shorter unknown words are usually names.
const LEAST_TYPO: usize = 8;

/// The English words that `word` may be a form of: `topples` of `topple`, `unplugged` of `plug`.
fn bases(word: &str) -> impl Iterator<Item = String> + '_ {
    const ENDINGS: [(&str, &str); 12] = [
        ("s", ""),
        ("es", ""),
        ("ed", ""),
        ("ed", "e"),
        ("ing", ""),
        ("ing", "e"),
        ("er", ""),
        ("er", "e"),
        ("ers", ""),
        ("ly", ""),
        ("ies", "y"),
        ("d", ""),
    ];
    let rest = ["un", "re", ""].into_iter().filter_map(|prefix| word.strip_prefix(prefix));
    rest.flat_map(|word| {
        let forms = ENDINGS
            .iter()
            .filter_map(|(ending, instead)| Some(format!("{}{instead}", word.strip_suffix(ending)?)));
        forms
            .flat_map(|base| {
                // `plugged` doubles the last letter of `plug`.
                let mut letters = base.chars().rev();
                let doubled = letters.next() == letters.next();
                let single = doubled.then(|| {
                    base[..base.len() - base.chars().next_back().map_or(0, char::len_utf8)].to_owned()
                });
                std::iter::once(base).chain(single)
            })
            .chain(std::iter::once(word.to_owned()))
            .filter(|base| base.len() >= LEAST_HALF)
            .collect::<Vec<_>>()
    })
}

/// All words at edit distance one: a letter added, removed, replaced, or swapped with its neighbor.
fn one_edit_away(word: &str) -> impl Iterator<Item = String> + '_ {
    let letters: Vec<char> = word.chars().collect();
    (0..=letters.len()).flat_map(move |at| {
        let put = |middle: &[char], rest: usize| {
            letters[..at]
                .iter()
                .chain(middle)
                .chain(letters.get(rest..).unwrap_or_default())
                .collect::<String>()
        };
        let mut others = vec![put(&[], at + 1)];
        if let [one, other, ..] = letters[at..] {
            others.push(put(&[other, one], at + 2));
        }
        for letter in 'a'..='z' {
            others.push(put(&[letter], at));
            others.push(put(&[letter], at + 1));
        }
        others
    })
}

/// The vector of a text: the output itself if it is one, otherwise the pooled vectors of its tokens.
fn pooled(output: &Tensor<f32>, pooling: Pooling) -> Result<Vector, String> {
    let (tokens, width) = match (output.shape(), pooling) {
        ([1, _], _) => return Ok(output.to_vec()),
        ([1, tokens, width], pooling) if *tokens > 0 && pooling != Pooling::Inside => (*tokens, *width),
        (shape, _) => {
            return Err(format!("the model's output has the shape {shape:?}, which is not an embedding"));
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
        // The result is normalized, so a sum is as good as a mean.
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
        // Large enough to keep all workers busy, small enough to lose little in a crash.
        16 * Workers::shared().count()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.shared.count_tokens(text)
    }

    fn is_common_word(&self, word: &str) -> bool {
        self.shared.is_common_word(word)
    }

    fn similar_words(&self, word: &str) -> Option<Vec<String>> {
        self.shared.similar_words(word)
    }

    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Vector>, EmbedError> {
        let prefix = self.shared.parts.prefixes.of(purpose);
        let texts = texts.iter().map(|text| format!("{prefix}{text}")).collect();
        let urgency = match purpose {
            Purpose::Query | Purpose::Sentence => Urgency::Question,
            Purpose::Passage => Urgency::Passage,
        };
        let done = Workers::shared().run(urgency, self.tasks(texts)).await;
        done.map_err(undone)
    }
}

fn undone(undone: Undone) -> EmbedError {
    match undone {
        Undone::Busy => EmbedError::Busy,
        Undone::Failed(why) => EmbedError::Unusable(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cosine(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn vectors_have_unit_length_and_reflect_meaning() {
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
    fn a_vector_does_not_depend_on_other_texts_in_the_batch() {
        let embedder = LocalEmbedder::bundled().unwrap();
        let long = "A much longer text that would need padding. ".repeat(20);
        let together = embedder.embed_now(&["short", &long, "other"]).unwrap();
        assert_eq!(together[0], embedder.embed_now(&["short"]).unwrap()[0]);
        assert_eq!(together[1], embedder.embed_now(&[&long]).unwrap()[0]);
    }

    #[test]
    fn common_words_are_distinguished_from_names() {
        let embedder = LocalEmbedder::bundled().unwrap();
        for word in ["glue", "students", "flowcharts", "everthing", "recompiled", "unplugged", "squashes"] {
            assert!(embedder.is_common_word(word), "{word}");
        }
        for word in ["webots", "conda", "tokio", "esp32"] {
            assert!(!embedder.is_common_word(word), "{word}");
        }
    }

    #[test]
    fn misspelled_words_are_similar_to_common_ones() {
        let embedder = LocalEmbedder::bundled().unwrap();
        for (word, right) in
            [("lenght", "length"), ("recomended", "recommended"), ("everthing", "everything")]
        {
            assert_eq!(embedder.similar_words(word).unwrap().first().unwrap(), right);
        }
        for word in ["length", "students", "recompiled"] {
            assert_eq!(embedder.similar_words(word), None, "{word}");
        }
    }

    #[test]
    fn tokens_beyond_the_limit_are_counted() {
        let embedder = LocalEmbedder::bundled().unwrap();
        assert_eq!(embedder.count_tokens("a node"), 2);
        assert_eq!(embedder.count_tokens(" node".repeat(1000).trim_start()), 1000);
    }
}
