//! Split lists, tables and code into parts that are verified one by one, and recognize text that claims
//! nothing.
//!
//! Otherwise two true items could hide a false one, as could the rows of a table or the lines of code.
//!
//! Invariant: every part that claims something is verified.

use super::{Evidence, Support};
use crate::reader::pieces;

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A sentence, an item of a list, or a row of a table with its header.
    Claim(String),
    /// A line of code.
    CodeLine(String),
}

/// The parts of a sentence, a list, a table or code. Parts that claim nothing are omitted, unless there are
/// no others.
pub fn parts(text: &str) -> Vec<Part> {
    let mut found = Vec::new();
    let mut header: Option<Vec<String>> = None;
    for span in pieces(text) {
        let piece = &text[span];
        if piece.starts_with("```") {
            let lines = piece.lines().filter(|line| !line.trim_start().starts_with("```"));
            found.extend(
                lines.filter(|line| is_command(line)).map(|line| Part::CodeLine(line.trim().to_owned())),
            );
        } else if piece.starts_with('|') {
            match &header {
                None => header = Some(cells(piece)),
                Some(header) => found.push(Part::Claim(row(header, &cells(piece)))),
            }
        } else if claims_something(piece) {
            found.push(Part::Claim(item(piece).to_owned()));
        }
    }
    if found.is_empty() { vec![Part::Claim(text.trim().to_owned())] } else { found }
}

/// Whether a line of code is more than a comment or punctuation.
fn is_command(line: &str) -> bool {
    let line = line.trim();
    let is_comment = ["#", "//", "--", ";"]
        .iter()
        .any(|mark| line.strip_prefix(mark).is_some_and(|rest| rest.starts_with(' ')));
    line.contains(char::is_alphanumeric) && !is_comment
}

fn cells(row: &str) -> Vec<String> {
    row.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// A table row as text, with the names of its columns.
fn row(header: &[String], cells: &[String]) -> String {
    let named = cells.iter().enumerate().map(|(column, cell)| match header.get(column) {
        Some(name) if column > 0 && !name.is_empty() => format!("{name} {cell}"),
        _ => cell.clone(),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// A list item without its marker.
fn item(piece: &str) -> &str {
    let bare = piece.trim_start();
    let digits = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = if digits.len() < bare.len() { digits.strip_prefix(". ") } else { None };
    numbered.or_else(|| bare.strip_prefix("- ")).or_else(|| bare.strip_prefix("* ")).unwrap_or(bare).trim()
}

/// Maximum number of words of a heading or lead-in; longer ones count as claims.
const LONGEST_LEAD_IN: usize = 8;

/// Whether a sentence makes a claim that can be true or false. Headings, "Then restart:" and "That is all."
/// do not.
pub fn claims_something(text: &str) -> bool {
    const FILLERS: [&str; 30] = [
        "that", "that's", "is", "all", "it", "this", "these", "here", "are", "you", "go", "now", "then",
        "next", "finally", "first", "so", "sure", "yes", "no", "of", "course", "hope", "i", "helps", "the",
        "done", "in", "short", "summary",
    ];
    let text = item(text).trim();
    let bare = text.trim_matches(['*', '_', ' ']);
    let words: Vec<String> = bare
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let is_heading = text.starts_with('#') || (text.starts_with("**") && text.ends_with("**"));
    let is_short = words.len() <= LONGEST_LEAD_IN;
    let has_fact = text.contains(['`', '"']) || text.contains(|c: char| c.is_ascii_digit());
    let leads_in = bare.ends_with(':') && is_short && !has_fact;
    let is_filler = words.iter().all(|word| FILLERS.contains(&word.as_str()));
    !((is_heading && is_short) || leads_in || is_filler)
}

/// The passages that contain a line of code, and where. The whole line must match.
pub fn lines_in(line: &str, evidence: &[Evidence<'_>]) -> Vec<Support> {
    let wanted = squeezed(line);
    let mut found = Vec::new();
    for (passage, evidence) in evidence.iter().enumerate() {
        let mut at = 0;
        for theirs in evidence.content.split_inclusive('\n') {
            let trimmed = theirs.trim();
            let start = at + (theirs.len() - theirs.trim_start().len());
            at += theirs.len();
            let inline = trimmed.split('`').skip(1).step_by(2).any(|code| squeezed(code) == wanted);
            if !trimmed.is_empty() && (squeezed(trimmed) == wanted || inline) {
                found.push(Support { score: 1.0, passage, span: start..start + trimmed.len() });
                break;
            }
        }
    }
    found
}

/// Removes white space and a shell prompt.
fn squeezed(line: &str) -> String {
    line.trim().trim_start_matches(['$', '>', '%']).chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(text: &str) -> Part {
        Part::Claim(text.to_owned())
    }

    #[test]
    fn list_items_table_rows_and_lines_of_code_are_parts() {
        assert_eq!(
            parts("- One is true.\n- Two feeds your cat."),
            [claim("One is true."), claim("Two feeds your cat.")]
        );
        assert_eq!(
            parts("| Mode | Speed |\n| --- | --- |\n| slow | 10 |\n| fast | 90 |"),
            [claim("slow, Speed 10"), claim("fast, Speed 90")]
        );
        assert_eq!(
            parts("```sh\n# build it\ncargo build\n\ncargo run\n```"),
            [Part::CodeLine("cargo build".to_owned()), Part::CodeLine("cargo run".to_owned())]
        );
        assert_eq!(parts("A node is a process."), [claim("A node is a process.")]);
    }

    #[test]
    fn lead_ins_headings_and_closing_phrases_claim_nothing() {
        for text in [
            "Then restart:",
            "That is all.",
            "## Installation",
            "**Steps**",
            "Here is the command:",
            "1. Next:",
        ] {
            assert!(!claims_something(text), "{text}");
        }
        for text in ["Then restart the node.", "Wait 5 minutes:", "Run `reboot`:", "Robots dream."] {
            assert!(claims_something(text), "{text}");
        }
    }

    #[test]
    fn a_line_of_code_must_match_completely() {
        let evidence =
            [Evidence { heading: "", content: "Build it:\n\n```sh\n$ cargo  build\n```\n\nor `cargo run`." }];
        assert_eq!(lines_in("cargo build", &evidence).len(), 1);
        assert_eq!(lines_in("cargo run", &evidence).len(), 1);
        assert!(lines_in("cargo build --steal-cookies", &evidence).is_empty());
    }
}
