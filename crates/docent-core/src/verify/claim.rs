//! A sentence taken apart, and the stretch of a passage that comes closest to it.

use std::collections::HashSet;
use std::ops::Range;

use super::Signals;
use crate::terms::Analyzer;
use crate::units::units;

/// Stretches of up to this many neighbouring pieces are compared.
const WIDEST: usize = 3;

/// What a further piece in a stretch must earn: shorter quotes are better.
const WIDENING_COST: f32 = 0.03;

/// Stems of words that say something grows, and of those that say it shrinks.
const MORE: [&str; 14] = [
    "increas", "rais", "promot", "enhanc", "elev", "activ", "induc", "higher", "more", "improv", "upregul",
    "greater", "stimul", "faster",
];
const LESS: [&str; 14] = [
    "decreas",
    "reduc",
    "inhibit",
    "lower",
    "suppress",
    "less",
    "impair",
    "prevent",
    "downregul",
    "loss",
    "diminish",
    "block",
    "lack",
    "slower",
];

/// A sentence, taken apart.
pub(super) struct Claim<'a> {
    sentence: &'a str,
    terms: Vec<(String, f32)>,
    total: f32,
    numbers: Vec<String>,
    negated: bool,
    direction: Option<Direction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    More,
    Less,
}

impl<'a> Claim<'a> {
    pub(super) fn read(sentence: &'a str, analyzer: &Analyzer) -> Self {
        let terms: Vec<(String, f32)> = analyzer
            .distinct(sentence)
            .into_iter()
            .map(|term| {
                let weight = telling(&term);
                (term, weight)
            })
            .collect();
        let total = terms.iter().map(|(_, weight)| weight).sum::<f32>().max(1e-6);
        let direction = direction(terms.iter().map(|(term, _)| term.as_str()));
        Self { sentence, terms, total, numbers: numbers(sentence), negated: is_negated(sentence), direction }
    }

    /// The stretch that covers most of the sentence, what is known of it, and whether it is
    /// the sentence itself; none when the passage has no words.
    pub(super) fn best_in(
        &self,
        content: &str,
        analyzer: &Analyzer,
    ) -> Option<(Range<usize>, Signals, bool)> {
        if let Some(start) = content.find(self.sentence) {
            let signals = Signals { coverage: 1.0, passage_coverage: 1.0, ..Signals::default() };
            return Some((start..start + self.sentence.len(), signals, true));
        }
        let pieces = units(content);
        let terms: Vec<HashSet<String>> = pieces
            .iter()
            .map(|unit| analyzer.distinct(&content[unit.span.clone()]).into_iter().collect())
            .collect();
        let mut best: Option<(f32, f32, Range<usize>, Range<usize>)> = None;
        for first in 0..pieces.len() {
            let mut found: HashSet<&str> = HashSet::new();
            for last in first..(first + WIDEST).min(pieces.len()) {
                found.extend(terms[last].iter().map(String::as_str));
                let covered = self.covered(|term| found.contains(term));
                let span = pieces[first].span.start..pieces[last].span.end;
                let numbers = self.numbers.iter().filter(|number| has_number(&content[span.clone()], number));
                // Of two stretches with the same words, the one with the numbers.
                let rank = covered + 0.1 * numbers.count() as f32 - WIDENING_COST * (last - first) as f32;
                if best.as_ref().is_none_or(|(most, ..)| rank > *most) {
                    best = Some((rank, covered, span, first..last + 1));
                }
            }
        }
        let (_, coverage, span, chosen) = best?;
        let words = &content[span.clone()];
        let invented = self.numbers.iter().filter(|number| !has_number(content, number)).count();
        let theirs = direction(terms[chosen].iter().flatten().map(String::as_str));
        let opposite = matches!((self.direction, theirs), (Some(ours), Some(theirs)) if ours != theirs);
        let signals = Signals {
            coverage,
            passage_coverage: self.covered(|term| terms.iter().any(|piece| piece.contains(term))),
            similarity: None,
            invented_numbers: invented as f32 / self.numbers.len().max(1) as f32,
            negation: f32::from(u8::from(self.negated != is_negated(words))),
            opposite: f32::from(u8::from(opposite)),
        };
        Some((span, signals, false))
    }

    fn covered(&self, found: impl Fn(&str) -> bool) -> f32 {
        let covered: f32 = self.terms.iter().filter(|(term, _)| found(term)).map(|(_, weight)| weight).sum();
        (covered / self.total).min(1.0)
    }
}

/// Longer words and identifiers say more than short ones; there is no index to ask for rarity.
fn telling(term: &str) -> f32 {
    let length = term.chars().count();
    let identifier = term.contains(|c: char| !c.is_alphanumeric());
    if identifier { 2.0 } else { (length as f32 / 5.0).clamp(0.4, 1.6) }
}

/// Whether the words say that something grows or shrinks; none when they say both or neither.
fn direction<'a>(terms: impl Iterator<Item = &'a str>) -> Option<Direction> {
    let (mut more, mut less) = (false, false);
    for term in terms {
        more |= MORE.contains(&term);
        less |= LESS.contains(&term);
    }
    match (more, less) {
        (true, false) => Some(Direction::More),
        (false, true) => Some(Direction::Less),
        _ => None,
    }
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
