//! MyST in Markdown, the dialect of Sphinx and Jupyter Book: directives, roles and labels.
//!
//! A directive is delimited by fences or lines of colons. Notes become quotes, code stays code, and other
//! directives keep their text.
//!
//! Invariant: code fences are left unchanged, and labels, options and names of directives are never shown.

use super::admonition::label;
use super::fence::{code, code_span, marker};
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
            directive(&opened, &body, &before, Dialect::Myst, references, depth, out);
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
            let end = role_end(lines, at);
            let text = joined(&lines[at - 1..end]);
            out.push_str(&format!("{before}{}\n", roles(&text, references)));
            at = end;
        }
    }
}

/// Writes reStructuredText, the content of `{eval-rst}`.
fn expand_rst(lines: &[&str], before: &str, references: &References<'_>, depth: usize, out: &mut String) {
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        let Some(text) = line.strip_prefix(".. ") else {
            let text = rst_roles(line);
            out.push_str(&format!("{before}{}\n", roles(&text, references)));
            continue;
        };
        let is_inside = |line: &&&str| line.trim().is_empty() || line.starts_with([' ', '\t']);
        let end = at + lines[at..].iter().take_while(is_inside).count();
        let indent = lines[at..end].iter().filter(|line| !line.trim().is_empty());
        let indent = indent.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
        let body: Vec<&str> = lines[at..end].iter().map(|line| without_indent(line, indent)).collect();
        // Without a name, it is a comment or a target.
        let name = text.split_once("::").filter(|(name, _)| is_name(name));
        if let Some((name, argument)) = name
            && depth < DEEPEST
        {
            let opened = Opening { fence: "```", name, argument: argument.trim() };
            directive(&opened, &body, before, Dialect::Rst, references, depth, out);
        }
        at = end;
    }
}

/// The language that the content of a directive is written in.
#[derive(Clone, Copy)]
enum Dialect {
    Myst,
    Rst,
}

/// Writes the roles of a line of reStructuredText as MyST's: `` :meth:`x` `` as `` {meth}`x` ``.
fn rst_roles(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(":`") {
        let start = rest[..at].rfind(|c: char| !is_name_char(c) || c == ':').map_or(0, |before| before + 1);
        let name = &rest[start..at];
        match rest[..start].strip_suffix(':') {
            Some(before) if is_name(name) => out.push_str(&format!("{before}{{{name}}}`")),
            _ => out.push_str(&rest[..at + 2]),
        }
        rest = &rest[at + 2..];
    }
    out.push_str(rest);
    out
}

/// Maximum number of lines of a role.
const LONGEST_ROLE: usize = 4;

/// Where the text of the line before `at` ends: further down if it opens a role that is closed there.
fn role_end(lines: &[&str], at: usize) -> usize {
    if !lines[at - 1].contains("}`") {
        return at;
    }
    let most = (at + LONGEST_ROLE).min(lines.len());
    let ends = (at..=most).take_while(|end| *end == at || !lines[end - 1].trim().is_empty());
    ends.into_iter().find(|end| !has_open_role(&joined(&lines[at - 1..*end]))).unwrap_or(at)
}

fn has_open_role(text: &str) -> bool {
    text.rfind("}`").is_some_and(|at| !text[at + 2..].contains('`'))
}

/// Lines as one, without the indentation of all but the first.
fn joined(lines: &[&str]) -> String {
    let (first, rest) = lines.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
    rest.iter().fold(first.to_owned(), |text, line| format!("{} {}", text.trim_end(), line.trim_start()))
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':')
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_name_char)
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
        let is_directive = sign == ':' || Kind::of(name) != Kind::Other || name.contains(['-', ':']);
        (fence.len() >= 3 && is_name(name) && is_directive).then(|| Self {
            fence,
            name,
            argument: argument.trim(),
        })
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
    /// reStructuredText.
    Rst,
    Version(&'static str),
    Other,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "note" | "warning" | "tip" | "important" | "caution" | "danger" | "error" | "attention"
            | "hint" | "seealso" | "admonition" => Self::Note,
            "code-block" | "code" | "sourcecode" | "code-cell" | "mermaid" => Self::Code,
            "math" => Self::Math,
            "tab-item" | "tab" | "dropdown" | "card" | "grid-item-card" | "topic" | "sidebar" | "margin"
            | "table" | "list-table" | "rubric" | "details" => Self::Titled,
            "tab-set" | "tabs" | "grid" | "div" | "figure" | "epigraph" | "glossary" | "only"
            | "container" | "aside" | "proof" | "exercise" | "solution" => Self::Silent,
            "toctree" | "tableofcontents" | "contents" | "image" | "raw" | "index" | "bibliography"
            | "graphviz" | "include" | "literalinclude" | "glue" | "video" | "iframe" => Self::Hidden,
            "versionadded" => Self::Version("New in version"),
            "versionchanged" => Self::Version("Changed in version"),
            "deprecated" => Self::Version("Deprecated since version"),
            "eval-rst" => Self::Rst,
            // Code that an extension also runs, such as `click:example`; `click:run` shows only what it prints.
            _ if name.ends_with(":example") => Self::Code,
            _ if name.ends_with(":run") => Self::Hidden,
            _ => Self::Other,
        }
    }
}

fn directive(
    opened: &Opening<'_>,
    body: &[&str],
    before: &str,
    dialect: Dialect,
    references: &References<'_>,
    depth: usize,
    out: &mut String,
) {
    let (options, body) = options(body);
    let argument = roles(opened.argument, references);
    let expand = match dialect {
        Dialect::Myst => expand,
        Dialect::Rst => expand_rst,
    };
    let inside = |lines: &[&str], before: &str, out: &mut String| {
        out.push_str(&format!("{before}\n"));
        expand(lines, before, references, depth + 1, out);
        out.push_str(&format!("{before}\n"));
    };
    match Kind::of(opened.name) {
        Kind::Hidden => out.push_str(&format!("{before}\n")),
        Kind::Rst => expand_rst(body, before, references, depth + 1, out),
        Kind::Note => {
            out.push_str(&format!(
                "{before}\n{before}> **{}**\n{before}>\n",
                note_title(opened.name, &argument)
            ));
            // The text after the name of a note is its first line.
            let first = if opened.name == "admonition" { "" } else { argument.as_str() };
            let lines: Vec<&str> = [first].into_iter().chain(body.iter().copied()).collect();
            expand(&lines, &format!("{before}> "), references, depth + 1, out);
            out.push_str(&format!("{before}\n"));
        }
        // The source of a diagram, since only a script can draw it.
        Kind::Code if opened.name == "mermaid" => code_block(opened, "mermaid", options, body, before, out),
        Kind::Code => code_block(opened, &argument, options, body, before, out),
        Kind::Math => {
            let lines = [opened.argument].into_iter().chain(body.iter().copied());
            math(lines.filter(|line| !line.trim().is_empty()), before, out);
        }
        Kind::Titled | Kind::Other => {
            // Without content, it only marks a place for references.
            let shows =
                body.iter().any(|line| !line.trim().is_empty()) || Kind::of(opened.name) == Kind::Titled;
            if shows && !argument.is_empty() {
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

fn note_title(name: &str, argument: &str) -> String {
    match name {
        "admonition" => format!("{}:", argument.trim_end_matches(':')),
        "seealso" => "See also:".to_owned(),
        name => label(name),
    }
}

/// A block of code with the fence that opened it, its language and its caption.
fn code_block(
    opened: &Opening<'_>,
    argument: &str,
    options: &[&str],
    body: &[&str],
    before: &str,
    out: &mut String,
) {
    let caption = options.iter().find_map(|line| line.trim().strip_prefix(":caption")?.strip_prefix(':'));
    let title = caption.map(|title| format!(" title=\"{}\"", title.trim().replace('"', "'")));
    let language = argument.split_whitespace().next().unwrap_or_default();
    let fence = "`".repeat(opened.fence.len().max(3));
    out.push_str(&format!("{before}\n{before}{fence}{language}{}\n", title.unwrap_or_default()));
    let lines = body.iter().skip_while(|line| line.trim().is_empty());
    lines.for_each(|line| out.push_str(&format!("{before}{line}\n")));
    out.push_str(&format!("{before}{fence}\n"));
}

fn math<'a>(lines: impl Iterator<Item = &'a str>, before: &str, out: &mut String) {
    out.push_str(&format!("{before}\n{before}$$\n"));
    lines.for_each(|line| out.push_str(&format!("{before}{line}\n")));
    out.push_str(&format!("{before}$$\n{before}\n"));
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
        let role = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let role = role.filter(|(name, after)| {
            after.starts_with('`') && !name.is_empty() && name.chars().all(is_name_char)
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
        _ => match explicit.map(|(title, _)| title.trim()).filter(|title| !title.is_empty()) {
            Some(title) => code(title),
            // `~click.Context.invoke` is shown as `invoke`, `!name` is not a link.
            None => match inside.strip_prefix('~') {
                Some(path) => code(path.rsplit('.').next().unwrap_or(path)),
                None => inside.strip_prefix('!').map_or_else(|| span.to_owned(), code),
            },
        },
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
    fn restructured_text_inside_is_read_as_such() {
        check(
            "```{eval-rst}\nText with :meth:`~a.B.run` and ``x``.\n\n.. click:example::\n\n    import x\n    x.y()\n\n.. click:run::\n\n    invoke(x)\n\n.. note:: Take care.\n\n    More of it.\n\n.. a comment\n\n.. _target:\n\n.. index:: z\n```\nAfter.\n",
            "[Text] Text with `run` and `x`.\n[Code] ```\nimport x\nx.y()\n```\n[Admonition] Note:\n[Admonition] Take care.\n[Admonition] More of it.\n[Text] After.\n",
        );
    }

    #[test]
    fn names_of_an_api_are_shown_as_the_page_shows_them_and_roles_may_span_lines() {
        check(
            "Use {meth}`~a.B.run`, {class}`a.B`, {func}`the call <a.b>`, {func}`!free` or be {ref}`told in the\n  help <x>`.\n",
            "[Text] Use `run`, `a.B`, `the call`, `free` or be told in the help.\n",
        );
    }

    #[test]
    fn a_directive_without_content_only_marks_a_place() {
        check("Before.\n\n```{setting-name} LIMIT\n```\n\n# LIMIT\n", "[Text] Before.\n# LIMIT #limit\n");
    }

    #[test]
    fn code_and_other_braces_are_left_alone() {
        check(
            "```{python}\nx\n```\n\n````\n```{note}\n(a)=\n```\n````\n\nf(x)= {a}\n",
            "[Code] ```python\nx\n```\n[Code] ````\n```{note}\n(a)=\n```\n````\n[Text] f(x)= {a}\n",
        );
    }
}
