//! Does this passage support this sentence, and with which words?
//!
//! Cheap and exact signals: how much of the sentence's content, weighted by how telling its
//! words are, stands in a stretch of the passage; numbers and names that the passage lacks;
//! a "not" on one side only.
//!
//! Invariant: the span returned is a slice of the passage, and words copied from the
//! passage are supported completely.

use std::collections::HashSet;
use std::ops::Range;

use crate::terms::Analyzer;
use crate::units::units;

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

/// Stretches of up to this many neighbouring pieces are compared.
const WIDEST: usize = 3;

/// What a further piece in a stretch must earn: shorter quotes are better.
const WIDENING_COST: f32 = 0.03;

/// The best support for `sentence` in `passages`; none when they are empty.
pub fn support(sentence: &str, passages: &[&str], analyzer: &Analyzer) -> Option<Support> {
    passages
        .iter()
        .enumerate()
        .filter_map(|(number, content)| {
            let (score, span) = in_passage(sentence, content, analyzer)?;
            Some(Support { score, passage: number, span })
        })
        .max_by(|a, b| a.score.total_cmp(&b.score).then(b.passage.cmp(&a.passage)))
}

fn in_passage(sentence: &str, content: &str, analyzer: &Analyzer) -> Option<(f32, Range<usize>)> {
    let sentence = sentence.trim();
    if sentence.is_empty() {
        return None;
    }
    if let Some(start) = content.find(sentence) {
        return Some((1.0, start..start + sentence.len()));
    }
    let claim = Claim::read(sentence, analyzer);
    let pieces = units(content);
    let terms: Vec<HashSet<String>> = pieces
        .iter()
        .map(|unit| analyzer.distinct(&content[unit.span.clone()]).into_iter().collect())
        .collect();
    let mut best: Option<(f32, Range<usize>)> = None;
    for first in 0..pieces.len() {
        let mut found: HashSet<&str> = HashSet::new();
        for last in first..(first + WIDEST).min(pieces.len()) {
            found.extend(terms[last].iter().map(String::as_str));
            let span = pieces[first].span.start..pieces[last].span.end;
            let cost = WIDENING_COST * (last - first) as f32;
            let score = claim.supported_by(&content[span.clone()], &found, content) - cost;
            if best.as_ref().is_none_or(|(most, _)| score > *most) {
                best = Some((score, span));
            }
        }
    }
    best.map(|(score, span)| (score.clamp(0.0, 1.0), span))
}

/// A sentence, taken apart.
struct Claim {
    terms: Vec<(String, f32)>,
    total: f32,
    numbers: Vec<String>,
    negated: bool,
}

impl Claim {
    fn read(sentence: &str, analyzer: &Analyzer) -> Self {
        let terms: Vec<(String, f32)> = analyzer
            .distinct(sentence)
            .into_iter()
            .map(|term| {
                let weight = telling(&term);
                (term, weight)
            })
            .collect();
        let total = terms.iter().map(|(_, weight)| weight).sum::<f32>().max(1e-6);
        Self { terms, total, numbers: numbers(sentence), negated: is_negated(sentence) }
    }

    fn supported_by(&self, span: &str, found: &HashSet<&str>, passage: &str) -> f32 {
        let covered: f32 = self
            .terms
            .iter()
            .filter(|(term, _)| found.contains(term.as_str()))
            .map(|(_, weight)| weight)
            .sum();
        let mut score = covered / self.total;
        // A number the passage does not have was made up.
        let invented = self.numbers.iter().filter(|number| !has_number(passage, number)).count();
        if invented > 0 {
            score *= 0.4;
        } else if self.numbers.iter().any(|number| !has_number(span, number)) {
            score *= 0.8;
        }
        if self.negated != is_negated(span) {
            score *= 0.7;
        }
        score
    }
}

/// Longer words and identifiers say more than short ones; there is no index to ask for rarity.
fn telling(term: &str) -> f32 {
    let length = term.chars().count();
    let identifier = term.contains(|c: char| !c.is_alphanumeric());
    if identifier { 2.0 } else { (length as f32 / 5.0).clamp(0.4, 1.6) }
}

/// Numbers as written, without separators at the ends.
fn numbers(text: &str) -> Vec<String> {
    let mut found: Vec<String> = text
        .split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))
        .map(|number| number.trim_matches(['.', ',']).replace(',', ""))
        .filter(|number| number.bytes().any(|byte| byte.is_ascii_digit()))
        .collect();
    found.dedup();
    found
}

fn has_number(text: &str, number: &str) -> bool {
    numbers(text).iter().any(|found| found == number)
}

fn is_negated(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words =
        |word: &str| lower.split(|c: char| !c.is_alphanumeric() && c != '\'').any(|found| found == word);
    ["not", "no", "never", "cannot", "without", "neither", "nor"].into_iter().any(words)
        || lower.contains("n't")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use proptest::prelude::*;

    const PASSAGE: &str = "A node is a participant in the ROS 2 graph. It may publish at 50 Hz. \
                           A topic does not store messages.\n\n- Services answer requests.";

    fn check(sentence: &str) -> (f32, &'static str) {
        let found = support(sentence, &[PASSAGE], &Analyzer::new(Language::default())).unwrap();
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

    proptest! {
        #[test]
        fn the_span_is_a_slice_and_the_score_in_range(sentence in "[a-zA-Z0-9 .!?é]{0,60}", passage in "[a-zA-Z0-9 .!?é\n-]{0,120}") {
            if let Some(found) = support(&sentence, &[&passage], &Analyzer::new(Language::default())) {
                prop_assert!((0.0..=1.0).contains(&found.score));
                prop_assert!(passage.get(found.span.clone()).is_some_and(|quote| !quote.is_empty()));
            }
        }
    }
}
