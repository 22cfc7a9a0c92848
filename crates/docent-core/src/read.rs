//! Estimate which statements of the retrieved passages answer the question.
//!
//! Retrieval compares a question with whole passages. Here, each statement is scored by [`Signals`]: the
//! words it shares with the question, the words of its heading and neighbors, its form and the kind of
//! question. A linear model with a softmax over all statements turns them into probabilities.
//! `read/weights.json` contains the weights, the questions they were fitted on and the command that fits
//! them.
//!
//! Invariant: the probabilities of all statements of a question add up to 1. They do not depend on the scale
//! of the embedder's scores.

pub mod fit;
mod signals;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

pub use signals::{SIGNALS, Signals};

use crate::chunk::Chunk;
use crate::definition::Term;
use crate::fuse::Fused;
use crate::question_kind::QuestionKind;
use crate::reader::Judgement;
use crate::statement::{StatementKind, statements};
use crate::terms::Analyzer;

/// Number of passages whose statements are scored.
pub const PASSAGES_READ: usize = 20;

/// A scored statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// Index of the passage.
    pub passage: usize,
    /// Position in the passage, in bytes.
    pub span: Range<usize>,
    /// The kind of statement.
    pub kind: StatementKind,
    /// Where the list, table or code after its lead-in begins, in bytes.
    pub block: usize,
    /// The signals of the statement.
    pub signals: Signals,
    /// If the user asked several questions at once: which of them it was scored for, from 0.
    pub part: usize,
    /// Whether it is code that was cut at the boundary of its passage.
    pub is_fragment: bool,
    /// Score, only comparable within one question.
    pub score: f32,
    /// Estimated probability that it answers the question.
    pub chance: f32,
}

/// The weights of the model, and how they were fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// The questions the weights were fitted on.
    pub fitted_on: String,
    /// The command that fits the weights.
    pub command: String,
    /// Weight of each signal, by name.
    pub weights: std::collections::BTreeMap<String, f32>,
    /// The weights used when the reader judged passages.
    pub with_reader: WithReader,
}

/// The weights used when the reader judged passages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WithReader {
    /// The questions the weights were fitted on. The reader must not have been trained on them.
    pub fitted_on: String,
    /// Weight of the score by signals.
    pub signals: f32,
    /// Weight of the best piece of the statement.
    pub piece: f32,
    /// Weight of the relevance of the passage.
    pub relevance: f32,
}

struct Shipped {
    signals: [f32; SIGNALS],
    with_reader: WithReader,
}

static SHIPPED: LazyLock<Shipped> = LazyLock::new(|| {
    let weights = Weights::shipped();
    Shipped {
        signals: Signals::NAMES.map(|name| weights.weights.get(name).copied().unwrap_or_default()),
        with_reader: weights.with_reader,
    }
});

impl Weights {
    /// The weights shipped with Docent.
    pub fn shipped() -> Self {
        // A test parses the same file, so this cannot fail in a tested build.
        serde_json::from_str(include_str!("read/weights.json"))
            .unwrap_or_else(|error| unreachable!("weights.json: {error}"))
    }
}

/// Scores all statements of the passages for a question with these weighted terms.
pub fn read(question: &str, terms: &[(String, f32)], passages: &[Fused], analyzer: &Analyzer) -> Vec<Read> {
    let mut read = examine(question, terms, passages, analyzer);
    for statement in &mut read {
        statement.score = statement.signals.weighed(&SHIPPED.signals);
    }
    share_out(&mut read);
    read
}

/// Turns the scores of all statements into probabilities (softmax).
fn share_out(read: &mut [Read]) {
    let score = |read: &Read| read.score - if read.is_fragment { FRAGMENT } else { 0.0 };
    let most = read.iter().map(score).fold(f32::MIN, f32::max);
    let total: f32 = read.iter().map(|read| (score(read) - most).exp()).sum();
    for statement in read {
        statement.chance = (score(statement) - most).exp() / total.max(f32::MIN_POSITIVE);
    }
}

/// A passage that the reader judged.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Index of the passage.
    pub passage: usize,
    /// Positions of its pieces, in bytes.
    pub pieces: Vec<Range<usize>>,
    /// The judgement of the reader.
    pub judgement: Judgement,
}

impl Judged {
    /// The highest logit of the pieces in a statement.
    pub fn best_piece(&self, span: &Range<usize>) -> f32 {
        let inside = self
            .pieces
            .iter()
            .zip(&self.judgement.pieces)
            .filter(|(piece, _)| piece.start < span.end && span.start < piece.end);
        inside.filter_map(|(_, number)| *number).fold(UNREAD, f32::max)
    }
}

/// The logit assumed for a piece that was skipped in a passage that was read: very unlikely to answer …
const UNREAD: f32 = -8.0;

/// … and for the pieces of a passage that was not read.
const UNREAD_PASSAGE: f32 = -6.0;

/// Adds the reader's judgements of some passages to the scores.
pub fn weigh_judgements(read: &mut [Read], judged: &[Judged]) {
    if judged.is_empty() {
        return;
    }
    let weights = &SHIPPED.with_reader;
    for statement in read.iter_mut() {
        let (piece, relevance) = numbers_of_reader(statement, judged);
        statement.score =
            weights.signals * statement.score + weights.piece * piece + weights.relevance * relevance;
    }
    share_out(read);
}

/// The reader's logits for a statement: of its best piece, and of the relevance of its passage. A passage
/// that was not read gets the mean relevance of those that were, so that it is preferred to bad ones.
pub fn numbers_of_reader(statement: &Read, judged: &[Judged]) -> (f32, f32) {
    match judged.iter().find(|judged| judged.passage == statement.passage) {
        Some(judged) => (judged.best_piece(&statement.span), judged.judgement.relevance),
        None => {
            let total: f32 = judged.iter().map(|judged| judged.judgement.relevance).sum();
            (UNREAD_PASSAGE, total / judged.len().max(1) as f32)
        }
    }
}

/// Penalty for code without its beginning or end, which is only shown as a last resort. It applies in full, whatever the
/// reader says about the code.
const FRAGMENT: f32 = 4.0;

/// Whether a part of a passage continues in the passage before or after it.
fn is_cut(span: &Range<usize>, chunk: &Chunk) -> bool {
    let opens = span.start == 0 && chunk.continues;
    let closes = span.end == chunk.content.len() && chunk.breaks_off;
    opens || closes
}

/// Computes the signals of every statement of the passages.
pub fn examine(
    question: &str,
    terms: &[(String, f32)],
    passages: &[Fused],
    analyzer: &Analyzer,
) -> Vec<Read> {
    let asked = QuestionKind::of(question);
    let term = Term::of(question);
    let mut found = Vec::new();
    for (passage, fused) in passages.iter().enumerate() {
        let chunk = &fused.chunk;
        let path = Words::of(&chunk.breadcrumb(), analyzer);
        let heading = Words::of(chunk.heading.as_deref().unwrap_or_else(|| chunk.title()), analyzer);
        let all = statements(&chunk.content);
        let mut before = Words::default();
        for (position, statement) in all.into_iter().enumerate() {
            let text = &chunk.content[statement.span.clone()];
            let words = Words::of(text, analyzer);
            let place = signals::Place {
                fused,
                question,
                asked: &asked,
                term: term.as_ref(),
                terms,
                path: &path.0,
                heading: &heading.0,
                before: &before.0,
                position,
            };
            let signals = Signals::of(text, &words.0, statement.kind, &place);
            let (span, kind, block) = (statement.span, statement.kind, statement.block);
            let is_fragment = kind == StatementKind::Code && is_cut(&span, chunk);
            found.push(Read {
                passage,
                span,
                kind,
                block,
                signals,
                part: 0,
                is_fragment,
                score: 0.0,
                chance: 0.0,
            });
            before = words;
        }
    }
    found
}

/// The distinct terms of a text.
#[derive(Default)]
struct Words(HashSet<String>);

impl Words {
    fn of(text: &str, analyzer: &Analyzer) -> Self {
        Self(analyzer.terms(text).into_iter().map(|term| term.text).collect())
    }
}

/// The probability that each passage answers: the sum over its statements.
pub fn passage_chances(read: &[Read], passages: usize) -> Vec<f32> {
    let mut chances = vec![0.0; passages];
    for statement in read {
        chances[statement.passage] += statement.chance;
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use crate::testing::chunk;
    use std::sync::Arc;

    fn best(question: &str, contents: &[&str]) -> String {
        let analyzer = Analyzer::new(Language::default());
        let passages: Vec<Fused> = contents
            .iter()
            .zip(0..)
            .map(|(content, number)| Fused {
                chunk: Arc::new(chunk("page", number, content)),
                score: 1.0,
                lexical: 1.0,
                dense: 1.0,
                page: 1.0,
            })
            .collect();
        let terms: Vec<_> = analyzer.distinct(question).into_iter().map(|term| (term, 1.0)).collect();
        let read = read(question, &terms, &passages, &analyzer);
        let total: f32 = read.iter().map(|read| read.chance).sum();
        assert!((total - 1.0).abs() < 1e-4, "{total}");
        let best = read.iter().max_by(|a, b| a.chance.total_cmp(&b.chance)).unwrap();
        contents[best.passage][best.span.clone()].to_owned()
    }

    #[test]
    fn the_shipped_weights_parse_and_name_known_signals() {
        let shipped: Weights = serde_json::from_str(include_str!("read/weights.json")).unwrap();
        for name in shipped.weights.keys() {
            assert!(Signals::NAMES.contains(&name.as_str()), "{name}");
        }
    }

    #[test]
    fn a_definition_question_selects_the_defining_sentence() {
        assert_eq!(
            best(
                "What is a node?",
                &["Robots are fun. A node is a participant in the graph. It rains.", "Pasta is boiled."]
            ),
            "A node is a participant in the graph."
        );
    }

    #[test]
    fn a_how_to_question_selects_the_command() {
        assert_eq!(
            best(
                "How do I list the topics?",
                &["It rains. List the topics with this command:\n\n```bash\nros2 topic list\n```"]
            ),
            "List the topics with this command:\n\n```bash\nros2 topic list\n```"
        );
    }

    #[test]
    fn cut_code_is_unlikely_even_if_the_reader_prefers_it() {
        let analyzer = Analyzer::new(Language::default());
        let chance = |continues: bool| {
            let code = chunk("page", 0, "```python\nlist_topics()\n```");
            let contents = [Chunk { continues, ..code }, chunk("page", 1, "Topics are listed by a command.")];
            let passages = contents.map(|chunk| {
                let chunk = Arc::new(chunk);
                Fused { chunk, score: 1.0, lexical: 1.0, dense: 1.0, page: 1.0 }
            });
            let mut read = read("list topics", &[], &passages, &analyzer);
            let judgement = crate::reader::Judgement {
                relevance: 5.0,
                answers: 5.0,
                pieces: vec![Some(5.0)],
                verdict: crate::reader::Entailment { supported: 1.0, contradicted: 0.0, not_mentioned: 0.0 },
            };
            let pieces = std::iter::once(0..passages[0].chunk.content.len()).collect();
            weigh_judgements(&mut read, &[Judged { passage: 0, pieces, judgement }]);
            read[0].chance
        };
        let odds = |chance: f32| (chance / (1.0 - chance)).ln();
        let (whole, cut) = (odds(chance(false)), odds(chance(true)));
        assert!((whole - cut - FRAGMENT).abs() < 0.01, "{whole} {cut}");
    }

    #[test]
    fn without_passages_nothing_is_scored() {
        let analyzer = Analyzer::new(Language::default());
        assert!(read("What is a node?", &[], &[], &analyzer).is_empty());
    }
}
