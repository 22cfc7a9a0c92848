//! Classifies lines of reStructuredText.
//!
//! Invariant: columns are counted in bytes of leading spaces, so cutting there never splits a character.

use std::borrow::Cow;

/// Expands tabs to spaces.
pub(super) fn spaced(source: &str) -> Cow<'_, str> {
    const TAB: usize = 8;
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    if !source.contains(['\t', '\u{b}', '\u{c}']) {
        return Cow::Borrowed(source);
    }
    let mut out = String::with_capacity(source.len() + 64);
    let mut column = 0;
    for c in source.chars() {
        match c {
            '\t' => {
                let width = TAB - column % TAB;
                out.push_str(&" ".repeat(width));
                column += width;
            }
            '\u{b}' | '\u{c}' => out.push(' '),
            c => {
                out.push(c);
                column = if c == '\n' { 0 } else { column + 1 };
            }
        }
    }
    Cow::Owned(out)
}

/// The number of leading spaces; 0 for a blank line.
pub(super) fn indent(line: &str) -> usize {
    if line.trim().is_empty() { 0 } else { line.len() - line.trim_start_matches(' ').len() }
}

/// The end of the indented lines that start at `from`, without trailing blank lines.
pub(super) fn indented_end(lines: &[&str], from: usize) -> usize {
    let mut end = from;
    for (number, line) in lines.iter().enumerate().skip(from) {
        if line.is_empty() {
            continue;
        }
        if !line.starts_with(' ') {
            break;
        }
        end = number + 1;
    }
    end
}

/// Removes the common indentation.
pub(super) fn dedented<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let shared = lines.iter().filter(|line| !line.is_empty()).map(|line| indent(line)).min().unwrap_or(0);
    lines.iter().map(|line| line.get(shared..).unwrap_or_default()).collect()
}

/// The lines of the list item that starts at `at` with `text`, and where they end.
///
/// More lenient than docutils, which requires all lines at the column of the text: lines indented less still
/// belong to the item, and so does a second line indented more.
pub(super) fn item<'a>(lines: &[&'a str], at: usize, text: &'a str) -> (Vec<&'a str>, usize) {
    let end = indented_end(lines, at + 1);
    let below = &lines[at + 1..end];
    let column = match below.iter().find(|line| !line.is_empty()) {
        Some(first) if text.is_empty() => indent(first),
        _ => lines[at].len() - text.len(),
    };
    let goes_on = below.first().is_some_and(|line| !line.is_empty());
    let reaching = below.iter().map(|line| indent(line)).filter(|indent| *indent >= column).min();
    let column = reaching.filter(|_| goes_on).unwrap_or(column);
    let mut body = vec![text];
    body.extend(below.iter().map(|line| &line[indent(line).min(column)..]));
    (body, end)
}

/// The character that a line consists of, if it is one character repeated.
pub(super) fn adornment(line: &str) -> Option<char> {
    let sign = line.chars().next().filter(char::is_ascii_punctuation)?;
    line.chars().all(|c| c == sign).then_some(sign)
}

/// The text of a bullet item.
pub(super) fn bullet(line: &str) -> Option<(char, &str)> {
    let sign = line.chars().next().filter(|c| matches!(c, '-' | '*' | '+' | '•' | '‣' | '⁃'))?;
    let rest = &line[sign.len_utf8()..];
    (rest.is_empty() || rest.starts_with(' ')).then(|| (sign, rest.trim_start()))
}

/// The marker of a numbered item, such as `1.` or `(a)`, and its text.
pub(super) fn enumerator(line: &str) -> Option<(&str, &str)> {
    let (marker, rest) = line.split_once(' ').unwrap_or((line, ""));
    let inner = marker.strip_prefix('(').unwrap_or(marker);
    let number = inner.strip_suffix(')').or_else(|| inner.strip_suffix('.').filter(|_| inner == marker))?;
    let is_number = number == "#"
        || (!number.is_empty() && number.len() < 10 && number.bytes().all(|c| c.is_ascii_digit()))
        || (number.len() == 1 && number.bytes().all(|c| c.is_ascii_alphabetic()))
        || (!number.is_empty() && number.bytes().all(|c| b"ivxlcdmIVXLCDM".contains(&c)));
    is_number.then(|| (marker, rest.trim_start()))
}

/// `:name: text`. The space distinguishes a field from a role.
pub(super) fn field(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix(':')?;
    let end = rest.match_indices(':').map(|(at, _)| at).find(|at| {
        let after = &rest[at + 1..];
        !rest[..*at].ends_with('\\') && (after.is_empty() || after.starts_with(' '))
    })?;
    let name = &rest[..end];
    let is_name = !name.is_empty() && !name.starts_with([' ', ':']) && !name.contains(":`");
    is_name.then(|| (name, rest[end + 1..].trim_start()))
}

/// The options in a line of an option list, and their description.
pub(super) fn option(line: &str) -> Option<(&str, &str)> {
    let name = line.strip_prefix("--").or_else(|| line.strip_prefix('-'))?;
    name.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(())?;
    match line.split_once("  ") {
        Some((options, text)) => Some((options, text.trim_start())),
        None => Some((line, "")),
    }
}

/// The name of a directive and the text after its `::`.
pub(super) fn directive(text: &str) -> Option<(&str, &str)> {
    let (name, argument) =
        text.split_once("::").filter(|(_, rest)| rest.is_empty() || rest.starts_with(' ')).or_else(
            // The name may contain a domain with colons.
            || text.split_once(":: ").or_else(|| text.strip_suffix("::").map(|name| (name, ""))),
        )?;
    let name = name.strip_suffix(' ').unwrap_or(name);
    let is_name = name.starts_with(|c: char| c.is_alphanumeric())
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | ':'));
    is_name.then(|| (name, argument.trim()))
}

/// Whether a line contains the start of a directive, after any prefix.
pub(super) fn is_directive(line: &str) -> bool {
    line.strip_prefix(".. ").is_some_and(|rest| directive(rest.trim_start()).is_some())
}
