//! BM25 as sparse vectors; the server contributes the IDF.
//!
//! A passage's vector has, per term, the BM25 weight for the term's frequency and the passage's length. The
//! server multiplies it by the term's rarity (`Modifier::Idf`). A query's vector consists of ones. The
//! product is the same BM25 score as in the embedded index.
//!
//! Invariant: passages and queries are split into terms by the same [`Analyzer`].

use std::collections::BTreeMap;

use docent_core::terms::Analyzer;
use tantivy::fieldnorm::FieldNormReader;
use xxhash_rust::xxh3::xxh3_64;

/// BM25 `k1`: how soon repetitions of a term stop counting.
const K1: f32 = 1.2;

/// BM25 `b`: how much a passage's length matters.
const B: f32 = 0.75;

/// A sparse vector: term numbers in ascending order, and their weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sparse {
    /// The numbers of the terms.
    pub indices: Vec<u32>,
    /// Their weights.
    pub values: Vec<f32>,
}

/// The number of a term. Collisions within a book are too rare to matter.
pub fn number(term: &str) -> u32 {
    xxh3_64(term.as_bytes()) as u32
}

/// The term counts of a passage.
#[derive(Debug, Clone)]
pub struct Counted {
    counts: BTreeMap<u32, u32>,
    /// Number of terms in the passage, including repetitions.
    pub length: u32,
}

impl Counted {
    /// Splits a passage into terms and counts them.
    pub fn new(text: &str, analyzer: &Analyzer) -> Self {
        let mut counts = BTreeMap::new();
        let mut length = 0;
        for term in analyzer.terms(text) {
            *counts.entry(number(&term.text)).or_default() += 1;
            length += 1;
        }
        Self { counts, length }
    }

    /// The passage's vector in a book whose passages have `average` terms on average.
    pub fn sparse(&self, average: f32) -> Sparse {
        // The embedded index stores lengths in one byte; the same rounding gives the same scores.
        let length = FieldNormReader::id_to_fieldnorm(FieldNormReader::fieldnorm_to_id(self.length));
        let norm = K1 * (1.0 - B + B * length as f32 / average.max(1.0));
        let weight = |count: u32| count as f32 * (1.0 + K1) / (count as f32 + norm);
        Sparse {
            indices: self.counts.keys().copied().collect(),
            values: self.counts.values().map(|count| weight(*count)).collect(),
        }
    }
}

/// The vector of a query.
pub fn question<'a>(terms: impl IntoIterator<Item = &'a String>) -> Sparse {
    let numbers: std::collections::BTreeSet<u32> = terms.into_iter().map(|term| number(term)).collect();
    Sparse { values: vec![1.0; numbers.len()], indices: numbers.into_iter().collect() }
}

/// The IDF of a term that occurs in `holding` of `passages` passages.
pub fn rarity(passages: usize, holding: usize) -> f32 {
    let (passages, holding) = (passages as f32, holding as f32);
    (1.0 + (passages - holding + 0.5) / (holding + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use docent_core::language::Language;

    #[test]
    fn repetitions_raise_the_weight_of_a_term_and_long_passages_lower_it() {
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
