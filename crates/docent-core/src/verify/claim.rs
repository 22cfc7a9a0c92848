//! Analyze a sentence, and find the stretch of a passage that is closest to it.

use std::collections::HashSet;
use std::ops::Range;

use super::Signals;
use super::words::{WORDS, numbers};
use crate::reader::pieces;
use crate::terms::Analyzer;
use crate::unit::units;

/// Maximum number of adjacent units in a stretch.
const WIDEST: usize = 3;

/// Penalty for each further unit in a stretch, because shorter quotes are better.
const WIDENING_COST: f32 = 0.03;

/// Stems of words for an increase, and for a decrease.
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

/// An analyzed sentence.
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
                let weight = weight_of(&term);
                (term, weight)
            })
            .collect();
        let total = terms.iter().map(|(_, weight)| weight).sum::<f32>().max(1e-6);
        let direction = direction(terms.iter().map(|(term, _)| term.as_str()));
        Self {
            sentence,
            terms,
            total,
            numbers: numbers(sentence),
            negated: negates(sentence, analyzer),
            direction,
        }
    }

    /// The stretch that covers most of the sentence, its signals, and whether the sentence is a copy of it;
    /// none if the passage has no words.
    pub(super) fn best_in(
        &self,
        content: &str,
        analyzer: &Analyzer,
    ) -> Option<(Range<usize>, Signals, bool)> {
        let copied = self.verbatim_in(content).or_else(|| self.shortened_in(content, analyzer));
        if let Some(span) = copied {
            let signals = Signals { coverage: 1.0, passage_coverage: 1.0, ..Signals::default() };
            return Some((span, signals, true));
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
                // Of two stretches with the same words, prefer the one with the numbers.
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
            negation: f32::from(u8::from(self.negated != negates(words, analyzer))),
            opposite: f32::from(u8::from(opposite)),
            reader: None,
            vetoed: false,
        };
        Some((span, signals, false))
    }

    /// The weighted share of the sentence's terms that a text contains, 0–1.
    pub(super) fn covered_by(&self, text: &str, analyzer: &Analyzer) -> f32 {
        let terms: HashSet<String> = analyzer.distinct(text).into_iter().collect();
        self.covered(|term| terms.contains(term))
    }

    /// The sentence of the passage that this one is a shortened copy of. The omitted words must not affect
    /// the meaning: no condition, no "not", no "may".
    fn shortened_in(&self, content: &str, analyzer: &Analyzer) -> Option<Range<usize>> {
        if analyzer.language().code() != "en" {
            return None;
        }
        let ours = bare_words(self.sentence);
        if ours.len() < LEAST_SHORTENED {
            return None;
        }
        pieces(content).into_iter().find(|span| {
            let mut rest = ours.iter().peekable();
            let left_out = |word: &String| match rest.next_if(|next| *next == word) {
                Some(_) => None,
                None => Some(word.clone()),
            };
            let left_out: Vec<String> =
                bare_words(&content[span.clone()]).iter().filter_map(left_out).collect();
            rest.peek().is_none() && !left_out.iter().any(|word| WORDS.limits(word))
        })
    }

    /// The sentence, item or row of the passage that covers most of this sentence, and the coverage, 0–1.
    pub(super) fn nearest_piece<'c>(&self, content: &'c str, analyzer: &Analyzer) -> (&'c str, f32) {
        let pieces = pieces(content).into_iter().map(|span| &content[span]);
        let covered = pieces.map(|piece| (piece, self.covered_by(piece, analyzer)));
        covered.max_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or((content, 0.0))
    }

    /// Where the passage contains the sentence word for word, as one or several whole pieces. Parts of a
    /// sentence do not count, because they may mean something else than the whole.
    fn verbatim_in(&self, content: &str) -> Option<Range<usize>> {
        let wanted = plain(self.sentence);
        let pieces = pieces(content);
        for first in 0..pieces.len() {
            let mut said = String::new();
            for piece in pieces[first..].iter().take(WIDEST) {
                if !said.is_empty() {
                    said.push(' ');
                }
                said.push_str(&plain(&content[piece.clone()]));
                if said == wanted {
                    return Some(pieces[first].start..piece.end);
                }
                if said.len() > wanted.len() {
                    break;
                }
            }
        }
        None
    }

    fn covered(&self, found: impl Fn(&str) -> bool) -> f32 {
        let covered: f32 = self.terms.iter().filter(|(term, _)| found(term)).map(|(_, weight)| weight).sum();
        (covered / self.total).min(1.0)
    }
}

/// Minimum number of words of a shortened copy.
const LEAST_SHORTENED: usize = 4;

/// Whether a text contains a negation, if the words for it are known.
fn negates(text: &str, analyzer: &Analyzer) -> bool {
    analyzer.language().function_words().is_some_and(|words| words.negations_in(text) > 0)
}

/// The words of a sentence in order, in lower case, without punctuation around them.
pub(super) fn bare_words(text: &str) -> Vec<String> {
    text.split_whitespace()
        .map(|word| {
            word.trim_matches(|c: char| !(c.is_alphanumeric() || c == '_' || c == '%')).to_lowercase()
        })
        .filter(|word| !word.is_empty())
        .collect()
}

/// A sentence without list markers, emphasis and final punctuation, and with single spaces.
fn plain(text: &str) -> String {
    let bare = text.trim();
    let item = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = if item.len() < bare.len() { item.strip_prefix(". ") } else { bare.strip_prefix("- ") };
    let words: String = item.unwrap_or(bare).chars().filter(|c| !matches!(c, '*' | '`')).collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    words.trim_end_matches(['.', ':', ';']).to_owned()
}

/// The weight of a term: longer words and identifiers carry more meaning. Their rarity is not known here.
fn weight_of(term: &str) -> f32 {
    let length = term.chars().count();
    let identifier = term.contains(|c: char| !c.is_alphanumeric());
    if identifier { 2.0 } else { (length as f32 / 5.0).clamp(0.4, 1.6) }
}

/// Whether the words mean an increase or a decrease; none if both or neither.
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

fn has_number(text: &str, number: &str) -> bool {
    numbers(text).iter().any(|found| found == number)
}
