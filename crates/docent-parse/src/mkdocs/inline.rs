//! The inline syntax of MkDocs' extensions: attributes, keys, icons, and annotation numbers in code.
//!
//! Invariant: code spans are left unchanged, and only complete attribute lists are removed.

/// Longer braces are not attributes. The limit also prevents a line of braces from being searched repeatedly.
const LONGEST: usize = 500;

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
                let span = super::super::fence::code_span(rest);
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
            b':' if !out.ends_with(|c: char| c.is_alphanumeric()) => icon(rest).unwrap_or(0),
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

/// The length of `{ .class #id key="value" }`, or of the variant with a colon.
fn attributes(text: &str) -> Option<usize> {
    let end = text[..text.floor_char_boundary(LONGEST)].find('}')?;
    let inside = text[1..end].strip_prefix(':').unwrap_or(&text[1..end]);
    let mut rest = inside.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '@');
        rest = match rest.strip_prefix(['.', '#']) {
            Some(name) => {
                let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
                name[end..]
                    .strip_prefix(char::is_whitespace)
                    .or((end == name.len()).then_some(""))
                    .filter(|_| end > 0)?
            }
            None => {
                let (key, value) = rest.split_once('=')?;
                if key.is_empty() || !key.chars().all(is_name) {
                    return None;
                }
                let value = value.trim_start();
                match value.chars().next().filter(|quote| matches!(quote, '"' | '\'')) {
                    Some(quote) => value[1..].split_once(quote)?.1,
                    None => value.split_once(char::is_whitespace).map_or("", |(_, rest)| rest),
                }
            }
        }
        .trim_start();
    }
    Some(end + 1)
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

/// The length of an icon such as `:material-account:`.
fn icon(text: &str) -> Option<usize> {
    const SETS: [&str; 4] = ["material-", "octicons-", "fontawesome-", "simple-"];
    let inside = &text[1..];
    let name = &inside[..inside.find(':')?];
    let is_icon = SETS.iter().any(|set| name.starts_with(set))
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    is_icon.then_some(name.len() + 2)
}
