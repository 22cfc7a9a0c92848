//! Attribute lists and icons in Markdown: `{ .class #id key="value" }` and `:material-account:`.
//!
//! Many site generators read them, so they also occur in books whose site generator is not known.
//!
//! Invariant: code is left unchanged, and braces that are not a complete attribute list are kept.

use super::fence::{code_span, for_each_line};

/// Longer braces are not attributes. The limit also prevents a line of braces from being searched repeatedly.
const LONGEST: usize = 500;

/// Removes attributes and icons from a page of an unknown site generator. An attribute list is removed only
/// after a link or on a line of its own, and the id of a heading is written as `{#id}`.
pub(super) fn without_attributes(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    for_each_line(source, |line, in_code| {
        if in_code || !line.contains(['{', ':']) {
            out.push_str(line);
        } else if line.starts_with('#') {
            out.push_str(&heading(line));
        } else if let Some(indent) = only_attributes(line) {
            out.push_str(&format!("{indent}\n"));
        } else {
            text(line, &mut out);
        }
    });
    out
}

/// The indentation of a line that contains nothing but `{: .class }` or `{ .class }`.
fn only_attributes(line: &str) -> Option<&str> {
    let bare = line.trim();
    let is_list = ["{:", "{ .", "{.", "{ #"].iter().any(|start| bare.starts_with(start));
    let is_whole = is_list && attributes(bare) == Some(bare.len());
    is_whole.then(|| &line[..line.len() - line.trim_start().len()])
}

fn text(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find(['`', '{', ':']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let removed = match rest.as_bytes()[0] {
            b'`' => {
                let span = code_span(rest);
                out.push_str(&rest[..span]);
                rest = &rest[span..];
                continue;
            }
            b'{' if out.ends_with(')') && starts_list(rest) => attributes(rest),
            b':' if !out.ends_with(|c: char| c.is_alphanumeric()) => icon(rest, out),
            _ => None,
        };
        let shown = if removed.is_some() { 0 } else { 1 };
        out.push_str(&rest[..shown]);
        rest = &rest[removed.unwrap_or(1)..];
    }
    out.push_str(rest);
}

/// Whether braces start like an attribute list and not like the labels of a metric: `{job="x"}`.
fn starts_list(braces: &str) -> bool {
    let inside = braces[1..].trim_start();
    inside.starts_with(['#', '.', ':']) || inside.starts_with("id=")
}

/// Writes the id of a heading as `{#id}`, whether it is in an attribute list or in a comment: `{/*id*/}`.
fn heading(line: &str) -> String {
    let found = line.rfind('{').filter(|at| *at > 0 && !line[..*at].trim_matches(['#', ' ']).is_empty());
    let Some(at) = found else { return line.to_owned() };
    let (before, braces) = line.split_at(at);
    let Some(length) = braces.find('}').map(|end| end + 1) else { return line.to_owned() };
    let (inside, after) = (&braces[1..length - 1], &braces[length..]);
    let comment = inside.strip_prefix("/*").and_then(|rest| rest.strip_suffix("*/"));
    let id = match comment.map(|id| id.trim().trim_start_matches('#')) {
        Some(id) => Some(id),
        None if starts_list(braces) && attributes(braces) == Some(length) => {
            let words = inside.trim_start_matches(':').split_whitespace();
            let id = |word: &'_ str| word.starts_with('#') || word.starts_with("id=");
            let found = words.into_iter().find(|word| id(word));
            found.map(|word| word.trim_start_matches("id=").trim_matches(['#', '"', '\'']))
        }
        None => return line.to_owned(),
    };
    match id.filter(|id| !id.is_empty() && !id.contains(char::is_whitespace)) {
        Some(id) => format!("{before}{{#{id}}}{after}"),
        None => format!("{}{after}", before.trim_end()),
    }
}

/// The length of `{ .class #id key="value" }`, or of the variant with a colon.
pub(super) fn attributes(text: &str) -> Option<usize> {
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

/// The length of an icon such as `:material-account:`. At the start of a line or list item it includes the
/// spaces that follow; otherwise they would indent the item's text further than its other lines.
pub(super) fn icon(text: &str, before: &str) -> Option<usize> {
    const SETS: [&str; 4] = ["material-", "octicons-", "fontawesome-", "simple-"];
    let inside = &text[1..];
    let name = &inside[..inside.find(':')?];
    let is_icon = SETS.iter().any(|set| name.starts_with(set))
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let length = name.len() + 2;
    let line = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
    let is_first = line.trim_matches([' ', '-', '*', '+']).is_empty();
    let after = text.get(length..).unwrap_or_default();
    let spaces = if is_first { after.len() - after.trim_start_matches(' ').len() } else { 0 };
    is_icon.then_some(length + spaces)
}

#[cfg(test)]
mod tests {
    use super::super::{markdown::Flavor, markdown::parse_markdown, shown};

    fn check(source: &str, expected: &str) {
        let (_, parsed) = parse_markdown(source, Flavor::Plain, &mut |_| None);
        assert_eq!(shown(&parsed), expected);
    }

    #[test]
    fn the_id_of_a_heading_becomes_its_anchor() {
        check(
            "# Page {#top}\n\n## Props {/*my-props*/}\n\nText.\n",
            "# Page #top\n## Props #my-props\n[Text] Text.\n",
        );
        check(
            "## 4.1 { id=\"4.1\" }\n### Old {: #old .x }\n### New {.y}\n",
            "## 4.1 #4.1\n### Old #old\n### New #new\n",
        );
        check("## Host {#host} <sup class=\"x\" />\n", "## Host #host\n");
    }

    #[test]
    fn braces_that_belong_to_a_heading_are_kept() {
        check(
            "## f{name=a, flag=b}\n\n## {#if}\n\n## Use {x}\n",
            "## f{name=a, flag=b} #fnamea-flagb\n## {#if} #if\n## Use {x} #use-x\n",
        );
    }

    #[test]
    fn attributes_after_links_and_icons_are_not_shown() {
        check(
            "[](){#complex}\n\n:material-lock: See [a](b.md){ .md-button } and [c](d.md){:target=\"_blank\"}.\n{: .note }\n",
            "[Text] See a and c.\n",
        );
    }

    #[test]
    fn other_braces_and_code_are_kept() {
        let text =
            "The metric up{job=\"x\"} and f(x){job=\"y\"}, {#a}, `[a](b){#c}` `:material-x:` 10:30:00.";
        check(text, &format!("[Text] {text}\n"));
        check("```\n[a](b){#c}\n# x {#y}\n```\n", "[Code] ```\n[a](b){#c}\n# x {#y}\n```\n");
    }
}
