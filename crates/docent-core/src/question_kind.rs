//! Classify what a question asks for: a definition, steps, a value, a reason …
//!
//! The kinds are only one of the signals for choosing between statements, so a question may have several
//! kinds or none. They are detected by English words; a question in another language has no kind.
//!
//! Invariant: the kinds depend only on the words of the question.

use crate::sentence::sentences;

/// What a question asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuestionKind {
    /// A number, a default or a limit.
    pub value: bool,
    /// A reason.
    pub why: bool,
    /// A comparison of two things.
    pub comparison: bool,
    /// Steps or a command.
    pub how_to: bool,
    /// The meaning of a term.
    pub definition: bool,
    /// Several items.
    pub list: bool,
    /// Help with an error or a symptom.
    pub trouble: bool,
    /// Not a question but search terms.
    pub keyword: bool,
}

/// Maximum number of words for [`QuestionKind::keyword`].
const KEYWORD_WORDS: usize = 4;

impl QuestionKind {
    /// Detects the kinds of a question.
    pub fn of(question: &str) -> Self {
        let lower = question.trim().to_lowercase();
        let padded = format!(" {lower} ");
        let starts = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
        let holds = |words: &[&str]| words.iter().any(|word| padded.contains(word));
        let asks = starts(ASKING) || lower.contains('?');
        let is = |words: &Words| starts(words.first) || holds(words.anywhere);
        Self {
            value: is(&VALUE),
            why: is(&WHY),
            comparison: is(&COMPARISON),
            how_to: is(&HOW_TO),
            definition: is(&DEFINITION),
            list: is(&LIST),
            trouble: is(&TROUBLE) || (!asks && is_message(&lower)),
            keyword: !asks && lower.split_whitespace().count() <= KEYWORD_WORDS,
        }
    }
}

/// The words by which a kind is recognized.
struct Words {
    /// At the beginning of the question.
    first: &'static [&'static str],
    /// Anywhere in the question, which is between two spaces.
    anywhere: &'static [&'static str],
}

const VALUE: Words = Words {
    first: &["when "],
    anywhere: &[
        "how many",
        "how much",
        "how long",
        "how fast",
        "how old",
        "how high",
        "how big",
        "how large",
        "how often",
        " default",
        "maximum",
        "minimum",
        " limit",
        "what year",
        "which version",
        "what version",
        "number of",
        " at what ",
        "what value",
        "what size",
        "which level",
    ],
};

const WHY: Words = Words { first: &["why"], anywhere: &[" why ", " why?", "what for", "reason", "how come"] };

const COMPARISON: Words = Words {
    first: &[],
    anywhere: &[
        " vs ",
        " vs. ",
        " versus ",
        "difference",
        " differ",
        "compared",
        " or ",
        "instead of",
        "better",
        "distinguish",
        "same as",
        "the same",
    ],
};

const HOW_TO: Words = Words {
    first: &["how do", "how to", "how can", "how should", "how would"],
    anywhere: &[
        "how do i",
        "how can i",
        "how to ",
        "command",
        "i want",
        "i need",
        "need to",
        "want to",
        "a way to",
        " make ",
        "set up",
        "install",
        "configure",
        "steps",
        " run ",
    ],
};

const DEFINITION: Words = Words {
    first: &["what is", "what are", "what's", "whats", "define", "explain", "what does"],
    anywhere: &[" mean", "what exactly", " is that", "definition", "= ?"],
};

const LIST: Words = Words {
    first: &[],
    anywhere: &[
        "which ",
        "what kinds",
        "what types",
        " list ",
        "what are the",
        "types of",
        "kinds of",
        "name the",
        "options",
        "parts of",
    ],
};

const TROUBLE: Words = Words {
    first: &[],
    anywhere: &[
        "error",
        "fail",
        "cannot",
        "can't",
        " cant ",
        "not work",
        "doesn't",
        "doesnt",
        "wont ",
        "won't",
        "exception",
        "warning",
        "crash",
        "wrong",
        "stuck",
        "missing",
        "not found",
        "panick",
        "denied",
        "invalid",
    ],
};

/// Whether a text is a message of a program, which begins with its name: "dpkg: trying to overwrite …".
fn is_message(text: &str) -> bool {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    first.len() > 1 && first.ends_with(':') && rest.split_whitespace().count() > 2
}

/// Openings of questions.
const ASKING: &[&str] = &[
    "what", "how", "why", "when", "where", "who", "which", "can ", "could ", "should ", "is ", "are ", "do ",
    "does ", "did ", "will ", "define", "explain",
];

/// Splits a text with several questions into single questions. A statement belongs to the question before it or, at the
/// beginning, to the one after it, unless it is a request.
pub fn parts(question: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut statement = String::new();
    for sentence in sentences(question) {
        let mut rest = question[sentence].trim();
        if !asks(rest) {
            match parts.last_mut() {
                Some(before) => append(before, rest),
                None if is_request(rest) => parts.push(rest.to_owned()),
                None => append(&mut statement, rest),
            }
            continue;
        }
        // "How do I x, and how do I y": a question word after "and" begins a new question.
        while let Some(at) = second_question(rest) {
            let (first, second) = rest.split_at(at);
            parts.push(first.trim_end_matches([',', ' ']).to_owned());
            rest = second.trim_start_matches([',', ' ']).strip_prefix("and ").unwrap_or(second).trim();
        }
        parts.push(rest.to_owned());
    }
    if !statement.is_empty() {
        match parts.first_mut() {
            Some(first) => *first = format!("{statement} {first}"),
            None => parts.push(statement),
        }
    }
    let tells = |part: &String| part.split_whitespace().count() > 2;
    let mut told: Vec<String> = parts.into_iter().filter(tells).collect();
    told.truncate(MOST_PARTS);
    told
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

/// Whether a sentence is a question.
fn asks(sentence: &str) -> bool {
    let lower = sentence.trim().to_lowercase();
    let opening = ["and ", "but ", "also ", "so "].iter().find_map(|word| lower.strip_prefix(word));
    let opening = opening.unwrap_or(&lower);
    lower.trim_end_matches(['"', '”', ')']).ends_with('?')
        || ASKING.iter().any(|word| opening.starts_with(word))
}

/// Whether a sentence that is not a question says what the user wants.
fn is_request(sentence: &str) -> bool {
    let padded = format!(" {} ", sentence.to_lowercase());
    [" want ", " need ", " would like ", "'d like ", " trying to ", " try to "]
        .iter()
        .any(|word| padded.contains(word))
}

/// Splits off text in parentheses at the end of a question: the subject that was added to a follow-up, or a remark such
/// as "(on Windows)". It applies to every part of the question.
pub fn remark(question: &str) -> (&str, Option<&str>) {
    let text = question.trim_end();
    let opening = text
        .rfind('(')
        .filter(|at| *at > 0 && text.ends_with(')') && !text[*at..text.len() - 1].contains(')'));
    match opening.filter(|at| text[..*at].ends_with(char::is_whitespace)) {
        Some(at) => (text[..at].trim_end(), Some(&text[at..])),
        None => (question, None),
    }
}

/// Maximum number of parts; further ones are ignored.
const MOST_PARTS: usize = 3;

fn second_question(text: &str) -> Option<usize> {
    let lower = text.to_lowercase();
    let words = ["what", "how", "why", "when", "where", "who", "which", "can i", "do i", "is there"];
    words
        .iter()
        .filter_map(|word| lower.find(&format!(" and {word} ")))
        .filter(|at| text.is_char_boundary(*at) && lower.len() == text.len())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_detected_by_words() {
        assert!(QuestionKind::of("What is a ROS 2 node?").definition);
        assert!(QuestionKind::of("how do I save the map").how_to);
        assert!(QuestionKind::of("default quality of jpegs?").value);
        assert!(QuestionKind::of("URDF vs SDF").comparison);
        assert!(QuestionKind::of("walrus").keyword);
        assert!(!QuestionKind::of("why?").keyword);
        assert_eq!(QuestionKind::of("Was ist ein Knoten?"), QuestionKind::default());
    }

    #[test]
    fn two_questions_in_one_are_split() {
        assert_eq!(
            parts("How do I update Rust, and can I read the docs offline?"),
            ["How do I update Rust", "can I read the docs offline?"]
        );
        assert_eq!(
            parts("I want to hide the site. And what if it is only one page?"),
            ["I want to hide the site.", "And what if it is only one page?"]
        );
        assert_eq!(parts("What are topics and services?"), ["What are topics and services?"]);
    }

    #[test]
    fn a_statement_belongs_to_its_question() {
        for one in [
            "Which setting wins? I would like the full ranking.",
            "The site asks for a password. How do I give it to my spider?",
            "How do I start it? I use Windows.",
            "It stopped. It was new.",
        ] {
            assert_eq!(parts(one), [one]);
        }
        assert_eq!(
            parts("It stopped. Why does it stop? How do I start it? It is new."),
            ["It stopped. Why does it stop?", "How do I start it? It is new."]
        );
    }

    #[test]
    fn a_message_of_a_program_is_trouble() {
        assert!(QuestionKind::of("dpkg: trying to overwrite '/usr/bin/x', which is also in abc").trouble);
        assert!(!QuestionKind::of("dpkg: what is it for?").trouble);
        assert!(!QuestionKind::of("dpkg: options").trouble);
    }

    #[test]
    fn parentheses_at_the_end_apply_to_the_whole_question() {
        assert_eq!(
            remark("Can I hide it? (table of contents)"),
            ("Can I hide it?", Some("(table of contents)"))
        );
        assert_eq!(remark("What does main() do?"), ("What does main() do?", None));
        assert_eq!(remark("What is print()"), ("What is print()", None));
        assert_eq!(remark("(aside)"), ("(aside)", None));
    }
}
