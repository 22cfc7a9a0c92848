//! Converts MDX to Markdown: removes imports, exports, comments and JSX tags and keeps the text inside them.
//!
//! Works on the source text, outside code, before Markdown is parsed: in MDX the content of a component is
//! Markdown again, which a Markdown parser would treat as raw HTML.
//!
//! Invariant: code fences and code spans are left unchanged.

mod tags;

use super::admonition::admonitions;
use super::fence::{for_each_line, marker};
use super::include::{Includes, NotIncluded};
use tags::remove_tags;

/// Converts a page to Markdown and inserts the partials it uses.
///
/// `load` returns the text of an imported file, given its path relative to this page.
pub fn to_markdown(
    source: &str,
    load: &mut dyn FnMut(&str) -> Option<String>,
    warnings: &mut Vec<String>,
) -> String {
    let mut expansion = Expansion { load, includes: Includes::default(), left: MOST_SHOWN, warnings };
    expansion.page(source)
}

/// Maximum number of partials that one page may import.
const MOST_IMPORTS: usize = 256;

/// Maximum size of all partials of a page in bytes, counted every time they are shown.
const MOST_SHOWN: usize = 8 << 20;

/// The state while partials are expanded.
struct Expansion<'a> {
    load: &'a mut dyn FnMut(&str) -> Option<String>,
    includes: Includes,
    /// How many more bytes may be shown.
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
                // A missing file may be a component with an unusual name.
                Err(NotIncluded::Missing(_)) => {}
                Err(reason) => self.warnings.push(reason.to_string()),
            }
        }
        partials.left = self.left;
        let text = remove_tags(&admonitions(&unwrap_strings(&body)), &mut partials);
        if partials.cut && !self.warnings.iter().any(|warning| warning == TOO_OFTEN) {
            self.warnings.push(TOO_OFTEN.to_owned());
        }
        self.left = partials.left;
        text
    }
}

const TOO_OFTEN: &str = "partials are used too often; some were skipped";

/// The partials of a page, by component name.
#[derive(Default)]
struct Partials {
    texts: Vec<(String, String)>,
    left: usize,
    /// Whether one was skipped.
    cut: bool,
}

impl Partials {
    /// The text that replaces a component; nothing for components that are not partials.
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

/// A fence called `mdx-code-block` hides MDX from other tools; Docusaurus renders its content.
fn unwrap_code_blocks(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut wrapped = false;
    for_each_line(source, |line, in_code| {
        let bare = line.trim();
        if in_code && !wrapped && bare.trim_start_matches('`') == "mdx-code-block" {
            wrapped = true;
            out.push('\n');
        } else if in_code && wrapped && marker(bare) == Some(bare) {
            wrapped = false;
            out.push('\n');
        } else {
            out.push_str(line);
        }
    });
    out
}

/// Removes `{/* … */}` and `<!-- … -->`, also across lines.
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
            // An id written as a comment belongs to its heading.
            let is_heading = line.trim_start().starts_with('#');
            let opening = openings.find(|(at, open)| {
                let is_id = is_heading && line[at + open.len()..].trim_start().starts_with('#');
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

/// `{'text'}` and `{" "}` are strings in JSX and appear as text. Values of attributes (`label={'text'}`) are left alone.
fn unwrap_strings(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    for_each_line(source, |line, in_code| {
        let ticks = Ticks::of(line);
        let mut from = 0;
        if !in_code {
            for (at, _) in line.match_indices('{') {
                let string =
                    line[at + 1..].chars().next().filter(|quote| matches!(quote, '\'' | '"')).and_then(
                        |quote| {
                            let text = &line[at + 2..];
                            let end = text.find(quote)?;
                            text[end + 1..].starts_with('}').then_some(&text[..end])
                        },
                    );
                if let Some(text) = string
                    && at >= from
                    && !line[..at].ends_with('=')
                    && !ticks.around(0, at)
                {
                    out.push_str(&line[from..at]);
                    out.push_str(text);
                    from = at + text.len() + "{''}".len();
                }
            }
        }
        out.push_str(&line[from..]);
    });
    out
}

/// The positions of the backticks in a line.
struct Ticks(Vec<usize>);

impl Ticks {
    fn of(line: &str) -> Self {
        Self(line.match_indices('`').map(|(at, _)| at).collect())
    }

    /// Whether `at` is inside a code span of the text that starts at `from`.
    fn around(&self, from: usize, at: usize) -> bool {
        let before = |at: usize| self.0.partition_point(|tick| *tick < at);
        (before(at) - before(from)) % 2 == 1 && self.0.last().is_some_and(|last| *last >= at)
    }
}

/// Removes top-level `import` and `export` statements and returns the imported names with their paths.
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
        // The statement ends with the line on which all brackets are closed.
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

/// The text of raw HTML inside Markdown.
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
    fn imports_and_exports_are_removed() {
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
    fn comments_across_lines_are_removed() {
        check("A {/* one */} b\n{/* two\nthree */}\nC <!-- four --> d\n", "A  b\nC  d");
    }

    #[test]
    fn tabs_keep_their_labels_and_text() {
        check(
            "<Tabs>\n  <TabItem value=\"apt\" label=\"Ubuntu\">\n\n    Run it.\n\n    ```bash\n    apt install ros\n    ```\n\n  </TabItem>\n</Tabs>\nAfter.\n",
            "Ubuntu\nRun it.\n```bash\napt install ros\n```\nAfter.",
        );
    }

    #[test]
    fn a_tag_across_several_lines_is_removed() {
        check(
            "<Figure\n  src={require('./a.png').default}\n  caption=\"The loop\"\n/>\nText\n",
            "The loop\nText",
        );
    }

    #[test]
    fn definition_lists_and_strings_are_text() {
        check(
            "<dl>\n  <dt>\n    <b>Current</b>\n  </dt>\n  <dd>\n    {'The one in '}\n    <code>./docs</code>\n    {'.'}\n  </dd>\n</dl>\n",
            "Current\nThe one in\n./docs\n.",
        );
        check("A{' '}b {'c'}, `{'d'}`, <T label={'e'}>f</T>\n", "A b c, `{'d'}`, f");
    }

    #[test]
    fn a_comparison_is_not_a_tag() {
        check("if a < b and b > c then 1 <2\n", "if a < b and b > c then 1 <2");
    }

    #[test]
    fn urls_in_angle_brackets_are_not_tags() {
        let links = "Also see <https://x.org/a?b=c> and <me@x.org>.";
        check(links, links);
    }

    #[test]
    fn an_mdx_code_block_is_rendered() {
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
    fn a_partial_that_includes_itself_gives_a_warning() {
        let mut load = |_: &str| Some("import A from './a.mdx';\n\nx <A />\n".to_owned());
        let mut warnings = Vec::new();
        let got = to_markdown("import A from './a.mdx';\n\n<A />\n", &mut load, &mut warnings);
        assert_eq!((got.trim(), warnings.len()), ("x", 1), "{warnings:?}");
    }

    #[test]
    fn nested_partials_do_not_grow_without_limit() {
        // Each uses the next one a hundred times.
        let shows =
            |next: usize| format!("import A from './{next}.mdx';\n\nwords {}\n", "<A /> ".repeat(100));
        let mut load = |path: &str| path.strip_suffix(".mdx")?.parse::<usize>().ok().map(|at| shows(at + 1));
        let mut warnings = Vec::new();
        let got = to_markdown(&shows(1), &mut load, &mut warnings);
        assert!(got.contains("words") && got.len() <= MOST_SHOWN + 10_000, "{} bytes", got.len());
        assert!(warnings.contains(&TOO_OFTEN.to_owned()), "{warnings:?}");
    }
}
