//! Converts the shortcodes of Hugo to standard Markdown: `{{< name >}}` and `{{% name %}}`.
//!
//! Code and notes become code fences and admonitions. Other shortcodes are removed; the text between an
//! opening and a closing one is kept.
//!
//! Invariant: code fences and code spans are left unchanged.

use std::collections::HashMap;

use super::fence::{code_span, for_each_line, marker};

/// Shortcodes whose content is code.
const CODE: [&str; 7] =
    ["highlight", "clients-example", "code", "code-block", "codeblock", "command", "shell"];

/// Shortcodes that are notes.
const NOTES: [&str; 11] = [
    "alert",
    "note",
    "warning",
    "caution",
    "tip",
    "info",
    "important",
    "callout",
    "admonition",
    "notice",
    "hint",
];

/// Converts a page to Markdown with admonitions.
pub(super) fn to_markdown(source: &str) -> String {
    if !source.contains("{{<") && !source.contains("{{%") {
        return source.to_owned();
    }
    let mut code = Vec::new();
    for_each_line(source, |_, in_code| code.push(in_code));
    let lines: Vec<(&str, bool)> = source.split_inclusive('\n').zip(code).collect();
    // The last line that closes a shortcode of each name.
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (number, (line, _)) in lines.iter().enumerate() {
        if let Some(name) = closed(line) {
            last.insert(name, number);
        }
    }
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < lines.len() {
        let (line, in_code) = lines[at];
        at += 1;
        let bare = line.trim();
        let alone = Shortcode::of(bare).filter(|found| !in_code && found.length == bare.len());
        let Some(shortcode) = alone else {
            out.push_str(&if in_code { line.to_owned() } else { inline(line) });
            continue;
        };
        let is_closed = !shortcode.closes && last.get(shortcode.name).is_some_and(|last| *last >= at);
        let indent = &line[..line.len() - line.trim_start().len()];
        if !is_closed || !CODE.contains(&shortcode.name) {
            out.push_str(&shortcode.block(indent, is_closed));
            continue;
        }
        let end = (at..lines.len()).find(|next| closed(lines[*next].0) == Some(shortcode.name));
        let end = end.unwrap_or(lines.len());
        let body = &lines[at..end];
        // The content may be fenced itself.
        let is_fenced = body.iter().any(|(line, _)| marker(line.trim_start()).is_some());
        let (fence, language) = if is_fenced { ("", "") } else { ("```", shortcode.language()) };
        out.push_str(&format!("\n{indent}{fence}{language}\n"));
        body.iter().for_each(|(line, _)| out.push_str(line));
        out.push_str(&format!("{indent}{fence}\n\n"));
        at = end + 1;
    }
    out
}

/// The name of the shortcode that a line closes.
fn closed(line: &str) -> Option<&str> {
    Shortcode::of(line.trim()).filter(|shortcode| shortcode.closes).map(|shortcode| shortcode.name)
}

/// A line of text without the shortcodes in it.
fn inline(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['`', '{']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with('`') {
            let span = code_span(rest);
            out.push_str(&rest[..span]);
            span
        } else if let Some(shortcode) = Shortcode::of(rest) {
            // The address of a page, usually the target of a link.
            if matches!(shortcode.name, "ref" | "relref") {
                out.push_str(shortcode.first().unwrap_or_default());
            }
            shortcode.length
        } else {
            out.push('{');
            1
        };
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

struct Shortcode<'a> {
    name: &'a str,
    arguments: &'a str,
    closes: bool,
    length: usize,
}

impl<'a> Shortcode<'a> {
    /// The shortcode at the start of `text`.
    fn of(text: &'a str) -> Option<Self> {
        /// Longer text is not a shortcode; this bounds the search for its end.
        const LONGEST: usize = 1000;
        let end = match text.get(..3)? {
            "{{<" => ">}}",
            "{{%" => "%}}",
            _ => return None,
        };
        let inside = &text[3..text.floor_char_boundary(LONGEST)];
        let inside = &inside[..inside.find(end)?];
        let words = inside.trim();
        let closes = words.starts_with('/');
        let words = words.trim_start_matches('/').trim_end_matches('/').trim();
        let (name, arguments) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        // `{{</* name */>}}` shows the shortcode itself.
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
        is_name.then_some(Self { name, arguments, closes, length: inside.len() + 6 })
    }

    /// The value of `name="…"`.
    fn value(&self, name: &str) -> Option<&'a str> {
        let (before, rest) = self.arguments.split_once(&format!("{name}=\""))?;
        let value = rest.split_once('"')?.0.trim();
        let is_whole = before.is_empty() || before.ends_with(char::is_whitespace);
        (is_whole && !value.is_empty()).then_some(value)
    }

    /// The first argument without a name.
    fn first(&self) -> Option<&'a str> {
        let arguments = self.arguments.trim_start();
        match arguments.strip_prefix('"') {
            Some(rest) => rest.split_once('"').map(|(first, _)| first),
            None => arguments.split_whitespace().next().filter(|first| !first.contains('=')),
        }
    }

    /// The language of `{{< highlight sh >}}`; other shortcodes have names of examples as arguments.
    fn language(&self) -> &'a str {
        match self.name {
            "highlight" => self.first().unwrap_or_default(),
            _ => self.value("lang").or_else(|| self.value("language")).unwrap_or_default(),
        }
    }

    /// What is shown for a shortcode on a line of its own. `is_closed` tells whether it has content.
    fn block(&self, indent: &str, is_closed: bool) -> String {
        if NOTES.contains(&self.name) && (is_closed || self.closes) {
            return if self.closes {
                format!("{indent}:::\n")
            } else {
                format!("{indent}:::{}\n", self.note())
            };
        }
        let title = match self.name {
            _ if self.closes => None,
            "tab" => ["name", "header", "title"].iter().find_map(|name| self.value(name)).or(self.first()),
            _ => ["title", "caption"].iter().find_map(|name| self.value(name)),
        };
        title.map_or("\n".to_owned(), |title| format!("\n{indent}{title}\n\n"))
    }

    /// The kind of a note and its title.
    fn note(&self) -> String {
        let title = self.value("title").or_else(|| self.first()).unwrap_or_default();
        let named = NOTES.iter().find(|name| title.eq_ignore_ascii_case(name));
        match (named, self.name) {
            (Some(kind), _) => (*kind).to_owned(),
            (None, "alert" | "callout" | "admonition" | "notice") => format!("note {title}"),
            (None, kind) => format!("{kind} {title}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{markdown::Flavor, markdown::parse_markdown, shown};

    fn check(source: &str, expected: &str) {
        let (_, parsed) = parse_markdown(source, Flavor::Plain, &mut |_| None);
        assert_eq!(shown(&parsed), expected);
    }

    #[test]
    fn shortcodes_with_code_become_code() {
        check(
            "Try:\n{{< clients-example set_tutorial one >}}\n> SET a 1\nOK\n\n> GET a\n{{< /clients-example >}}\n\
             Then\n{{< highlight bash >}}\nls\n{{< / highlight >}}\nAfter.\n",
            "[Text] Try:\n[Code] ```\n> SET a 1\nOK\n\n> GET a\n```\n[Text] Then\n[Code] ```bash\nls\n```\n[Text] After.\n",
        );
        check("{{< code >}}\n```sh\nls\n```\n{{< /code >}}\n", "[Code] ```sh\nls\n```\n");
    }

    #[test]
    fn notes_get_a_label() {
        check(
            "{{% alert title=\"Tip\" color=\"info\" %}}\nUse *it*.\n{{% /alert %}}\n\n\
             {{% alert title=\"In short\" %}} \nSo.\n{{% /alert %}}\n\n{{< warning >}}\nHot.\n{{< /warning >}}\nAfter.\n",
            "[Admonition] Tip:\n[Admonition] Use it.\n[Admonition] Note: In short\n[Admonition] So.\n\
             [Admonition] Warning:\n[Admonition] Hot.\n[Text] After.\n",
        );
    }

    #[test]
    fn other_shortcodes_keep_their_text() {
        check(
            "{{< tabs >}}\n{{% tab name=\"Linux\" %}}\nRun it.\n{{% /tab %}}\n{{< /tabs >}}\n\n\
             See [the page]({{< relref \"/a/b\" >}}) {{< param x >}}now.\n\n{{< toc />}}\n",
            "[Text] Linux\n[Text] Run it.\n[Text] See the page now.\n",
        );
    }

    #[test]
    fn code_and_other_braces_are_left_alone() {
        check("```\n{{< note >}}\n```\n", "[Code] ```\n{{< note >}}\n```\n");
        check(
            "Use `{{< note >}}`, {{ .Values }} {{< and {{<.\n",
            "[Text] Use `{{< note >}}`, {{ .Values }} {{< and {{<.\n",
        );
    }
}
