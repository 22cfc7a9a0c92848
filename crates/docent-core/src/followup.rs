//! Rewrite a follow-up by rule, so that it can be searched alone.
//!
//! A question that depends on the conversation ("How do I install it?") gets the subject of the previous
//! question appended. Other questions are left unchanged, since words of another subject only hurt the
//! search.
//!
//! Invariant: the rewritten question always contains the original one.

use std::collections::HashSet;

use crate::terms::Analyzer;

/// Questions with fewer subject words depend on the conversation.
const FEW_TERMS: usize = 2;

/// Maximum number of words taken from the previous question.
const MOST_WORDS: usize = 8;

/// The query to search for; none if `question` does not depend on the conversation. `before` is the previous
/// query.
pub fn rewrite(question: &str, before: Option<&str>, analyzer: &Analyzer) -> Option<String> {
    let before = before?;
    let asking = Asking::of(analyzer);
    let depends = refers_back(question, analyzer) || asking.subjects(question, analyzer) < FEW_TERMS;
    if !depends {
        return None;
    }
    let own = analyzer.distinct(question);
    let mut taken: Vec<&str> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for term in analyzer.terms(before) {
        let word = &before[term.start..term.end];
        if !own.contains(&term.text) && !seen.contains(&term.text) && !asking.contains(word) {
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

/// Whether a question refers to the previous one, or has no subject of its own.
pub fn refers_back(question: &str, analyzer: &Analyzer) -> bool {
    let Some(words) = analyzer.language().function_words() else {
        return analyzer.distinct(question).is_empty();
    };
    let lower = question.to_lowercase();
    let lower = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let mut own = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    own.any(|word| words.pronouns.contains(&word))
        || words.connectives.iter().any(|start| lower.starts_with(start))
        || Asking::of(analyzer).subjects(question, analyzer) == 0
}

/// Question words and other words that do not name a subject, as they are written and as terms.
struct Asking(HashSet<String>);

impl Asking {
    fn of(analyzer: &Analyzer) -> Self {
        let words = analyzer.language().function_words().map(|words| words.asking).unwrap_or_default();
        let terms = words.iter().flat_map(|word| analyzer.distinct(word));
        Self(words.iter().map(|word| (*word).to_owned()).chain(terms).collect())
    }

    fn contains(&self, word: &str) -> bool {
        self.0.contains(&word.to_lowercase())
    }

    fn subjects(&self, question: &str, analyzer: &Analyzer) -> usize {
        analyzer.distinct(question).iter().filter(|term| !self.contains(term)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;

    fn check(before: &str, question: &str, expected: Option<&str>) {
        check_in("en", before, question, expected);
    }

    fn check_in(language: &str, before: &str, question: &str, expected: Option<&str>) {
        let found = rewrite(question, Some(before), &Analyzer::new(language.parse().unwrap()));
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn follow_ups_in_other_languages_are_recognized() {
        check_in("de", "Was ist ein Knoten?", "Wie starte ich ihn?", Some("Wie starte ich ihn? (Knoten)"));
        check_in("de", "Was ist ein Knoten?", "Welche Sensoren braucht ein Roboter?", None);
        check_in("de", "Was ist ein Knoten?", "Und ein Thema?", Some("Und ein Thema? (Knoten)"));
        check_in(
            "fr",
            "Qu'est-ce qu'un nœud ROS ?",
            "Comment fonctionne-t-il ?",
            Some("Comment fonctionne-t-il ? (nœud ROS)"),
        );
        check_in("es", "¿Qué es un nodo?", "¿Y un tema?", Some("¿Y un tema? (nodo)"));
        check_in("it", "Che cos'è un nodo?", "Come funziona questo?", Some("Come funziona questo? (nodo)"));
        check_in("nl", "Wat is een knooppunt?", "Hoe start ik het?", Some("Hoe start ik het? (knooppunt)"));
        check_in("pt", "O que é um tópico?", "Como ele funciona?", Some("Como ele funciona? (tópico)"));
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
