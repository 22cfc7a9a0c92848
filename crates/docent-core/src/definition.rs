//! Find the term that a question wants defined, and tell whether a statement defines it.
//!
//! "What exactly is an overlay?" is answered by "The second workspace is called an overlay.", although many
//! other passages say more about overlays. The patterns are English; a question in another language has no term.
//!
//! Invariant: a term is part of the question, in lower case, without articles.

use std::ops::Range;

use crate::question_kind::QuestionKind;

/// A term that a question wants defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    words: Vec<String>,
}

/// Words before the term.
const OPENINGS: [&str; 21] = [
    "what exactly is",
    "what exactly are",
    "what do people mean by",
    "what do you mean by",
    "what is meant by",
    "what does it mean to",
    "what is the meaning of",
    "what is",
    "what are",
    "what's",
    "whats",
    "what does",
    "what do",
    "whats the meaning of",
    "can you define",
    "can you explain",
    "define",
    "explain",
    "definition of",
    "meaning of",
    "describe",
];

/// Words after the term.
const ENDINGS: [&str; 13] = [
    " =",
    " mean",
    " means",
    " stand for",
    " meaning",
    " definition",
    " defined",
    " exactly",
    " again",
    " in one sentence",
    " in simple terms",
    " in a nutshell",
    " in plain english",
];

/// With one of these words, a question is about more than a term.
const OTHER: &str = "of for in on to and or with it its this that these those there i my you your we our he she \
    they about from by at is are be do does did can when where why how which who if than vs \
    versus default difference differences between maximum minimum best not";

/// Maximum number of words in a term.
const LONGEST: usize = 4;

/// Maximum number of words in a question that consists of the term alone.
const LONGEST_ALONE: usize = 2;

impl Term {
    /// The term that an English question wants defined.
    pub fn of(question: &str) -> Option<Self> {
        let lower = question.trim().to_lowercase();
        let mut text = lower.trim_end_matches(['?', '.', '!', ' ']);
        let opening = OPENINGS
            .iter()
            .filter_map(|opening| text.strip_prefix(opening).filter(|rest| rest.starts_with(' ')))
            .min_by_key(|rest| rest.len());
        let mut is_asked = opening.is_some();
        text = opening.unwrap_or(text).trim();
        while let Some(rest) = ENDINGS.iter().find_map(|ending| text.strip_suffix(ending)) {
            is_asked = true;
            text = rest.trim_end_matches([' ', ',']);
        }
        let words: Vec<String> =
            words(text).map(|(_, word)| word).skip_while(|word| is_article(word)).collect();
        let longest = if is_asked { LONGEST } else { LONGEST_ALONE };
        let alone = || is_asked || QuestionKind::of(question).keyword;
        let is_term =
            (1..=longest).contains(&words.len()) && alone() && !words.iter().any(|word| has(OTHER, word));
        is_term.then(|| Self { words: words.iter().map(|word| singular(word).to_owned()).collect() })
    }

    /// How clearly a statement defines the term: 0 if it does not, 1 for "A term is a …".
    pub fn clarity(&self, statement: &str) -> f32 {
        let lower = statement.to_lowercase();
        let found: Vec<(Range<usize>, String)> = words(&lower).collect();
        let bare: Vec<&str> = found.iter().map(|(_, word)| singular(word)).collect();
        let size = self.words.len();
        let places =
            (0..(bare.len() + 1).saturating_sub(size)).filter(|at| bare[*at..at + size] == self.words[..]);
        places.map(|at| self.clarity_at(&lower, &found, at)).fold(0.0, f32::max)
    }

    fn clarity_at(&self, text: &str, words: &[(Range<usize>, String)], at: usize) -> f32 {
        let word = |place: usize| words.get(place).map_or("", |(_, word)| word.as_str());
        let end = at + self.words.len();
        let mut before = at;
        while before > 0 && is_article(word(before - 1)) {
            before -= 1;
        }
        // "… is called a term", "this is known as a term"
        let named = before.checked_sub(1).map_or("", word);
        if has(NAMING, named) || (named == "as" && before > 1 && has(NAMING_AS, word(before - 2))) {
            return 1.0;
        }
        let starts = before <= LATEST_START
            || text[..words[before].0.start].trim_end().ends_with([',', ':', '.', ';', '\n']);
        if !starts {
            return 0.0;
        }
        let after = words[end - 1].0.end;
        match (word(end), word(end + 1)) {
            ("mean" | "means" | "denotes" | "describes", _) => 0.8,
            ("refers" | "refer", "to") | ("stands" | "stand", "for") => 1.0,
            ("is", next) if has(DEFINING, next) => 1.0,
            ("is", "when" | "where") => 0.6,
            ("are", next) if has(DEFINING, next) => 0.9,
            ("are", next) if !is_participle(next) => 0.6,
            // "Term: what it is", in a glossary.
            _ if before == 0
                && text[after..].trim_start_matches(['`', '*', '"', ')']).starts_with([':', '–', '—']) =>
            {
                0.7
            }
            _ => 0.0,
        }
    }
}

/// Maximum number of words before a term that a sentence defines: "Here, a node is …".
const LATEST_START: usize = 1;

const NAMING: &str = "called named termed call calls";
const NAMING_AS: &str = "known referred to";

/// Words that follow "is" in a definition.
const DEFINING: &str = "a an the one any another some basically simply essentially just like";

/// Whether a word after "are" tells what is done with something, not what it is.
fn is_participle(word: &str) -> bool {
    word.is_empty()
        || word.ends_with("ed")
        || word.ends_with("ing")
        || has(OTHER, word)
        || has(PREDICATES, word)
}

/// Further words after "are" that define nothing.
const PREDICATES: &str = "also only often always never now then very more most available useful important written sent \
    given shown built set made no similar";

/// Whether a list of words, separated by spaces, contains a word.
fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

fn is_article(word: &str) -> bool {
    has("a an the term word concept", word)
}

/// A word without a plural s.
fn singular(word: &str) -> &str {
    const SHORTEST: usize = 4;
    match word.strip_suffix('s') {
        Some(stem) if word.len() >= SHORTEST && !stem.ends_with(['s', 'u', 'i']) => stem,
        _ => word,
    }
}

/// The words of a lower-case text with their positions. A hyphen, a slash or a dot inside belongs to a word.
fn words(text: &str) -> impl Iterator<Item = (Range<usize>, String)> + '_ {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '\'' | '’');
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(|c: char| c.is_alphanumeric() || c == '_')?;
        let end = start + text[start..].find(|c| !is_inner(c)).unwrap_or(text.len() - start);
        at = end;
        let word = text[start..end].trim_end_matches(|c: char| !(c.is_alphanumeric() || c == '_'));
        Some((start..start + word.len(), word.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn term(question: &str) -> Option<String> {
        Term::of(question).map(|term| term.words.join(" "))
    }

    #[test]
    fn the_term_is_what_a_question_wants_defined() {
        for (question, expected) in [
            ("What is a ROS 2 node?", "ros 2 node"),
            ("what exactly is a virtual environment?", "virtual environment"),
            ("define module", "module"),
            ("crate = ?", "crate"),
            ("whats a docstring", "docstring"),
            ("explain ownership in one sentence", "ownership"),
            ("What does idempotent mean?", "idempotent"),
            ("what are topics", "topic"),
            ("walrus operator", "walrus operator"),
            ("underlay meaning", "underlay"),
        ] {
            assert_eq!(term(question).as_deref(), Some(expected), "{question}");
        }
    }

    #[test]
    fn other_questions_have_no_term() {
        for question in [
            "What is the difference between a topic and a service?",
            "What is the default port?",
            "what is it for",
            "How do I start a node?",
            "start a node on another machine",
            "Was ist ein Knoten?",
            "what",
            "",
        ] {
            assert_eq!(term(question), None, "{question}");
        }
    }

    fn clarity(question: &str, statement: &str) -> f32 {
        Term::of(question).map_or(0.0, |term| term.clarity(statement))
    }

    #[test]
    fn a_definition_is_clearer_than_a_mention() {
        for statement in [
            "A crate is the smallest amount of code that the compiler considers at a time.",
            "In Rust, a crate is a unit of compilation.",
            "Such a unit is called a *crate*.",
            "The unit is also known as a crate.",
            "`crate` stands for a unit of code.",
        ] {
            assert!(clarity("crate = ?", statement) >= 1.0, "{statement}");
        }
        assert!(clarity("define module", "Modules are files with definitions.") > 0.5);
        assert!(clarity("define module", "Module: a file with definitions.") > 0.5);
        for statement in [
            "We add comments to the crate root file.",
            "The crate is compiled again.",
            "Crates are published with one command.",
            "It is a crate is what they say about boxes.",
            "A box is a container.",
            "",
        ] {
            assert_eq!(clarity("crate = ?", statement), 0.0, "{statement}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_compared(question in ".{0,40}", statement in "(crate|is|a|called|[.,: é—\n]|\\PC){0,30}") {
            if let Some(term) = Term::of(&question) {
                prop_assert!((0.0..=1.0).contains(&term.clarity(&statement)));
            }
            prop_assert!((0.0..=1.0).contains(&clarity("crate = ?", &statement)));
        }
    }
}
