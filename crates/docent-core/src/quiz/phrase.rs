//! Tell whether another wording of a question, such as one by a model, may replace it.
//!
//! The answer and its quote stay what they are, so a new wording has to ask for the same: it keeps what the question
//! names, adds nothing that is not in the question or its quote, and is as strictly checked as every question.
//!
//! Invariant: only the wording of a question changes. Its id, answer and quote do not.

use super::finish::is_askable;
use super::wording::{content_words, has, points_nowhere, words};
use super::{QuizKind, QuizQuestion};

/// Maximum number of questions that are phrased together: they and the answer fit into any model's context.
pub const MOST_PHRASED: usize = 20;

/// The share of the words of a question that its new wording keeps, at least.
const LEAST_KEPT: f32 = 0.5;

/// Words of our own wording, without endings, which another wording need not keep.
const SCAFFOLD: &str = "tabl row stand und say about term miss list item step com right aft nam them describ her call \
    mean meant why use command n";

/// Words that turn a question into its opposite.
const NEGATIONS: &str = "not no never without cannot neither nor except";

/// The wordings in the reply of a model, for the questions that it was asked about: lines that begin with the number of a
/// question, from 1.
pub fn wordings(reply: &str, count: usize) -> Vec<(usize, &str)> {
    let numbered = reply.lines().filter_map(|line| {
        let (number, wording) = line.trim().split_once(['.', ')'])?;
        let number: usize = number.trim_matches(['*', ' ']).parse().ok()?;
        let wording = wording.trim_matches(['*', ' ', '\t']);
        ((1..=count).contains(&number) && !wording.is_empty()).then(|| (number - 1, wording))
    });
    numbered.collect()
}

impl QuizQuestion {
    /// Replaces the wording of the question if the new one asks for the same; returns whether it did.
    pub fn rephrase(&mut self, wording: &str, model: &str) -> bool {
        let is_fine = wording != self.question && asks_the_same(self, wording);
        if is_fine {
            self.question = wording.to_owned();
            self.phrased_by = Some(model.to_owned());
        }
        is_fine
    }
}

fn asks_the_same(question: &QuizQuestion, wording: &str) -> bool {
    let answer: Vec<&str> =
        question.answer.lines().map(|line| line.strip_prefix("- ").unwrap_or(line)).collect();
    wording.ends_with(['?', '.'])
        && is_askable(wording, &answer)
        && points_nowhere(wording)
        && negations(wording) == negations(&question.question)
        && keeps_its_subject(question, wording)
        && adds_nothing(question, wording)
}

fn negations(text: &str) -> usize {
    let lower = text.to_lowercase().replace('’', "'");
    let is_negation = |word: &&str| has(NEGATIONS, word) || word.ends_with("n't");
    lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(is_negation).count()
}

/// Whether the wording keeps all code and most other words of the question.
fn keeps_its_subject(question: &QuizQuestion, wording: &str) -> bool {
    // The place of a table or a list is not what is asked about.
    let asked = match question.question.split_once("”, ").or_else(|| question.question.split_once("), ")) {
        Some((place, asked)) if place.starts_with("In ") => asked,
        _ => &question.question,
    };
    if words(asked).iter().any(|word| word.is_code() && !wording.contains(word.text)) {
        return false;
    }
    let kept = content_words(wording);
    let wanted: Vec<String> = content_words(asked).into_iter().filter(|word| !has(SCAFFOLD, word)).collect();
    let count = wanted.iter().filter(|word| kept.contains(word)).count();
    // A term that is asked about is short, and the question is about nothing else.
    let least = if question.kind == QuizKind::Definition { 1.0 } else { LEAST_KEPT };
    count as f32 >= least * wanted.len() as f32
}

/// Whether every name, number and piece of code in the wording is in the question, its quote or the headings above it.
fn adds_nothing(question: &QuizQuestion, wording: &str) -> bool {
    let heading = question.heading.as_deref().unwrap_or_default();
    let known = [&question.question, &question.quote, &question.page_title, heading].join(" ").to_lowercase();
    words(wording).iter().enumerate().all(|(place, word)| {
        let is_name = word.is_code()
            || word.text.contains(|c: char| c.is_numeric() || c == '_')
            || (place > 0 && word.text.contains(char::is_uppercase));
        !is_name || known.contains(&word.text.trim_matches('`').to_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::chunk::Chunk;
    use crate::quiz::questions;

    /// The questions about a page with this text.
    fn about(text: &str) -> Vec<QuizQuestion> {
        let mut chunk = Chunk::new(Uuid::from_u128(1), "pumps.md", text);
        chunk.page_title = "Pumps".to_owned();
        questions(&[chunk])
    }

    fn check(question: &QuizQuestion, wording: &str, expected: bool) {
        let mut changed = question.clone();
        assert_eq!(changed.rephrase(wording, "gpt"), expected, "{} -> {wording}", question.question);
        assert_eq!(changed.phrased_by.as_deref(), expected.then_some("gpt"));
        changed.question.clone_from(&question.question);
        changed.phrased_by = None;
        assert_eq!(&changed, question, "only the wording changes");
    }

    #[test]
    fn a_definition_is_asked_for_in_other_words() {
        let [question] = &about("A relief valve is a valve that opens at 3 bar.")[..] else { panic!() };
        assert_eq!(question.question, "What is a relief valve?");
        check(question, "How would you define a relief valve?", true);
        check(question, "What is a relief valve?", false);
        check(question, "What is a valve that opens at 3 bar called?", false);
        check(question, "What is a valve?", false);
        check(question, "What is not a relief valve?", false);
        check(question, "What is a relief valve in ISO 4126?", false);
        check(question, "What is a relief valve in this chapter?", false);
        check(question, "What is a relief valve? Ignore [this](https://evil.example).", false);
        check(question, "A relief valve", false);
    }

    #[test]
    fn a_missing_term_is_asked_for_in_other_words() {
        let page =
            about("A pump is a machine that moves water. A valve is a flap that opens in one direction.");
        assert!(page[1].question.contains("____ is a flap"), "{}", page[1].question);
        check(&page[1], "What do you call a flap that opens in one direction?", true);
        check(&page[1], "Is a valve a flap that opens in one direction?", false);
        check(&page[1], "What do you call a pump?", false);
    }

    #[test]
    fn code_of_a_question_is_kept() {
        let [question] = &about("`--headless` turns off the window of the simulator.")[..] else { panic!() };
        check(question, "Which effect does `--headless` have?", true);
        check(question, "What does the flag for servers do?", false);
        check(question, "What do `--headless` and `--rm` do?", false);
    }

    #[test]
    fn the_reply_of_a_model_is_numbered_lines() {
        let reply = "Here you are:\n1. What is a pump?\n\n **2.** Why?\n3) How?\n9. What?\n4.\n";
        assert_eq!(wordings(reply, 4), [(0, "What is a pump?"), (1, "Why?"), (2, "How?")]);
    }
}
