//! Turn the signals about a sentence and a passage into the probability that the passage supports it.
//!
//! Without a reader, a logistic model weighs shared words and the similarity of embeddings. With one, a passage
//! must do two things: mention what the sentence says, and agree with it. Shared words help to tell whether it
//! is mentioned; whether the passage agrees, only the reader knows, because altered sentences keep almost all
//! words. The probability is the product of both. `support.json` contains the coefficients, the claims they were
//! fitted on and the command that fits them.
//!
//! Invariant: no signal of support lowers the score, and a sentence that breaks a rule is never supported.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::reader::Entailment;
use crate::relevance::logit;

/// Maximum score of a sentence that breaks a rule.
const VETOED: f32 = 0.2;

/// Signals about a sentence and the closest stretch of a passage, between 0 and 1 unless stated otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Weighted share of the sentence's terms that the stretch contains.
    pub coverage: f32,
    /// The same for the whole passage with its headings.
    pub passage_coverage: f32,
    /// Cosine similarity of sentence and stretch; none without an embedder.
    pub similarity: Option<f32>,
    /// Share of the sentence's numbers that are not in the passage.
    pub invented_numbers: f32,
    /// 1 if only one of the two contains a negation.
    pub negation: f32,
    /// 1 if one says "more" and the other "less".
    pub opposite: f32,
    /// What the reader says; none without a reader.
    pub reader: Option<Verdict>,
    /// Whether the sentence breaks a rule.
    pub vetoed: bool,
}

/// What the reader says of a sentence and a passage, as log odds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// That the passage mentions what the sentence says.
    pub mentioned: f32,
    /// That the passage supports the sentence rather than contradicts it.
    pub agrees: f32,
}

impl From<Entailment> for Verdict {
    fn from(entailment: Entailment) -> Self {
        let decided = (entailment.supported + entailment.contradicted).max(f32::MIN_POSITIVE);
        Self {
            mentioned: -logit(entailment.not_mentioned) as f32,
            agrees: logit(entailment.supported / decided) as f32,
        }
    }
}

/// Fixed penalties for invented numbers and negations. They are not fitted, since such errors are worse for
/// users than the training claims show.
const INVENTED: f64 = 0.5;
const TURNED: f64 = 0.3;

/// Scores by words that leave doubt. For others, comparing embeddings would take milliseconds per sentence
/// without changing the verdict.
const DOUBT: std::ops::RangeInclusive<f32> = 0.3..=0.7;

/// The typical size of the reader's log odds; divided by it, they are as large as the other inputs, which the fit needs.
const TYPICAL_LOGIT: f64 = 4.0;

/// Length of [`Signals::inputs`].
pub const INPUTS: usize = 7;

/// Number of inputs for whether a passage mentions what a sentence says.
pub const MENTIONED: usize = 3;

/// Number of inputs for whether a passage agrees with a sentence.
pub const AGREES: usize = 2;

impl Signals {
    /// The inputs of the model, beginning with a constant. Signals against support are inverted, so that
    /// support never decreases with any input.
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

    /// The inputs of both parts of the model with a reader, each beginning with a constant; none without a reader.
    pub fn reader_inputs(&self) -> Option<([f64; MENTIONED], [f64; AGREES])> {
        let Verdict { mentioned, agrees } = self.reader?;
        let scaled = |logit: f32| f64::from(logit) / TYPICAL_LOGIT;
        Some(([1.0, scaled(mentioned), self.passage_coverage.into()], [1.0, scaled(agrees)]))
    }
}

/// The coefficients of the models, and how they were fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The claims the coefficients were fitted on.
    pub fitted_on: String,
    /// The command that fits the coefficients.
    pub command: String,
    /// With an embedder, in the order of [`Signals::inputs`].
    pub with_similarity: [f64; INPUTS],
    /// Without an embedder, in the order of [`Signals::inputs`].
    pub by_words: [f64; INPUTS],
    /// With a reader, in the order of [`Signals::reader_inputs`].
    pub with_reader: ReaderModel,
}

/// The coefficients of both parts of the model with a reader.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReaderModel {
    /// Whether the passage mentions what the sentence says.
    pub mentioned: [f64; MENTIONED],
    /// Whether the passage agrees with the sentence.
    pub agrees: [f64; AGREES],
}

static SHIPPED: LazyLock<Calibration> = LazyLock::new(|| {
    // A test parses the same file, so this cannot fail in a tested build.
    serde_json::from_str(include_str!("support.json"))
        .unwrap_or_else(|error| unreachable!("support.json: {error}"))
});

impl Calibration {
    /// The coefficients shipped with Docent.
    pub fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// Whether the score by words leaves doubt, so that comparing embeddings may help.
    pub fn is_in_doubt(&self, signals: &Signals) -> bool {
        !signals.vetoed && DOUBT.contains(&self.support_by_words(&Signals { similarity: None, ..*signals }))
    }

    /// The probability that the passage supports the sentence.
    pub fn support(&self, signals: &Signals) -> f32 {
        let likely = match signals.reader_inputs() {
            Some((mentioned, agrees)) => {
                let model = &self.with_reader;
                (probability(&model.mentioned, &mentioned) * probability(&model.agrees, &agrees)) as f32
            }
            None => self.support_by_words(signals),
        };
        if signals.vetoed { likely.min(VETOED) } else { likely }
    }

    fn support_by_words(&self, signals: &Signals) -> f32 {
        let weights = if signals.similarity.is_some() { &self.with_similarity } else { &self.by_words };
        let likely = probability(weights, &signals.inputs());
        // A number that is not in the passage was made up, and a negation reverses a statement, whatever the
        // other signals are.
        let doubts = [(signals.invented_numbers, INVENTED), (signals.negation, TURNED)];
        doubts.iter().fold(likely, |likely, (signal, cost)| likely * (1.0 - cost * f64::from(*signal))) as f32
    }
}

/// The probability that a logistic model gives.
fn probability(weights: &[f64], inputs: &[f64]) -> f64 {
    let sum: f64 = weights.iter().zip(inputs).map(|(weight, input)| weight * input).sum();
    1.0 / (1.0 + (-sum).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_coefficient_is_negative() {
        let shipped = Calibration::shipped();
        assert!(
            shipped.with_similarity[1..]
                .iter()
                .chain(&shipped.by_words[1..])
                .chain(&shipped.with_reader.mentioned[1..])
                .chain(&shipped.with_reader.agrees[1..])
                .all(|weight| *weight >= 0.0)
        );
    }

    fn score(supported: f32, contradicted: f32, passage_coverage: f32) -> f32 {
        let not_mentioned = 1.0 - supported - contradicted;
        let reader = Some(Verdict::from(Entailment { supported, contradicted, not_mentioned }));
        Calibration::shipped().support(&Signals { reader, passage_coverage, ..Signals::default() })
    }

    #[test]
    fn a_contradicted_sentence_is_not_supported_however_many_words_it_shares() {
        assert!(score(0.05, 0.9, 1.0) < 0.5);
        assert!(score(0.9, 0.05, 1.0) > 0.5);
    }

    #[test]
    fn a_sentence_that_is_not_mentioned_is_not_supported() {
        assert!(score(0.08, 0.01, 0.2) < 0.5);
    }

    #[test]
    fn certain_verdicts_give_finite_scores() {
        for (supported, contradicted) in [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)] {
            let score = score(supported, contradicted, 0.5);
            assert!((0.0..=1.0).contains(&score), "{score}");
        }
    }
}
