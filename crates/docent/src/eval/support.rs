//! Claims that are labeled as supported by a page or not, to measure and fit the answer verification.
//!
//! Reads JSON lines with `claim`, `label`, and either `evidence_sentences` (the page) or
//! `doc` (the id of a document in a corpus).

use std::collections::HashMap;
use std::path::Path;

use docent_backends::source::corpus;
use docent_core::verify::{Calibration, Evidence, INPUTS, ReaderModel, Signals, Verifier};
use serde::{Deserialize, Serialize};

use super::fit::{auc, product_weights, weights};
use super::read_text;
use crate::exit::{Exit, Failure};

/// A few hundred claims are too few to separate the coverage of the span from that of the passage. The
/// penalty makes both count, because users see the span.
const PENALTY: f64 = 0.0005;

/// How much worse it is to let a wrong sentence pass than to reject a right one: a rejected sentence is still shown, with a
/// mark, while a citation makes a wrong one believable.
const CAUTION: f64 = 2.0;

/// A claim with its signals and its label.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Judged {
    /// The signals of the claim and the best-matching stretch of its page.
    pub signals: Signals,
    /// Whether its page contains it word for word.
    pub verbatim: bool,
    /// Whether it is labeled as supported.
    pub supported: bool,
}

#[derive(Deserialize)]
struct Claim {
    claim: String,
    label: String,
    #[serde(default)]
    heading: String,
    #[serde(default)]
    evidence_sentences: Vec<String>,
    #[serde(default)]
    doc: Option<String>,
}

/// Reads claims and finds the best-matching stretch of each page. Partially supported claims are skipped.
pub async fn judge(
    path: &Path,
    documents: &HashMap<String, String>,
    verifier: &Verifier,
) -> Result<Vec<Judged>, Failure> {
    let mut judged = Vec::new();
    for (line, number) in read_text(path)?.lines().zip(1..) {
        let at = |message: String| {
            Failure::new(Exit::Failed, format!("{}, line {number}: {message}", path.display()))
        };
        let claim: Claim = serde_json::from_str(line).map_err(|error| at(error.to_string()))?;
        let supported = match claim.label.to_lowercase().as_str() {
            "support" | "supported" => true,
            "contradict" | "contradicted" | "not_mentioned" | "not_enough_info" | "not_supported" => false,
            "partially_supported" => continue,
            other => return Err(at(format!("unknown label `{other}`"))),
        };
        let page = match &claim.doc {
            Some(id) => documents.get(id).cloned().ok_or_else(|| {
                at(format!("unknown document {id}")).hint("pass its corpus with --corpus FILE")
            })?,
            None => claim.evidence_sentences.join("\n\n"),
        };
        let evidence = Evidence { heading: &claim.heading, content: &page };
        let stretch = verifier.stretches(&claim.claim, &[evidence]).await.into_iter().next();
        let verbatim = stretch.as_ref().is_some_and(|stretch| stretch.verbatim);
        let signals = stretch.map(|stretch| stretch.signals).unwrap_or_default();
        judged.push(Judged { signals, verbatim, supported });
    }
    Ok(judged)
}

/// The documents of a corpus by id.
pub fn read_documents(path: &Path) -> Result<HashMap<String, String>, Failure> {
    let records = corpus::records(path).map_err(|error| Failure::new(Exit::Failed, error))?;
    Ok(records.into_iter().map(|record| (record.id, record.text)).collect())
}

/// The score that a claim gets when answers are verified.
pub fn as_checked(claim: &Judged) -> f32 {
    let shipped = Calibration::shipped();
    let signals = claim.signals;
    // Similarity is only used if the reader did not read the claim and the words leave it in doubt.
    let asked = signals.reader.is_none() && shipped.is_in_doubt(&signals);
    let similarity = signals.similarity.filter(|_| asked);
    if claim.verbatim { 1.0 } else { shipped.support(&Signals { similarity, ..signals }) }
}

/// How well a score separates supported claims from the others.
pub fn auroc(claims: &[Judged], score: impl Fn(&Signals) -> f32) -> f64 {
    let scores = |supported: bool| -> Vec<f32> {
        let kind = claims.iter().filter(|claim| claim.supported == supported);
        kind.map(|claim| score(&claim.signals)).collect()
    };
    auc(&scores(true), &scores(false))
}

/// The weights fitted on claims, with or without the similarity, which needs an embedder.
pub fn fitted<'a>(claims: impl Iterator<Item = &'a Judged>, by_words: bool) -> [f64; INPUTS] {
    let examples: Vec<([f64; INPUTS], bool)> = claims
        .map(|claim| {
            let similarity = claim.signals.similarity.filter(|_| !by_words);
            (Signals { similarity, ..claim.signals }.inputs(), claim.supported)
        })
        .collect();
    weights(&examples, PENALTY)
}

/// The weights for use with a reader, fitted on the claims of each set that it read and no rule rejects.
pub fn fitted_with_reader<'a>(sets: impl Iterator<Item = &'a Vec<Judged>>) -> ReaderModel {
    let examples = |set: &Vec<Judged>| {
        let read = set.iter().filter(|claim| !claim.verbatim && !claim.signals.vetoed).filter_map(|claim| {
            let (mentioned, agrees) = claim.signals.reader_inputs()?;
            Some((mentioned, agrees, claim.supported))
        });
        read.collect()
    };
    let sets: Vec<_> = sets.map(examples).collect();
    let (mentioned, agrees) = product_weights(&sets, CAUTION, PENALTY);
    ReaderModel { mentioned, agrees }
}

/// The AUROC of each set, where every claim is scored by weights fitted without it (five folds).
pub fn cross_validated(sets: &[Vec<Judged>], by_words: bool) -> Vec<f64> {
    const FOLDS: usize = 5;
    let models: Vec<Calibration> = (0..FOLDS)
        .map(|fold| {
            let others = sets.iter().flat_map(|set| {
                set.iter().enumerate().filter(move |(place, _)| place % FOLDS != fold).map(|(_, claim)| claim)
            });
            let weights = fitted(others, by_words);
            Calibration {
                fitted_on: String::new(),
                command: String::new(),
                with_similarity: weights,
                by_words: weights,
                with_reader: Calibration::shipped().with_reader,
            }
        })
        .collect();
    let score = |set: &Vec<Judged>| {
        let scored = |supported: bool| -> Vec<f32> {
            set.iter()
                .enumerate()
                .filter(|(_, claim)| claim.supported == supported)
                .map(|(place, claim)| {
                    let similarity = claim.signals.similarity.filter(|_| !by_words);
                    models[place % FOLDS].support(&Signals { similarity, reader: None, ..claim.signals })
                })
                .collect()
        };
        auc(&scored(true), &scored(false))
    };
    sets.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_signal_has_an_auroc_of_one() {
        let claim = |coverage: f32, supported: bool| Judged {
            verbatim: false,
            signals: Signals { coverage, ..Signals::default() },
            supported,
        };
        let claims = [claim(0.9, true), claim(0.8, true), claim(0.3, false)];
        assert_eq!(auroc(&claims, |signals| signals.coverage), 1.0);
        assert_eq!(auroc(&claims, |_| 0.5), 0.5);
        assert!(fitted(claims.iter(), true)[1] > 1.0);
    }
}
