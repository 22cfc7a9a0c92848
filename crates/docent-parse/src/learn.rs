//! Converts the extensions of Microsoft Learn to standard Markdown: included files, images, and parts of a
//! page for one version.
//!
//! Invariant: code fences are left unchanged. If an included file is missing, only its lines are lost, and a
//! warning is produced.

use super::fence::{fenced, for_each_line};
use super::front_matter;
use super::include::Includes;

/// Converts a page to standard Markdown. `load` returns the text of an included file, given its path relative
/// to this page.
pub(super) fn to_markdown(
    source: &str,
    load: &mut dyn FnMut(&str) -> Option<String>,
    warnings: &mut Vec<String>,
) -> String {
    page(source, &mut Includes::default(), load, warnings)
}

fn page(
    source: &str,
    includes: &mut Includes,
    load: &mut dyn FnMut(&str) -> Option<String>,
    warnings: &mut Vec<String>,
) -> String {
    if !source.contains("[!") && !source.contains(":::") {
        return source.to_owned();
    }
    let mut out = String::with_capacity(source.len());
    for_each_line(source, |line, in_code| {
        let bare = line.trim();
        if in_code {
            out.push_str(line);
        } else if let Some(path) = included(bare) {
            match includes.load(path, load) {
                Ok((path, text)) => {
                    let (_, text, _) = front_matter::split(&text);
                    includes.enter(path);
                    out.push_str(&format!("\n{}\n\n", page(text, includes, load, warnings).trim_end()));
                    includes.leave();
                }
                Err(reason) => {
                    warnings.push(reason.to_string());
                    out.push('\n');
                }
            }
        } else if let Some((name, attributes)) = extension(bare) {
            let shown = match name {
                "image" => value(attributes, "alt-text").unwrap_or_default().to_owned(),
                "code" => value(attributes, "source").map_or(String::new(), |path| {
                    let text = includes.load(path, load).map(|(_, text)| text);
                    let text = text.map_err(|reason| warnings.push(reason.to_string())).unwrap_or_default();
                    let text = lines(&text, value(attributes, "range").unwrap_or_default());
                    let language = value(attributes, "language").unwrap_or_default();
                    if text.is_empty() { text } else { fenced(language, &text) }
                }),
                _ => String::new(),
            };
            out.push_str(&format!("\n{shown}\n\n"));
        } else {
            out.push_str(line);
        }
    });
    out
}

/// The path in `[!INCLUDE [title](path)]` on a line of its own.
fn included(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("[!INCLUDE").or_else(|| line.strip_prefix("[!include"))?;
    let (_, path) = rest.trim_start_matches('-').trim().strip_suffix(")]")?.split_once("](")?;
    (!path.is_empty() && !path.contains([' ', '(', ')'])).then_some(path)
}

/// The name and the attributes of a line that is not a note: `:::image source="a.png":::`, `::: moniker-end`.
fn extension(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix(":::")?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
    let (name, attributes) = rest.split_at(end);
    let is_layout = matches!(name, "image" | "code" | "row" | "row-end" | "column" | "column-end");
    let is_whole = is_layout && attributes.trim_end().ends_with(":::");
    let is_version = matches!(name, "moniker" | "moniker-end" | "zone" | "zone-end");
    (is_whole || is_version).then_some((name, attributes))
}

/// The value of `name="…"`.
fn value<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = attributes.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// The lines of a file that a range such as `2-5,8` selects; all without a range.
fn lines(text: &str, range: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut found: Vec<&str> = Vec::new();
    for part in range.split(',') {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let first = first.parse().unwrap_or(1_usize).max(1);
        let last = last.parse().unwrap_or(lines.len()).min(lines.len());
        if found.len() < lines.len() {
            found.extend(lines.get(first - 1..last).unwrap_or_default());
        }
    }
    found.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::{markdown::Flavor, markdown::parse_markdown, shown};

    fn check(source: &str, expected: &str) {
        let mut load = |path: &str| match path {
            "../includes/a.md" => {
                Some("---\nx: 1\n---\nShared *words*.\n\n[!INCLUDE [b](b.md)]\n".to_owned())
            }
            "../includes/b.md" => Some("Deep.\n\n[!INCLUDE [a](a.md)]\n".to_owned()),
            "a.cs" => Some("one\ntwo\nthree\nfour\n".to_owned()),
            _ => None,
        };
        let (_, parsed) = parse_markdown(source, Flavor::Plain, &mut load);
        assert_eq!(shown(&parsed), expected);
    }

    #[test]
    fn included_files_are_shown_where_they_are_used() {
        check(
            "Before.\n\n[!INCLUDE [a title](../includes/a.md)]\n\nAfter.\n\n[!INCLUDE [none](c.md)]\n",
            "[Text] Before.\n[Text] Shared words.\n[Text] Deep.\n[Text] After.\n",
        );
        check(
            ":::code language=\"csharp\" source=\"a.cs\" range=\"2-3\":::\nAfter.\n",
            "[Code] ```csharp\ntwo\nthree\n```\n[Text] After.\n",
        );
    }

    #[test]
    fn images_and_versions_are_not_notes() {
        check(
            "::: moniker range=\">=1.0\"\nNew.\n::: moniker-end\n\n\
             :::image type=\"content\" source=\"a.png\" alt-text=\"A cat.\":::\n\nAfter.\n",
            "[Text] New.\n[Text] A cat.\n[Text] After.\n",
        );
    }

    #[test]
    fn notes_and_code_are_left_alone() {
        check(
            "```\n[!INCLUDE [a](../includes/a.md)]\n```\n\n:::note\nStay.\n:::\n",
            "[Code] ```\n[!INCLUDE [a](../includes/a.md)]\n```\n[Admonition] Note:\n[Admonition] Stay.\n",
        );
    }
}
