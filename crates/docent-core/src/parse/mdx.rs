//! MDX becomes Markdown: imports, exports, comments and JSX tags go, the words inside stay.
//!
//! Works on the text, outside code, before Markdown is parsed: in MDX the content of a
//! component is Markdown again, which a Markdown parser would take for raw HTML.
//!
//! Invariant: nothing inside a code fence or a code span is touched.

use super::include::Includes;

/// A page's Markdown, with the partial pages it shows in place.
///
/// `load` returns the text of a file named by an import, relative to this page.
pub fn to_markdown(
    source: &str,
    load: &mut dyn FnMut(&str) -> Option<String>,
    warnings: &mut Vec<String>,
) -> String {
    let mut expansion = Expansion { load, includes: Includes::default(), left: MOST_SHOWN, warnings };
    expansion.page(source)
}

/// Partials that one page imports.
const MOST_IMPORTS: usize = 256;

/// The bytes of all partials of a page, each as often as it is shown.
const MOST_SHOWN: usize = 8 << 20;

/// Partials under way.
struct Expansion<'a> {
    load: &'a mut dyn FnMut(&str) -> Option<String>,
    includes: Includes,
    /// What may still be shown.
    left: usize,
    warnings: &'a mut Vec<String>,
}

impl Expansion<'_> {
    fn page(&mut self, source: &str) -> String {
        let source = remove_comments(&unwrap_code_blocks(source));
        let (body, imports) = remove_modules(&source);
        let mut partials = Partials::default();
        let is_page = |path: &str| path.ends_with(".md") || path.ends_with(".mdx");
        for (name, path) in imports.into_iter().filter(|(_, path)| is_page(path)).take(MOST_IMPORTS) {
            if !body.contains(&format!("<{name}")) {
                continue;
            }
            match self.includes.load(&path, self.load) {
                Ok((path, text)) => {
                    self.includes.enter(path);
                    let (_, text, _) = super::front_matter::split(&text);
                    partials.texts.push((name, self.page(text)));
                    self.includes.leave();
                }
                // What is not there may be a component with an odd name.
                Err(reason) if reason.contains("not found") => {}
                Err(reason) => self.warnings.push(reason),
            }
        }
        partials.left = self.left;
        let text = remove_tags(&admonitions(&body), &mut partials);
        if partials.cut && !self.warnings.iter().any(|warning| warning == TOO_OFTEN) {
            self.warnings.push(TOO_OFTEN.to_owned());
        }
        self.left = partials.left;
        text
    }
}

const TOO_OFTEN: &str = "partials are shown too often; some are left out";

/// The partials a page may show, by the name of their component.
#[derive(Default)]
struct Partials {
    texts: Vec<(String, String)>,
    left: usize,
    /// Whether one was left out.
    cut: bool,
}

impl Partials {
    /// The text in place of a component; empty for others.
    fn shown(&mut self, name: &str) -> Option<&str> {
        let (_, text) = self.texts.iter().find(|(own, _)| own == name)?;
        match self.left.checked_sub(text.len()) {
            Some(left) => self.left = left,
            None => {
                self.cut = true;
                return None;
            }
        }
        Some(text)
    }
}

/// A fence called `mdx-code-block` hides MDX from other tools; Docusaurus shows what is inside.
fn unwrap_code_blocks(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut wrapped = false;
    for_each_line(source, |line, in_code| {
        let bare = line.trim();
        if in_code && !wrapped && bare.trim_start_matches('`') == "mdx-code-block" {
            wrapped = true;
            out.push('\n');
        } else if in_code && wrapped && fence_marker(bare) == Some(bare) {
            wrapped = false;
            out.push('\n');
        } else {
            out.push_str(line);
        }
    });
    out
}

/// Walks over `source` line by line and tells `visit` which lines are inside code fences.
pub(super) fn for_each_line(source: &str, mut visit: impl FnMut(&str, bool)) {
    let mut fence: Option<String> = None;
    for line in source.split_inclusive('\n') {
        let trimmed = line.trim_start().trim_start_matches("> ").trim_start();
        let marker = fence_marker(trimmed);
        match (&fence, marker) {
            (None, Some(marker)) => {
                fence = Some(marker.to_owned());
                visit(line, true);
            }
            (Some(open), Some(marker))
                if marker.starts_with(open.as_str()) && trimmed.trim_end() == marker =>
            {
                fence = None;
                visit(line, true);
            }
            (open, _) => visit(line, open.is_some()),
        }
    }
}

fn fence_marker(line: &str) -> Option<&str> {
    let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(sign).len();
    // A fence of backticks has none in its info string; otherwise it is a code span.
    (length >= 3 && !(sign == '`' && line[length..].contains('`'))).then(|| &line[..length])
}

/// `{/* … */}` and `<!-- … -->`, over several lines too.
fn remove_comments(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut until: Option<&str> = None;
    for_each_line(source, |line, in_code| {
        if in_code && until.is_none() {
            out.push_str(line);
            return;
        }
        let ticks = Ticks::of(line);
        let opens = |open: &'static str| line.match_indices(open);
        let mut openings: Vec<(usize, &str)> = opens("{/*").chain(opens("<!--")).collect();
        openings.sort_unstable();
        let mut openings = openings.into_iter();
        let mut from = 0;
        loop {
            if let Some(end) = until {
                let Some(at) = line[from..].find(end) else {
                    if line.ends_with('\n') {
                        out.push('\n');
                    }
                    return;
                };
                from += at + end.len();
                until = None;
            }
            // An id written as a comment is part of its heading.
            let opening = openings.find(|(at, open)| {
                let is_id = line[at + open.len()..].trim_start().starts_with('#');
                *at >= from && !ticks.around(from, *at) && !is_id
            });
            let Some((at, open)) = opening else {
                out.push_str(&line[from..]);
                return;
            };
            out.push_str(&line[from..at]);
            from = at + open.len();
            until = Some(if open == "{/*" { "*/}" } else { "-->" });
        }
    });
    out
}

/// Where the backticks of a line are.
struct Ticks(Vec<usize>);

impl Ticks {
    fn of(line: &str) -> Self {
        Self(line.match_indices('`').map(|(at, _)| at).collect())
    }

    /// Whether `at` stands in a code span of the text that begins at `from`.
    fn around(&self, from: usize, at: usize) -> bool {
        let before = |at: usize| self.0.partition_point(|tick| *tick < at);
        (before(at) - before(from)) % 2 == 1 && self.0.last().is_some_and(|last| *last >= at)
    }
}

/// Top-level `import` and `export` statements; returns the imported names with their paths.
fn remove_modules(source: &str) -> (String, Vec<(String, String)>) {
    let mut out = String::with_capacity(source.len());
    let mut imports = Vec::new();
    let mut depth: i32 = 0;
    let mut inside = false;
    for_each_line(source, |line, in_code| {
        if in_code {
            out.push_str(line);
            return;
        }
        if !inside {
            inside =
                line.starts_with("import ") || line.starts_with("export ") || line.starts_with("import{");
            if !inside {
                out.push_str(line);
                return;
            }
            depth = 0;
        }
        if let Some((name, path)) = import(line) {
            imports.push((name, path));
        }
        for c in line.chars() {
            depth += match c {
                '{' | '(' | '[' => 1,
                '}' | ')' | ']' => -1,
                _ => 0,
            };
        }
        // The statement ends with its line once all brackets are closed.
        let continues = matches!(line.trim_end().chars().last(), Some(',' | '=' | '>' | '+'));
        if depth <= 0 && (!continues || line.trim().is_empty()) {
            inside = false;
        }
    });
    (out, imports)
}

/// `import Name from './path';`
fn import(line: &str) -> Option<(String, String)> {
    let (name, path) = line.trim().strip_prefix("import ")?.split_once(" from ")?;
    let path = path.trim().trim_end_matches(';').trim_matches(['"', '\'']);
    Some((name.trim().to_owned(), path.to_owned()))
}

/// Admonitions nested more deeply are quoted no further, and none is indented further than this.
const DEEPEST_QUOTE: usize = 8;
const WIDEST_INDENT: usize = 16;

/// `:::note Title` … `:::` becomes a quote that opens with its name in bold.
pub(super) fn admonitions(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 64);
    // The indentation of each open admonition: it may stand inside a list item.
    let mut open: Vec<usize> = Vec::new();
    for_each_line(source, |line, in_code| {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let trimmed = line.trim();
        let colons = trimmed.len() - trimmed.trim_start_matches(':').len();
        let quote = |open: &[usize]| {
            let outer = open.first().copied().unwrap_or(0);
            format!("{}{}", " ".repeat(outer), "> ".repeat(open.len().min(DEEPEST_QUOTE)))
        };
        if in_code || colons < 3 {
            out.push_str(&quote(&open));
            out.push_str(&line[indent.min(open.first().copied().unwrap_or(0))..]);
            return;
        }
        let name = trimmed[colons..].trim();
        if name.is_empty() {
            open.pop();
            out.push('\n');
            return;
        }
        open.push(indent.min(WIDEST_INDENT));
        let quote = quote(&open);
        out.push_str(&format!("\n{quote}**{}**\n{quote}\n", admonition_label(name)));
    });
    out
}

/// `note`, `note Title`, `note[Title]`, `note{title="Title"}` → `Note: Title`.
pub(super) fn admonition_label(rest: &str) -> String {
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

/// What is longer is no tag, or no page would be read in time.
const LONGEST_TAG: usize = 4000;

/// Attributes whose value the reader sees on the page.
const VISIBLE_ATTRIBUTES: [&str; 4] = ["label", "title", "caption", "summary"];

/// Drops tags, keeps what stands between them, and takes the indentation of components off
/// their content, which Markdown would read as code.
fn remove_tags(source: &str, partials: &mut Partials) -> String {
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
        // A tag may run over several lines: wait for its end, but not for ever.
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

fn strip_tags_of(text: &str, partials: &mut Partials, indents: &mut Vec<Option<usize>>, out: &mut String) {
    let mut rest = text;
    let mut had_tag = false;
    let from = out.len();
    let mut offset = 0;
    let ticks = Ticks::of(text);
    while let Some(at) = rest.find('<') {
        let here = offset + at;
        let is_tag = !ticks.around(0, here) && starts_tag(&rest[at..]);
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
    // A line that held only tags leaves a blank line: its neighbours are apart.
    if had_tag && out[from..].trim().is_empty() {
        out.truncate(from);
        out.push('\n');
    }
}

const BLOCK_TAGS: [&str; 14] = [
    "div", "section", "details", "summary", "p", "center", "figure", "table", "ul", "ol", "li", "article",
    "tabs", "header",
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
    /// Reads the tag at the start of `text`; quotes and braces may hold `>`.
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

/// The words of a piece of raw HTML, for Markdown that contains some.
pub(super) fn strip_tags(html: &str) -> String {
    remove_tags(&remove_comments(html), &mut Partials::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &str) {
        let got = to_markdown(source, &mut |_| None, &mut Vec::new());
        let lines = |text: &str| {
            text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(lines(&got), lines(expected));
    }

    #[test]
    fn imports_and_exports_go() {
        check(
            "import Tabs from '@theme/Tabs';\nimport {\n  a,\n  b,\n} from './x';\n\nexport const C = ({children}) => (\n  <b>{children}</b>\n);\n\nText.\n",
            "Text.",
        );
    }

    #[test]
    fn code_is_left_alone() {
        let code = "```js\nimport a from 'b';\n<Tabs>\n{/* kept */}\n```\nUse `<Tabs>` and `{/* x */}`.";
        check(code, code);
    }

    #[test]
    fn comments_go_over_lines_too() {
        check("A {/* one */} b\n{/* two\nthree */}\nC <!-- four --> d\n", "A  b\nC  d");
    }

    #[test]
    fn tabs_keep_their_labels_and_their_text() {
        check(
            "<Tabs>\n  <TabItem value=\"apt\" label=\"Ubuntu\">\n\n    Run it.\n\n    ```bash\n    apt install ros\n    ```\n\n  </TabItem>\n</Tabs>\nAfter.\n",
            "Ubuntu\nRun it.\n```bash\napt install ros\n```\nAfter.",
        );
    }

    #[test]
    fn a_tag_over_several_lines_goes() {
        check(
            "<Figure\n  src={require('./a.png').default}\n  caption=\"The loop\"\n/>\nText\n",
            "The loop\nText",
        );
    }

    #[test]
    fn a_comparison_is_not_a_tag() {
        check("if a < b and b > c then 1 <2\n", "if a < b and b > c then 1 <2");
    }

    #[test]
    fn admonitions_become_quotes_with_their_name() {
        check(
            ":::tip Try it\nRun `ros2`.\n:::\nAfter\n\n:::warning\nHot.\n:::\n",
            "> **Tip: Try it**\n>\n> Run `ros2`.\nAfter\n> **Warning:**\n>\n> Hot.",
        );
    }

    #[test]
    fn an_mdx_code_block_is_shown_not_quoted() {
        check(
            "```mdx-code-block\nimport A from 'a';\n\n<A>Shown.</A>\n```\nAfter\n```mdx\n<A>kept</A>\n```\n",
            "Shown.\nAfter\n```mdx\n<A>kept</A>\n```",
        );
    }

    #[test]
    fn a_partial_is_shown_where_it_is_used() {
        let mut load = |path: &str| (path == "_note.mdx").then(|| "Shared *words*.".to_owned());
        let page = "import Note from './_note.mdx';\n\nBefore.\n\n<Note />\n\nAfter.\n";
        let got = to_markdown(page, &mut load, &mut Vec::new());
        let words: Vec<_> = got.split_whitespace().collect();
        assert_eq!(words, ["Before.", "Shared", "*words*.", "After."]);
    }

    #[test]
    fn a_partial_that_shows_itself_ends() {
        let mut load = |_: &str| Some("import A from './a.mdx';\n\nx <A />\n".to_owned());
        let mut warnings = Vec::new();
        let got = to_markdown("import A from './a.mdx';\n\n<A />\n", &mut load, &mut warnings);
        assert_eq!((got.trim(), warnings.len()), ("x", 1), "{warnings:?}");
    }

    #[test]
    fn partials_that_show_each_other_many_times_do_not_explode() {
        // Each shows the next a hundred times.
        let shows =
            |next: usize| format!("import A from './{next}.mdx';\n\nwords {}\n", "<A /> ".repeat(100));
        let mut load = |path: &str| path.strip_suffix(".mdx")?.parse::<usize>().ok().map(|at| shows(at + 1));
        let mut warnings = Vec::new();
        let got = to_markdown(&shows(1), &mut load, &mut warnings);
        assert!(got.contains("words") && got.len() <= MOST_SHOWN + 10_000, "{} bytes", got.len());
        assert!(warnings.contains(&TOO_OFTEN.to_owned()), "{warnings:?}");
    }
}
