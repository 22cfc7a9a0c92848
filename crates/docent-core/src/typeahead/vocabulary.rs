//! The terms of a book, and which of them a typed word stands for.
//!
//! Invariant: a misspelled word stands for the terms with the fewest different letters, and only if no term
//! equals it or begins with it. A shorter term that the word extends counts as one too: each added letter is a different one.
//! What is typed is compared with words as they are spelled in titles and headings, too, because a term is only their stem.

use std::collections::{BTreeMap, HashMap};

use strsim::osa_distance;

use super::Meanings;

/// The quality of a match: the word itself, a term that it begins, a term that it extends.
const EXACT: f32 = 1.0;
const BEGINS: f32 = 0.9;
const EXTENDS: f32 = 0.85;
/// A finished word that happens to begin another term.
const INSIDE: f32 = 0.5;
/// One letter differs; each further letter costs `PER_LETTER`.
const MISSPELLED: f32 = 0.75;
const PER_LETTER: f32 = 0.2;

/// How many terms a word may begin, and how many a misspelled word may stand for.
const MOST_BEGUN: usize = 24;
const MOST_SPELLINGS: usize = 6;

/// A shorter word begins too many terms for the text, and too short a word can be a misspelling of anything.
const SHORTEST_FINISHED: usize = 3;
const SHORTEST_MISSPELLED: usize = 4;

/// From this length on, two letters may differ.
const TWO_LETTERS_FROM: usize = 6;

/// A stem is at most this much shorter than an unfinished form of its word ("configurat", "configur").
const LONGEST_ENDING: usize = 4;

/// The terms of a book in alphabetical order; a term is named by its number.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    terms: Vec<Entry>,
    numbers: HashMap<String, u32>,
    /// Words as they are spelled, in alphabetical order, each with the number of its term.
    spellings: Vec<(Entry, u32)>,
}

#[derive(Debug)]
struct Entry {
    text: String,
    letters: u64,
    length: usize,
    count: u32,
}

impl Vocabulary {
    /// The terms with the number of passages that contain them, and words with their terms.
    pub(super) fn new(counts: BTreeMap<String, u32>, spellings: BTreeMap<String, String>) -> Self {
        let entry = |(text, count): (String, u32)| Entry {
            letters: letters(&text),
            length: text.chars().count(),
            text,
            count,
        };
        let terms: Vec<Entry> = counts.into_iter().map(entry).collect();
        let numbers: HashMap<String, u32> =
            (0..).zip(&terms).map(|(number, entry)| (entry.text.clone(), number)).collect();
        let spelled = |(word, term): (String, String)| Some((entry((word, 0)), *numbers.get(&term)?));
        let spellings = spellings.into_iter().filter_map(spelled).collect();
        Self { terms, numbers, spellings }
    }

    /// The number of a term.
    pub(super) fn number(&self, term: &str) -> Option<u32> {
        self.numbers.get(term).copied()
    }

    /// The term with a number.
    pub(super) fn term(&self, number: u32) -> &str {
        &self.terms[number as usize].text
    }

    /// How many passages contain a term.
    pub(super) fn count(&self, number: u32) -> u32 {
        self.terms[number as usize].count
    }

    /// The terms that a word in lower case stands for; `analyzed` is what the analyzer makes of it.
    pub(super) fn meanings(&self, word: &str, analyzed: &[String], is_unfinished: bool) -> Meanings {
        let mut meanings: Meanings =
            analyzed.iter().filter_map(|term| Some((self.number(term)?, EXACT))).collect();
        let is_known = !meanings.is_empty();
        let length = word.chars().count();
        if is_unfinished || (is_known && length >= SHORTEST_FINISHED) {
            let quality = if is_unfinished { BEGINS } else { INSIDE };
            for number in self.begun_by(word) {
                meanings.entry(number).or_insert(quality);
            }
        }
        if !meanings.is_empty() || length < SHORTEST_MISSPELLED {
            return meanings;
        }
        let stem = analyzed.last().map_or(word, String::as_str);
        let (extended, (letters, similar)) =
            (self.stem_of(word), self.spelled_like(word, stem, is_unfinished));
        match extended {
            Some((added, number)) if similar.is_empty() || added <= letters => {
                Meanings::from([(number, EXTENDS)])
            }
            _ => similar,
        }
    }

    /// The most frequent terms that begin with a word.
    fn begun_by(&self, word: &str) -> Vec<u32> {
        let first = self.terms.partition_point(|entry| entry.text.as_str() < word);
        let begun = self.terms[first..].iter().take_while(|entry| entry.text.starts_with(word));
        let spelled = self.spellings.partition_point(|(entry, _)| entry.text.as_str() < word);
        let spelled = self.spellings[spelled..].iter().take_while(|(entry, _)| entry.text.starts_with(word));
        let mut numbers: Vec<u32> = (first as u32..).zip(begun).map(|(number, _)| number).collect();
        numbers.extend(spelled.map(|(_, number)| *number));
        numbers.sort_by_key(|number| (std::cmp::Reverse(self.count(*number)), *number));
        numbers.dedup();
        numbers.truncate(MOST_BEGUN);
        numbers
    }

    /// The longest term that a word extends by a few letters, and by how many.
    fn stem_of(&self, word: &str) -> Option<(usize, u32)> {
        let ends = (1..).zip(word.char_indices().rev().map(|(at, _)| at)).take(LONGEST_ENDING);
        ends.filter(|(_, end)| word[..*end].chars().count() >= SHORTEST_MISSPELLED)
            .find_map(|(added, end)| Some((added, self.number(&word[..end])?)))
    }

    /// The terms with the fewest letters that differ from a word or its stem, and how many differ. An unfinished word is
    /// also compared with the beginning of longer terms.
    fn spelled_like(&self, word: &str, stem: &str, is_unfinished: bool) -> (usize, Meanings) {
        let length = word.chars().count();
        let most = if length >= TWO_LETTERS_FROM { 2 } else { 1 };
        let (of_word, of_stem) = (letters(word), letters(stem));
        let mut found: Vec<(usize, u32)> = Vec::new();
        let spelled = self.spellings.iter().map(|(entry, number)| (*number, entry));
        for (number, entry) in (0..).zip(&self.terms).chain(spelled) {
            let mut distance = usize::MAX;
            for (spelling, mask) in [(word, of_word), (stem, of_stem)] {
                // Each different letter changes at most two of the letters that occur.
                let is_close = entry.length.abs_diff(spelling.chars().count()) <= most;
                if is_close && (entry.letters ^ mask).count_ones() as usize <= 2 * most {
                    distance = distance.min(osa_distance(spelling, &entry.text));
                }
            }
            let is_longer = entry.length > length && (of_word & !entry.letters).count_ones() as usize <= most;
            if is_unfinished && distance > most && is_longer {
                let beginning: String = entry.text.chars().take(length).collect();
                distance = distance.min(osa_distance(word, &beginning));
            }
            // Most terms have too many other letters.
            let may_be_stem = length >= TWO_LETTERS_FROM && (entry.letters & !of_word).count_ones() <= 1;
            if distance > most && may_be_stem && is_stem_of_misspelled(entry, word) {
                distance = 2;
            }
            if distance <= most {
                found.push((distance, number));
            }
        }
        let Some(least) = found.iter().map(|(distance, _)| *distance).min() else {
            return Default::default();
        };
        found.retain(|(distance, _)| *distance == least);
        found.sort_by_key(|(_, number)| (std::cmp::Reverse(self.count(*number)), *number));
        found.dedup();
        found.truncate(MOST_SPELLINGS);
        let quality = MISSPELLED - PER_LETTER * least.saturating_sub(1) as f32;
        (least, found.into_iter().map(|(_, number)| (number, quality)).collect())
    }
}

/// Whether a word begins like a term with one different letter, and goes on with an ending ("simlated" for "simul").
fn is_stem_of_misspelled(entry: &Entry, word: &str) -> bool {
    let length = word.chars().count();
    let lengths = entry.length.saturating_sub(1)..=entry.length + 1;
    let is_ending = |rest: usize| (1..=LONGEST_ENDING).contains(&rest);
    entry.length >= SHORTEST_MISSPELLED
        && lengths.filter(|kept| is_ending(length.saturating_sub(*kept))).any(|kept| {
            let beginning: String = word.chars().take(kept).collect();
            osa_distance(&beginning, &entry.text) == 1
        })
}

/// The letters and digits that occur in a text, as a set of bits.
fn letters(text: &str) -> u64 {
    let bit = |c: char| match c {
        'a'..='z' => u32::from(c) - u32::from('a'),
        '0'..='9' => 26 + u32::from(c) - u32::from('0'),
        _ => 36 + u32::from(c) % 28,
    };
    text.chars().fold(0, |set, c| set | 1 << bit(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        let words = [
            "config",
            "configur",
            "deploy",
            "depend",
            "docusaurus",
            "plugin",
            "site",
            "sitemap",
            "version",
            "versionname",
            "versu",
        ];
        let counts = (1..).zip(words).map(|(count, word)| (word.to_owned(), count)).collect();
        let spellings = [("deploying", "deploy"), ("versioning", "version")];
        Vocabulary::new(counts, spellings.map(|(word, term)| (word.to_owned(), term.to_owned())).into())
    }

    fn meanings(word: &str, analyzed: &str, is_unfinished: bool) -> Vec<String> {
        let vocabulary = vocabulary();
        let analyzed: Vec<String> = analyzed.split_whitespace().map(str::to_owned).collect();
        let mut found: Vec<String> = vocabulary
            .meanings(word, &analyzed, is_unfinished)
            .keys()
            .map(|number| vocabulary.term(*number).to_owned())
            .collect();
        found.sort();
        found
    }

    #[test]
    fn an_unfinished_word_stands_for_the_terms_it_begins() {
        assert_eq!(meanings("de", "de", true), ["depend", "deploy"]);
        assert_eq!(meanings("conf", "conf", true), ["config", "configur"]);
        assert_eq!(meanings("configuratio", "configuratio", true), ["configur"]);
        assert_eq!(meanings("versionin", "versionin", true), ["version"]);
        assert_eq!(meanings("versio", "versio", true), ["version", "versionname"]);
    }

    #[test]
    fn a_finished_word_stands_for_itself() {
        assert_eq!(meanings("deploy", "deploy", false), ["deploy"]);
        assert!(meanings("de", "de", false).is_empty());
    }

    #[test]
    fn a_misspelled_word_stands_for_the_most_similar_terms() {
        assert_eq!(meanings("depoly", "depoli", false), ["deploy"]);
        assert_eq!(meanings("docusuarus", "docusuarus", false), ["docusaurus"]);
        assert_eq!(meanings("verisoning", "verison", false), ["version"]);
        assert_eq!(meanings("plguin", "plguin", false), ["plugin"]);
        assert_eq!(meanings("dcousau", "dcousau", true), ["docusaurus"]);
        assert_eq!(meanings("sitemp", "sitemp", true), ["sitemap"]);
        assert_eq!(meanings("configruation", "configru", true), ["configur"]);
        assert_eq!(meanings("depnding", "depnd", true), ["depend"]);
        assert_eq!(meanings("versionng", "versionng", true), ["version", "versionname"]);
        assert!(meanings("zebra", "zebra", false).is_empty());
        assert!(meanings("dpl", "dpl", false).is_empty());
    }
}
