//! Groups lines into paragraphs, code and tables.
//!
//! Invariant: the words of every line end up in exactly one block.

use super::lines::{CELL, Line};
use crate::document::BlockKind;
use crate::fence::fenced;
use crate::table::rendered;

/// The blocks of consecutive lines on one page.
pub(super) fn blocks(lines: &[Line]) -> Vec<(BlockKind, String)> {
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let end = run(lines, at, |line| line.is_mono || is_sign(line));
        if lines[at].is_mono && end > at {
            blocks.push((BlockKind::Code, code(&lines[at..end])));
            at = end;
            continue;
        }
        let cells = cells(&lines[at]);
        let end = run(lines, at, |line| cells > 1 && self::cells(line) == cells);
        if end > at + 1 {
            blocks.push((BlockKind::Table, table(&lines[at..end])));
            at = end;
            continue;
        }
        let end = (at + 1..lines.len())
            .find(|next| lines[*next].is_mono || starts_paragraph(&lines[at..*next], &lines[*next]))
            .unwrap_or(lines.len());
        blocks.push((BlockKind::Text, joined(&lines[at..end])));
        at = end;
    }
    blocks
}

fn run(lines: &[Line], at: usize, belongs: impl Fn(&Line) -> bool) -> usize {
    (at..lines.len()).find(|next| !belongs(&lines[*next])).unwrap_or(lines.len())
}

/// Whether a line, such as `}`, is too short to tell whether its font is monospaced.
fn is_sign(line: &Line) -> bool {
    line.text.chars().count() <= 2 && !line.text.chars().any(char::is_alphanumeric)
}

fn cells(line: &Line) -> usize {
    line.text.matches(CELL).count() + 1
}

/// Whether `next` starts a new paragraph after `before`.
fn starts_paragraph(before: &[Line], next: &Line) -> bool {
    let Some(last) = before.last() else { return true };
    let gap = next.y - last.y;
    // The line spacing of this paragraph, or the usual one for its font size.
    let usual = match before {
        [.., above, last] => (last.y - above.y).abs(),
        _ => last.size * 1.4,
    };
    let moved = gap > usual * 1.3 + 1.0 || gap < -last.size;
    let other_size = (next.size - last.size).abs() > last.size * 0.12;
    let indented = next.left > before[0].left.min(last.left) + next.size * 0.8
        && before.len() > 1
        && ends_sentence(&last.text);
    moved || other_size || indented || starts_item(&next.text)
}

fn ends_sentence(text: &str) -> bool {
    text.ends_with(['.', '!', '?', ':', '”', '"', ')'])
}

fn starts_item(text: &str) -> bool {
    text.starts_with(['•', '◦', '▪', '–', '●']) && text.chars().nth(1) == Some(' ')
}

/// Joins lines into one text, including words hyphenated at the end of a line.
fn joined(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let own = line.text.replace(CELL, " ");
        let own = match own.strip_prefix(['•', '◦', '▪', '●']) {
            Some(rest) => format!("- {}", rest.trim_start()),
            None => own,
        };
        let cut = text
            .strip_suffix(['-', '\u{ad}', '‐'])
            .filter(|before| before.ends_with(char::is_alphabetic) && own.starts_with(char::is_lowercase));
        match cut {
            Some(before) => text.truncate(before.len()),
            None if !text.is_empty() => text.push(' '),
            None => {}
        }
        text.push_str(&own);
    }
    text.replace('\u{ad}', "")
}

/// Code with its indentation restored from the horizontal positions.
fn code(lines: &[Line]) -> String {
    let left = lines.iter().map(|line| line.left).fold(f64::INFINITY, f64::min);
    let letter =
        lines.iter().filter(|line| line.is_mono).map(|line| line.letter).fold(0.0, f64::max).max(1.0);
    let mut out = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        // A larger gap between lines stands for a blank line.
        if number > 0 && line.y - lines[number - 1].y > line.size * 2.0 {
            out.push(String::new());
        }
        let indent = ((line.left - left) / letter).round().clamp(0.0, 80.0) as usize;
        out.push(format!("{}{}", " ".repeat(indent), line.text.replace(CELL, "    ")));
    }
    fenced("", &out.join("\n"))
}

fn table(lines: &[Line]) -> String {
    let rows: Vec<Vec<String>> =
        lines.iter().map(|line| line.text.split(CELL).map(|cell| cell.trim().to_owned()).collect()).collect();
    rendered(&rows, 1)
}
