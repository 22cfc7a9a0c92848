//! Find the key terms of a question: names, codes and versions, which have no synonyms.
//!
//! "How do I connect Webots?" cannot be answered from passages that do not mention Webots, however similar
//! they are. "How do I glue strings together?" can, since a book may say "join". A word is a key term if it
//! is written like a name or is not a common word of the language.
//!
//! Invariant: a passage that contains a key term in a slightly different spelling still counts as mentioning
//! it.

use std::collections::HashSet;

use crate::question_kind::QuestionKind;
use crate::terms::Analyzer;

/// A key term of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTerm {
    /// The word as the user wrote it.
    pub word: String,
    /// Its search terms: the whole name first, then its parts.
    terms: Vec<String>,
    /// Whether it is a common word of the term that a question asks to define ("inverse kinematics"). It matters only if
    /// the whole book lacks it.
    is_common: bool,
}

/// In longer questions, not every name matters, so they have no key terms.
const MOST_WORDS: usize = 20;

/// Abbreviations that are not names.
const ABBREVIATED: [&str; 4] = ["e.g", "i.e", "etc", "vs"];

/// Words of at least this length may differ by one letter, and words twice as long by two.
const LEAST_MISSPELLED: usize = 6;

/// The key terms of an English question. `is_common` decides whether a lower-case word is common.
pub fn key_terms(question: &str, analyzer: &Analyzer, is_common: &dyn Fn(&str) -> bool) -> Vec<KeyTerm> {
    let words = question.split_whitespace().count();
    // An error message contains names from the user's own program.
    if analyzer.language().code() != "en" || words > MOST_WORDS || QuestionKind::of(question).trouble {
        return Vec::new();
    }
    let defined = defined_term(question);
    let mut found: Vec<KeyTerm> = Vec::new();
    let mut end = 0;
    for term in analyzer.terms(question) {
        let word = &question[term.start..term.end];
        if term.start < end {
            // Part of the previous name.
            if let Some(name) = found.last_mut().filter(|name| name.word.contains(word)) {
                name.terms.push(term.text);
            }
            continue;
        }
        end = term.end;
        let opens = opens_sentence(&question[..term.start]);
        // "ready-made" is two common words; a path or an option is the user's own, or found by its parts.
        let is_own = word.starts_with(['/', '-']) || ABBREVIATED.contains(&word);
        let lower = word.to_lowercase();
        let is_plain = || is_inflected(&lower) || lower.split('-').all(is_common);
        let is_uncommon = !is_own && (is_name(word, opens) || !is_plain());
        if is_uncommon || defined.contains(&lower.as_str()) {
            found.push(KeyTerm { word: word.to_owned(), terms: vec![term.text], is_common: !is_uncommon });
        }
    }
    let written_as_names = found.iter().filter(|name| is_name(&name.word, false)).count();
    // In A Title Written Like This, capitals do not mark names.
    if written_as_names * 2 > words && words > 3 { Vec::new() } else { found }
}

/// The words of the term that a question asks to define: "inverse" and "kinematics" in "What is inverse kinematics?".
fn defined_term(question: &str) -> HashSet<&str> {
    const OPENINGS: [&str; 5] = ["what is ", "what are ", "what's ", "whats ", "define "];
    // With one of these, the question is not only about a term.
    const OTHER: [&str; 30] = [
        "of", "for", "in", "on", "to", "and", "or", "with", "it", "its", "this", "that", "these", "those",
        "there", "i", "my", "you", "your", "we", "our", "he", "she", "they", "about", "from", "by", "at",
        "is", "are",
    ];
    const LONGEST: usize = 3;
    const SHORTEST_WORD: usize = 4;
    let asked = question.trim().trim_end_matches(['?', '.', '!', ' ']);
    let is_opening =
        |opening: &&str| asked.get(..opening.len()).is_some_and(|start| start.eq_ignore_ascii_case(opening));
    let Some(opening) = OPENINGS.iter().find(|opening| is_opening(opening)) else { return HashSet::new() };
    let words: Vec<&str> = asked[opening.len()..]
        .split_whitespace()
        .skip_while(|word| ["a", "an", "the"].contains(word))
        .collect();
    if words.len() > LONGEST || words.iter().any(|word| OTHER.contains(&word.to_lowercase().as_str())) {
        return HashSet::new();
    }
    words
        .into_iter()
        .filter(|word| word.len() >= SHORTEST_WORD && word.chars().all(char::is_lowercase))
        .collect()
}

/// Whether a word has the ending of a verb or adverb, which names hardly ever have.
fn is_inflected(word: &str) -> bool {
    ["ing", "ed", "ly", "able"].iter().any(|ending| word.ends_with(ending))
}

/// Whether a word is written like a name: a capital inside a sentence, several capitals, or digits mixed with
/// other characters.
fn is_name(word: &str, opens_sentence: bool) -> bool {
    let capitals = word.chars().filter(|c| c.is_uppercase()).count();
    let digits = word.chars().any(|c| c.is_ascii_digit());
    let mixed = digits && word.chars().any(|c| !c.is_ascii_digit());
    mixed || capitals > 1 || (capitals == 1 && !opens_sentence && word.chars().count() > 1)
}

fn opens_sentence(before: &str) -> bool {
    let before = before.trim_end();
    before.is_empty() || before.ends_with(['.', '?', '!', ':', '"', '\'', '(', '-'])
}

/// In questions with more words than this, an uncommon word that is not written like a name may be a detail.
const FEW_WORDS: usize = 8;

impl KeyTerm {
    /// Whether a passage must mention the term even if the reader is sure that it answers the question. A name
    /// or code is essential in every question; another uncommon word may be a detail of a long question.
    pub fn is_essential(&self, question: &str) -> bool {
        let is_short = question.split_whitespace().count() <= FEW_WORDS;
        is_name(&self.word, false) || (is_short && !self.is_common)
    }

    /// Whether a question may not be answered because the passages lack the term. `absent` are the terms that the whole
    /// book lacks.
    pub fn matters(&self, absent: &HashSet<String>) -> bool {
        !self.is_common || self.is_absent(absent)
    }

    /// Whether the whole term is one of these.
    pub fn is_absent(&self, absent: &HashSet<String>) -> bool {
        self.terms.first().is_some_and(|whole| absent.contains(whole))
    }

    /// Whether a text with these terms and words mentions the key term, possibly in another spelling.
    pub fn is_in(&self, terms: &HashSet<String>, words: &HashSet<String>) -> bool {
        let (whole, parts) =
            self.terms.split_first().map_or(("", &[][..]), |(whole, parts)| (whole.as_str(), parts));
        let lower = self.word.to_lowercase();
        terms.contains(whole)
            || (!parts.is_empty() && parts.iter().all(|part| terms.contains(part)))
            || words.contains(&lower)
            || words.iter().any(|word| is_numbered(word, &lower))
            || words.iter().any(|word| is_misspelled(&lower, word))
    }
}

/// Whether `word` is the name with digits appended: "ROS 2" is also written "ROS2".
fn is_numbered(word: &str, name: &str) -> bool {
    word.strip_prefix(name).is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
}

/// The words of a text in lower case, not stemmed.
pub fn words(text: &str) -> HashSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Whether two words differ only by a typo: a letter added, missing, replaced or swapped with its neighbor.
fn is_misspelled(word: &str, right: &str) -> bool {
    let length = word.chars().count();
    let slips = if length < LEAST_MISSPELLED {
        0
    } else if length < 2 * LEAST_MISSPELLED {
        1
    } else {
        2
    };
    slips > 0
        && word.chars().all(char::is_alphabetic)
        && length.abs_diff(right.chars().count()) <= slips
        && strsim::osa_distance(word, right) <= slips
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;

    fn check(question: &str, expected: &[&str]) {
        let analyzer = Analyzer::new(Language::default());
        let common =
            ["connect", "environment", "create", "record", "camera", "glue", "strings", "together", "set"];
        let found = key_terms(question, &analyzer, &|word| common.contains(&word));
        assert_eq!(found.iter().map(|name| name.word.as_str()).collect::<Vec<_>>(), expected, "{question}");
    }

    #[test]
    fn an_uncommon_word_is_a_detail_only_in_a_long_question() {
        let is_essential = |question: &str| {
            let analyzer = Analyzer::new(crate::language::Language::default());
            let terms = key_terms(question, &analyzer, &|word| word != "gibberish" && word != "tailwind");
            terms.iter().any(|term| term.is_essential(question))
        };
        assert!(is_essential("how to use tailwind"));
        assert!(is_essential("keep the original name of all downloaded files instead of Webots names"));
        assert!(!is_essential("keep the original name of all downloaded files instead of gibberish names"));
    }

    #[test]
    fn names_and_uncommon_words_are_key_terms() {
        check("connect webots", &["webots"]);
        check("Create a conda environment", &["conda"]);
        check("record the camera on Windows 3.11", &["Windows", "3.11"]);
        check("glue strings together", &[]);
        check("crouching", &[]);
    }

    #[test]
    fn common_words_of_a_term_to_define_matter_if_the_book_lacks_them() {
        let analyzer = Analyzer::new(Language::default());
        let common = |question: &str| {
            let terms = key_terms(question, &analyzer, &|_| true);
            assert!(terms.iter().all(|term| term.is_common && !term.matters(&HashSet::new())));
            let absent = terms.iter().flat_map(|term| term.terms.clone()).collect();
            assert!(terms.iter().all(|term| term.matters(&absent) && !term.is_essential(question)));
            terms.into_iter().map(|term| term.word).collect::<Vec<_>>()
        };
        assert_eq!(common("What is inverse kinematics?"), ["inverse", "kinematics"]);
        assert_eq!(common("whats a broad crawl"), ["broad", "crawl"]);
        assert!(common("What is the purpose of a crawl?").is_empty());
        assert!(common("What is this?").is_empty());
        assert!(common("How do I start a crawl?").is_empty());
    }

    #[test]
    fn titles_and_error_messages_have_no_key_terms() {
        check("Set Environment Record Camera", &[]);
        check("error: webots not found", &[]);
    }

    #[test]
    fn a_key_term_is_found_whole_by_its_parts_or_misspelled() {
        let analyzer = Analyzer::new(Language::default());
        let is_in = |question: &str, text: &str| {
            let terms = analyzer.terms(text).into_iter().map(|term| term.text).collect();
            key_terms(question, &analyzer, &|_| false)[0].is_in(&terms, &words(text))
        };
        assert!(is_in("symlink-install", "Use --symlink-install to link."));
        assert!(is_in("kubernets", "It runs on Kubernetes."));
        assert!(is_in("ros", "ROS2 has no master."));
        assert!(!is_in("conda", "A condo in town."));
        assert!(!is_in("webots", "Websites and robots."));
    }
}
