//! Markdown of any flavour becomes sections: Docusaurus and MDX, mdBook, plain.
//!
//! Invariant: every word a reader would see ends up in exactly one block, and code keeps
//! its lines.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::anchors::{AnchorStyle, Anchors};
use super::front_matter::{self, FrontMatter};
use super::mdx;
use crate::document::{BlockKind, Parsed, SectionBuilder};

/// Which generator publishes the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavor {
    /// Docusaurus: MDX, admonitions, no anchor on the title.
    Docusaurus,
    /// mdBook: hidden lines in Rust code, an anchor on every heading.
    MdBook,
    /// MkDocs: notes and tabs by indentation, an anchor on every heading.
    MkDocs,
    /// VitePress: containers, an anchor on every heading.
    VitePress,
    /// Markdown as GitHub shows it.
    Plain,
    /// The Markdown of a notebook's cells, with the anchors that Jupyter gives.
    Jupyter,
}

/// Parses a page. `load` returns the text of another file, named relative to this page.
pub fn parse_markdown(
    source: &str,
    flavor: Flavor,
    load: &mut dyn FnMut(&str) -> Option<String>,
) -> (FrontMatter, Parsed) {
    let (front, body, problem) = front_matter::split(source);
    let mut walker = Walker::new(flavor);
    walker.warnings.extend(problem);
    let body = match flavor {
        Flavor::Docusaurus => mdx::to_markdown(body, load, &mut walker.warnings),
        Flavor::MdBook => super::mdbook::expand_includes(body, load, &mut walker.warnings),
        Flavor::MkDocs => super::mkdocs::to_markdown(body),
        Flavor::VitePress => super::vitepress::to_markdown(body),
        Flavor::Plain | Flavor::Jupyter => body.to_owned(),
    };
    walker.text(&body);
    (front, walker.finish())
}

fn options(flavor: Flavor) -> Options {
    let mut options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    if matches!(flavor, Flavor::MdBook | Flavor::MkDocs | Flavor::VitePress) {
        options |= Options::ENABLE_HEADING_ATTRIBUTES;
    }
    if matches!(flavor, Flavor::MdBook | Flavor::MkDocs) {
        options |= Options::ENABLE_DEFINITION_LIST;
    }
    options
}

/// Lists nested more deeply are not indented further; a line of `- - - …` would grow with its square.
const DEEPEST_INDENT: usize = 16;

/// Turns parser events into blocks.
pub(super) struct Walker {
    flavor: Flavor,
    anchors: Anchors,
    builder: SectionBuilder,
    title: Option<String>,
    warnings: Vec<String>,
    /// The inline text of the block under way.
    text: String,
    heading: Option<(HeadingLevel, Option<String>)>,
    lists: Vec<Option<u64>>,
    quotes: usize,
    code: Option<String>,
    table: Option<Table>,
    image_depth: usize,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
}

impl Walker {
    pub(super) fn new(flavor: Flavor) -> Self {
        let style = match flavor {
            Flavor::MdBook => AnchorStyle::MdBook,
            Flavor::Jupyter => AnchorStyle::Jupyter,
            Flavor::MkDocs => AnchorStyle::MkDocs,
            Flavor::VitePress => AnchorStyle::VitePress,
            Flavor::Docusaurus | Flavor::Plain => AnchorStyle::GitHub,
        };
        Self {
            flavor,
            anchors: Anchors::new(style),
            builder: SectionBuilder::default(),
            title: None,
            warnings: Vec::new(),
            text: String::new(),
            heading: None,
            lists: Vec::new(),
            quotes: 0,
            code: None,
            table: None,
            image_depth: 0,
        }
    }

    /// Reads a whole text; blocks still open at its end are closed.
    pub(super) fn text(&mut self, source: &str) {
        for event in Parser::new_ext(source, options(self.flavor)) {
            self.event(event);
        }
        self.flush();
    }

    /// Adds a block that was not written as Markdown.
    pub(super) fn block(&mut self, kind: BlockKind, text: &str) {
        self.builder.block(kind, text);
    }

    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.text.push_str(&text),
            },
            Event::Code(code) => push_code(&mut self.text, &code),
            Event::SoftBreak => self.text.push(' '),
            Event::HardBreak => self.text.push('\n'),
            Event::Html(html) | Event::InlineHtml(html) => {
                let words = mdx::strip_tags(&html);
                if html.trim_start().starts_with("<br") {
                    self.text.push(' ');
                }
                self.text.push_str(words.trim_matches('\n'));
            }
            Event::TaskListMarker(done) => self.text.push_str(if done { "[x] " } else { "[ ] " }),
            Event::InlineMath(math) | Event::DisplayMath(math) => self.text.push_str(&math),
            Event::Rule | Event::FootnoteReference(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, id, .. } => {
                self.flush();
                self.heading = Some((level, id.map(|id| id.to_string())));
            }
            // The first paragraph about a term goes on with its line.
            Tag::Paragraph if self.lists.is_empty() && self.text.ends_with(": ") => {}
            Tag::Paragraph | Tag::HtmlBlock => {
                if self.lists.is_empty() {
                    self.flush();
                } else if !self.text.is_empty() && !self.text.ends_with(' ') {
                    self.text.push_str("\n  ");
                }
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.quotes += 1;
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.flush();
                }
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::CodeBlock(kind) => {
                self.flush();
                self.code = Some(opening_fence(&kind));
            }
            Tag::Table(_) => {
                self.flush();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Image { .. } => self.image_depth += 1,
            Tag::FootnoteDefinition(_) | Tag::DefinitionListTitle => self.flush(),
            // A term stands before what is said about it.
            Tag::DefinitionListDefinition if !self.text.trim().is_empty() => {
                let term = self.text.trim_end().trim_end_matches(':').len();
                self.text.truncate(term);
                self.text.push_str(": ");
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => self.end_heading(),
            TagEnd::Paragraph
            | TagEnd::HtmlBlock
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionListDefinition
                if self.lists.is_empty() =>
            {
                self.flush();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::List(_) => {
                self.lists.pop();
                if self.lists.is_empty() {
                    self.flush();
                }
            }
            TagEnd::CodeBlock => {
                if let Some(code) = self.code.take() {
                    let code = visible_code(&code, self.flavor);
                    self.builder.block(BlockKind::Code, &code);
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell.split_whitespace().collect::<Vec<_>>().join(" "));
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.builder.block(BlockKind::Table, &table.render());
                }
            }
            TagEnd::Image => self.image_depth -= 1,
            _ => {}
        }
    }

    fn item(&mut self) {
        let depth = self.lists.len().saturating_sub(1).min(DEEPEST_INDENT);
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(&"  ".repeat(depth));
        match self.lists.last_mut() {
            Some(Some(number)) => {
                self.text.push_str(&format!("{number}. "));
                *number += 1;
            }
            _ => self.text.push_str("- "),
        }
    }

    fn end_heading(&mut self) {
        let Some((level, id)) = self.heading.take() else { return };
        let written = std::mem::take(&mut self.text);
        let (written, explicit) = match self.flavor {
            Flavor::Docusaurus => explicit_id(&written),
            _ => (written.as_str(), id),
        };
        let anchor = self.anchors.next(&plain(written), explicit.as_deref());
        let level = level as u8;
        let text = written.split_whitespace().collect::<Vec<_>>().join(" ");
        if level == 1 && self.title.is_none() {
            self.title = Some(plain(&text));
        }
        // Docusaurus puts no id on the title of the page.
        let anchor = (level > 1 || self.flavor != Flavor::Docusaurus).then_some(anchor);
        self.builder.heading(level, &plain(&text), anchor);
    }

    /// Ends the block under way.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        let kind = if self.quotes > 0 { BlockKind::Admonition } else { BlockKind::Text };
        let text: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
        let text = text.join("\n");
        // A list marker whose item went into a code block says nothing.
        if !matches!(text.trim(), "-" | "") {
            self.builder.block(kind, if self.lists.is_empty() { text.trim() } else { &text });
        }
    }

    pub(super) fn finish(mut self) -> Parsed {
        self.flush();
        Parsed { title: self.title, sections: self.builder.finish(), warnings: self.warnings }
    }
}

impl Table {
    fn render(&self) -> String {
        let mut lines = Vec::with_capacity(self.rows.len() + 1);
        for (number, row) in self.rows.iter().enumerate() {
            lines.push(format!("| {} |", row.join(" | ")));
            if number == 0 {
                lines.push(format!("|{}", " --- |".repeat(row.len())));
            }
        }
        lines.join("\n")
    }
}

/// Inline code with enough backticks around it.
fn push_code(text: &mut String, code: &str) {
    let fence = if code.contains('`') { "``" } else { "`" };
    text.push_str(fence);
    text.push_str(code);
    text.push_str(fence);
}

/// The words of a heading as they are slugged and shown: without backticks.
fn plain(text: &str) -> String {
    text.replace('`', "").trim().to_owned()
}

/// `Words {#id}` or `Words {/* #id */}`.
fn explicit_id(heading: &str) -> (&str, Option<String>) {
    let trimmed = heading.trim_end();
    let inner = trimmed.strip_suffix('}').and_then(|rest| {
        let at = rest.rfind('{')?;
        let inside = rest[at + 1..].trim_matches(|c: char| c == '/' || c == '*' || c.is_whitespace());
        Some((at, inside.strip_prefix('#')?))
    });
    match inner {
        Some((at, id)) if !id.is_empty() && !id.contains(char::is_whitespace) => {
            (trimmed[..at].trim_end(), Some(id.to_owned()))
        }
        _ => (heading, None),
    }
}

/// The language and the title of the block, which the page shows above it.
fn opening_fence(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else { return "```\n".to_owned() };
    let language = info.split([' ', ',', '{']).next().unwrap_or_default();
    let title = info.split_once("title=\"").and_then(|(_, rest)| rest.split_once('"'));
    match title {
        Some((title, _)) => format!("```{language} title=\"{title}\"\n"),
        None => format!("```{language}\n"),
    }
}

/// Closes the fence, and leaves out the lines that generators hide from readers.
fn visible_code(code: &str, flavor: Flavor) -> String {
    let (fence, body) = code.split_once('\n').unwrap_or((code, ""));
    let rust = flavor == Flavor::MdBook && fence.starts_with("```rust");
    let mut longest = 2;
    let mut out = String::with_capacity(code.len() + 8);
    for line in body.trim_end().lines() {
        let bare = line.trim();
        let hidden = (rust && (bare == "#" || bare.starts_with("# ")))
            || (flavor == Flavor::Docusaurus && bare.contains("highlight-") && is_magic_comment(bare));
        if hidden {
            continue;
        }
        let backticks = bare.len() - bare.trim_start_matches('`').len();
        longest = longest.max(backticks);
        out.push_str(if rust && bare.starts_with("##") {
            line.trim_start().get(1..).unwrap_or(line)
        } else {
            line
        });
        out.push('\n');
    }
    if out.trim().is_empty() {
        return String::new();
    }
    let extra = "`".repeat(longest - 2);
    format!("{extra}{fence}\n{out}```{extra}")
}

fn is_magic_comment(line: &str) -> bool {
    let words = line.trim_matches(|c: char| !c.is_alphanumeric());
    matches!(words, "highlight-next-line" | "highlight-start" | "highlight-end")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn render(source: &str, flavor: Flavor) -> String {
        let (_, parsed) = parse_markdown(source, flavor, &mut |_| None);
        let mut out = String::new();
        for section in parsed.sections {
            if let Some(heading) = section.heading {
                let anchor = heading.anchor.map_or(String::new(), |anchor| format!(" #{anchor}"));
                out.push_str(&format!("H{} {}{anchor}\n", heading.level, heading.text));
            }
            for block in section.blocks {
                out.push_str(&format!("[{:?}] {}\n", block.kind, block.text));
            }
        }
        out
    }

    fn check(source: &str, flavor: Flavor, expected: &str) {
        assert_eq!(render(source, flavor), expected);
    }

    #[test]
    fn docusaurus_titles_have_no_anchor_but_count() {
        check(
            "# Nodes\nHi.\n## Nodes\n### `create_node()` {#make}\n## Ünï 🚀 & more!\n",
            Flavor::Docusaurus,
            "H1 Nodes\n[Text] Hi.\nH2 Nodes #nodes-1\nH3 create_node() #make\nH2 Ünï 🚀 & more! #ünï---more\n",
        );
    }

    #[test]
    fn mdbook_headings_all_have_anchors() {
        check(
            "# The Book\n## Using `?` {#question}\n## Why\n## Why\n",
            Flavor::MdBook,
            "H1 The Book #the-book\nH2 Using ? #question\nH2 Why #why\nH2 Why #why-1\n",
        );
    }

    #[test]
    fn inline_markup_is_reduced_to_words() {
        check(
            "A **bold** [link](x.md) and `code`,\nnext *line*.\n",
            Flavor::Plain,
            "[Text] A bold link and `code`, next line.\n",
        );
    }

    #[test]
    fn lists_keep_their_markers_and_nesting() {
        check(
            "Before:\n\n1. One\n   - a\n   - b\n2. Two\n\n   More of two.\n",
            Flavor::Plain,
            "[Text] Before:\n[Text] 1. One\n  - a\n  - b\n2. Two\n  More of two.\n",
        );
    }

    #[test]
    fn code_in_a_list_is_a_block_of_its_own() {
        check(
            "1. Run:\n   ```bash\n   ls -l\n     cd\n   ```\n2. Done\n",
            Flavor::Plain,
            "[Text] 1. Run:\n[Code] ```bash\nls -l\n  cd\n```\n[Text] 2. Done\n",
        );
    }

    #[test]
    fn tables_stay_readable() {
        check(
            "| a | b |\n|---|---|\n| `x` | 1 \\| 2 |\n",
            Flavor::Plain,
            "[Table] | a | b |\n| --- | --- |\n| `x` | 1 | 2 |\n",
        );
    }

    #[test]
    fn admonitions_are_named() {
        check(
            ":::tip Try\nIt works.\n\n```sh\nls\n```\n:::\nAfter.\n",
            Flavor::Docusaurus,
            "[Admonition] Tip: Try\n[Admonition] It works.\n[Code] ```sh\nls\n```\n[Text] After.\n",
        );
    }

    #[test]
    fn code_titles_stay_and_magic_comments_go() {
        check(
            "```js title=\"a.js\" {1}\n// highlight-next-line\nlet a;\n```\n",
            Flavor::Docusaurus,
            "[Code] ```js title=\"a.js\"\nlet a;\n```\n",
        );
    }

    #[test]
    fn mdbook_hides_marked_lines_of_rust() {
        check(
            "```rust,ignore\n# use std::fmt;\nfn main() {}\n#\n```\n",
            Flavor::MdBook,
            "[Code] ```rust\nfn main() {}\n```\n",
        );
    }

    #[test]
    fn raw_html_keeps_its_words() {
        check(
            "<details>\n<summary>More</summary>\n\nHidden.\n\n</details>\nA<br/>b <kbd>Ctrl</kbd>\n",
            Flavor::Plain,
            "[Text] More\n[Text] Hidden.\n[Text] A b Ctrl\n",
        );
    }

    proptest! {
        #[test]
        fn no_input_panics(source in "\\PC*(\n[#>:`|<{ -]{0,4}\\PC{0,20}){0,12}") {
            for flavor in [Flavor::Docusaurus, Flavor::MdBook, Flavor::Plain] {
                parse_markdown(&source, flavor, &mut |_| None);
            }
        }
    }
}
