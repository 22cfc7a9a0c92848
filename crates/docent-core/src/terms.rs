//! Split text into search terms: stems, identifiers and n-grams.
//!
//! The keyword index, the question, and everything that compares the two use the same analyzer, so that they
//! always agree on what a term is.
//!
//! - Words are lower-cased and stemmed; stop words are dropped.
//! - Identifiers (`rclpy.create_node`, `--ros-args`, `/cmd_vel`, `LaunchDescription`) are kept whole, and
//!   their parts are added as words.
//! - Chinese, Japanese and Korean text is split into single characters and pairs.
//!
//! Invariant: every term records which bytes of the text it was made from.

use std::collections::HashSet;

use frostem::Stemmer;

use crate::language::Language;

/// A term and the bytes of the text it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The term as it is indexed and compared.
    pub text: String,
    /// Start in the text, in bytes.
    pub start: usize,
    /// End in the text, in bytes, exclusive.
    pub end: usize,
}

/// Splits text of one language into terms.
#[derive(Clone)]
pub struct Analyzer {
    language: Language,
    stemmer: Option<Stemmer>,
    stop_words: HashSet<&'static str>,
}

impl std::fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Analyzer").field(&self.language.code()).finish()
    }
}

impl Analyzer {
    /// The analyzer for books in `language`.
    pub fn new(language: Language) -> Self {
        let listed = stop_words::lookup(language.code()).unwrap_or_default();
        let typos: &[&str] = if language == Language::default() { &WITHOUT_APOSTROPHE } else { &[] };
        Self {
            language,
            stemmer: language.stemmer().map(Stemmer::new),
            stop_words: listed.iter().chain(typos).copied().collect(),
        }
    }

    /// The language of the analyzer.
    pub fn language(&self) -> Language {
        self.language
    }

    /// All terms of `text`, in order; an identifier comes before its parts.
    pub fn terms(&self, text: &str) -> Vec<Term> {
        let mut terms = Vec::with_capacity(text.len() / 6);
        for run in runs(text) {
            self.run_terms(text, run, &mut terms);
        }
        terms
    }

    /// The distinct terms of `text`, in order of first appearance.
    pub fn distinct(&self, text: &str) -> Vec<String> {
        let mut seen = HashSet::new();
        self.terms(text).into_iter().map(|term| term.text).filter(|term| seen.insert(term.clone())).collect()
    }

    fn run_terms(&self, text: &str, (start, end): (usize, usize), terms: &mut Vec<Term>) {
        let words = words(text, start, end);
        let whole = &text[start..end];
        // `-x` is an option and `/x` a path: the first character is part of the name.
        if words.len() > 1 || whole.starts_with(['-', '/']) {
            terms.push(Term { text: whole.to_lowercase(), start, end });
        }
        for word in words {
            match word {
                Word::Ideographs(start, end) => ngrams(text, start, end, terms),
                Word::Plain(start, end) => self.plain_word(text, start, end, terms),
            }
        }
    }

    fn plain_word(&self, text: &str, start: usize, end: usize, terms: &mut Vec<Term>) {
        let lower = text[start..end].to_lowercase();
        if self.stop_words.contains(lower.as_str()) {
            return;
        }
        let text = match &self.stemmer {
            Some(stemmer) => stemmer.stem(&lower).into_owned(),
            None => lower,
        };
        if !text.is_empty() {
            terms.push(Term { text, start, end });
        }
    }
}

/// Stop words that are often typed without their apostrophe.
const WITHOUT_APOSTROPHE: [&str; 16] = [
    "arent", "cant", "couldnt", "didnt", "doesnt", "dont", "hows", "isnt", "ive", "shouldnt", "thats",
    "theres", "wasnt", "whats", "wheres", "wont",
];

enum Word {
    Plain(usize, usize),
    Ideographs(usize, usize),
}

/// Characters that connect the parts of an identifier.
fn joins(c: char) -> bool {
    matches!(c, '_' | '.' | '-' | '/' | ':' | '+' | '#' | '@')
}

/// Runs of alphanumeric and connecting characters, without connecting characters at the ends.
fn runs(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut rest = 0;
    std::iter::from_fn(move || {
        loop {
            let start = rest + text[rest..].find(|c: char| c.is_alphanumeric() || joins(c))?;
            let end = text[start..]
                .find(|c: char| !(c.is_alphanumeric() || joins(c) || c == '\'' || c == '’'))
                .map_or(text.len(), |length| start + length);
            rest = end;
            let trimmed = trim(text, start, end);
            if trimmed.0 < trimmed.1 {
                return Some(trimmed);
            }
        }
    })
}

/// Removes connecting characters at the ends, except the first ones of `--flag` and `/path`.
fn trim(text: &str, start: usize, end: usize) -> (usize, usize) {
    let run = text[start..end].trim_end_matches(|c: char| !c.is_alphanumeric());
    let end = start + run.len();
    let Some(first) = run.find(char::is_alphanumeric) else { return (start, start) };
    let kept = match &run[..first] {
        "--" => 2,
        "-" | "/" => 1,
        _ => 0,
    };
    (start + first - kept, end)
}

/// The words of a run, split at connecting characters, at `aB`, and around ideographs.
fn words(text: &str, start: usize, end: usize) -> Vec<Word> {
    let mut words = Vec::new();
    let mut open: Option<(usize, bool)> = None;
    let mut previous = ' ';
    for (offset, c) in text[start..end].char_indices() {
        let at = start + offset;
        let ideograph = is_ideograph(c);
        let inside = c.is_alphanumeric();
        if let Some((from, was_ideograph)) = open {
            let camel = previous.is_lowercase() && c.is_uppercase();
            if !inside || ideograph != was_ideograph || camel {
                words.push(if was_ideograph { Word::Ideographs(from, at) } else { Word::Plain(from, at) });
                open = None;
            }
        }
        if inside && open.is_none() {
            open = Some((at, ideograph));
        }
        // "node's" is the word "node"; the part after the apostrophe is not a word.
        if matches!(c, '\'' | '’') && !words.is_empty() && end - at <= 4 {
            return words;
        }
        previous = c;
    }
    if let Some((from, ideograph)) = open {
        words.push(if ideograph { Word::Ideographs(from, end) } else { Word::Plain(from, end) });
    }
    words
}

fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

/// Every character and every pair of adjacent characters.
fn ngrams(text: &str, start: usize, end: usize, terms: &mut Vec<Term>) {
    let mut previous: Option<usize> = None;
    for (offset, c) in text[start..end].char_indices() {
        let (at, after) = (start + offset, start + offset + c.len_utf8());
        if let Some(from) = previous {
            terms.push(Term { text: text[from..after].to_owned(), start: from, end: after });
        }
        terms.push(Term { text: c.to_string(), start: at, end: after });
        previous = Some(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        let terms: Vec<_> =
            Analyzer::new(Language::default()).terms(text).into_iter().map(|term| term.text).collect();
        assert_eq!(terms.join(" "), expected, "{text}");
    }

    #[test]
    fn words_are_stemmed_and_stop_words_dropped() {
        check("The nodes are publishing messages.", "node publish messag");
    }

    #[test]
    fn identifiers_are_found_whole_and_by_part() {
        check("rclpy.create_node", "rclpy.create_node rclpi creat node");
        check("use --ros-args", "use --ros-args ros arg");
        check("on /cmd_vel, say", "/cmd_vel cmd vel say");
        check("LaunchDescription()", "launchdescription launch descript");
        check("std::sync::Arc", "std::sync::arc std sync arc");
    }

    #[test]
    fn punctuation_around_a_word_is_not_part_of_it() {
        check("Install it. (Really: now!)", "instal realli");
        check("a dash - alone", "dash alon");
        check("the robot's arm", "robot arm");
    }

    #[test]
    fn ideographs_are_split_into_characters_and_pairs() {
        check("机器人", "机 机器 器 器人 人");
        check("ROS 2 ノード", "ros 2 ノ ノー ー ード ド");
    }

    #[test]
    fn german_text_is_stemmed_by_german_rules() {
        let analyzer = Analyzer::new("de".parse().unwrap());
        let terms = analyzer.distinct("Die Knoten und der Knoten");
        assert_eq!(terms, ["knot"]);
    }

    proptest! {
        #[test]
        fn every_term_points_at_the_text_it_came_from(text in "\\PC{0,80}") {
            for term in Analyzer::new(Language::default()).terms(&text) {
                prop_assert!(term.start < term.end && text.get(term.start..term.end).is_some());
            }
        }
    }
}
