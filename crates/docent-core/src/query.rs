//! What may be asked: the limits of the contract, checked in one place.
//!
//! Invariant: a `Question` in hand is valid; nothing behind it checks again.

use thiserror::Error;

use crate::index::Filter;

/// The longest question, in characters after trimming.
pub const LONGEST_QUESTION: usize = 1000;
/// The most hits a search returns.
pub const MOST_HITS: usize = 100;
/// The most passages an answer is made from.
pub const MOST_AGENT_HITS: usize = 10;
/// The most passages a model's tool call returns.
pub const MOST_TOOL_HITS: usize = 20;
/// How many hits a search returns unless told otherwise.
pub const DEFAULT_HITS: usize = 5;

/// A question that may be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    text: String,
    top_k: usize,
    threshold: f32,
    filter: Filter,
}

/// Why a question may not be asked. The messages are shown to readers as they are.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidQuestion {
    /// Nothing but white space.
    #[error("Query cannot be empty")]
    Empty,
    /// Longer than [`LONGEST_QUESTION`].
    #[error("Query is too long: {0} characters, at most {LONGEST_QUESTION} are allowed")]
    TooLong(usize),
    /// Outside what is allowed.
    #[error("top_k must be between 1 and {most}, got {given}")]
    TopK {
        /// What was asked for.
        given: usize,
        /// What is allowed here.
        most: usize,
    },
    /// Outside 0 to 1.
    #[error("threshold must be between 0.0 and 1.0, got {0}")]
    Threshold(String),
}

impl Question {
    /// Checks the limits of a search and trims the text.
    pub fn new(text: &str, top_k: usize, threshold: f32, filter: Filter) -> Result<Self, InvalidQuestion> {
        Self::within(MOST_HITS, text, top_k, threshold, filter)
    }

    /// The same where at most `most` hits are allowed.
    pub fn within(
        most: usize,
        text: &str,
        top_k: usize,
        threshold: f32,
        filter: Filter,
    ) -> Result<Self, InvalidQuestion> {
        let text = text.trim();
        let length = text.chars().count();
        if length == 0 {
            return Err(InvalidQuestion::Empty);
        }
        if length > LONGEST_QUESTION {
            return Err(InvalidQuestion::TooLong(length));
        }
        if !(1..=most).contains(&top_k) {
            return Err(InvalidQuestion::TopK { given: top_k, most });
        }
        if !(0.0..=1.0).contains(&threshold) {
            return Err(InvalidQuestion::Threshold(threshold.to_string()));
        }
        Ok(Self { text: text.to_owned(), top_k, threshold, filter })
    }

    /// The same question in other words, which may be longer than a reader's.
    pub fn reworded(&self, text: &str) -> Self {
        Self { text: text.to_owned(), ..self.clone() }
    }

    /// The words of the question, trimmed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many hits to return at most.
    pub fn top_k(&self) -> usize {
        self.top_k
    }

    /// The least score of a hit.
    pub fn threshold(&self) -> f32 {
        self.threshold
    }

    /// What may be found.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, top_k: usize, threshold: f32, expected: &str) {
        let error = Question::new(text, top_k, threshold, Filter::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn each_limit_has_its_message() {
        check("  \n", 5, 0.0, "Query cannot be empty");
        check(&"x".repeat(1001), 5, 0.0, "Query is too long: 1001 characters, at most 1000 are allowed");
        check("x", 0, 0.0, "top_k must be between 1 and 100, got 0");
        check("x", 101, 0.0, "top_k must be between 1 and 100, got 101");
        check("x", 5, 1.5, "threshold must be between 0.0 and 1.0, got 1.5");
        check("x", 5, f32::NAN, "threshold must be between 0.0 and 1.0, got NaN");
    }

    #[test]
    fn the_longest_question_is_counted_in_characters() {
        assert!(Question::new(&"é".repeat(1000), 100, 1.0, Filter::default()).is_ok());
    }
}
