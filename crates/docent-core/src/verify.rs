//! Does this passage support this sentence, and with which words?
//!
//! The best stretch of the passage is found by its words; what is known about it
//! ([`Signals`]) becomes one number by a small logistic model. Its coefficients are data:
//! `support.json` names the claims they were fitted on and the command that fits them.
//!
//! Invariant: the span returned is a slice of the passage, and words copied from the
//! passage are supported completely.

mod claim;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::embed::{Embedder, Purpose, Vector};
use crate::recent::Recent;
use crate::terms::Analyzer;
use claim::Claim;

/// How far a passage supports a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Support {
    /// 0–1.
    pub score: f32,
    /// The passage, as an index into those given.
    pub passage: usize,
    /// The supporting words, in bytes of the passage.
    pub span: Range<usize>,
}

/// Where a sentence counts as supported.
pub const SUPPORTED: f32 = 0.5;

/// What is known about a sentence and the words it may rest on. Each lies between 0 and 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// The weight of the sentence's terms that stand in the span, of all its terms'.
    pub coverage: f32,
    /// The same for the whole passage.
    pub passage_coverage: f32,
    /// The cosine of sentence and span; none without an embedder.
    pub similarity: Option<f32>,
    /// The share of the sentence's numbers that the passage lacks.
    pub invented_numbers: f32,
    /// A "not" on one side only.
    pub negation: f32,
    /// One side says more and the other less.
    pub opposite: f32,
}

/// What is left out of the fit, since a wrong number or a wrong "not" costs a reader more than
/// claims in the wild show.
const INVENTED: f64 = 0.5;
const TURNED: f64 = 0.3;

/// Where the words alone do not decide. Outside, comparing meanings would cost milliseconds a
/// sentence and change no verdict.
const DOUBT: std::ops::RangeInclusive<f32> = 0.3..=0.7;

/// How many numbers [`Signals::inputs`] gives.
pub const INPUTS: usize = 7;

impl Signals {
    /// As the model reads them, with a constant first. What speaks against support is
    /// given as its absence, so that more of any input never means less support.
    pub fn inputs(&self) -> [f64; INPUTS] {
        [
            1.0,
            self.coverage.into(),
            self.passage_coverage.into(),
            self.similarity.unwrap_or_default().max(0.0).into(),
            1.0 - f64::from(self.invented_numbers),
            1.0 - f64::from(self.negation),
            1.0 - f64::from(self.opposite),
        ]
    }
}

/// The models, and where their coefficients come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The claims the coefficients came from.
    pub fitted_on: String,
    /// The command that fits them.
    pub command: String,
    /// With an embedder, in the order of [`Signals::inputs`].
    pub with_similarity: [f64; INPUTS],
    /// Without one.
    pub by_words: [f64; INPUTS],
}

static SHIPPED: LazyLock<Calibration> = LazyLock::new(|| {
    // A test reads the same file, so this cannot fail in a build that passed.
    serde_json::from_str(include_str!("verify/support.json"))
        .unwrap_or_else(|error| unreachable!("support.json: {error}"))
});

impl Calibration {
    /// The coefficients that come with the program.
    pub fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// Whether the words alone leave a doubt that the meaning may settle.
    pub fn is_in_doubt(&self, signals: &Signals) -> bool {
        DOUBT.contains(&self.support(&Signals { similarity: None, ..*signals }))
    }

    /// The probability that the words support the sentence.
    pub fn support(&self, signals: &Signals) -> f32 {
        let weights = if signals.similarity.is_some() { &self.with_similarity } else { &self.by_words };
        let sum: f64 = weights.iter().zip(signals.inputs()).map(|(weight, input)| weight * input).sum();
        let likely = 1.0 / (1.0 + (-sum).exp());
        // Whatever the rest says: a number the passage does not have was made up, and "not"
        // turns a statement around.
        let doubts = [(signals.invented_numbers, INVENTED), (signals.negation, TURNED)];
        doubts.iter().fold(likely, |likely, (signal, cost)| likely * (1.0 - cost * f64::from(*signal))) as f32
    }
}

/// Checks sentences against passages.
#[derive(Clone)]
pub struct Verifier {
    analyzer: Arc<Analyzer>,
    embedder: Option<Arc<dyn Embedder>>,
    /// The vectors of stretches that were compared before.
    meanings: Arc<Recent<u64, Arc<Vector>>>,
}

/// The best stretch of one passage.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// The passage, as an index into those given.
    pub passage: usize,
    /// Where it stands, in bytes.
    pub span: Range<usize>,
    /// What is known about it.
    pub signals: Signals,
    /// Whether the sentence stands there word for word.
    pub verbatim: bool,
}

/// Stretches of the book whose vectors are kept.
const MEANINGS_KEPT: usize = 2048;

/// So many passages are compared by meaning; the others by their words alone.
const MOST_COMPARED: usize = 3;

impl Verifier {
    /// Without an embedder only words are compared.
    pub fn new(analyzer: Arc<Analyzer>, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { analyzer, embedder, meanings: Arc::new(Recent::new(MEANINGS_KEPT)) }
    }

    /// How far each passage supports `sentence`, the best first; passages without words
    /// are left out.
    pub async fn support(&self, sentence: &str, passages: &[&str]) -> Vec<Support> {
        let in_doubt = |stretch: &Stretch| Calibration::shipped().is_in_doubt(&stretch.signals);
        let mut found: Vec<Support> = self
            .compared(sentence, passages, in_doubt)
            .await
            .into_iter()
            .map(|stretch| Support {
                score: if stretch.verbatim { 1.0 } else { Calibration::shipped().support(&stretch.signals) },
                passage: stretch.passage,
                span: stretch.span,
            })
            .collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.passage.cmp(&b.passage)));
        found
    }

    /// The best stretch of each passage, with all its signals; for measuring.
    pub async fn stretches(&self, sentence: &str, passages: &[&str]) -> Vec<Stretch> {
        self.compared(sentence, passages, |_| true).await
    }

    /// The best stretch of each passage; the meaning only of those that want it.
    async fn compared(
        &self,
        sentence: &str,
        passages: &[&str],
        wanted: impl Fn(&Stretch) -> bool,
    ) -> Vec<Stretch> {
        let sentence = sentence.trim();
        if sentence.is_empty() {
            return Vec::new();
        }
        let claim = Claim::read(sentence, &self.analyzer);
        let mut found: Vec<Stretch> = passages
            .iter()
            .enumerate()
            .filter_map(|(passage, content)| {
                let (span, signals, verbatim) = claim.best_in(content, &self.analyzer)?;
                Some(Stretch { passage, span, signals, verbatim })
            })
            .collect();
        self.compare(sentence, passages, &mut found, wanted).await;
        found
    }

    /// Adds how close in meaning the best stretches are; without an embedder, or when it
    /// fails, words alone decide.
    async fn compare(
        &self,
        sentence: &str,
        passages: &[&str],
        found: &mut [Stretch],
        wanted: impl Fn(&Stretch) -> bool,
    ) {
        let Some(embedder) = &self.embedder else { return };
        found.sort_by(|a, b| {
            b.signals.coverage.total_cmp(&a.signals.coverage).then(a.passage.cmp(&b.passage))
        });
        let compared: Vec<&mut Stretch> = found
            .iter_mut()
            .filter(|stretch| !stretch.verbatim && wanted(stretch))
            .take(MOST_COMPARED)
            .collect();
        if compared.is_empty() {
            return;
        }
        let spans: Vec<&str> =
            compared.iter().map(|stretch| &passages[stretch.passage][stretch.span.clone()]).collect();
        let Some((claim, meanings)) = self.meanings(embedder.as_ref(), sentence, &spans).await else {
            return;
        };
        for (stretch, vector) in compared.into_iter().zip(meanings) {
            let cosine: f32 = claim.iter().zip(vector.iter()).map(|(a, b)| a * b).sum();
            stretch.signals.similarity = Some(cosine.clamp(0.0, 1.0));
        }
    }

    /// The vectors of a sentence and of the book's words; those are asked about again and again.
    async fn meanings(
        &self,
        embedder: &dyn Embedder,
        sentence: &str,
        spans: &[&str],
    ) -> Option<(Vector, Vec<Arc<Vector>>)> {
        let mut known: Vec<Option<Arc<Vector>>> =
            spans.iter().map(|span| self.meanings.get(&xxh3_64(span.as_bytes()))).collect();
        let unknown: Vec<usize> = (0..spans.len()).filter(|at| known[*at].is_none()).collect();
        let texts: Vec<&str> = std::iter::once(sentence).chain(unknown.iter().map(|at| spans[*at])).collect();
        let mut vectors = embedder.embed(&texts, Purpose::Passage).await.ok()?.into_iter();
        let claim = vectors.next()?;
        for (at, vector) in unknown.into_iter().zip(vectors) {
            let vector = Arc::new(vector);
            self.meanings.put(xxh3_64(spans[at].as_bytes()), vector.clone());
            known[at] = Some(vector);
        }
        Some((claim, known.into_iter().collect::<Option<Vec<_>>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use proptest::prelude::*;

    const PASSAGE: &str = "A node is a participant in the ROS 2 graph. It may publish at 50 Hz. \
                           A topic does not store messages.\n\n- Services answer requests.";

    fn verifier() -> Verifier {
        Verifier::new(Arc::new(Analyzer::new(Language::default())), None)
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    fn check(sentence: &str) -> (f32, &'static str) {
        let found = run(verifier().support(sentence, &[PASSAGE])).remove(0);
        (found.score, &PASSAGE[found.span])
    }

    #[test]
    fn copied_words_are_supported_by_themselves() {
        assert_eq!(check("It may publish at 50 Hz."), (1.0, "It may publish at 50 Hz."));
    }

    #[test]
    fn a_paraphrase_finds_its_sentence() {
        let (score, quote) = check("In ROS 2, a node participates in the graph.");
        assert!(score >= SUPPORTED, "{score}");
        assert_eq!(quote, "A node is a participant in the ROS 2 graph.");
    }

    #[test]
    fn an_invented_number_is_not_supported() {
        assert!(check("It may publish at 500 Hz.").0 < SUPPORTED);
    }

    #[test]
    fn a_turned_around_statement_loses() {
        assert!(
            check("A topic does store messages.").0 < check("A topic does not keep or store messages.").0
        );
    }

    #[test]
    fn something_else_is_not_supported() {
        assert!(check("Pasta needs ten minutes of boiling.").0 < 0.2);
    }

    #[test]
    fn the_best_passage_comes_first() {
        let found = run(verifier().support("A node is in the graph.", &["Boil water.", PASSAGE, ""]));
        assert_eq!(found.iter().map(|support| support.passage).collect::<Vec<_>>(), [1, 0]);
    }

    /// Counts the texts it is given.
    #[derive(Default)]
    struct Counting(crate::testing::LetterEmbedder, std::sync::atomic::AtomicUsize);

    #[async_trait::async_trait]
    impl Embedder for Counting {
        fn id(&self) -> &crate::embed::EmbedderId {
            self.0.id()
        }
        fn max_tokens(&self) -> usize {
            self.0.max_tokens()
        }
        fn batch_size(&self) -> usize {
            self.0.batch_size()
        }
        fn count_tokens(&self, text: &str) -> usize {
            self.0.count_tokens(text)
        }
        async fn embed(
            &self,
            texts: &[&str],
            purpose: Purpose,
        ) -> Result<Vec<Vector>, crate::embed::EmbedError> {
            self.1.fetch_add(texts.len(), std::sync::atomic::Ordering::Relaxed);
            self.0.embed(texts, purpose).await
        }
    }

    #[test]
    fn the_books_words_are_embedded_once() {
        let embedder = Arc::new(Counting::default());
        let verifier = Verifier::new(Arc::new(Analyzer::new(Language::default())), Some(embedder.clone()));
        let count = || embedder.1.load(std::sync::atomic::Ordering::Relaxed);
        let first = run(verifier.stretches("A node takes part.", &[PASSAGE]));
        assert_eq!(count(), 2, "the sentence and the stretch");
        let again = run(verifier.stretches("A node takes part.", &[PASSAGE]));
        assert_eq!((count(), again), (3, first), "the sentence alone, to the same end");
    }

    #[test]
    fn meaning_counts_where_there_is_an_embedder() {
        let embedder: Arc<dyn Embedder> = Arc::new(crate::testing::LetterEmbedder::default());
        let verifier = Verifier::new(Arc::new(Analyzer::new(Language::default())), Some(embedder));
        let stretch = run(verifier.stretches("A node takes part.", &[PASSAGE])).remove(0);
        assert!(stretch.signals.similarity.is_some_and(|cosine| cosine > 0.5), "{stretch:?}");
    }

    #[test]
    fn no_signal_speaks_against_itself() {
        let shipped = Calibration::shipped();
        assert!(
            shipped.with_similarity[1..].iter().chain(&shipped.by_words[1..]).all(|weight| *weight >= 0.0)
        );
    }

    proptest! {
        #[test]
        fn the_span_is_a_slice_and_the_score_in_range(sentence in "[a-zA-Z0-9 .!?é]{0,60}", passage in "[a-zA-Z0-9 .!?é\n-]{0,120}") {
            for found in run(verifier().support(&sentence, &[&passage])) {
                prop_assert!((0.0..=1.0).contains(&found.score));
                prop_assert!(passage.get(found.span.clone()).is_some_and(|quote| !quote.is_empty()));
            }
        }
    }
}
