//! The inline syntax of MkDocs' extensions: attributes, keys, icons, and annotation numbers in code.
//!
//! Invariant: code spans are left unchanged, and only complete attribute lists are removed.

use crate::attributes::{attributes, icon};
use crate::fence::code_span;

/// A line of text as the page shows it; nothing if it only defines something.
pub(super) fn shown(line: &str) -> Option<String> {
    // `*[HTML]: Hyper Text Markup Language` defines an abbreviation.
    if line.trim_start().strip_prefix("*[").is_some_and(|rest| rest.contains("]:")) {
        return None;
    }
    if !line.contains(['{', '+', ':']) {
        return Some(line.to_owned());
    }
    // The Markdown parser reads the attributes of headings, which may contain an id.
    let is_heading = line.trim_start().starts_with('#');
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['`', '{', '+', ':']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match rest.as_bytes()[0] {
            b'`' => {
                let span = code_span(rest);
                out.push_str(&rest[..span]);
                span
            }
            b'{' if !is_heading && !out.ends_with('{') => attributes(rest).map_or(0, |length| {
                // Attributes alone on a line apply to the whole block.
                out.truncate(out.trim_end().len().max(out.len() - out.trim_start().len()));
                length
            }),
            b'+' => keys(rest).map_or(0, |(length, keys)| {
                out.push_str(&keys);
                length
            }),
            b':' if !out.ends_with(|c: char| c.is_alphanumeric()) => icon(rest, &out).unwrap_or(0),
            _ => 0,
        };
        if length == 0 {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        } else {
            rest = &rest[length..];
        }
    }
    out.push_str(rest);
    let only_attributes = out.trim().is_empty() && !line.trim().is_empty();
    Some(if only_attributes { String::new() } else { out })
}

/// Removes annotation numbers from a line of code: `x = 1  # (1)!` becomes `x = 1`.
pub(super) fn code(line: &str) -> &str {
    let mut rest = line.trim_end();
    // There may be several.
    while let Some(before) = rest.strip_suffix(")!").and_then(|rest| {
        let (before, number) = rest.rsplit_once('(')?;
        (!number.is_empty() && number.bytes().all(|c| c.is_ascii_digit())).then(|| before.trim_end())
    }) {
        rest = before;
    }
    if rest.len() == line.trim_end().len() {
        return line;
    }
    let signs = ["//", "/*", "<!--", "--", ";;", "#", "%", ";"];
    signs.iter().find_map(|sign| rest.strip_suffix(sign)).unwrap_or(rest).trim_end()
}

/// Whether a line of code ends with a comment that contains only an annotation number: `# (1)!`.
pub(super) fn is_annotated(line: &str) -> bool {
    let comment = line.strip_suffix(")!").and_then(|rest| rest.rsplit_once('('));
    comment.is_some_and(|(before, number)| {
        let is_number = !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit());
        is_number && ["# ", "// ", "<!-- ", "-- "].iter().any(|sign| before.ends_with(sign))
    })
}

/// `++ctrl+alt+del++` becomes `Ctrl+Alt+Del`.
fn keys(text: &str) -> Option<(usize, String)> {
    let inside = text.strip_prefix("++")?;
    let inside = &inside[..inside.find("++")?];
    let is_key = |key: &str| {
        let word = key.trim_matches('"');
        !word.is_empty() && (word != key || key.chars().all(|c| c.is_alphanumeric() || c == '-'))
    };
    if !inside.split('+').all(is_key) {
        return None;
    }
    let shown = |key: &str| {
        let word = key.trim_matches('"').replace('-', " ");
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    };
    Some((inside.len() + 4, inside.split('+').map(shown).collect::<Vec<_>>().join("+")))
}
