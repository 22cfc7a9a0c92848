//! Does the book cover this question? One number between 0 and 1.
//!
//! A small logistic model over what retrieval knows anyway. Its coefficients are data:
//! `relevance.json` names the questions they were fitted on and the command that fits them.
//!
//! Invariant: every signal grows with relevance and lies between 0 and 1, whatever the
//! embedder or the length of the question.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::index::Candidates;
use crate::terms::Analyzer;

/// What retrieval knows about how well the book matches a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// The cosine of the closest chunk.
    pub dense_best: f32,
    /// How far the closest chunk stands out from the tenth closest.
    pub margin: f32,
    /// BM25 of the best chunk against the most its terms could give.
    pub lexical_best: f32,
    /// The weight of the question's terms found in the best chunks, of all its terms'.
    pub coverage: f32,
}

/// The models, and where their coefficients come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The question sets the coefficients came from.
    pub fitted_on: String,
    /// The command that fits them.
    pub command: String,
    /// For a search by keywords and vectors.
    pub hybrid: Coefficients,
    /// For a search by keywords alone.
    pub keywords: Coefficients,
}

/// The weights of one logistic model.
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
    // A test reads the same file, so this cannot fail in a build that passed.
    serde_json::from_str(include_str!("relevance.json"))
        .unwrap_or_else(|error| unreachable!("relevance.json: {error}"))
});

impl Calibration {
    /// The coefficients that come with the program.
    pub fn shipped() -> &'static Self {
        &SHIPPED
    }

    /// The probability that the book covers the question.
    pub fn relevance(&self, signals: &Signals) -> f32 {
        let model = if signals.has_vectors() { &self.hybrid } else { &self.keywords };
        model.probability(signals)
    }
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

/// How many of the best chunks are searched for the question's terms.
const COVERING_CHUNKS: usize = 5;

impl Signals {
    /// Whether the search had vectors to compare.
    fn has_vectors(&self) -> bool {
        self.dense_best > 0.0
    }

    /// What a search by keywords alone would have seen.
    pub fn without_vectors(self) -> Self {
        Self { dense_best: 0.0, margin: 0.0, ..self }
    }

    /// Reads the signals off what an index found. `best` are the chunks of the final ranking.
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

/// BM25 with k1 = 1.2 gives a term at most 2.2 times its weight.
const BM25_CEILING: f32 = 2.2;

/// The best share of the question's weight that one of the top chunks holds by itself.
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
    fn more_of_any_signal_is_never_less_relevant() {
        let shipped = Calibration::shipped();
        let base = Signals { dense_best: 0.4, margin: 0.1, lexical_best: 0.3, coverage: 0.4 };
        let more = [
            Signals { dense_best: 0.6, ..base },
            Signals { margin: 0.3, ..base },
            Signals { lexical_best: 0.6, ..base },
            Signals { coverage: 0.8, ..base },
        ];
        for signals in more {
            for model in [&shipped.hybrid, &shipped.keywords] {
                assert!(model.probability(&signals) >= model.probability(&base), "{signals:?}");
            }
        }
    }
}
