//! Converts the notes and tabs of MkDocs to standard Markdown.
//!
//! `!!! note`, `??? note` and `=== "Tab"` contain the lines indented below them. A note becomes a quote that
//! starts with its label; the title of a tab becomes a line above its text. `::: package.module` becomes the
//! name of the object. `inline.rs` handles the extensions' inline syntax.
//!
//! Invariant: inside code fences only annotation numbers are removed, and no line of text is lost.

mod inline;

use super::admonition::label;
use super::fence::for_each_line;

/// The indentation of the content of a note or tab.
const INDENT: usize = 4;

/// Maximum nesting of notes.
const DEEPEST: usize = 16;

/// Converts a page to standard Markdown.
pub fn to_markdown(source: &str) -> String {
    let mut lines = Vec::new();
    for_each_line(source, |line, in_code| {
        let line = line.trim_end_matches('\n');
        let shown = if in_code { Some(inline::code(line).to_owned()) } else { inline::shown(line) };
        lines.extend(shown.map(|line| (line, in_code)));
    });
    let mut out = String::with_capacity(source.len());
    let lines: Vec<(&str, bool)> = lines.iter().map(|(line, in_code)| (line.as_str(), *in_code)).collect();
    expand(&lines, "", 0, &mut out);
    out
}

/// Whether a page of an unknown site generator is written for MkDocs: it has a note or tab with content, or a
/// numbered annotation in code.
pub(super) fn is_mkdocs(source: &str) -> bool {
    let mut found = false;
    // The indentation of the content of the note or tab above, while only blank lines follow it.
    let mut inside: Option<usize> = None;
    for_each_line(source, |line, in_code| {
        let bare = line.trim();
        let indent = line.len() - line.trim_start_matches(' ').len();
        if bare.is_empty() {
            return;
        }
        found |= inside.take().is_some_and(|least| indent >= least);
        if in_code {
            found |= inline::is_annotated(bare);
        } else if matches!(Opened::by(bare), Some(Opened::Note(_) | Opened::Tab(_))) {
            inside = Some(indent + INDENT);
        }
    });
    found
}

/// Writes `lines`, each prefixed with `before`.
fn expand(lines: &[(&str, bool)], before: &str, depth: usize, out: &mut String) {
    let mut at = 0;
    while at < lines.len() {
        let (line, in_code) = lines[at];
        at += 1;
        let indent = line.len() - line.trim_start_matches(' ').len();
        let Some(opened) = Opened::by(line.trim()).filter(|_| !in_code && depth < DEEPEST) else {
            out.push_str(&format!("{before}{line}\n"));
            continue;
        };
        let inside = |line: &str| {
            line.trim().is_empty() || line.len() - line.trim_start_matches(' ').len() >= indent + INDENT
        };
        let end = (at..lines.len()).find(|next| !inside(lines[*next].0)).unwrap_or(lines.len());
        let body: Vec<(&str, bool)> = lines[at..end]
            .iter()
            .map(|(line, in_code)| (line.get(indent + INDENT..).unwrap_or_default(), *in_code))
            .collect();
        let space = " ".repeat(indent);
        let within = match &opened {
            Opened::Note(label) => {
                out.push_str(&format!("{before}\n{before}{space}> **{label}**\n{before}{space}>\n"));
                format!("{before}{space}> ")
            }
            Opened::Tab(title) => {
                out.push_str(&format!("{before}\n{before}{space}{title}\n{before}\n"));
                format!("{before}{space}")
            }
            // The lines below it are options.
            Opened::Object(name) => {
                out.push_str(&format!("{before}\n{before}{space}`{name}`\n{before}\n"));
                at = end;
                continue;
            }
        };
        expand(&body, &within, depth + 1, out);
        out.push_str(&format!("{before}\n"));
        at = end;
    }
}

enum Opened {
    Note(String),
    Tab(String),
    /// mkdocstrings: the documentation of an object, which is not part of the page's source.
    Object(String),
}

impl Opened {
    /// What a line opens, if anything.
    fn by(line: &str) -> Option<Self> {
        if let Some(title) = line.strip_prefix("===").map(|rest| rest.trim_start_matches(['!', '+']).trim()) {
            return Some(Self::Tab(quoted(title)?.to_owned()));
        }
        if let Some(name) = line.strip_prefix("::: ").map(str::trim) {
            let is_name = |part: &str| {
                !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
            };
            let is_object = name.contains('.') && name.split('.').all(is_name);
            return is_object.then(|| Self::Object(name.to_owned()));
        }
        let rest = line.strip_prefix("!!!").or_else(|| line.strip_prefix("???"))?;
        let rest = rest.trim_start_matches('+').trim();
        let (kinds, title) = rest.find('"').map_or((rest, ""), |at| rest.split_at(at));
        let kind = kinds.split_whitespace().next().unwrap_or_default();
        let is_kind = kind.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        let title = quoted(title.trim()).unwrap_or_default();
        (is_kind && !(kind.is_empty() && title.is_empty())).then(|| match (kind, title) {
            ("", title) => Self::Note(format!("{title}:")),
            (kind, title) => Self::Note(label(&format!("{kind} {title}"))),
        })
    }
}

fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::super::{markdown::Flavor, markdown::parse_markdown, shown};

    fn check(source: &str, expected: &str) {
        let (_, parsed) = parse_markdown(source, Flavor::MkDocs, &mut |_| None);
        assert_eq!(shown(&parsed), expected);
    }

    #[test]
    fn notes_and_tabs_contain_the_lines_indented_below_them() {
        check(
            "!!! warning\n    Stand back.\n\n    ```sh\n    ls\n    ```\n\nAfter.\n\n??? note \"Why\"\n\n    So.\n\n    !!! tip\n        Deep.\n",
            "[Admonition] Warning:\n[Admonition] Stand back.\n[Code] ```sh\nls\n```\n[Text] After.\n\
             [Admonition] Note: Why\n[Admonition] So.\n[Admonition] Tip:\n[Admonition] Deep.\n",
        );
        check(
            "=== \"Debian\"\n\n    Unpack it.\n\n=== \"macOS\"\n\n    - Click.\n\nTitle\n===\n",
            "[Text] Debian\n[Text] Unpack it.\n[Text] macOS\n[Text] - Click.\n# Title #title\n",
        );
    }

    #[test]
    fn code_is_left_alone() {
        check("```\n!!! note\n    x\n```\n", "[Code] ```\n!!! note\n    x\n```\n");
    }

    #[test]
    fn attributes_keys_icons_and_abbreviations_are_not_shown() {
        check(
            "![Lock](a.png){ width=\"300\" } and [b](c.md){: .md-button target=_blank } :material-lock: x{ .y }\n{: #id .z }\n\n\
             Press ++ctrl+c++ or ++\"Save\"++.\n\n*[HTML]: Hyper Text\n\nText (1)\n{ .annotate }\n\n1. Note.\n",
            "[Text] Lock and b  x\n[Text] Press Ctrl+C or Save.\n[Text] Text (1)\n[Text] 1. Note.\n",
        );
    }

    #[test]
    fn an_icon_does_not_indent_the_text_of_its_list_item() {
        let source =
            "-   :material-tune: __Group__\n\n    ---\n\n    The text.\n\n-   :octicons-tag-24: Tag\n";
        check(source, "[Text] - Group\n  The text.\n- Tag\n");
    }

    #[test]
    fn other_braces_and_signs_are_kept() {
        let text = "Use {name} or {a: 1}, `{ .x }` and `++a++`, C++ and D++, a:material: {{ .Values }}.";
        check(text, &format!("[Text] {text}\n"));
    }

    #[test]
    fn annotation_numbers_are_removed_from_code() {
        check(
            "``` yaml\na: 1  # (1)!\nb: 2 # (2)! (3)!\nc: x # (4)\n```\n",
            "[Code] ```yaml\na: 1\nb: 2\nc: x # (4)\n```\n",
        );
        check("``` { .js .annotate }\nf() // (1)!\n```\n", "[Code] ```js\nf()\n```\n");
    }

    #[test]
    fn objects_show_their_name_without_options() {
        check(
            "# Fields\n\n::: pkg.fields\n    options:\n      members:\n        - Field\n\nAfter.\n",
            "# Fields #fields\n[Text] `pkg.fields`\n[Text] After.\n",
        );
    }

    #[test]
    fn pages_of_an_unknown_site_generator_may_be_written_for_mkdocs() {
        let plain = |source: &str| shown(&parse_markdown(source, Flavor::Plain, &mut |_| None).1);
        assert_eq!(
            plain("!!! note\n    Stand back.\n\n=== \"macOS\"\n\n    Click ++ctrl+c++.\n"),
            "[Admonition] Note:\n[Admonition] Stand back.\n[Text] macOS\n[Text] Click Ctrl+C.\n",
        );
        assert_eq!(plain("```py\na = 1  # (1)!\n```\n"), "[Code] ```py\na = 1\n```\n");
        for text in ["!!! wow\nText ++a++.", "f(1)! a++b++"] {
            assert_eq!(plain(text), format!("[Text] {}\n", text.replace('\n', " ")));
        }
        assert_eq!(plain("```js\nf(1)!\n```\n"), "[Code] ```js\nf(1)!\n```\n");
    }

    #[test]
    fn definition_lists_and_explicit_ids_are_parsed() {
        check(
            "## Order { #gate-order .x }\n\nsill\n:   The beam.\n\n    More.\n\npaddle\n:   The board.\n",
            "## Order #gate-order\n[Text] sill: The beam.\n[Text] More.\n[Text] paddle: The board.\n",
        );
    }
}
