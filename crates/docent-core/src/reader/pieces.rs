//! Cut a passage into the pieces that the reader judges: sentences, list items, table rows and code blocks.
//!
//! The model was trained on passages cut in the same way (`models/reader/text.py`), so the two must not
//! diverge.
//!
//! Invariant: pieces are in reading order, do not overlap, and are slices of the passage.

use std::ops::Range;

use crate::sentence::sentences;
use crate::unit::{is_item, paragraphs};

/// Cuts a passage into pieces.
pub fn pieces(content: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (span, is_code) in paragraphs(content) {
        if is_code {
            found.push(span);
        } else {
            lines(content, span, &mut found);
        }
    }
    found
}

/// What the current lines belong to, and where it begins.
enum Open {
    Prose(usize),
    Item(usize),
}

/// Cuts a paragraph into table rows, list items with their continuation lines, and sentences.
fn lines(content: &str, span: Range<usize>, found: &mut Vec<Range<usize>>) {
    let mut open: Option<Open> = None;
    let mut at = span.start;
    for line in content[span.clone()].split_inclusive('\n') {
        let is_row = line.trim_start().starts_with('|');
        if is_row || is_item(line) {
            close(content, open.take(), at, found);
        }
        if is_row {
            if !is_rule(line) {
                push(content, at..at + line.len(), found);
            }
        } else if is_item(line) {
            open = Some(Open::Item(at));
        } else if open.is_none() {
            open = Some(Open::Prose(at));
        }
        at += line.len();
    }
    close(content, open, span.end, found);
}

fn close(content: &str, open: Option<Open>, end: usize, found: &mut Vec<Range<usize>>) {
    match open {
        Some(Open::Item(from)) => push(content, from..end, found),
        Some(Open::Prose(from)) => {
            let inside = sentences(&content[from..end]);
            found.extend(inside.into_iter().map(|span| from + span.start..from + span.end));
        }
        None => {}
    }
}

fn push(content: &str, span: Range<usize>, found: &mut Vec<Range<usize>>) {
    let text = &content[span.clone()];
    let from = span.start + (text.len() - text.trim_start().len());
    found.push(from..from + text.trim().len());
}

/// Whether a line is the rule between the header of a table and its rows.
fn is_rule(line: &str) -> bool {
    line.trim().chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn items_rows_and_code_blocks_are_separate_pieces() {
        let content =
            "One. Two:\n- a\n  goes on\n- b\n\n| x | y |\n| --- | :-: |\n| 1 | 2 |\n\n```sh\nls\n\ncd\n```";
        let found: Vec<&str> = pieces(content).into_iter().map(|span| &content[span]).collect();
        assert_eq!(
            found,
            ["One.", "Two:", "- a\n  goes on", "- b", "| x | y |", "| 1 | 2 |", "```sh\nls\n\ncd\n```"]
        );
    }

    proptest! {
        #[test]
        fn pieces_are_ordered_slices(content in "([a-z .:`|\n-]{0,12}(```|\n\n|- |1. |\\| )?){0,12}") {
            let mut at = 0;
            for span in pieces(&content) {
                prop_assert!(span.start >= at && span.start < span.end);
                prop_assert!(content.get(span.clone()).is_some());
                at = span.end;
            }
        }
    }
}
