//! A follow-up and what was asked before become a question that stands alone.
//!
//! By rule: a question that leans on the conversation ("How do I install it?") takes along
//! the subject of the question before. One that stands alone is left as it is, since words
//! of another subject only hurt the search.
//!
//! Invariant: the question asked is always part of the question searched.

use crate::terms::Analyzer;

/// Words that stand for something said before.
const PRONOUNS: [&str; 20] = [
    "it", "its", "they", "them", "their", "theirs", "this", "that", "these", "those", "he", "she", "him",
    "her", "his", "one", "ones", "same", "such", "there",
];

/// How a question begins that goes on from the last one.
const CONNECTIVES: [&str; 16] = [
    "and ",
    "but ",
    "so ",
    "or ",
    "then ",
    "also ",
    "what about",
    "how about",
    "what else",
    "why not",
    "tell me more",
    "go on",
    "can you explain",
    "could you explain",
    "for example",
    "in that case",
];

/// Questions with fewer telling words lean on the conversation.
const FEW_TERMS: usize = 2;

/// The most words taken along.
const MOST_WORDS: usize = 8;

/// The question to search for; none when `question` stands alone. `before` is the last
/// question as it was searched.
pub fn rewrite(question: &str, before: Option<&str>, analyzer: &Analyzer) -> Option<String> {
    let before = before?;
    if !leans(question, analyzer) {
        return None;
    }
    let own = analyzer.distinct(question);
    let mut taken: Vec<&str> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for term in analyzer.terms(before) {
        let word = &before[term.start..term.end];
        if !own.contains(&term.text) && !seen.contains(&term.text) && !is_asking(word) {
            seen.push(term.text);
            // An identifier stands before its parts: once is enough.
            if !taken.iter().any(|known| known.contains(word)) {
                taken.push(word);
            }
        }
    }
    taken.truncate(MOST_WORDS);
    (!taken.is_empty()).then(|| format!("{} ({})", question.trim(), taken.join(" ")))
}

/// Whether a question needs what was said before to be understood.
fn leans(question: &str, analyzer: &Analyzer) -> bool {
    let lower = question.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words.any(|word| PRONOUNS.contains(&word))
        || CONNECTIVES.iter().any(|start| lower.trim_start().starts_with(start))
        || analyzer.distinct(question).iter().filter(|term| !is_asking(term)).count() < FEW_TERMS
}

/// Words that ask rather than name.
fn is_asking(word: &str) -> bool {
    matches!(
        word.to_lowercase().as_str(),
        "what"
            | "how"
            | "why"
            | "when"
            | "where"
            | "who"
            | "which"
            | "can"
            | "could"
            | "would"
            | "should"
            | "do"
            | "does"
            | "is"
            | "are"
            | "tell"
            | "explain"
            | "describe"
            | "show"
            | "give"
            | "want"
            | "need"
            | "know"
            | "please"
            | "help"
            | "like"
            | "exampl"
            | "example"
            | "mean"
            | "use"
            | "work"
            | "differ"
            | "difference"
            | "i"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;

    fn check(before: &str, question: &str, expected: Option<&str>) {
        let found = rewrite(question, Some(before), &Analyzer::new(Language::default()));
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn a_pronoun_takes_the_subject_along() {
        check(
            "What is Isaac Sim?",
            "How do I use it for synthetic data?",
            Some("How do I use it for synthetic data? (Isaac Sim)"),
        );
        check("What is ROS 2?", "How do I install it?", Some("How do I install it? (ROS 2)"));
    }

    #[test]
    fn a_question_that_stands_alone_is_left_alone() {
        check("What is Isaac Sim?", "Which sensors does a humanoid robot need?", None);
    }

    #[test]
    fn a_very_short_question_leans_on_the_last() {
        check("What is a ROS 2 node?", "Why?", Some("Why? (ROS 2 node)"));
        check("What is a ROS 2 node?", "And a topic?", Some("And a topic? (ROS 2 node)"));
    }

    #[test]
    fn more_is_more_of_the_last_subject() {
        check("What is Isaac Sim?", "Tell me more", Some("Tell me more (Isaac Sim)"));
    }

    #[test]
    fn without_a_conversation_nothing_is_rewritten() {
        assert_eq!(rewrite("How do I install it?", None, &Analyzer::new(Language::default())), None);
    }
}
