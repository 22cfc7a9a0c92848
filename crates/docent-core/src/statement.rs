//! Split a passage into statements: parts that still make sense when quoted alone.
//!
//! A sentence of prose is a statement. A list, a table or code forms a statement together with the sentence
//! that introduces it: "To save the map:" means nothing without the command after it, and the command means
//! little without the words before it.
//!
//! Invariant: statements are in reading order, do not overlap, and are slices of the passage.

use std::ops::Range;

use crate::chunk::pack::is_code_alone;
use crate::sentence::sentences;
use crate::unit::{is_item, paragraphs};

/// The kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// A sentence of prose.
    Sentence,
    /// A list.
    List,
    /// A table.
    Table,
    /// Code.
    Code,
}

/// A statement of a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Position in the passage, in bytes.
    pub span: Range<usize>,
    /// The kind of statement.
    pub kind: StatementKind,
    /// Where the list, table or code after its lead-in begins, in bytes.
    pub block: usize,
}

/// The statements of a passage.
pub fn statements(content: &str) -> Vec<Statement> {
    let mut found: Vec<Statement> = Vec::new();
    // Whether the last statement is a label or a lead-in, and what follows belongs to it.
    let mut is_open = false;
    for (span, kind) in blocks(content) {
        match kind {
            StatementKind::Sentence => {
                let text = &content[span.clone()];
                for sentence in sentences(text) {
                    let (start, end) = (span.start + sentence.start, span.start + sentence.end);
                    match found.last_mut() {
                        Some(before) if is_open => before.span.end = end,
                        _ => found.push(Statement { span: start..end, kind, block: start }),
                    }
                    is_open = false;
                }
                is_open = text.ends_with(':') || is_label(text);
            }
            kind => {
                is_open = false;
                let block = span.start;
                match found.last_mut() {
                    // The sentence before introduces the block.
                    Some(before) if before.kind == StatementKind::Sentence => {
                        *before = Statement { span: before.span.start..span.end, kind, block };
                    }
                    _ => found.push(Statement { span, kind, block }),
                }
            }
        }
    }
    found
}

/// Whether a paragraph is a label: the title of a note ("Tip: How to upgrade") or of a tab ("Windows").
fn is_label(paragraph: &str) -> bool {
    const LONGEST: usize = 60;
    paragraph.len() <= LONGEST
        && !paragraph.contains('\n')
        && paragraph.ends_with(|character: char| character.is_alphanumeric() || character == ')')
}

/// Paragraphs, lists, tables and code, in order. A list inside a paragraph is a separate block.
fn blocks(content: &str) -> Vec<(Range<usize>, StatementKind)> {
    let mut found = Vec::new();
    for (span, is_code) in paragraphs(content) {
        let text = &content[span.clone()];
        if is_code || is_code_alone(text) {
            found.push((span, StatementKind::Code));
        } else if text.starts_with('|') {
            found.push((span, StatementKind::Table));
        } else {
            let list = first_item(text);
            if list > 0 {
                let end = span.start + text[..list].trim_end().len();
                found.push((span.start..end, StatementKind::Sentence));
            }
            if list < text.len() {
                found.push((span.start + list..span.end, StatementKind::List));
            }
        }
    }
    found
}

/// Where the first item of a list begins; the end of the text if there is none.
fn first_item(text: &str) -> usize {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is_item(line) {
            return at;
        }
        at += line.len();
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(content: &str, expected: &[(StatementKind, &str)]) {
        let found: Vec<_> = statements(content)
            .into_iter()
            .map(|statement| (statement.kind, &content[statement.span]))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_block_belongs_to_the_sentence_that_introduces_it() {
        use StatementKind::{Code, List, Sentence, Table};
        check(
            "One. To save it:\n\n```sh\nsave\n```\n\nTwo modes:\n- a\n- b\n\nThree. See:\n\n| x |\n| --- |\n| y |",
            &[
                (Sentence, "One."),
                (Code, "To save it:\n\n```sh\nsave\n```"),
                (List, "Two modes:\n- a\n- b"),
                (Sentence, "Three."),
                (Table, "See:\n\n| x |\n| --- |\n| y |"),
            ],
        );
    }

    #[test]
    fn a_label_belongs_to_what_it_labels() {
        use StatementKind::{List, Sentence};
        check(
            "It fails.\n\nTip: How to upgrade\n\nAvailable options:\n\n- a\n- b\n\nWindows\n\nRun it. Then stop.",
            &[
                (Sentence, "It fails."),
                (List, "Tip: How to upgrade\n\nAvailable options:\n\n- a\n- b"),
                (Sentence, "Windows\n\nRun it."),
                (Sentence, "Then stop."),
            ],
        );
        check("Only a label", &[(Sentence, "Only a label")]);
    }

    #[test]
    fn a_lead_in_belongs_to_the_sentence_after_it() {
        use StatementKind::Sentence;
        check(
            "One. Note this:\n\nTwo. Three.",
            &[(Sentence, "One."), (Sentence, "Note this:\n\nTwo."), (Sentence, "Three.")],
        );
    }

    #[test]
    fn a_paragraph_of_inline_code_is_code() {
        check("Start it with:\n\n`run --now`", &[(StatementKind::Code, "Start it with:\n\n`run --now`")]);
    }

    #[test]
    fn a_block_without_an_introduction_is_a_statement() {
        check(
            "```sh\na\n```\n\n```sh\nb\n```",
            &[(StatementKind::Code, "```sh\na\n```"), (StatementKind::Code, "```sh\nb\n```")],
        );
    }

    proptest! {
        #[test]
        fn statements_are_ordered_slices(content in "([a-z .:`|\n-]{0,12}(```|\n\n|- |1. )?){0,12}") {
            let mut at = 0;
            for statement in statements(&content) {
                prop_assert!(statement.span.start >= at && statement.span.start < statement.span.end);
                prop_assert!(content.get(statement.span.clone()).is_some());
                prop_assert!(statement.span.contains(&statement.block));
                at = statement.span.end;
            }
        }
    }
}
