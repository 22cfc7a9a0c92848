//! Split a passage into units, the smallest parts that can be quoted.
//!
//! A sentence is a unit; lists, tables and code blocks stay whole.
//!
//! Invariant: units are in reading order, do not overlap, and are slices of the passage.

use std::ops::Range;

use crate::sentence::sentences;

/// The kind of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKind {
    /// A sentence of prose.
    Sentence,
    /// A list, or one item of a long list.
    List,
    /// A code block with its fences.
    Code,
    /// A table.
    Table,
}

/// A unit of a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Position in the passage, in bytes.
    pub span: Range<usize>,
    /// The kind of unit.
    pub kind: UnitKind,
    /// Number of its paragraph, from 0.
    pub paragraph: usize,
}

/// Lists with at most this many lines stay whole.
const WHOLE_LIST: usize = 10;

/// Splits a passage into units.
pub fn units(content: &str) -> Vec<Unit> {
    let mut units = Vec::new();
    for (number, (span, is_code)) in paragraphs(content).into_iter().enumerate() {
        if is_code {
            units.push(Unit { span, kind: UnitKind::Code, paragraph: number });
        } else if content[span.clone()].starts_with('|') {
            units.push(Unit { span, kind: UnitKind::Table, paragraph: number });
        } else {
            prose(content, span, number, &mut units);
        }
    }
    units
}

/// Splits text at blank lines, but keeps fenced code blocks whole. The flag tells whether it is code.
pub fn paragraphs(content: &str) -> Vec<(Range<usize>, bool)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    let mut start = None;
    let mut at = 0;
    for line in content.split_inclusive('\n') {
        let end = at + line.trim_end().len();
        let bare = line.trim();
        let marker = &bare[..bare.len() - bare.trim_start_matches('`').len()];
        if let Some(open) = fence {
            if bare == open {
                fence = None;
                found.push((start.take().unwrap_or(at)..end, true));
            }
        } else if marker.len() >= 3 {
            close(&mut start, at, content, &mut found);
            fence = Some(marker);
            start = Some(at);
        } else if bare.is_empty() {
            close(&mut start, at, content, &mut found);
        } else {
            start.get_or_insert(at);
        }
        at += line.len();
    }
    let is_code = fence.is_some();
    if let Some(from) = start {
        let end = from + content[from..].trim_end().len();
        found.push((from..end, is_code));
    }
    found
}

fn close(start: &mut Option<usize>, at: usize, content: &str, found: &mut Vec<(Range<usize>, bool)>) {
    if let Some(from) = start.take() {
        let end = from + content[from..at].trim_end().len();
        found.push((from..end, false));
    }
}

/// Splits a paragraph: sentences up to the first list marker, then the list.
fn prose(content: &str, span: Range<usize>, paragraph: usize, units: &mut Vec<Unit>) {
    let text = &content[span.clone()];
    let mut list_start = None;
    let mut items: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is_item(line) {
            list_start.get_or_insert(at);
            items.push(at);
        }
        at += line.len();
    }
    let prose_end = list_start.unwrap_or(text.len());
    for sentence in sentences(&text[..prose_end]) {
        let span = span.start + sentence.start..span.start + sentence.end;
        units.push(Unit { span, kind: UnitKind::Sentence, paragraph });
    }
    let Some(list_start) = list_start else { return };
    let cuts = if text[list_start..].lines().count() <= WHOLE_LIST { vec![list_start] } else { items };
    for (number, from) in cuts.iter().enumerate() {
        let to = cuts.get(number + 1).copied().unwrap_or(text.len());
        let to = from + text[*from..to].trim_end().len();
        units.push(Unit { span: span.start + from..span.start + to, kind: UnitKind::List, paragraph });
    }
}

/// Whether a line begins a list item.
pub fn is_item(line: &str) -> bool {
    let bare = line.trim_start();
    let digits = bare.len() - bare.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    bare.starts_with("- ") || bare.starts_with("* ") || (digits > 0 && bare[digits..].starts_with(". "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(content: &str, expected: &[(UnitKind, &str)]) {
        let found: Vec<_> = units(content).into_iter().map(|unit| (unit.kind, &content[unit.span])).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn prose_is_cut_into_sentences_and_the_rest_stays_whole() {
        use UnitKind::{Code, List, Sentence, Table};
        check(
            "One. Two:\n\n- a\n- b\n\n```sh\nls\n\ncd\n```\n\n| x |\n| --- |\n| y |",
            &[
                (Sentence, "One."),
                (Sentence, "Two:"),
                (List, "- a\n- b"),
                (Code, "```sh\nls\n\ncd\n```"),
                (Table, "| x |\n| --- |\n| y |"),
            ],
        );
    }

    #[test]
    fn a_long_list_is_cut_at_its_items() {
        let list: String = (0..12).map(|number| format!("- item {number}\n")).collect();
        assert_eq!(units(&list).len(), 12);
    }

    #[test]
    fn a_fence_that_never_closes_is_code_to_the_end() {
        check("```\nx\n", &[(UnitKind::Code, "```\nx")]);
    }

    proptest! {
        #[test]
        fn units_are_ordered_slices(content in "([a-z .`|\n-]{0,12}(```|\n\n|- |1. )?){0,12}") {
            let mut at = 0;
            for unit in units(&content) {
                prop_assert!(unit.span.start >= at && unit.span.start < unit.span.end);
                prop_assert!(content.get(unit.span.clone()).is_some());
                at = unit.span.end;
            }
        }
    }
}
