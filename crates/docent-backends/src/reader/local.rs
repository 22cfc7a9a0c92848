//! The reader built into the binary: a small cross-encoder trained for Docent (`models/reader`).
//!
//! It uses the input embeddings of the bundled embedder, so that the binary contains them only once.
//!
//! Invariant: tokens are assembled as in training (`models/reader/text.py`); a test compares them.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use docent_core::reader::{Entailment, Judgement, Passage, Reader, ReaderError};
use rten::{Model, NodeId, RunOptions, ThreadPool, Value};
use rten_tensor::Tensor;
use rten_tensor::prelude::*;
use tokenizers::Tokenizer;

use crate::embed::local::LocalEmbedder;
use crate::onnx::options;
use crate::onnx::workers::{Task, Undone, Urgency, Workers};

static MODEL: &[u8] = include_bytes!("../../../../models/reader/model.onnx");

/// The name of the model; cached answers belong to the reader that made them.
pub const BUNDLED_NAME: &str = "local/docent-reader-6";

/// Special tokens: the beginning, the end of a part, and the mark before a piece.
const BEGIN: u32 = 0;
const END: u32 = 2;
const PIECE: u32 = 50264;

/// Maximum number of tokens in total, of the question, and of the headings.
const MOST_TOKENS: usize = 384;
const MOST_OF_QUERY: usize = 96;
const MOST_OF_HEADING: usize = 48;

/// A piece is skipped if fewer tokens than this are left for it.
const LEAST_ROOM: usize = 6;

/// If more passages than this are waiting per worker (about 200 ms of work), a question is answered without
/// the reader.
const MOST_WAITING: usize = 5;

/// The bundled reader.
#[derive(Clone)]
pub struct LocalReader {
    shared: Arc<Shared>,
}

struct Shared {
    words: LocalEmbedder,
    model: Model,
    input: NodeId,
    outputs: [NodeId; 4],
}

impl LocalReader {
    /// The bundled model; loaded on first use.
    pub fn bundled() -> Result<Self, ReaderError> {
        static LOADED: OnceLock<Result<LocalReader, String>> = OnceLock::new();
        LOADED.get_or_init(Self::load).clone().map_err(ReaderError::Unusable)
    }

    fn load() -> Result<Self, String> {
        let words = LocalEmbedder::bundled().map_err(|error| error.to_string())?;
        let model = options().load_static_slice(MODEL).map_err(|error| error.to_string())?;
        let node = |name: &str| model.node_id(name).map_err(|error| error.to_string());
        let input = node("word_vectors")?;
        let outputs = [node("rank")?, node("answerable")?, node("units")?, node("support")?];
        Ok(Self { shared: Arc::new(Shared { words, model, input, outputs }) })
    }
}

/// A question and a passage as tokens.
#[derive(Debug, PartialEq, Eq)]
struct Tokens {
    ids: Vec<u32>,
    /// The positions of the marks of the pieces; skipped pieces have none.
    marks: Vec<usize>,
}

impl Tokens {
    fn of(tokenizer: &Tokenizer, query: &str, heading: &str, pieces: &[String]) -> Result<Self, String> {
        // Each part is encoded separately, because a special token would remove the white space before it.
        let encode = |text: &str| {
            let encoding = tokenizer.encode_fast(text, false).map_err(|error| error.to_string())?;
            Ok::<Vec<u32>, String>(encoding.get_ids().to_vec())
        };
        let (query, heading) = (encode(query)?, encode(&format!("{heading}\n"))?);
        let mut ids = vec![BEGIN];
        ids.extend(query.iter().take(MOST_OF_QUERY));
        ids.extend([END, END]);
        ids.extend(&heading[heading.len().saturating_sub(MOST_OF_HEADING)..]);
        let mut marks = Vec::new();
        for piece in pieces {
            let room = MOST_TOKENS - 1 - ids.len();
            if room < LEAST_ROOM {
                break;
            }
            marks.push(ids.len());
            ids.push(PIECE);
            ids.extend(encode(&format!(" {piece}"))?.iter().take(room - 1));
        }
        ids.push(END);
        Ok(Self { ids, marks })
    }
}

impl Shared {
    fn judge(
        &self,
        query: &str,
        heading: &str,
        pieces: &[String],
        pool: &Arc<ThreadPool>,
    ) -> Result<Judgement, String> {
        let Tokens { ids, marks } = Tokens::of(self.words.tokenizer(), query, heading, pieces)?;
        let vectors: Tensor<f32> = self.words.word_vectors(&ids, pool)?;
        let inputs = vec![(self.input, vectors.view().into())];
        let options = RunOptions::default().with_thread_pool(Some(pool.clone()));
        let outputs = self.model.run_n(inputs, self.outputs, Some(options));
        let outputs = outputs.map_err(|error| format!("the reader failed: {error}"))?;
        let [relevance, answers, pieces_found, support] = outputs.map(numbers);
        let (relevance, answers, places, support) = (relevance?, answers?, pieces_found?, support?);
        let judged = marks.iter().map(|mark| places.get(*mark).copied());
        let missing = std::iter::repeat_n(None, pieces.len().saturating_sub(marks.len()));
        let (Some(&relevance), Some(&answers), &[supported, contradicted, not_mentioned]) =
            (relevance.first(), answers.first(), support.as_slice())
        else {
            return Err("the reader's outputs have the wrong shape".to_owned());
        };
        Ok(Judgement {
            relevance,
            answers,
            pieces: judged.chain(missing).collect(),
            verdict: verdict([supported, contradicted, not_mentioned]),
        })
    }
}

fn numbers(value: Value) -> Result<Vec<f32>, String> {
    let tensor: Tensor<f32> =
        value.try_into().map_err(|_| "the reader's output is not a 32-bit float tensor".to_owned())?;
    let numbers = tensor.to_vec();
    if numbers.iter().all(|number| number.is_finite()) {
        Ok(numbers)
    } else {
        Err("the reader's output is not finite".to_owned())
    }
}

/// The softmax of three logits.
fn verdict(logits: [f32; 3]) -> Entailment {
    let most = logits.iter().copied().fold(f32::MIN, f32::max);
    let [supported, contradicted, not_mentioned] = logits.map(|logit| (logit - most).exp());
    let total = supported + contradicted + not_mentioned;
    Entailment {
        supported: supported / total,
        contradicted: contradicted / total,
        not_mentioned: not_mentioned / total,
    }
}

#[async_trait]
impl Reader for LocalReader {
    fn name(&self) -> &str {
        BUNDLED_NAME
    }

    async fn read(&self, query: &str, passages: &[Passage<'_>]) -> Result<Vec<Judgement>, ReaderError> {
        let task = |passage: &Passage<'_>| {
            let (shared, query, heading) = (self.shared.clone(), query.to_owned(), passage.heading.clone());
            let pieces: Vec<String> = passage.pieces.iter().map(|piece| (*piece).to_owned()).collect();
            Box::new(move |pool: &Arc<ThreadPool>| shared.judge(&query, &heading, &pieces, pool))
                as Task<Judgement>
        };
        if Workers::shared().readings_per_worker() > MOST_WAITING {
            return Err(ReaderError::Busy);
        }
        let judged = Workers::shared().run(Urgency::Reading, passages.iter().map(task).collect()).await;
        judged.map_err(|undone| match undone {
            Undone::Busy => ReaderError::Busy,
            Undone::Failed(error) => {
                tracing::warn!(
                    reader = BUNDLED_NAME,
                    error,
                    "the reader failed; keeping the order of the hits"
                );
                ReaderError::Unusable(error)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Golden {
        passage: String,
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        query: String,
        heading: String,
        units: Vec<(String, String)>,
        ids: Vec<u32>,
        marks: Vec<usize>,
        rank: f32,
        answerable: f32,
        unit_logits: Vec<f32>,
        support: [f32; 3],
    }

    fn golden() -> Golden {
        serde_json::from_str(include_str!("../../../../models/reader/golden.json")).unwrap()
    }

    #[tokio::test]
    async fn the_reader_keeps_the_contract() {
        docent_core::testing::reader_contract(&LocalReader::bundled().unwrap()).await;
    }

    #[test]
    fn a_passage_is_split_into_pieces_as_in_training() {
        let golden = golden();
        let cut: Vec<&str> = docent_core::reader::pieces(&golden.passage)
            .into_iter()
            .map(|span| &golden.passage[span])
            .collect();
        let expected: Vec<&str> = golden.cases[0].units.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(cut, expected);
    }

    #[test]
    fn tokens_match_those_of_training() {
        let words = LocalEmbedder::bundled().unwrap();
        for case in golden().cases {
            let pieces: Vec<String> = case.units.into_iter().map(|(_, text)| text).collect();
            let tokens = Tokens::of(words.tokenizer(), &case.query, &case.heading, &pieces).unwrap();
            assert_eq!(tokens, Tokens { ids: case.ids, marks: case.marks }, "{}", case.query);
        }
    }

    #[tokio::test]
    async fn judgements_match_those_of_training() {
        let reader = LocalReader::bundled().unwrap();
        for case in golden().cases {
            let pieces = case.units.iter().map(|(_, text)| text.as_str()).collect();
            let passage = Passage { heading: case.heading, pieces };
            let found = reader.read(&case.query, &[passage]).await.unwrap().remove(0);
            // The file has the outputs of the float model; this one is mostly quantized to eight bits, which
            // affects single pieces the most.
            let near = |a: f32, b: f32, gap: f32| {
                assert!((a - b).abs() < gap, "{}: {a} is not {b}", case.query);
            };
            near(found.relevance, case.rank, 0.6);
            near(found.answers, case.answerable, 0.8);
            for (found, expected) in found.pieces.iter().flatten().zip(&case.unit_logits) {
                near(*found, *expected, 1.5);
            }
            assert!((found.verdict.supported - verdict(case.support).supported).abs() < 0.15);
        }
    }
}
