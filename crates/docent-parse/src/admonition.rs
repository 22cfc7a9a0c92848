//! Converts admonitions fenced with colons (Docusaurus, VitePress, Pandoc and others) into quotes that start
//! with the admonition's label.
//!
//! Invariant: text inside code fences is left unchanged, and the lines that open or close an admonition are
//! never shown.

use super::fence::for_each_line;

/// Admonitions nested more deeply are not quoted further, and indentation is capped as well.
const DEEPEST_QUOTE: usize = 8;
const WIDEST_INDENT: usize = 16;

/// Turns `:::note Title` … `:::` into a quote that starts with the label in bold.
pub(super) fn admonitions(source: &str) -> String {
    if !source.contains(":::") {
        return source.to_owned();
    }
    let mut out = String::with_capacity(source.len() + 64);
    // `open` holds one entry per open container: whether it is a note. `notes` holds the indentation of the
    // open notes, because a note can be inside a list item. Containers without a label are not quoted.
    let mut open: Vec<bool> = Vec::new();
    let mut notes: Vec<usize> = Vec::new();
    for_each_line(source, |line, in_code| {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let quote = |notes: &[usize]| {
            let outer = notes.first().copied().unwrap_or(0);
            format!("{}{}", " ".repeat(outer), "> ".repeat(notes.len().min(DEEPEST_QUOTE)))
        };
        match Colons::of(line.trim()).filter(|_| !in_code) {
            Some(Colons::Close) => {
                if open.pop() == Some(true) {
                    notes.pop();
                }
                out.push('\n');
            }
            Some(Colons::Open(None)) => {
                open.push(false);
                out.push('\n');
            }
            Some(Colons::Open(Some(label))) => {
                open.push(true);
                notes.push(indent.min(WIDEST_INDENT));
                let quote = quote(&notes);
                out.push_str(&format!("\n{quote}**{label}**\n{quote}\n"));
            }
            None => {
                out.push_str(&quote(&notes));
                out.push_str(&line[indent.min(notes.first().copied().unwrap_or(0))..]);
            }
        }
    });
    out
}

/// What a line of colons means.
enum Colons {
    /// Opens a note with this label, or a container without a label.
    Open(Option<String>),
    Close,
}

impl Colons {
    fn of(line: &str) -> Option<Self> {
        let name = line.trim_start_matches(':');
        if line.len() - name.len() < 3 {
            return None;
        }
        let name = name.trim();
        if name.is_empty() {
            return Some(Self::Close);
        }
        // Pandoc: `{.callout-tip title="Words"}` is a note; other classes only affect the layout.
        if let Some(attributes) = name.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let kind = attributes.split_whitespace().find_map(|word| word.strip_prefix(".callout-"));
            let title = attributes.split_once("title=\"").and_then(|(_, rest)| rest.split_once('"'));
            let title = title.map_or("", |(title, _)| title);
            return Some(Self::Open(kind.map(|kind| label(&format!("{kind} {title}")))));
        }
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(name.len());
        // mkdocstrings' `::: package.module` does not open a container.
        let is_kind = end > 0 && !name[end..].starts_with(['.', '/', ':', '_']);
        is_kind.then(|| Self::Open(Some(label(name))))
    }
}

/// `note`, `note Title`, `note[Title]`, `note{title="Title"}` → `Note: Title`.
pub(super) fn label(rest: &str) -> String {
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(rest.len());
    let (kind, title) = rest.split_at(end);
    let title = title.trim().trim_start_matches(['[', '{']).trim_end_matches([']', '}']);
    let title = title.strip_prefix("title=").unwrap_or(title).trim_matches('"').trim();
    let mut letters = kind.chars();
    let kind: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    if title.is_empty() || title.eq_ignore_ascii_case(&kind) {
        format!("{kind}:")
    } else {
        format!("{kind}: {title}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{markdown::Flavor, markdown::parse_markdown, shown};

    fn check(source: &str, expected: &str) {
        for flavor in [Flavor::Docusaurus, Flavor::Plain, Flavor::MkDocs, Flavor::VitePress, Flavor::MdBook] {
            let (_, parsed) = parse_markdown(source, flavor, &mut |_| None);
            assert_eq!(shown(&parsed), expected, "{flavor:?}");
        }
    }

    #[test]
    fn notes_get_a_label_in_every_flavor() {
        check(
            ":::tip Try it\nRun `ros2`.\n:::\nAfter\n\n::: warning\nHot.\n:::\n",
            "[Admonition] Tip: Try it\n[Admonition] Run `ros2`.\n[Text] After\n[Admonition] Warning:\n[Admonition] Hot.\n",
        );
        check("- Item\n\n  :::note\n  Inside.\n  :::\n", "[Text] - Item\n[Admonition] Note:\n  Inside.\n");
    }

    #[test]
    fn layout_only_containers_get_no_label() {
        check(
            "::: {.callout-note title=\"Why\"}\nSo.\n:::\n\n::: {#fig .wide}\nText.\n:::\n",
            "[Admonition] Note: Why\n[Admonition] So.\n[Text] Text.\n",
        );
    }

    #[test]
    fn colons_in_code_and_unknown_directives_are_left_alone() {
        check("```\n:::note\n```\n", "[Code] ```\n:::note\n```\n");
        check("::: package/module\n\nAfter.\n", "[Text] ::: package/module\n[Text] After.\n");
    }
}
