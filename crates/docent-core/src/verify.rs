//! Verify sentences: does a passage support a sentence, and with which words?
//!
//! The stretch of the passage that is closest to the sentence is found by comparing words. A small logistic
//! model turns its [`Signals`] into a score: with a reader, mostly its verdict; without one, shared words and
//! the similarity of embeddings. Rules ([`mod@veto`]) overrule the model. `support.json` contains the
//! coefficients, the claims they were fitted on and the command that fits them. Lists are verified item by
//! item, tables row by row, and code line by line ([`parts`]).
//!
//! Invariant: the returned span is a slice of the passage. Whole sentences copied from the passage are fully
//! supported.

mod claim;
pub mod parts;
mod score;
pub mod veto;
mod words;

use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::cache::Cache;
use crate::embed::{Embedder, Purpose, Vector};
use crate::reader::{Passage, Reader, pieces};
use crate::terms::Analyzer;
use claim::Claim;
use parts::Part;
pub use score::{AGREES, Calibration, INPUTS, MENTIONED, ReaderModel, Signals, Verdict};
use veto::{Compared, veto};

/// How well a passage supports a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Support {
    /// Probability that the passage supports the sentence, 0–1.
    pub score: f32,
    /// Index of the passage.
    pub passage: usize,
    /// Position of the supporting words in the passage, in bytes.
    pub span: Range<usize>,
}

/// Minimum score of a supported sentence.
pub const SUPPORTED: f32 = 0.5;

/// A passage that may support a sentence.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The page title and the headings above the passage, which often contain its subject.
    pub heading: &'a str,
    /// The text of the passage.
    pub content: &'a str,
}

/// Maximum length of a passage that the reader judges, in words. Of a longer one it would see only a part, and support that
/// stands elsewhere would count as missing: of 115 true claims about whole pages it rejected 79 %, words alone reject 18 %.
const MOST_READ_WORDS: usize = 240;

/// Verifies sentences against passages.
#[derive(Clone)]
pub struct Verifier {
    analyzer: Arc<Analyzer>,
    embedder: Option<Arc<dyn Embedder>>,
    reader: Option<Arc<dyn Reader>>,
    /// Vectors of stretches that were compared before.
    meanings: Arc<Cache<u64, Arc<Vector>>>,
}

/// The part of a passage that is closest to a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// Index of the passage.
    pub passage: usize,
    /// Position in the passage, in bytes.
    pub span: Range<usize>,
    /// The signals of the stretch.
    pub signals: Signals,
    /// Whether the sentence is a copy of the stretch, possibly without words that do not affect its meaning.
    pub verbatim: bool,
}

/// Number of vectors in the cache.
const MEANINGS_KEPT: usize = 2048;

/// Maximum number of passages compared by embeddings; others are compared by words only.
const MOST_COMPARED: usize = 3;

/// Maximum number of passages the reader judges, those that share most words with the sentence.
const MOST_READ: usize = 2;

impl Verifier {
    /// Creates a verifier. Without an embedder and a reader, only words are compared.
    pub fn new(
        analyzer: Arc<Analyzer>,
        embedder: Option<Arc<dyn Embedder>>,
        reader: Option<Arc<dyn Reader>>,
    ) -> Self {
        Self { analyzer, embedder, reader, meanings: Arc::new(Cache::new(MEANINGS_KEPT)) }
    }

    /// How well each passage supports `text`, best first; passages without words are omitted. The score of a
    /// list, a table or code is the lowest score of its parts; each part is assigned to the passage that
    /// supports it best.
    pub async fn support(&self, text: &str, evidence: &[Evidence<'_>]) -> Vec<Support> {
        let parts = parts::parts(text);
        if let [only] = parts.as_slice() {
            return self.support_of(only, evidence).await;
        }
        let mut found: Vec<Support> = Vec::new();
        let mut least: f32 = 1.0;
        for part in &parts {
            let Some(best) = self.support_of(part, evidence).await.into_iter().next() else {
                least = 0.0;
                continue;
            };
            least = least.min(best.score);
            match found.iter_mut().find(|known| known.passage == best.passage) {
                Some(known) => {
                    known.span = known.span.start.min(best.span.start)..known.span.end.max(best.span.end);
                }
                None => found.push(best),
            }
        }
        found.iter_mut().for_each(|support| support.score = least);
        found
    }

    /// The closest stretch of each passage by words, with score 1: for answers that are cited but not
    /// verified.
    pub fn nearest(&self, text: &str, evidence: &[Evidence<'_>]) -> Vec<Support> {
        let stretches = self.by_words(text.trim(), evidence);
        stretches
            .into_iter()
            .map(|stretch| Support { score: 1.0, passage: stretch.passage, span: stretch.span })
            .collect()
    }

    /// How well each passage supports one part, best first.
    async fn support_of(&self, part: &Part, evidence: &[Evidence<'_>]) -> Vec<Support> {
        let sentence = match part {
            Part::Claim(sentence) => sentence,
            Part::CodeLine(line) => return parts::lines_in(line, evidence),
        };
        let in_doubt = |stretch: &Stretch| Calibration::shipped().is_in_doubt(&stretch.signals);
        let mut found: Vec<Support> = self
            .compared(sentence, evidence, in_doubt)
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
    pub async fn stretches(&self, sentence: &str, evidence: &[Evidence<'_>]) -> Vec<Stretch> {
        self.compared(sentence, evidence, |_| true).await
    }

    /// The best stretch of each passage. Embeddings are compared only for those selected by `wanted`.
    async fn compared(
        &self,
        sentence: &str,
        evidence: &[Evidence<'_>],
        wanted: impl Fn(&Stretch) -> bool,
    ) -> Vec<Stretch> {
        let sentence = sentence.trim();
        let mut found = self.by_words(sentence, evidence);
        found.sort_by(|a, b| {
            b.signals.passage_coverage.total_cmp(&a.signals.passage_coverage).then(a.passage.cmp(&b.passage))
        });
        self.read(sentence, evidence, &mut found).await;
        let wanted = |stretch: &Stretch| stretch.signals.reader.is_none() && wanted(stretch);
        self.compare(sentence, evidence, &mut found, wanted).await;
        found
    }

    /// The best stretch of each passage by words, and whether it breaks a rule.
    fn by_words(&self, sentence: &str, evidence: &[Evidence<'_>]) -> Vec<Stretch> {
        if sentence.is_empty() {
            return Vec::new();
        }
        let claim = Claim::read(sentence, &self.analyzer);
        let language = self.analyzer.language();
        evidence
            .iter()
            .enumerate()
            .filter_map(|(passage, evidence)| {
                let (span, mut signals, verbatim) = claim.best_in(evidence.content, &self.analyzer)?;
                if !verbatim {
                    let whole = format!("{}\n{}", evidence.heading, evidence.content);
                    signals.passage_coverage = claim.covered_by(&whole, &self.analyzer);
                    let (nearest, coverage) = claim.nearest_piece(evidence.content, &self.analyzer);
                    let compared = Compared { claim: sentence, passage: &whole, nearest, coverage, language };
                    signals.vetoed = veto(&compared).is_some();
                }
                Some(Stretch { passage, span, signals, verbatim })
            })
            .collect()
    }

    /// Adds the reader's verdict to the best stretches, unless there is no reader or it is busy.
    async fn read(&self, sentence: &str, evidence: &[Evidence<'_>], found: &mut [Stretch]) {
        let Some(reader) = &self.reader else { return };
        let read: Vec<&mut Stretch> = found
            .iter_mut()
            .filter(|stretch| !stretch.verbatim && !stretch.signals.vetoed)
            .filter(|stretch| evidence[stretch.passage].content.split_whitespace().count() <= MOST_READ_WORDS)
            .take(MOST_READ)
            .collect();
        if read.is_empty() {
            return;
        }
        let passages: Vec<Passage<'_>> = read
            .iter()
            .map(|stretch| {
                let Evidence { heading, content } = evidence[stretch.passage];
                let pieces = pieces(content).into_iter().map(|span| &content[span]).collect();
                Passage { heading: heading.to_owned(), pieces }
            })
            .collect();
        let judged = reader.read(sentence, &passages).await.unwrap_or_default();
        for (stretch, judgement) in read.into_iter().zip(judged) {
            stretch.signals.reader = Some(Verdict::from(judgement.verdict));
        }
    }

    /// Adds the similarity of embeddings to the best stretches, unless there is no embedder or it fails.
    async fn compare(
        &self,
        sentence: &str,
        evidence: &[Evidence<'_>],
        found: &mut [Stretch],
        wanted: impl Fn(&Stretch) -> bool,
    ) {
        let Some(embedder) = &self.embedder else { return };
        let compared: Vec<&mut Stretch> = found
            .iter_mut()
            .filter(|stretch| !stretch.verbatim && wanted(stretch))
            .take(MOST_COMPARED)
            .collect();
        if compared.is_empty() {
            return;
        }
        let spans: Vec<&str> =
            compared.iter().map(|stretch| &evidence[stretch.passage].content[stretch.span.clone()]).collect();
        let Some((claim, meanings)) = self.meanings(embedder.as_ref(), sentence, &spans).await else {
            return;
        };
        for (stretch, vector) in compared.into_iter().zip(meanings) {
            let cosine: f32 = claim.iter().zip(vector.iter()).map(|(a, b)| a * b).sum();
            stretch.signals.similarity = Some(cosine.clamp(0.0, 1.0));
        }
    }

    /// The vectors of a sentence and of stretches of the book. The latter are cached, since they are used
    /// repeatedly.
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
        let mut vectors = embedder.embed(&texts, Purpose::Sentence).await.ok()?.into_iter();
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
    use crate::testing::WordReader;
    use proptest::prelude::*;

    const PASSAGE: &str = "A node is a participant in the ROS 2 graph. It may publish at 50 Hz. \
                           A topic does not store messages.\n\n- Services answer requests.";

    fn verifier() -> Verifier {
        Verifier::new(Arc::new(Analyzer::new(Language::default())), None, None)
    }

    fn evidence(content: &str) -> Evidence<'_> {
        Evidence { heading: "", content }
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    fn check(sentence: &str) -> (f32, &'static str) {
        let found = run(verifier().support(sentence, &[evidence(PASSAGE)])).remove(0);
        (found.score, &PASSAGE[found.span])
    }

    #[test]
    fn a_copied_sentence_is_fully_supported() {
        assert_eq!(check("It may publish at 50 Hz."), (1.0, "It may publish at 50 Hz."));
    }

    #[test]
    fn a_paraphrase_is_supported_by_its_sentence() {
        let (score, quote) = check("In ROS 2, a node participates in the graph.");
        assert!(score >= SUPPORTED, "{score}");
        assert_eq!(quote, "A node is a participant in the ROS 2 graph.");
    }

    #[test]
    fn an_invented_number_is_not_supported() {
        assert!(check("It may publish at 500 Hz.").0 < SUPPORTED);
    }

    #[test]
    fn a_reversed_statement_scores_lower() {
        assert!(
            check("A topic does store messages.").0 < check("A topic does not keep or store messages.").0
        );
    }

    #[test]
    fn an_unrelated_sentence_is_not_supported() {
        assert!(check("Pasta needs ten minutes of boiling.").0 < 0.2);
    }

    #[test]
    fn the_best_passage_comes_first() {
        let found = run(verifier()
            .support("A node is in the graph.", &[evidence("Boil water."), evidence(PASSAGE), evidence("")]));
        assert_eq!(found.iter().map(|support| support.passage).collect::<Vec<_>>(), [1, 0]);
    }

    /// An embedder that counts the texts it embeds.
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
            assert_eq!(purpose, Purpose::Sentence, "a user waits for the check");
            self.1.fetch_add(texts.len(), std::sync::atomic::Ordering::Relaxed);
            self.0.embed(texts, purpose).await
        }
    }

    #[test]
    fn a_stretch_of_the_book_is_embedded_once() {
        let embedder = Arc::new(Counting::default());
        let verifier =
            Verifier::new(Arc::new(Analyzer::new(Language::default())), Some(embedder.clone()), None);
        let count = || embedder.1.load(std::sync::atomic::Ordering::Relaxed);
        let first = run(verifier.stretches("A node takes part.", &[evidence(PASSAGE)]));
        assert_eq!(count(), 2, "the sentence and the stretch");
        let again = run(verifier.stretches("A node takes part.", &[evidence(PASSAGE)]));
        assert_eq!((count(), again), (3, first), "only the sentence, with the same result");
    }

    #[test]
    fn part_of_a_sentence_does_not_count_as_a_copy() {
        let passage = "Max torque: 50 Nm. Training takes an hour. You may delete it if nobody uses it.";
        for part in ["Max torque: 5", "Rain", "You may delete it"] {
            let found = run(verifier().stretches(part, &[evidence(passage)])).remove(0);
            assert!(!found.verbatim, "{part}");
        }
    }

    #[test]
    fn words_that_do_not_affect_the_meaning_may_be_omitted() {
        let passage = "A valve, which is made of brass, opens at 3 bar. Delete it if nobody uses it.";
        let is_copied = |claim| run(verifier().stretches(claim, &[evidence(passage)])).remove(0).verbatim;
        assert!(is_copied("A valve opens at 3 bar."));
        assert!(!is_copied("Delete it, nobody uses it."));
        assert!(!is_copied("A valve opens at 4 bar."));
    }

    #[test]
    fn the_support_of_a_list_is_that_of_its_weakest_item() {
        let true_items = "- A node is a participant in the ROS 2 graph.\n- It may publish at 50 Hz.";
        let found = run(verifier().support(true_items, &[evidence(PASSAGE)])).remove(0);
        assert_eq!((found.score, found.span.start), (1.0, 0));
        let invented = format!("{true_items}\n- It also feeds your cat every Tuesday.");
        assert!(run(verifier().support(&invented, &[evidence(PASSAGE)])).remove(0).score < SUPPORTED);
    }

    #[test]
    fn the_reader_judges_unless_a_rule_is_broken() {
        let analyzer = Arc::new(Analyzer::new(Language::default()));
        let verifier = |word| Verifier::new(analyzer.clone(), None, Some(Arc::new(WordReader(word))));
        let paraphrase = "Participants of a graph are called so.";
        let score = |word, claim| run(verifier(word).support(claim, &[evidence(PASSAGE)])).remove(0).score;
        assert!(score("node", paraphrase) >= SUPPORTED);
        assert!(score("absent", paraphrase) < SUPPORTED);
        assert!(score("node", "It may publish at 500 Hz.") < SUPPORTED, "a rule overrules the reader");
    }

    #[test]
    fn words_decide_about_a_passage_that_is_too_long_for_the_reader() {
        let analyzer = Arc::new(Analyzer::new(Language::default()));
        let verifier = Verifier::new(analyzer, None, Some(Arc::new(WordReader("absent"))));
        let is_read = |sentences: usize| {
            let page = format!("{PASSAGE} {}", "Rain falls on the field. ".repeat(sentences));
            run(verifier.stretches("A node participates.", &[evidence(&page)]))
                .remove(0)
                .signals
                .reader
                .is_some()
        };
        assert!(is_read(10));
        assert!(!is_read(MOST_READ_WORDS / 5 + 1));
    }

    #[test]
    fn headings_count_as_evidence() {
        let under =
            Evidence { heading: "Errors > E12", content: "The filter is blocked and must be cleaned." };
        let with = run(verifier().support("E12 means the filter is blocked.", &[under])).remove(0).score;
        let without = run(verifier().support("E12 means the filter is blocked.", &[evidence(under.content)]));
        assert!(with > without[0].score, "{with}");
    }

    #[test]
    fn with_an_embedder_similarity_is_measured() {
        let embedder: Arc<dyn Embedder> = Arc::new(crate::testing::LetterEmbedder::default());
        let verifier = Verifier::new(Arc::new(Analyzer::new(Language::default())), Some(embedder), None);
        let stretch = run(verifier.stretches("A node takes part.", &[evidence(PASSAGE)])).remove(0);
        assert!(stretch.signals.similarity.is_some_and(|cosine| cosine > 0.5), "{stretch:?}");
    }

    proptest! {
        #[test]
        fn the_span_is_a_slice_and_the_score_in_range(sentence in "[a-zA-Z0-9 .!?é]{0,60}", passage in "[a-zA-Z0-9 .!?é\n-]{0,120}") {
            for found in run(verifier().support(&sentence, &[evidence(&passage)])) {
                prop_assert!((0.0..=1.0).contains(&found.score));
                prop_assert!(passage.get(found.span.clone()).is_some_and(|quote| !quote.is_empty()));
            }
        }
    }
}
