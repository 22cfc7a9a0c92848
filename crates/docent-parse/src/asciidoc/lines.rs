//! What a single line starts: a block, a list item, a title.
//!
//! Invariant: the line alone decides, except for a title that is underlined by the next line.

use super::preprocess::is_verbatim;
use super::style::Style;

/// The marker of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Marker {
    /// `*`, `-`, repeated for depth.
    Bullet(String),
    /// `.`, `1.`, `a.`.
    Number(String),
    /// `term::`
    Term(String),
    /// `<1>`
    Callout,
}

/// The marker of the item that a line starts, and its text. For a term, the text before the marker is
/// returned too.
pub(super) fn marker(line: &str) -> Option<(Marker, &str, &str)> {
    let line = line.trim_start();
    if line.starts_with("//") {
        return None;
    }
    if let Some((sign, text)) = line.split_once(char::is_whitespace) {
        let text = text.trim_start();
        let all = |c: char| sign.chars().all(|own| own == c) && sign.len() <= 5;
        if !text.is_empty() {
            if sign == "-" || sign == "•" || all('*') {
                return Some((Marker::Bullet(sign.to_owned()), "", text));
            }
            if all('.') {
                return Some((Marker::Number(sign.to_owned()), "", text));
            }
            if let Some(number) = sign.strip_suffix('.')
                && (number.len() < 10 && number.bytes().all(|c| c.is_ascii_digit())
                    || number.len() == 1 && number.bytes().all(|c| c.is_ascii_alphabetic()))
                && !number.is_empty()
            {
                let kind = if number.as_bytes()[0].is_ascii_digit() { "1." } else { "a." };
                return Some((Marker::Number(kind.to_owned()), number, text));
            }
            if let Some(number) = sign.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'))
                && (number == "." || !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()))
            {
                return Some((Marker::Callout, number.trim_matches('.'), text));
            }
        }
    }
    term(line)
}

fn term(line: &str) -> Option<(Marker, &str, &str)> {
    for sign in ["::::", ":::", "::", ";;"] {
        let found = line.match_indices(sign).find(|(at, _)| {
            let after = &line[at + sign.len()..];
            *at > 0
                && (after.is_empty() || after.starts_with(' '))
                && !line[..*at].ends_with([':', ';'])
                && !line[..*at].trim().is_empty()
        });
        if let Some((at, _)) = found {
            return Some((Marker::Term(sign.to_owned()), &line[..at], line[at + sign.len()..].trim()));
        }
    }
    None
}

pub(super) fn one_line_title(line: &str) -> Option<(usize, &str)> {
    let sign = line.chars().next().filter(|c| matches!(c, '=' | '#'))?;
    let text = line.trim_start_matches(sign);
    let level = line.len() - text.len();
    (level <= 6 && text.starts_with(' ') && !text.trim().is_empty()).then(|| {
        let text = text.trim();
        (level - 1, text.strip_suffix(&line[..level]).map_or(text, str::trim_end))
    })
}

/// The level of a title according to the characters below it, which must be about as long as the title.
pub(super) fn underlined(line: &str, below: &str) -> Option<usize> {
    let sign = below.chars().next()?;
    let level = "=-~^+".find(sign)?;
    let length = line.trim_end().chars().count();
    let fits = below.len() >= 3 && below.chars().all(|c| c == sign) && length.abs_diff(below.len()) <= 1;
    let is_title = line.starts_with(|c: char| c.is_alphanumeric()) && marker(line).is_none();
    (fits && is_title).then_some(level)
}

/// `'''`, `---` and page breaks.
pub(super) fn is_rule(line: &str) -> bool {
    matches!(line, "'''" | "---" | "***" | "- - -" | "* * *" | "<<<")
        || line.len() >= 3 && line.chars().all(|c| c == '\'')
}

/// Whether a line opens a block that the same line closes.
pub(super) fn is_delimiter(line: &str) -> bool {
    let Some(sign) = line.chars().next() else { return false };
    line == "--"
        || is_verbatim(line)
        || matches!(sign, '=' | '*' | '_') && line.len() >= 4 && line.chars().all(|c| c == sign)
}

pub(super) fn table_separator(line: &str) -> Option<char> {
    let sign = line.chars().next().filter(|c| matches!(c, '|' | ',' | ':' | '!'))?;
    let rest = &line[1..];
    (rest.len() >= 3 && rest.chars().all(|c| c == '=')).then_some(sign)
}

/// Whether a line ends a paragraph.
pub(super) fn starts_block(line: &str) -> bool {
    is_delimiter(line)
        || table_separator(line).is_some()
        || (line.starts_with('[') && line.ends_with(']') && Style::default().add(line))
}

/// Where the block that starts at `at` is closed; an unclosed block extends to the end.
pub(super) fn closing(lines: &[String], at: usize) -> usize {
    let open = lines[at].as_str();
    let close = if open.starts_with("```") { "```" } else { open };
    (at + 1..lines.len()).find(|next| lines[*next] == close).unwrap_or(lines.len())
}

/// The next line that is not blank.
pub(super) fn next_shown(lines: &[String], at: usize) -> usize {
    (at..lines.len()).find(|next| !lines[*next].trim().is_empty()).unwrap_or(lines.len())
}
