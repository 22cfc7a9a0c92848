//! Merge the results of several questions that were asked at once.
//!
//! Invariant: every question that the book covers has a hit near the top, as far as `top_k` allows.

use std::time::Duration;

use super::{Confidence, Hit, Retrieved, Unmentioned};
use crate::read::Read;
use crate::relevance::Signals;

/// Merges the results: hits are interleaved, and statements are marked with the question they belong to.
pub fn joined(found: Vec<(String, Retrieved)>, top_k: usize) -> Retrieved {
    let parts = found.len();
    let covers = |retrieved: &Retrieved| retrieved.confidence == Confidence::High;
    let any = found.iter().any(|(_, retrieved)| covers(retrieved));
    let uncovered: Vec<String> = found
        .iter()
        .filter(|(_, retrieved)| any && !covers(retrieved))
        .map(|(part, _)| part.clone())
        .collect();
    let mut asked: Vec<Retrieved> = found.into_iter().map(|(_, retrieved)| retrieved).collect();
    if any {
        asked.retain(covers);
    }
    let hits = interleaved(&asked, top_k);
    let read = statements(&asked, &hits);
    let time = |of: fn(&Retrieved) -> Duration| asked.iter().map(of).sum();
    let mut terms: Vec<(String, f32)> = Vec::new();
    for (term, weight) in asked.iter().flat_map(|retrieved| &retrieved.terms) {
        if terms.iter().all(|(known, _)| known != term) {
            terms.push((term.clone(), *weight));
        }
    }
    // A later question that was completed with words of the one before misses the same terms.
    let mut unmentioned: Vec<Unmentioned> = Vec::new();
    for term in asked.iter().flat_map(|retrieved| &retrieved.unmentioned) {
        if unmentioned.iter().all(|known| known.word.to_lowercase() != term.word.to_lowercase()) {
            unmentioned.push(term.clone());
        }
    }
    let best = asked.iter().max_by(|a, b| a.relevance.total_cmp(&b.relevance));
    Retrieved {
        passages_judged: asked.iter().map(|retrieved| retrieved.passages_judged).sum(),
        reader_busy: asked.iter().any(|retrieved| retrieved.reader_busy),
        answers: asked.iter().filter_map(|retrieved| retrieved.answers).reduce(f32::max),
        by_signals: best.map_or(0.0, |best| best.by_signals),
        total_found: asked.iter().map(|retrieved| retrieved.total_found).max().unwrap_or_default(),
        relevance: best.map_or(0.0, |best| best.relevance),
        confidence: best.map_or(Confidence::None, |best| best.confidence),
        signals: best.map_or_else(Signals::default, |best| best.signals),
        version: best.map_or_else(String::new, |best| best.version.clone()),
        embedding_time: time(|retrieved| retrieved.embedding_time),
        retrieval_time: time(|retrieved| retrieved.retrieval_time),
        hits,
        read,
        uncovered,
        unmentioned,
        respelled: None,
        parts,
        terms,
    }
}

/// The hits of all questions by turns, each once, at most `top_k`.
fn interleaved(asked: &[Retrieved], top_k: usize) -> Vec<Hit> {
    let mut hits: Vec<Hit> = Vec::new();
    let most = asked.iter().map(|retrieved| retrieved.hits.len()).max().unwrap_or_default();
    for place in 0..most {
        for hit in asked.iter().filter_map(|retrieved| retrieved.hits.get(place)) {
            if hits.len() < top_k && hits.iter().all(|known| known.chunk.id != hit.chunk.id) {
                hits.push(hit.clone());
            }
        }
    }
    // Interleaved hits are not sorted by score, so reassign the sorted scores to the positions.
    let mut scores: Vec<f32> = hits.iter().map(|hit| hit.score).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    hits.iter_mut().zip(scores).for_each(|(hit, score)| hit.score = score);
    hits
}

/// The statements that were read in these hits, with the number of the question they were read for.
fn statements(asked: &[Retrieved], hits: &[Hit]) -> Vec<Read> {
    let mut read: Vec<Read> = Vec::new();
    for (part, retrieved) in asked.iter().enumerate() {
        for (passage, hit) in hits.iter().enumerate() {
            let Some(number) = retrieved.hits.iter().position(|known| known.chunk.id == hit.chunk.id) else {
                continue;
            };
            let own = retrieved.read.iter().filter(|read| read.passage == number);
            read.extend(own.map(|own| Read { passage, part, ..own.clone() }));
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_that_several_questions_miss_is_named_once() {
        let missing = |words: &[&str]| {
            let term = |word: &&str| Unmentioned { word: (*word).to_owned(), is_elsewhere: false };
            Retrieved {
                unmentioned: words.iter().map(term).collect(),
                ..Retrieved::nothing("g000001".to_owned())
            }
        };
        let found = [
            ("a TOML file".to_owned(), missing(&["TOML"])),
            ("a toml file for CI".to_owned(), missing(&["toml", "CI"])),
        ];
        let joined = joined(found.into(), 5);
        let words: Vec<&str> = joined.unmentioned.iter().map(|term| term.word.as_str()).collect();
        assert_eq!(words, ["TOML", "CI"]);
    }
}
