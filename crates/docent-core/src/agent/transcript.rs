//! Assemble the text of an answer, sentence by sentence.
//!
//! Streamed and whole answers are both built here.
//!
//! Invariant: the texts returned by [`Transcript::add`] and [`Transcript::end`], concatenated, are the
//! answer.

use super::{Settings, Verify};
use crate::answer::{AgentResponse, Citation, Sentence, Verdict};

/// The text of an answer so far.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    text: String,
    /// Length of `text` in characters.
    length: usize,
    marks: Vec<Mark>,
}

/// The position of a citation in the text, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Id of the citation.
    pub citation: usize,
    /// Start of the citation in the text.
    pub start: usize,
    /// End of the citation in the text, exclusive.
    pub end: usize,
}

impl Transcript {
    /// The text of a complete answer.
    pub fn of(response: &AgentResponse, settings: &Settings) -> Self {
        let mut transcript = Self::default();
        for sentence in &response.sentences {
            transcript.add(sentence, &response.citations, settings);
        }
        transcript.end(response);
        transcript
    }

    /// Adds a sentence with its separator and citations, and a mark if the book does not support it. Returns
    /// the added text.
    pub fn add(&mut self, sentence: &Sentence, citations: &[Citation], settings: &Settings) -> String {
        let before = self.text.len();
        self.push(&sentence.separator);
        self.push(&sentence.text);
        // Nothing may follow on the same line as a closing fence, a table row or a formula.
        let stands_alone = ["```", "|", "$$", "\\]"].iter().any(|end| sentence.text.ends_with(end));
        let gap = if stands_alone { "\n\n" } else { " " };
        let cited = citations.iter().filter(|citation| sentence.citations.contains(&citation.id));
        for (place, citation) in cited.enumerate() {
            self.push(if place == 0 { gap } else { " " });
            let start = self.length;
            self.push(&settings.citation_style.mark(citation));
            self.marks.push(Mark { citation: citation.id, start, end: self.length });
        }
        if let Some(mark) = doubt(sentence).filter(|_| settings.verify == Verify::Mark) {
            self.push(gap);
            self.push(mark);
        }
        self.text[before..].to_owned()
    }

    /// Adds what follows the last sentence: a list of sources, a note on what the book does not cover, or the
    /// whole text of an answer without sentences. Returns the added text, which may be empty.
    pub fn end(&mut self, response: &AgentResponse) -> String {
        let rest = response.answer.strip_prefix(self.text.as_str()).unwrap_or_default().to_owned();
        self.push(&rest);
        rest
    }

    /// Everything so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Everything so far.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Length of the text in characters.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Positions of all citations, in order. A citation that is used twice appears twice.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.length += text.chars().count();
    }
}

/// Appended to a sentence that the book does not support.
pub const UNSUPPORTED_MARK: &str = "*(not supported by the book)*";

/// Appended to a sentence that could not be verified.
const UNVERIFIED_MARK: &str = "*(not verified)*";

/// The mark for a sentence that is unsupported or unverified.
fn doubt(sentence: &Sentence) -> Option<&'static str> {
    match sentence.verdict {
        Verdict::Unsupported => Some(UNSUPPORTED_MARK),
        Verdict::Unverified => Some(UNVERIFIED_MARK),
        Verdict::Supported | Verdict::None => None,
    }
}
