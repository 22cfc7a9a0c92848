//! Removes JSX and HTML tags and keeps the text between them.
//!
//! Invariant: code fences and code spans are left unchanged.

use super::{Partials, Ticks};
use crate::fence::for_each_line;

/// Longer text is not treated as a tag; this bounds the search for its end.
const LONGEST_TAG: usize = 4000;

/// Attributes whose value is visible on the page.
const VISIBLE_ATTRIBUTES: [&str; 4] = ["label", "title", "caption", "summary"];

/// Removes tags, keeps the text between them, and dedents the content of components, which Markdown would
/// otherwise read as code.
pub(super) fn remove_tags(source: &str, partials: &mut Partials) -> String {
    let mut out = String::with_capacity(source.len());
    let mut indents: Vec<Option<usize>> = Vec::new();
    let mut pending = String::new();
    for_each_line(source, |line, in_code| {
        let line = if indents.is_empty() { line } else { dedent(line, &mut indents) };
        if in_code && pending.is_empty() {
            out.push_str(line);
            return;
        }
        pending.push_str(line);
        // A tag may span several lines: wait for its end, up to a limit.
        if pending.len() < LONGEST_TAG && unfinished_tag(&pending) && !line.trim().is_empty() {
            return;
        }
        let text = std::mem::take(&mut pending);
        strip_tags_of(&text, partials, &mut indents, &mut out);
    });
    if !pending.is_empty() {
        strip_tags_of(&pending, partials, &mut indents, &mut out);
    }
    out
}

fn dedent<'a>(line: &'a str, indents: &mut [Option<usize>]) -> &'a str {
    let indent = line.len() - line.trim_start_matches(' ').len();
    if line.trim().is_empty() {
        return line;
    }
    let Some(top) = indents.last_mut() else { return line };
    let width = *top.get_or_insert(indent);
    &line[indent.min(width)..]
}

fn unfinished_tag(text: &str) -> bool {
    let ticks = Ticks::of(text);
    text.match_indices('<')
        .any(|(at, _)| !ticks.around(0, at) && starts_tag(&text[at..]) && Tag::read(&text[at..]).is_none())
}

fn starts_tag(text: &str) -> bool {
    let mut letters = text[1..].chars();
    match letters.next() {
        Some('/') => letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '>'),
        Some(c) => c.is_ascii_alphabetic() || c == '>',
        None => false,
    }
}

/// `<https://x.org>` and `<a@x.org>` are links, not tags.
fn is_address(text: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '{' | '<' | '>');
    let inside = &text[1..text[1..].find(ends).map_or(text.len(), |at| at + 1)];
    let is_whole = text[1 + inside.len()..].starts_with('>');
    is_whole && (inside.contains("://") || inside.starts_with("mailto:") || inside.contains('@'))
}

fn strip_tags_of(text: &str, partials: &mut Partials, indents: &mut Vec<Option<usize>>, out: &mut String) {
    let mut rest = text;
    let mut had_tag = false;
    let from = out.len();
    let mut offset = 0;
    let ticks = Ticks::of(text);
    while let Some(at) = rest.find('<') {
        let here = offset + at;
        let is_tag = !ticks.around(0, here) && starts_tag(&rest[at..]) && !is_address(&rest[at..]);
        let tag = if is_tag { Tag::read(&rest[at..]) } else { None };
        let Some(tag) = tag else {
            out.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            offset = here + 1;
            continue;
        };
        out.push_str(&rest[..at]);
        had_tag = true;
        if let Some(partial) = partials.shown(tag.name) {
            out.push('\n');
            out.push_str(partial);
            out.push('\n');
        }
        let component = tag.name.is_empty() || tag.name.starts_with(|c: char| c.is_uppercase());
        let block = component || BLOCK_TAGS.contains(&tag.name);
        for value in tag.visible() {
            out.push_str(&format!("\n{value}\n\n"));
        }
        if block && !tag.closes_itself {
            if tag.closes {
                indents.pop();
                out.push('\n');
            } else {
                indents.push(None);
            }
        } else if tag.name == "br" {
            out.push(' ');
        }
        rest = &rest[at + tag.length..];
        offset = here + tag.length;
    }
    out.push_str(rest);
    // Replace a line that contained only tags with a blank line, so that its neighbors stay separate.
    if had_tag && out[from..].trim().is_empty() {
        out.truncate(from);
        out.push('\n');
    }
}

const BLOCK_TAGS: [&str; 27] = [
    "div",
    "section",
    "details",
    "summary",
    "p",
    "center",
    "figure",
    "figcaption",
    "table",
    "thead",
    "tbody",
    "tr",
    "td",
    "th",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "article",
    "aside",
    "blockquote",
    "main",
    "nav",
    "tabs",
    "header",
];

/// One JSX or HTML tag.
struct Tag<'a> {
    name: &'a str,
    attributes: &'a str,
    closes: bool,
    closes_itself: bool,
    length: usize,
}

impl<'a> Tag<'a> {
    /// Parses the tag at the start of `text`; quotes and braces may contain `>`.
    fn read(text: &'a str) -> Option<Self> {
        let bytes = text.as_bytes();
        let closes = bytes.get(1) == Some(&b'/');
        let name_start = 1 + usize::from(closes);
        let name_length = text[name_start..]
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':')))?;
        let name = &text[name_start..name_start + name_length];
        let mut quote = 0u8;
        let mut braces = 0usize;
        for (at, &byte) in bytes.iter().enumerate().take(LONGEST_TAG).skip(name_start + name_length) {
            match byte {
                _ if byte == quote => quote = 0,
                _ if quote != 0 => {}
                b'"' | b'\'' if braces == 0 => quote = byte,
                b'{' => braces += 1,
                b'}' => braces = braces.saturating_sub(1),
                b'<' if braces == 0 => return None,
                b'>' if braces == 0 => {
                    return Some(Self {
                        name,
                        attributes: &text[name_start + name_length..at],
                        closes,
                        closes_itself: bytes[at - 1] == b'/' || matches!(name, "br" | "img" | "hr" | "input"),
                        length: at + 1,
                    });
                }
                _ => {}
            }
        }
        None
    }

    fn visible(&self) -> impl Iterator<Item = &'a str> {
        let attributes = self.attributes;
        VISIBLE_ATTRIBUTES.iter().filter_map(move |name| {
            let at = attributes.find(&format!("{name}=\""))?;
            // `data-title="…"` is another attribute.
            if at > 0 && !attributes[..at].ends_with(char::is_whitespace) {
                return None;
            }
            let value = &attributes[at + name.len() + 2..];
            value.find('"').map(|end| value[..end].trim()).filter(|value| !value.is_empty())
        })
    }
}
