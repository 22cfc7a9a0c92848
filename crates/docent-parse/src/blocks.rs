//! Collects paragraphs, lists and notes into the blocks of sections.
//!
//! Invariant: an uninterrupted list is one block, and code inside a list is a separate block.

use super::fence::fenced;
use crate::document::{BlockKind, Section, SectionBuilder};

/// The sections and blocks that a parser has produced so far.
#[derive(Default)]
pub(super) struct Output {
    builder: SectionBuilder,
    /// Whether anything was written.
    started: bool,
    /// The number of open lists.
    lists: usize,
    /// The lines of the current list.
    items: String,
    /// Written before the next paragraph: a list marker, a term or the label of a note.
    marker: String,
    notes: usize,
}

impl Output {
    pub(super) fn finish(mut self) -> Vec<Section> {
        self.end_block();
        self.builder.finish()
    }

    /// Whether nothing was written yet.
    pub(super) fn is_empty(&self) -> bool {
        !self.started
    }

    pub(super) fn heading(&mut self, level: u8, text: &str, anchor: Option<String>) {
        self.end_block();
        self.started = true;
        self.builder.heading(level, text, anchor);
    }

    /// Adds an image whose caption or description is in a block of the section.
    pub(super) fn figure(&mut self, caption: &str, image: &str) {
        self.builder.figure(caption, image);
    }

    /// Adds a paragraph: as a block, or as a line of the list that contains it.
    pub(super) fn paragraph(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.started = true;
        let marker = std::mem::take(&mut self.marker);
        if self.lists == 0 {
            self.builder.block(self.kind(), &format!("{marker}{text}"));
            return;
        }
        let indent = "  ".repeat(self.lists);
        if !self.items.is_empty() {
            self.items.push('\n');
            self.items.push_str(if marker.is_empty() { &indent } else { "" });
        }
        self.items.push_str(&marker);
        self.items.push_str(&text.replace('\n', &format!("\n{indent}")));
    }

    /// Adds code, in a fence longer than any fence inside it.
    pub(super) fn code(&mut self, language: &str, lines: &[&str]) {
        let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
        let code = lines[first..].join("\n");
        let code = code.trim_end();
        if code.is_empty() {
            return;
        }
        self.whole(BlockKind::Code, &fenced(language, code));
    }

    /// Adds a separate block, even inside a list.
    pub(super) fn whole(&mut self, kind: BlockKind, text: &str) {
        self.end_block();
        self.started = true;
        self.builder.block(kind, text);
    }

    pub(super) fn open_list(&mut self) {
        if self.lists == 0 {
            self.end_block();
        } else {
            self.end_marker();
        }
        self.lists += 1;
    }

    /// Starts a list item; the next paragraph is its text.
    pub(super) fn item(&mut self, marker: &str) {
        self.marker = format!("{}{marker} ", "  ".repeat(self.lists.saturating_sub(1)));
    }

    pub(super) fn close_list(&mut self) {
        self.marker.clear();
        self.lists = self.lists.saturating_sub(1);
        if self.lists == 0 {
            self.end_block();
        }
    }

    /// Starts a definition; the next paragraph explains `term`.
    pub(super) fn term(&mut self, term: &str) {
        let term = term.trim_end_matches(':');
        let sign = if term.ends_with(['.', '!', '?']) { "" } else { ":" };
        self.label(&format!("{term}{sign} "));
    }

    /// Puts `label` before the next paragraph, on the same line.
    pub(super) fn label(&mut self, label: &str) {
        if self.marker.chars().any(char::is_alphanumeric) {
            self.end_marker();
        }
        if self.marker.is_empty() {
            self.marker = "  ".repeat(self.lists);
        }
        self.marker.push_str(label);
    }

    /// Ends a definition. A term without any explanation is still written.
    pub(super) fn close_term(&mut self) {
        self.end_marker();
    }

    /// Opens a note and returns the state that `close_note` needs to continue the surrounding list.
    pub(super) fn open_note(&mut self, title: &str) -> usize {
        self.end_block();
        self.notes += 1;
        self.marker = format!("{title}: ");
        std::mem::take(&mut self.lists)
    }

    pub(super) fn close_note(&mut self, lists: usize) {
        self.end_block();
        self.notes = self.notes.saturating_sub(1);
        self.lists = lists;
    }

    fn kind(&self) -> BlockKind {
        if self.notes > 0 { BlockKind::Admonition } else { BlockKind::Text }
    }

    /// Writes a pending marker on its own line if it contains any words.
    fn end_marker(&mut self) {
        let marker = std::mem::take(&mut self.marker);
        if marker.chars().any(char::is_alphanumeric) {
            self.marker = marker[..marker.len() - marker.trim_start().len()].to_owned();
            self.paragraph(marker.trim());
        }
    }

    /// Writes everything that is pending.
    fn end_block(&mut self) {
        self.end_marker();
        let items = std::mem::take(&mut self.items);
        self.builder.block(self.kind(), &items);
    }
}
