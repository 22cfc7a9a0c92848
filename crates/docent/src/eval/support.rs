//! Claims with pages that support them or do not, to measure the check of sentences.
//!
//! Reads a JSON line each: `claim`, `label`, and either `evidence_sentences` (the page) or
//! `doc` (the id of a document in a corpus).

use std::collections::HashMap;
use std::path::Path;

use docent_backends::source::corpus;
use docent_core::verify::{Calibration, INPUTS, Signals, Verifier};
use serde::Deserialize;

use super::fit::{auc, weights};
use super::read_text;
use crate::exit::{Exit, Failure};

/// A few hundred claims cannot tell the words of the span from those of the passage; the span
/// is what readers see, so both shall count.
const PENALTY: f64 = 0.0005;

/// A claim, what is known about it, and whether its page supports it.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// What is known about the claim and the best stretch of its page.
    pub signals: Signals,
    /// Whether a person found it supported.
    pub supported: bool,
}

#[derive(Deserialize)]
struct Claim {
    claim: String,
    label: String,
    #[serde(default)]
    evidence_sentences: Vec<String>,
    #[serde(default)]
    doc: Option<String>,
}

/// Reads claims and looks for the best stretch of each page. Claims supported in part are
/// left out: they are neither.
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
            "contradict" | "not_enough_info" | "not_supported" => false,
            "partially_supported" => continue,
            other => return Err(at(format!("unknown label `{other}`"))),
        };
        let page = match &claim.doc {
            Some(id) => documents.get(id).cloned().ok_or_else(|| {
                at(format!("document {id} is not known")).hint("name its corpus with --corpus FILE")
            })?,
            None => claim.evidence_sentences.join("\n\n"),
        };
        let stretch = verifier.stretches(&claim.claim, &[&page]).await.into_iter().next();
        let signals = stretch.map(|stretch| stretch.signals).unwrap_or_default();
        judged.push(Judged { signals, supported });
    }
    Ok(judged)
}

/// The documents of a corpus by id.
pub fn read_documents(path: &Path) -> Result<HashMap<String, String>, Failure> {
    let records = corpus::records(path).map_err(|error| Failure::new(Exit::Failed, error))?;
    Ok(records.into_iter().map(|record| (record.id, record.text)).collect())
}

/// How well a score tells supported claims from others.
pub fn auroc(claims: &[Judged], score: impl Fn(&Signals) -> f32) -> f64 {
    let scores = |supported: bool| -> Vec<f32> {
        let kind = claims.iter().filter(|claim| claim.supported == supported);
        kind.map(|claim| score(&claim.signals)).collect()
    };
    auc(&scores(true), &scores(false))
}

/// The model fitted on claims; with or without what needs an embedder.
pub fn fitted<'a>(claims: impl Iterator<Item = &'a Judged>, by_words: bool) -> [f64; INPUTS] {
    let examples: Vec<([f64; INPUTS], bool)> = claims
        .map(|claim| {
            let similarity = claim.signals.similarity.filter(|_| !by_words);
            (Signals { similarity, ..claim.signals }.inputs(), claim.supported)
        })
        .collect();
    weights(&examples, PENALTY)
}

/// The score each claim gets from a model that was fitted without it: every fifth is held out.
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
                    models[place % FOLDS].support(&Signals { similarity, ..claim.signals })
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
    fn a_signal_that_tells_all_has_an_area_of_one() {
        let claim = |coverage: f32, supported: bool| Judged {
            signals: Signals { coverage, ..Signals::default() },
            supported,
        };
        let claims = [claim(0.9, true), claim(0.8, true), claim(0.3, false)];
        assert_eq!(auroc(&claims, |signals| signals.coverage), 1.0);
        assert_eq!(auroc(&claims, |_| 0.5), 0.5);
        assert!(fitted(claims.iter(), true)[1] > 1.0);
    }
}
