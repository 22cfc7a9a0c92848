//! Validate questions: all limits are checked in one place.
//!
//! Invariant: a `Question` is always valid; nothing downstream checks again.

use thiserror::Error;

use crate::index::Filter;

/// Maximum length of a question, in characters after trimming.
pub const LONGEST_QUESTION: usize = 8000;
/// How much of a question is embedded, in characters. The keyword search uses all of it.
const LONGEST_EMBEDDED: usize = 1000;
/// Maximum number of hits of a search.
pub const MOST_HITS: usize = 100;
/// Maximum number of passages for an answer.
pub const MOST_AGENT_HITS: usize = 10;
/// Maximum number of passages for a tool call of the model.
pub const MOST_TOOL_HITS: usize = 20;
/// Default number of hits.
pub const DEFAULT_HITS: usize = 5;

/// A valid question.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    text: String,
    top_k: usize,
    threshold: f32,
    filter: Filter,
}

/// Why a question is invalid. The messages are shown to users unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidQuestion {
    /// Empty, or only white space.
    #[error("Query cannot be empty")]
    Empty,
    /// Longer than [`LONGEST_QUESTION`].
    #[error("Query is too long: {0} characters, at most {LONGEST_QUESTION} are allowed")]
    TooLong(usize),
    /// `top_k` is out of range.
    #[error("top_k must be between 1 and {most}, got {given}")]
    TopK {
        /// The requested number.
        given: usize,
        /// The maximum here.
        most: usize,
    },
    /// `threshold` is not in 0–1.
    #[error("threshold must be between 0.0 and 1.0, got {0}")]
    Threshold(String),
}

impl Question {
    /// Validates a search and trims the text.
    pub fn new(text: &str, top_k: usize, threshold: f32, filter: Filter) -> Result<Self, InvalidQuestion> {
        Self::within(MOST_HITS, text, top_k, threshold, filter)
    }

    /// The same, with at most `most` hits.
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

    /// The same question with another text, which may exceed the maximum length.
    pub fn reworded(&self, text: &str) -> Self {
        Self { text: text.to_owned(), ..self.clone() }
    }

    /// The text of the question, trimmed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The part of the question that is embedded. Code blocks are left out, so that a pasted stack trace does
    /// not outweigh the question, unless there is nothing else.
    pub fn prose(&self) -> String {
        let mut in_code = false;
        let prose: Vec<&str> = self
            .text
            .lines()
            .filter(|line| {
                let is_fence = line.trim_start().starts_with("```");
                in_code ^= is_fence;
                !in_code && !is_fence
            })
            .collect();
        let prose = prose.join("\n");
        let chosen = if prose.trim().is_empty() { self.text.as_str() } else { prose.trim() };
        chosen.chars().take(LONGEST_EMBEDDED).collect()
    }

    /// Maximum number of hits.
    pub fn top_k(&self) -> usize {
        self.top_k
    }

    /// Minimum score of a hit, 0–1.
    pub fn threshold(&self) -> f32 {
        self.threshold
    }

    /// Restricts the search.
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
    fn each_limit_has_an_error_message() {
        check("  \n", 5, 0.0, "Query cannot be empty");
        check(&"x".repeat(8001), 5, 0.0, "Query is too long: 8001 characters, at most 8000 are allowed");
        check("x", 0, 0.0, "top_k must be between 1 and 100, got 0");
        check("x", 101, 0.0, "top_k must be between 1 and 100, got 101");
        check("x", 5, 1.5, "threshold must be between 0.0 and 1.0, got 1.5");
        check("x", 5, f32::NAN, "threshold must be between 0.0 and 1.0, got NaN");
    }

    #[test]
    fn the_length_of_a_question_is_counted_in_characters() {
        assert!(Question::new(&"é".repeat(8000), 100, 1.0, Filter::default()).is_ok());
    }

    #[test]
    fn code_blocks_and_text_beyond_the_limit_are_not_embedded() {
        let prose = |text: &str| Question::new(text, 5, 0.0, Filter::default()).unwrap().prose();
        assert_eq!(
            prose("Why does this fail?\n```\npanic at main\n```\nIt worked."),
            "Why does this fail?\nIt worked."
        );
        assert_eq!(prose("```\npanic at main\n```"), "```\npanic at main\n```");
        assert_eq!(prose(&"é".repeat(3000)).chars().count(), 1000);
    }
}
