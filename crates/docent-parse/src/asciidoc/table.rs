//! Tables: cells between bars, or comma-separated values.
//!
//! Invariant: every cell ends up in a row; cells missing at the end of the last row are empty.

use super::style::Style;
use crate::table::records;

/// Limit on columns, far above what real tables have.
const MOST_COLUMNS: usize = 64;

/// The rows, and the number of header rows.
pub(super) fn rows(lines: &[String], separator: char, style: &Style) -> (Vec<Vec<String>>, usize) {
    let format = style.get("format").unwrap_or(match separator {
        ',' => "csv",
        ':' => "dsv",
        _ => "psv",
    });
    let own = style.get("separator").and_then(|text| text.chars().next());
    let rows = match format {
        "csv" | "tsv" | "dsv" => {
            let sign = own.unwrap_or(match format {
                "csv" => ',',
                "tsv" => '\t',
                _ => ':',
            });
            records(&lines.join("\n"), sign)
        }
        _ => bars(lines, own.unwrap_or(separator), style),
    };
    let rows: Vec<Vec<String>> =
        rows.into_iter().filter(|row| row.iter().any(|cell| !cell.trim().is_empty())).collect();
    // A first line followed by a blank line is a header, unless the author says otherwise.
    let first = lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(0);
    let implied = first == 0 && lines.get(1).is_some_and(|line| line.trim().is_empty()) && rows.len() > 1;
    let headers = usize::from(style.has("header") || (implied && !style.has("noheader")));
    (rows, headers)
}

fn bars(lines: &[String], sign: char, style: &Style) -> Vec<Vec<String>> {
    let mut cells: Vec<(usize, String)> = Vec::new();
    let mut in_first_line = 0;
    for line in lines {
        let mut pieces = split(line, sign);
        let before = pieces.remove(0);
        // The text before the first bar continues the cell above, or specifies the new cell.
        let (rest, mut spec) =
            if pieces.is_empty() { (before.as_str(), Spec::default()) } else { specified(&before) };
        if let Some((_, cell)) = cells.last_mut() {
            cell.push('\n');
            cell.push_str(rest);
        }
        let last = pieces.len();
        for (number, piece) in pieces.into_iter().enumerate() {
            let (text, next) =
                if number + 1 < last { specified(&piece) } else { (piece.as_str(), Spec::default()) };
            for _ in 0..spec.copies {
                cells.push((spec.span, text.to_owned()));
            }
            spec = next;
        }
        if in_first_line == 0 {
            in_first_line = cells.iter().map(|(span, _)| *span).sum();
        }
    }
    let columns = style.get("cols").map_or(in_first_line, columns).clamp(1, MOST_COLUMNS);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (span, text) in cells {
        if rows.last().is_none_or(|row| row.len() >= columns) {
            rows.push(Vec::new());
        }
        if let Some(row) = rows.last_mut() {
            row.push(text);
            row.extend(std::iter::repeat_n(
                String::new(),
                span.saturating_sub(1).min(columns - row.len().min(columns)),
            ));
        }
    }
    if let Some(row) = rows.last_mut() {
        row.resize(columns, String::new());
    }
    rows
}

/// Splits at `sign` unless it is escaped with a backslash.
fn split(line: &str, sign: char) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut letters = line.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '\\' if letters.peek() == Some(&sign) => {
                letters.next();
                if let Some(piece) = pieces.last_mut() {
                    piece.push(sign);
                }
            }
            c if c == sign => pieces.push(String::new()),
            c => {
                if let Some(piece) = pieces.last_mut() {
                    piece.push(c);
                }
            }
        }
    }
    pieces
}

/// How often a cell is repeated and how many columns it spans.
struct Spec {
    span: usize,
    copies: usize,
}

impl Default for Spec {
    fn default() -> Self {
        Self { span: 1, copies: 1 }
    }
}

/// Separates the text of a cell from the specification of the next one at its end: `2+`, `3*`, `.2+^a`.
fn specified(text: &str) -> (&str, Spec) {
    let start = text
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    let word = &text[start..];
    let styles = "adehlmsv<>^.";
    let is_spec = !word.is_empty()
        && word.len() < 12
        && word.chars().all(|c| c.is_ascii_digit() || c == '+' || c == '*' || styles.contains(c))
        && (word.contains(['+', '*', '<', '>', '^'])
            || word.len() == 1 && word.starts_with(|c| styles.contains(c)));
    if !is_spec {
        return (text, Spec::default());
    }
    let number = |sign: char| {
        let before = word.split_once(sign)?.0.split('.').next()?;
        before.parse::<usize>().ok()
    };
    let spec = Spec {
        span: number('+').unwrap_or(1).clamp(1, MOST_COLUMNS),
        copies: number('*').unwrap_or(1).clamp(1, MOST_COLUMNS),
    };
    (&text[..start], spec)
}

/// The number of columns: `1,2,3*` are five.
fn columns(written: &str) -> usize {
    let written = written.trim();
    if let Ok(number) = written.parse::<usize>()
        && !written.contains([',', ';'])
        && number == 1
    {
        return 1;
    }
    let parts = written.split([',', ';']);
    parts
        .map(|part| {
            part.trim().split_once('*').and_then(|(number, _)| number.parse().ok()).unwrap_or(1_usize)
        })
        .sum()
}
