//! A passage as the question makers see it: its sentences, its lists and tables with what introduces them, and how to
//! name its section.
//!
//! Invariant: every span is a slice of the passage.

use std::ops::Range;

use super::wording::{has, length, lowered};
use crate::chunk::Chunk;
use crate::sentence::sentences;
use crate::statement::{Statement, StatementKind, statements};
use crate::unit::is_item;

/// A passage of a page.
pub(super) struct Passage<'a> {
    pub chunk: &'a Chunk,
    /// The text of the whole page.
    pub page: &'a str,
    /// Position of the passage on the page.
    pub place: usize,
    pub statements: Vec<Statement>,
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    /// The text of the item without its marker.
    pub span: Range<usize>,
    /// Whether the item is numbered.
    pub is_numbered: bool,
}

/// A list, a table or code, and what introduces it.
pub(super) struct Introduced<'a> {
    /// The last sentence before the block; empty if there is none.
    pub lead_in: &'a str,
    /// Position of the block.
    pub block: Range<usize>,
    /// From the lead-in to the end of the block.
    pub span: Range<usize>,
}

/// Headings that name no subject.
const VAGUE: &str = "overview introduction intro example examples usage use notes note options option parameters parameter \
    summary syntax arguments configuration details background prerequisites requirements description basics general \
    reference api properties attributes methods fields tasks steps procedure setup conclusion discussion more other \
    advanced command commands type types values result results output input default defaults installation install";

impl<'a> Passage<'a> {
    pub fn new(chunk: &'a Chunk, page: &'a str, place: usize) -> Self {
        Self { chunk, page, place, statements: statements(&chunk.content) }
    }

    pub fn text(&self, span: Range<usize>) -> &'a str {
        &self.chunk.content[span]
    }

    /// The sentences of prose, without those that introduce a block with a colon.
    pub fn sentences(&self) -> Vec<Range<usize>> {
        let content = &self.chunk.content;
        let prose = |statement: &Statement| match statement.kind {
            StatementKind::Sentence => statement.span.clone(),
            _ => statement.span.start..statement.block,
        };
        let last_line = |span: Range<usize>| {
            let end = span.start + content[span.clone()].trim_end().len();
            let start = content[span.start..end].rfind('\n').map_or(span.start, |at| span.start + at + 1);
            start..end
        };
        let spans = self.statements.iter().map(prose).map(last_line);
        spans.filter(|span| content[span.clone()].ends_with('.')).collect()
    }

    /// The lists, tables or code blocks that are complete in this passage.
    pub fn introduced(&self, kind: StatementKind) -> Vec<Introduced<'a>> {
        let of_kind = self.statements.iter().filter(|statement| statement.kind == kind);
        let all = of_kind.map(|Statement { span, block, .. }| Introduced {
            lead_in: self.text(span.start..*block).trim().lines().last().unwrap_or_default().trim(),
            block: *block..span.end,
            span: span.clone(),
        });
        let content = &self.chunk.content;
        let is_whole = |introduced: &Introduced<'_>| {
            !(self.chunk.continues && content[..introduced.block.start].trim().is_empty()
                || self.chunk.breaks_off && content[introduced.block.end..].trim().is_empty())
        };
        all.filter(is_whole).collect()
    }

    /// The items of a list; none if it has nested lists, because the items alone would be incomplete.
    pub fn items(&self, list: Range<usize>) -> Vec<Item> {
        let mut found: Vec<Item> = Vec::new();
        let mut at = list.start;
        let mut indent = None;
        for line in self.text(list).split_inclusive('\n') {
            let bare = line.trim_start();
            let start = at + (line.len() - bare.len());
            let end = at + line.trim_end().len();
            at += line.len();
            if is_item(line) {
                if *indent.get_or_insert(line.len() - bare.len()) != line.len() - bare.len() {
                    return Vec::new();
                }
                let marker = bare.find(' ').map_or(0, |space| space + 1);
                let is_numbered = bare.starts_with(|c: char| c.is_ascii_digit());
                found.push(Item { span: (start + marker).min(end)..end, is_numbered });
            } else if let (Some(item), false) = (found.last_mut(), line.trim().is_empty()) {
                item.span.end = end;
            }
        }
        found.retain(|item| !item.span.is_empty());
        found
    }

    /// The first sentence of a span.
    pub fn first_sentence(&self, span: Range<usize>) -> Range<usize> {
        let text = self.text(span.clone());
        sentences(text).first().map_or(span.clone(), |first| span.start + first.start..span.start + first.end)
    }

    /// The heading without its number.
    pub fn heading(&self) -> Option<&'a str> {
        let heading = self.chunk.heading.as_deref()?;
        let bare =
            heading.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ')' | ' ' | '-'));
        let bare = bare.split_once(": ").filter(|(label, _)| is_label(label)).map_or(bare, |(_, rest)| rest);
        let bare = bare.trim().trim_end_matches(['¶', ':', '.']);
        (!bare.is_empty()).then_some(bare)
    }

    /// The name of the section in quotation marks, with the title of the page if the heading alone says too little.
    pub fn place_name(&self) -> String {
        let title = self.chunk.title().trim();
        match self.heading() {
            None => format!("“{title}”"),
            Some(heading) if heading == title => format!("“{title}”"),
            Some(heading) if length(heading) >= 3 && !title.is_empty() => format!("“{heading}”"),
            Some(heading) => format!("“{heading}” ({title})"),
        }
    }

    /// Whether the heading says what the section is about.
    pub fn has_clear_heading(&self) -> bool {
        self.heading().is_some_and(|heading| !has(VAGUE, &heading.to_lowercase()))
    }

    /// Whether the title of the page or a heading above the passage contains these words.
    pub fn is_headed(&self, words: &str) -> bool {
        let wanted = singular(words);
        let headings = self.chunk.heading_hierarchy.iter().map(String::as_str);
        headings.chain([self.chunk.page_title.as_str()]).any(|heading| singular(heading).contains(&wanted))
    }

    /// A text in the middle of a sentence.
    pub fn lowered(&self, text: &str) -> String {
        lowered(text, self.page)
    }
}

/// "Step 3", "Chapter 2", "Example".
fn is_label(text: &str) -> bool {
    let lower = text.to_lowercase();
    let first = lower.split(' ').next().unwrap_or_default();
    has("step chapter part section lesson exercise example note tip module week day task", first)
        && length(text) <= 2
}

/// A text in lower case, without plural endings, between spaces.
fn singular(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.map(|word| word.strip_suffix('s').filter(|stem| stem.len() > 2).unwrap_or(word));
    format!(" {} ", words.collect::<Vec<_>>().join(" "))
}
