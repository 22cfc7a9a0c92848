//! Estimate the probability that the book covers a question.
//!
//! A small logistic model over signals that retrieval has anyway. `relevance.json` contains the coefficients,
//! the questions they were fitted on and the command that fits them.
//!
//! Invariant: every signal grows with relevance and is between 0 and 1, whatever the embedder or the length
//! of the question.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::index::Candidates;
use crate::terms::Analyzer;

/// How well the book matches a question, as measured by retrieval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Cosine similarity of the closest chunk, 0–1.
    pub dense_best: f32,
    /// Difference between the cosine similarities of the closest and the tenth closest chunk, 0–1.
    pub margin: f32,
    /// BM25 score of the best chunk, divided by the maximum possible for the terms of the question, 0–1.
    pub lexical_best: f32,
    /// Largest weighted share of the question's terms that one of the best chunks contains, 0–1.
    pub coverage: f32,
}

/// The coefficients of the models, and how they were fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The question sets the coefficients were fitted on.
    pub fitted_on: String,
    /// The command that fits the coefficients.
    pub command: String,
    /// For a search by keywords and by vectors of the bundled embedder.
    pub hybrid: Coefficients,
    /// For vectors of other embedders, whose similarities are distributed differently.
    pub other_embedders: Coefficients,
    /// For a search by keywords only.
    pub keywords: Coefficients,
    /// For any of these, if the reader judged the best passages.
    pub reader: ReaderCoefficients,
}

/// The coefficients of the logistic model that includes the reader's judgement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReaderCoefficients {
    /// The bias.
    pub intercept: f64,
    /// Weight of the relevance without a reader, as a logit.
    pub relevance: f64,
    /// Weight of the highest logit that a passage answers the question.
    pub answers: f64,
}

/// The coefficients of one logistic model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Coefficients {
    /// The bias.
    pub intercept: f64,
    /// Weight of [`Signals::dense_best`].
    pub dense_best: f64,
    /// Weight of [`Signals::margin`].
    pub margin: f64,
    /// Weight of [`Signals::lexical_best`].
    pub lexical_best: f64,
    /// Weight of [`Signals::coverage`].
    pub coverage: f64,
}

static SHIPPED: LazyLock<Calibration> = LazyLock::new(|| {
    // A test parses the same file, so this cannot fail in a tested build.
    serde_json::from_str(include_str!("relevance.json"))
        .unwrap_or_else(|error| unreachable!("relevance.json: {error}"))
});

/// Part of the names of the embedders that [`Calibration::hybrid`] was fitted on.
const CALIBRATED_FAMILY: &str = "granite";

impl Calibration {
    /// The coefficients shipped with Docent.
    pub fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// The probability that the book covers the question. `embedder` is the name of the embedder.
    pub fn relevance(&self, signals: &Signals, embedder: &str) -> f32 {
        let model = match signals.has_vectors() {
            true if embedder.contains(CALIBRATED_FAMILY) => &self.hybrid,
            true => &self.other_embedders,
            false => &self.keywords,
        };
        model.probability(signals)
    }

    /// The same, including the reader's judgement. `answers` is its highest logit that a passage answers.
    pub fn with_reader(&self, relevance: f32, answers: f32) -> f32 {
        self.reader.probability(relevance, answers)
    }
}

impl ReaderCoefficients {
    /// The probability this model gives.
    pub fn probability(&self, relevance: f32, answers: f32) -> f32 {
        let sum = self.intercept
            + self.relevance * logit(relevance)
            + self.answers * f64::from(answers.clamp(-MOST_ANSWERS, MOST_ANSWERS));
        (1.0 / (1.0 + (-sum).exp())) as f32
    }
}

/// Logits of the reader are clamped to ± this value.
const MOST_ANSWERS: f32 = 10.0;

/// The log odds of a probability, which is clamped to avoid infinities.
pub fn logit(probability: f32) -> f64 {
    let probability = f64::from(probability).clamp(1e-4, 1.0 - 1e-4);
    (probability / (1.0 - probability)).ln()
}

impl Coefficients {
    /// The probability this model gives.
    pub fn probability(&self, signals: &Signals) -> f32 {
        let sum = self.intercept
            + self.dense_best * f64::from(signals.dense_best)
            + self.margin * f64::from(signals.margin)
            + self.lexical_best * f64::from(signals.lexical_best)
            + self.coverage * f64::from(signals.coverage);
        (1.0 / (1.0 + (-sum).exp())) as f32
    }
}

/// Number of best chunks in which the terms of the question are searched.
const COVERING_CHUNKS: usize = 5;

impl Signals {
    /// Whether vectors were searched.
    fn has_vectors(&self) -> bool {
        self.dense_best > 0.0
    }

    /// The signals of a search by keywords only.
    pub fn without_vectors(self) -> Self {
        Self { dense_best: 0.0, margin: 0.0, ..self }
    }

    /// Measures the signals. `best` are the texts of the best chunks in the final ranking.
    pub fn measure(candidates: &Candidates, best: &[&str], analyzer: &Analyzer) -> Self {
        let dense = |rank: usize| candidates.dense.get(rank).map(|candidate| candidate.score.clamp(0.0, 1.0));
        let dense_best = dense(0).unwrap_or(0.0);
        let total: f32 = candidates.terms.iter().map(|(_, weight)| weight).sum();
        let lexical = candidates.lexical.first().map_or(0.0, |candidate| candidate.score);
        Self {
            dense_best,
            margin: dense(9).map_or(0.0, |tenth| dense_best - tenth),
            lexical_best: if total > 0.0 { (lexical / (total * BM25_CEILING)).min(1.0) } else { 0.0 },
            coverage: coverage(candidates, best, analyzer),
        }
    }
}

/// With k1 = 1.2, BM25 scores a term with at most 2.2 times its weight.
const BM25_CEILING: f32 = 2.2;

/// The largest weighted share of the question's terms that one of the best chunks contains.
fn coverage(candidates: &Candidates, best: &[&str], analyzer: &Analyzer) -> f32 {
    let total: f32 = candidates.terms.iter().map(|(_, weight)| weight).sum();
    if total <= 0.0 {
        return 0.0;
    }
    let covered = best.iter().take(COVERING_CHUNKS).map(|text| {
        let found: std::collections::HashSet<_> =
            analyzer.terms(text).into_iter().map(|term| term.text).collect();
        candidates
            .terms
            .iter()
            .filter(|(term, _)| found.contains(term))
            .map(|(_, weight)| weight)
            .sum::<f32>()
    });
    covered.fold(0.0, f32::max) / total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relevance_never_decreases_with_a_signal() {
        let shipped = Calibration::shipped();
        let base = Signals { dense_best: 0.4, margin: 0.1, lexical_best: 0.3, coverage: 0.4 };
        let more = [
            Signals { dense_best: 0.6, ..base },
            Signals { margin: 0.3, ..base },
            Signals { lexical_best: 0.6, ..base },
            Signals { coverage: 0.8, ..base },
        ];
        for signals in more {
            for model in [&shipped.hybrid, &shipped.other_embedders, &shipped.keywords] {
                assert!(model.probability(&signals) >= model.probability(&base), "{signals:?}");
            }
        }
    }
}
