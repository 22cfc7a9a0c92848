//! Keywords as sparse vectors: BM25 with the rarity of terms left to the server.
//!
//! A passage's vector holds, per term, what BM25 says about its frequency and the passage's
//! length; the server multiplies by the rarity of the term (`Modifier::Idf`), which it knows
//! best. A question's vector holds ones. The product is BM25, as the embedded index has it.
//!
//! Invariant: text and questions are cut into terms by the same [`Analyzer`].

use std::collections::BTreeMap;

use docent_core::terms::Analyzer;
use tantivy::fieldnorm::FieldNormReader;
use xxhash_rust::xxh3::xxh3_64;

/// How soon a term's frequency stops to matter.
const K1: f32 = 1.2;

/// How much a passage's length matters.
const B: f32 = 0.75;

/// A sparse vector: terms by their numbers, in order, and their weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sparse {
    /// Which terms.
    pub indices: Vec<u32>,
    /// Their weights.
    pub values: Vec<f32>,
}

/// The number of a term. Two of a book's terms share one so rarely that nobody notices.
pub fn number(term: &str) -> u32 {
    xxh3_64(term.as_bytes()) as u32
}

/// A passage cut into terms.
#[derive(Debug, Clone)]
pub struct Counted {
    counts: BTreeMap<u32, u32>,
    /// Terms in the passage, repeated ones included.
    pub length: u32,
}

impl Counted {
    /// Cuts a passage.
    pub fn new(text: &str, analyzer: &Analyzer) -> Self {
        let mut counts = BTreeMap::new();
        let mut length = 0;
        for term in analyzer.terms(text) {
            *counts.entry(number(&term.text)).or_default() += 1;
            length += 1;
        }
        Self { counts, length }
    }

    /// Its vector in a book whose passages have `average` terms.
    pub fn sparse(&self, average: f32) -> Sparse {
        // The embedded index keeps lengths in one byte; the same rounding gives the same scores.
        let length = FieldNormReader::id_to_fieldnorm(FieldNormReader::fieldnorm_to_id(self.length));
        let norm = K1 * (1.0 - B + B * length as f32 / average.max(1.0));
        let weight = |count: u32| count as f32 * (1.0 + K1) / (count as f32 + norm);
        Sparse {
            indices: self.counts.keys().copied().collect(),
            values: self.counts.values().map(|count| weight(*count)).collect(),
        }
    }
}

/// The vector of a question.
pub fn question<'a>(terms: impl IntoIterator<Item = &'a String>) -> Sparse {
    let numbers: std::collections::BTreeSet<u32> = terms.into_iter().map(|term| number(term)).collect();
    Sparse { values: vec![1.0; numbers.len()], indices: numbers.into_iter().collect() }
}

/// The weight of a term that `holding` of so many passages hold.
pub fn rarity(passages: usize, holding: usize) -> f32 {
    let (passages, holding) = (passages as f32, holding as f32);
    (1.0 + (passages - holding + 0.5) / (holding + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use docent_core::language::Language;

    #[test]
    fn a_repeated_term_weighs_more_but_not_twice_and_a_long_passage_less() {
        let analyzer = Analyzer::new(Language::default());
        let weight = |text: &str| Counted::new(text, &analyzer).sparse(4.0).values[0];
        let (once, twice) = (weight("node"), weight("node node"));
        assert!(once < twice && twice < 2.0 * once, "{once} {twice}");
        let long = Counted::new("node graph topic message service action", &analyzer).sparse(4.0);
        assert_eq!(long.indices.len(), 6);
        assert!(long.values.iter().all(|value| *value < once));
        assert!(long.indices.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
