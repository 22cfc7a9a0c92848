//! Make quiz questions about a page, without a model. A model may only phrase them better.
//!
//! Definitions, lists, steps, tables, commands and reasons of the book become questions whose answers are in the book,
//! word for word. A question has to make sense without the page: it names what it is about, and a sentence that needs
//! its neighbors is not asked about. A few good questions are better than many.
//!
//! Invariant: the questions depend only on the passages, in their order. Every quote is `content[start..end]` of its
//! passage and contains every line of the answer; no two questions of a page have the same id.

mod anki;
mod collect;
mod definition;
mod does;
mod finish;
mod hint;
mod list;
mod passage;
mod phrase;
mod pick;
mod reason;
mod command;
mod steps;
mod table;
mod verbs;
mod wording;

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::chunk::Chunk;
use crate::language::Language;
use crate::section_kind::SectionKind;
pub use anki::anki;
pub use collect::{MOST_QUESTIONS, of_book, of_page};
use finish::{Draft, finish};
use passage::Passage;
pub use phrase::{MOST_PHRASED, wordings};

/// What a question is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub enum QuizKind {
    /// A sentence that says what something is; asks for the definition.
    Definition,
    /// Such a sentence without its term; asks for the term.
    Term,
    /// A list; asks for its items.
    List,
    /// A list; asks for the item that is described.
    Item,
    /// Numbered instructions; asks for the next one.
    Steps,
    /// A table; asks for a cell.
    Table,
    /// A command and what it is for; asks for the command.
    Command,
    /// A sentence that says what something does.
    Does,
    /// A sentence with "because"; asks for the reason.
    Reason,
}

/// A question about a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct QuizQuestion {
    /// Stays the same as long as the passage and the question stay the same.
    pub id: Uuid,
    /// What the question is made from.
    pub kind: QuizKind,
    /// The model that phrased the question; none if it is phrased by rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrased_by: Option<String>,
    /// The question, as light Markdown.
    pub question: String,
    /// The answer, in words of the quote; a list if several things are asked for.
    pub answer: String,
    /// The words of the passage that contain the answer.
    pub quote: String,
    /// Position of the quote in the passage, in bytes.
    pub start: usize,
    /// End of the quote in the passage, in bytes.
    pub end: usize,
    /// Two hints; the second one says more.
    pub hints: [String; 2],
    /// The passage.
    pub chunk_id: Uuid,
    /// Id of the page.
    pub document_id: String,
    /// URL of the page with the anchor of the section.
    pub url: String,
    /// Title of the page.
    pub page_title: String,
    /// The closest heading; none above the first heading.
    pub heading: Option<String>,
    /// Name of the module.
    pub module_name: String,
    /// Name of the book; empty if the index has only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub book_name: String,
    /// Name of the version; null if the book has no versions.
    #[serde(default)]
    pub version: Option<String>,
    /// Code of the locale; null if the book has only one.
    #[serde(default)]
    pub locale: Option<String>,
}

impl QuizQuestion {
    /// The quote for display: the cells of a table's row are separated by dots instead of bars.
    pub fn readable_quote(&self) -> String {
        match self.kind {
            QuizKind::Table => self.quote.trim_matches(['|', ' ']).replace(" | ", " · "),
            _ => self.quote.clone(),
        }
    }
}

/// Maximum number of questions about a page that is not a glossary.
const MOST_PER_PAGE: usize = 12;

/// Maximum number of questions about a glossary.
const MOST_PER_GLOSSARY: usize = 40;

/// Maximum number of questions about a passage of body text.
const MOST_PER_PASSAGE: usize = 3;

/// Maximum number of passages of a page that are looked at; of longer pages, every second or third one.
const MOST_PASSAGES: usize = 200;

/// Length of the text that tells the language of a page and how it spells names, in bytes.
const SAMPLE: usize = 50_000;

/// The questions about a page, in reading order. The passages are those of one page, in order; a page that is not in
/// English has no questions.
pub fn questions<C: Borrow<Chunk>>(page: &[C]) -> Vec<QuizQuestion> {
    let chunks: Vec<&Chunk> = page.iter().map(Borrow::borrow).collect();
    let text = beginning(&chunks);
    if Language::default().differs_from(&text) {
        return Vec::new();
    }
    if chunks.first().is_some_and(|chunk| is_news(&chunk.document_id)) {
        return Vec::new();
    }
    let is_glossary = chunks.iter().any(|chunk| chunk.section_kind == SectionKind::Glossary);
    let mut found: Vec<QuizQuestion> = Vec::new();
    let step = chunks.len().div_ceil(MOST_PASSAGES).max(1);
    for (place, chunk) in chunks.iter().enumerate().step_by(step) {
        let most = match chunk.section_kind {
            SectionKind::Body => MOST_PER_PASSAGE,
            SectionKind::Glossary => MOST_PER_GLOSSARY,
            _ => continue,
        };
        let passage = Passage::new(chunk, &text, place);
        let mut drafts: Vec<Draft> = Vec::new();
        if chunk.section_kind == SectionKind::Glossary {
            definition::glossary(&passage, &mut drafts);
        } else {
            definition::drafts(&passage, &mut drafts);
            list::drafts(&passage, &mut drafts);
            steps::drafts(&passage, &mut drafts);
            table::drafts(&passage, &mut drafts);
            command::drafts(&passage, &mut drafts);
            does::drafts(&passage, &mut drafts);
            reason::drafts(&passage, &mut drafts);
        }
        let made = drafts.into_iter().filter_map(|draft| finish(draft, &passage, &found));
        // The kinds come in the order of their quality.
        let mut made: Vec<QuizQuestion> = finish::without_repetitions(made.collect());
        made.truncate(most);
        made.sort_by_key(|question| question.start);
        found.extend(made);
    }
    pick::best(found, if is_glossary { MOST_PER_GLOSSARY } else { MOST_PER_PAGE })
}

/// The text of a page, as far as it is needed as a sample.
fn beginning(chunks: &[&Chunk]) -> String {
    let mut text = String::new();
    for chunk in chunks {
        if text.len() > SAMPLE {
            break;
        }
        text.push_str(&chunk.content);
        text.push('\n');
    }
    text
}

/// Whether a page is about releases, judging by its path.
fn is_news(document_id: &str) -> bool {
    let lower = document_id.to_lowercase();
    let parts = lower.split(['/', '.']);
    parts
        .into_iter()
        .any(|part| ["changelog", "changes", "releases", "release-notes", "whatsnew", "news"].contains(&part))
}

#[cfg(test)]
mod tests;
