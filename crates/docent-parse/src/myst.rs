//! MyST in Markdown, the dialect of Sphinx and Jupyter Book: directives, roles and labels.
//!
//! A directive is delimited by fences or lines of colons. Notes become quotes, code stays code, and other
//! directives keep their text.
//!
//! Invariant: code fences are left unchanged, and labels, options and names of directives are never shown.

use super::admonition::label;
use super::fence::{code_span, marker};
use super::references::References;

/// Maximum nesting of directives.
const DEEPEST: usize = 16;

/// Limit on the indentation of a directive, because it is repeated on every line inside.
const WIDEST_INDENT: usize = 16;

/// Converts a page to standard Markdown.
pub(super) fn to_markdown(source: &str, references: &References<'_>) -> String {
    let is_myst = ["{", ")=", "[]("].iter().any(|sign| source.contains(sign));
    if !is_myst {
        return source.to_owned();
    }
    let lines: Vec<&str> = source.lines().collect();
    let mut out = String::with_capacity(source.len());
    expand(&lines, "", references, 0, &mut out);
    out
}

/// The label in a line such as `(label)=`, which belongs to what follows it.
pub(super) fn target(line: &str) -> Option<&str> {
    let label = line.trim().strip_prefix('(')?.strip_suffix(")=")?;
    (!label.is_empty() && !label.contains(['(', ')'])).then_some(label)
}

/// Writes `lines`, each prefixed with `before`.
fn expand(lines: &[&str], before: &str, references: &References<'_>, depth: usize, out: &mut String) {
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let bare = line.trim_start();
        let indent = (line.len() - bare.len()).min(WIDEST_INDENT);
        at += 1;
        if let Some(opened) = Opening::of(bare.trim_end()).filter(|_| depth < DEEPEST) {
            let end = opened.end(lines, at);
            let body: Vec<&str> = lines[at..end].iter().map(|line| without_indent(line, indent)).collect();
            let before = format!("{before}{}", " ".repeat(indent));
            directive(&opened, &body, &before, references, depth, out);
            at = (end + 1).min(lines.len());
        } else if let Some(fence) = marker(bare) {
            let closes = |line: &&&str| {
                let bare = line.trim();
                marker(bare) == Some(bare) && bare.starts_with(fence)
            };
            let inside = lines[at..].iter().take_while(|line| !closes(line)).count();
            let end = (at + inside + 1).min(lines.len());
            for line in &lines[at - 1..end] {
                out.push_str(&format!("{before}{line}\n"));
            }
            at = end;
        } else if target(bare).is_some() {
            out.push_str(&format!("{before}\n"));
        } else {
            out.push_str(&format!("{before}{}\n", roles(line, references)));
        }
    }
}

/// The line that opens a directive: `:::{note} Title`, or the same with backticks.
struct Opening<'a> {
    fence: &'a str,
    name: &'a str,
    argument: &'a str,
}

impl<'a> Opening<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let sign = line.chars().next().filter(|c| matches!(c, '`' | '~' | ':'))?;
        let rest = line.trim_start_matches(sign);
        let fence = &line[..line.len() - rest.len()];
        let (name, argument) = rest.trim_start().strip_prefix('{')?.split_once('}')?;
        // `{.python}` and `{python}` are languages in other dialects, `{#id}` is an attribute.
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'));
        let is_directive = sign == ':' || Kind::of(name) != Kind::Other || name.contains(['-', ':']);
        (fence.len() >= 3 && is_name && is_directive).then(|| Self { fence, name, argument: argument.trim() })
    }

    /// Where the directive is closed; an unclosed one extends to the end.
    fn end(&self, lines: &[&str], at: usize) -> usize {
        let closes = |line: &str| {
            let bare = line.trim();
            bare.starts_with(self.fence) && bare.trim_start_matches(&self.fence[..1]).is_empty()
        };
        (at..lines.len()).find(|next| closes(lines[*next])).unwrap_or(lines.len())
    }
}

#[derive(PartialEq)]
enum Kind {
    Note,
    Code,
    Math,
    /// Shows its argument as a line above its content.
    Titled,
    /// Shows only its content.
    Silent,
    /// Shows nothing.
    Hidden,
    Version(&'static str),
    Other,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "note" | "warning" | "tip" | "important" | "caution" | "danger" | "error" | "attention"
            | "hint" | "seealso" | "admonition" => Self::Note,
            "code-block" | "code" | "sourcecode" | "code-cell" => Self::Code,
            "math" => Self::Math,
            "tab-item" | "tab" | "dropdown" | "card" | "grid-item-card" | "topic" | "sidebar" | "margin"
            | "table" | "list-table" | "rubric" | "details" => Self::Titled,
            "tab-set" | "tabs" | "grid" | "div" | "figure" | "epigraph" | "glossary" | "only"
            | "container" | "aside" | "proof" | "exercise" | "solution" => Self::Silent,
            "toctree" | "tableofcontents" | "contents" | "image" | "raw" | "index" | "bibliography"
            | "mermaid" | "graphviz" | "include" | "literalinclude" | "glue" | "video" | "iframe" => {
                Self::Hidden
            }
            "versionadded" => Self::Version("New in version"),
            "versionchanged" => Self::Version("Changed in version"),
            "deprecated" => Self::Version("Deprecated since version"),
            _ => Self::Other,
        }
    }
}

fn directive(
    opened: &Opening<'_>,
    body: &[&str],
    before: &str,
    references: &References<'_>,
    depth: usize,
    out: &mut String,
) {
    let (options, body) = options(body);
    let argument = roles(opened.argument, references);
    let inside = |lines: &[&str], before: &str, out: &mut String| {
        out.push_str(&format!("{before}\n"));
        expand(lines, before, references, depth + 1, out);
        out.push_str(&format!("{before}\n"));
    };
    match Kind::of(opened.name) {
        Kind::Hidden => out.push_str(&format!("{before}\n")),
        Kind::Note => {
            let title = match opened.name {
                "admonition" => format!("{}:", argument.trim_end_matches(':')),
                "seealso" => "See also:".to_owned(),
                name => label(name),
            };
            out.push_str(&format!("{before}\n{before}> **{title}**\n{before}>\n"));
            // The text after the name of a note is its first line.
            let first = if opened.name == "admonition" { "" } else { argument.as_str() };
            let lines: Vec<&str> = [first].into_iter().chain(body.iter().copied()).collect();
            expand(&lines, &format!("{before}> "), references, depth + 1, out);
            out.push_str(&format!("{before}\n"));
        }
        Kind::Code => {
            let option = |name: &str| {
                options.iter().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
            };
            let title =
                option(":caption").map(|title| format!(" title=\"{}\"", title.trim().replace('"', "'")));
            let language = argument.split_whitespace().next().unwrap_or_default();
            let fence = "`".repeat(opened.fence.len().max(3));
            out.push_str(&format!("{before}\n{before}{fence}{language}{}\n", title.unwrap_or_default()));
            let lines = body.iter().skip_while(|line| line.trim().is_empty());
            lines.for_each(|line| out.push_str(&format!("{before}{line}\n")));
            out.push_str(&format!("{before}{fence}\n"));
        }
        Kind::Math => {
            out.push_str(&format!("{before}\n{before}$$\n"));
            let lines = [opened.argument].into_iter().chain(body.iter().copied());
            lines
                .filter(|line| !line.trim().is_empty())
                .for_each(|line| out.push_str(&format!("{before}{line}\n")));
            out.push_str(&format!("{before}$$\n{before}\n"));
        }
        Kind::Titled | Kind::Other => {
            if !argument.is_empty() {
                out.push_str(&format!("{before}\n{before}{argument}\n"));
            }
            inside(body, before, out);
        }
        Kind::Silent => inside(body, before, out),
        Kind::Version(said) => {
            let (version, text) = argument.split_once(' ').unwrap_or((&argument, ""));
            let first = format!("{said} {version}: {text}");
            let lines: Vec<&str> = [first.as_str()].into_iter().chain(body.iter().copied()).collect();
            inside(&lines, before, out);
        }
    }
}

/// The options of a directive, one per line or between two `---` lines, and the rest of its body.
fn options<'a, 'b>(body: &'b [&'a str]) -> (&'b [&'a str], &'b [&'a str]) {
    let is_option = |line: &&&str| {
        let name = line.trim().strip_prefix(':').and_then(|rest| rest.split_once(':'));
        name.is_some_and(|(name, rest)| {
            !name.is_empty() && !name.contains([' ', '`']) && (rest.is_empty() || rest.starts_with(' '))
        })
    };
    if body.first().is_some_and(|line| line.trim() == "---")
        && let Some(end) = body.iter().skip(1).position(|line| line.trim() == "---")
    {
        return (&body[1..=end], &body[end + 2..]);
    }
    body.split_at(body.iter().take_while(is_option).count())
}

/// Replaces the roles in a line with their text: `` {ref}`title <label>` `` becomes its title.
fn roles(line: &str, references: &References<'_>) -> String {
    if !line.contains("}`") && !line.contains("[](") {
        return line.to_owned();
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['`', '{', '[']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('`') {
            let span = code_span(rest);
            out.push_str(&rest[..span]);
            rest = &rest[span..];
            continue;
        }
        if let Some((target, after)) = rest.strip_prefix("[](").and_then(link_target)
            && !out.ends_with('!')
        {
            // A link without text shows the title of its target.
            let title = references.page(target).or_else(|| references.label(target.trim_start_matches('#')));
            out.push_str(title.unwrap_or_default());
            rest = after;
            continue;
        }
        let role = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).filter(|(name, after)| {
            after.starts_with('`')
                && !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
        });
        match role {
            Some((name, after)) => {
                let span = code_span(after);
                out.push_str(&role_words(name, &after[..span], references));
                rest = &after[span..];
            }
            None => {
                out.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The target of a link up to its closing bracket, and the rest; nothing if it is too long for a target.
fn link_target(text: &str) -> Option<(&str, &str)> {
    const LONGEST: usize = 500;
    let end = text[..text.floor_char_boundary(LONGEST)].find([')', '['])?;
    text[end..].strip_prefix(')').map(|after| (&text[..end], after))
}

fn role_words(role: &str, span: &str, references: &References<'_>) -> String {
    let inside = span.trim_matches('`');
    let explicit = inside.strip_suffix('>').and_then(|rest| rest.rsplit_once('<'));
    let found = match role {
        "ref" | "numref" | "any" => references.label(inside),
        "doc" => references.page(inside),
        _ => None,
    };
    match role {
        "ref" | "numref" | "any" | "doc" | "term" | "download" | "abbr" | "guilabel" | "menuselection"
        | "eq" => match explicit.map(|(title, _)| title.trim()).filter(|title| !title.is_empty()).or(found) {
            Some(title) => title.to_owned(),
            None if role == "doc" => inside.rsplit('/').next().unwrap_or(inside).to_owned(),
            None => inside.to_owned(),
        },
        "math" => format!("${inside}$"),
        "sub" | "sup" => inside.to_owned(),
        _ => span.to_owned(),
    }
}

fn without_indent(line: &str, indent: usize) -> &str {
    let own = line.len() - line.trim_start().len();
    &line[own.min(indent)..]
}

#[cfg(test)]
mod tests {
    use super::super::references::{References, Titles};
    use super::super::{markdown::Flavor, markdown::parse_markdown_among, shown};

    fn check(source: &str, expected: &str) {
        let mut titles = Titles::default();
        titles.add("guide/install.md", "(setup)=\n# Install it\n");
        let references = References::new("guide/a.md", &titles);
        let (_, parsed) = parse_markdown_among(source, Flavor::Plain, references, &mut |_| None);
        assert_eq!(shown(&parsed), expected);
    }

    #[test]
    fn notes_get_a_label_in_colons_and_in_fences() {
        check(
            ":::{note}\n:class: dropdown\nStand back.\n:::\n\n```{admonition} My title\nHot.\n```\n\n```{tip} Short.\n```\nAfter.\n",
            "[Admonition] Note:\n[Admonition] Stand back.\n[Admonition] My title:\n[Admonition] Hot.\n\
             [Admonition] Tip:\n[Admonition] Short.\n[Text] After.\n",
        );
    }

    #[test]
    fn directives_nest_and_their_options_are_not_shown() {
        check(
            "::::{grid} 2\n:::{grid-item-card} One\n---\nlink: x\n---\nInside.\n:::\n::::\n\n```{toctree}\na\n```\n\n```{code-block} sh\n:linenos:\n\nls\n```\n\n```{versionadded} 2.1\nThe flag.\n```\n",
            "[Text] One\n[Text] Inside.\n[Code] ```sh\nls\n```\n[Text] New in version 2.1: The flag.\n",
        );
    }

    #[test]
    fn labels_are_not_shown_and_references_show_titles() {
        check(
            "(mine)=\n\nSee {ref}`mine`, {ref}`mine2`, {ref}`setup`, {ref}`there <x>`, {doc}`install`, {doc}`/b/c`, {kbd}`x` and {math}`a_1`.\n\n(mine2)=\n## Words\n\n(mine3)=\n### `Deep`\n\n{ref}`mine3` `{ref}`\n",
            "[Text] See mine, Words, Install it, there, Install it, c, `x` and $a_1$.\n## Words #words\n### Deep #deep\n[Text] Deep `{ref}`\n",
        );
    }

    #[test]
    fn a_link_without_text_shows_the_title_of_its_target() {
        check(
            "Also see [](install.md) and [](#setup), [x](y), `[](z)` ![](i.png).\n",
            "[Text] Also see Install it and Install it, x, `[](z)` .\n",
        );
    }

    #[test]
    fn code_and_other_braces_are_left_alone() {
        check(
            "```{python}\nx\n```\n\n````\n```{note}\n(a)=\n```\n````\n\nf(x)= {a}\n",
            "[Code] ```python\nx\n```\n[Code] ````\n```{note}\n(a)=\n```\n````\n[Text] f(x)= {a}\n",
        );
    }
}
