//! Rewrite a follow-up by rule, so that it can be searched alone.
//!
//! A question that depends on the conversation ("How do I install it?") gets the subject of the previous
//! question appended. Other questions are left unchanged, since words of another subject only hurt the
//! search.
//!
//! Invariant: the rewritten question always contains the original one.

use crate::terms::Analyzer;

/// Words that refer to something said before.
const PRONOUNS: [&str; 20] = [
    "it", "its", "they", "them", "their", "theirs", "this", "that", "these", "those", "he", "she", "him",
    "her", "his", "one", "ones", "same", "such", "there",
];

/// Openings of questions that continue the previous one.
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

/// Questions with fewer subject words depend on the conversation.
const FEW_TERMS: usize = 2;

/// Maximum number of words taken from the previous question.
const MOST_WORDS: usize = 8;

/// The query to search for; none if `question` does not depend on the conversation. `before` is the previous
/// query.
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
            // The parts of an identifier come after it and need not be repeated.
            if !taken.iter().any(|known| known.contains(word)) {
                taken.push(word);
            }
        }
    }
    taken.truncate(MOST_WORDS);
    (!taken.is_empty()).then(|| format!("{} ({})", question.trim(), taken.join(" ")))
}

/// Whether a question can only be understood together with the previous one.
fn leans(question: &str, analyzer: &Analyzer) -> bool {
    refers_back(question, analyzer) || subjects(question, analyzer) < FEW_TERMS
}

/// Whether a question refers to the previous one, or has no subject of its own.
pub fn refers_back(question: &str, analyzer: &Analyzer) -> bool {
    let lower = question.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words.any(|word| PRONOUNS.contains(&word))
        || CONNECTIVES.iter().any(|start| lower.trim_start().starts_with(start))
        || subjects(question, analyzer) == 0
}

fn subjects(question: &str, analyzer: &Analyzer) -> usize {
    analyzer.distinct(question).iter().filter(|term| !is_asking(term)).count()
}

/// Question words and other words that do not name a subject.
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
    fn a_pronoun_adds_the_subject_of_the_previous_question() {
        check(
            "What is Isaac Sim?",
            "How do I use it for synthetic data?",
            Some("How do I use it for synthetic data? (Isaac Sim)"),
        );
        check("What is ROS 2?", "How do I install it?", Some("How do I install it? (ROS 2)"));
    }

    #[test]
    fn an_independent_question_is_not_rewritten() {
        check("What is Isaac Sim?", "Which sensors does a humanoid robot need?", None);
    }

    #[test]
    fn a_very_short_question_is_a_follow_up() {
        check("What is a ROS 2 node?", "Why?", Some("Why? (ROS 2 node)"));
        check("What is a ROS 2 node?", "And a topic?", Some("And a topic? (ROS 2 node)"));
    }

    #[test]
    fn tell_me_more_is_a_follow_up() {
        check("What is Isaac Sim?", "Tell me more", Some("Tell me more (Isaac Sim)"));
    }

    #[test]
    fn without_a_conversation_nothing_is_rewritten() {
        assert_eq!(rewrite("How do I install it?", None, &Analyzer::new(Language::default())), None);
    }
}
