//! Paragraphs, lists and notes become blocks of sections.
//!
//! Invariant: a list is one block as long as nothing interrupts it, and code inside it is a
//! block of its own.

use super::fence::fenced;
use crate::document::{BlockKind, Section, SectionBuilder};

/// Collects what a parser reads.
#[derive(Default)]
pub(super) struct Output {
    builder: SectionBuilder,
    /// Something was written.
    started: bool,
    /// How many lists are open.
    lists: usize,
    /// The lines of the list under way.
    items: String,
    /// Goes before the next paragraph: a list marker, a term, the name of a note.
    marker: String,
    notes: usize,
}

impl Output {
    pub(super) fn finish(mut self) -> Vec<Section> {
        self.end_block();
        self.builder.finish()
    }

    /// Nothing was written yet.
    pub(super) fn is_empty(&self) -> bool {
        !self.started
    }

    pub(super) fn heading(&mut self, level: u8, text: &str, anchor: Option<String>) {
        self.end_block();
        self.started = true;
        self.builder.heading(level, text, anchor);
    }

    /// A paragraph: a block, or a line of the list it stands in.
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

    /// Code in a fence longer than any inside.
    pub(super) fn code(&mut self, language: &str, lines: &[&str]) {
        let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
        let code = lines[first..].join("\n");
        let code = code.trim_end();
        if code.is_empty() {
            return;
        }
        self.whole(BlockKind::Code, &fenced(language, code));
    }

    /// A block that stands by itself, even inside a list.
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

    /// The next paragraph is the text of an item.
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

    /// The next paragraph explains `term`.
    pub(super) fn term(&mut self, term: &str) {
        let term = term.trim_end_matches(':');
        let sign = if term.ends_with(['.', '!', '?']) { "" } else { ":" };
        self.label(&format!("{term}{sign} "));
    }

    /// The next paragraph follows `label` on its line.
    pub(super) fn label(&mut self, label: &str) {
        if self.marker.chars().any(char::is_alphanumeric) {
            self.end_marker();
        }
        if self.marker.is_empty() {
            self.marker = "  ".repeat(self.lists);
        }
        self.marker.push_str(label);
    }

    /// A term whose explanation holds no paragraph still shows.
    pub(super) fn close_term(&mut self) {
        self.end_marker();
    }

    /// Opens a note; returns what `close_note` needs to go on with the list around it.
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

    /// Writes a marker that gets no text on a line of its own, unless it says nothing.
    fn end_marker(&mut self) {
        let marker = std::mem::take(&mut self.marker);
        if marker.chars().any(char::is_alphanumeric) {
            self.marker = marker[..marker.len() - marker.trim_start().len()].to_owned();
            self.paragraph(marker.trim());
        }
    }

    /// Writes all that is under way.
    fn end_block(&mut self) {
        self.end_marker();
        let items = std::mem::take(&mut self.items);
        self.builder.block(self.kind(), &items);
    }
}
