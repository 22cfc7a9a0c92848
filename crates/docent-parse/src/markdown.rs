//! Parses Markdown of any flavor into sections: Docusaurus and MDX, mdBook, MkDocs, VitePress, plain.
//!
//! Invariant: every word that the published page shows ends up in exactly one block, and code keeps its
//! lines.

mod names;

use pulldown_cmark::{
    BlockQuoteKind, BrokenLink, CodeBlockKind, CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag,
    TagEnd,
};

use super::admonition::admonitions;
use super::anchors::{AnchorStyle, Anchors};
use super::attributes::without_attributes;
use super::fence::push_code;
use super::front_matter::{self, FrontMatter};
use super::maths::Maths;
use super::mdx;
use super::mkdocs;
use super::myst;
use super::references::References;
use super::table::rendered;
use crate::document::{BlockKind, Parsed, SectionBuilder};
pub(super) use names::named;

/// Which site generator publishes the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flavor {
    /// Docusaurus: MDX, admonitions, no anchor on the title.
    Docusaurus,
    /// mdBook: hidden lines in Rust code, an anchor on every heading.
    MdBook,
    /// MkDocs: notes and tabs by indentation, an anchor on every heading.
    MkDocs,
    /// VitePress: containers, an anchor on every heading.
    VitePress,
    /// Markdown as rendered by GitHub.
    Plain,
    /// The Markdown cells of a notebook, with the anchors that Jupyter generates.
    Jupyter,
}

/// Parses a page. `load` returns the text of another file, given its path relative to this page.
pub fn parse_markdown(
    source: &str,
    flavor: Flavor,
    load: &mut dyn FnMut(&str) -> Option<String>,
) -> (FrontMatter, Parsed) {
    parse_markdown_among(source, flavor, References::default(), load)
}

/// Parses a page of a book; `references` resolves the names of its other pages.
pub(super) fn parse_markdown_among(
    source: &str,
    flavor: Flavor,
    mut references: References<'_>,
    load: &mut dyn FnMut(&str) -> Option<String>,
) -> (FrontMatter, Parsed) {
    let (front, body, problem) = front_matter::split(source);
    let mut walker = Walker::new(flavor);
    walker.warnings.extend(problem);
    let body = &walker.maths.hidden(body);
    let body = match flavor {
        Flavor::Docusaurus => mdx::to_markdown(body, load, &mut walker.warnings),
        Flavor::MdBook => admonitions(&super::mdbook::expand_includes(body, load, &mut walker.warnings)),
        Flavor::MkDocs => mkdocs::to_markdown(&admonitions(body)),
        Flavor::VitePress => super::vitepress::to_markdown(body),
        Flavor::Plain | Flavor::Jupyter => {
            references.know_own(named(body));
            let body = super::learn::to_markdown(body, load, &mut walker.warnings);
            let body = super::hugo::to_markdown(&super::d2l::to_markdown(&body, &references));
            let body = if mkdocs::is_mkdocs(&body) { mkdocs::to_markdown(&body) } else { body };
            admonitions(&myst::to_markdown(&without_attributes(&body), &references))
        }
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

/// Lists nested more deeply are not indented further; otherwise the text for `- - - …` would grow
/// quadratically.
const DEEPEST_INDENT: usize = 16;

/// Turns parser events into blocks.
pub(super) struct Walker {
    flavor: Flavor,
    anchors: Anchors,
    builder: SectionBuilder,
    title: Option<String>,
    warnings: Vec<String>,
    /// The inline text of the current block.
    text: String,
    heading: Option<(HeadingLevel, Option<String>)>,
    lists: Vec<Option<u64>>,
    quotes: usize,
    code: Option<String>,
    table: Option<Table>,
    /// The open images: where their description begins in the text, and their address.
    images: Vec<(usize, String)>,
    maths: Maths,
    /// The current block of raw HTML.
    html: Option<String>,
    /// Whether an HTML comment is still open.
    in_comment: bool,
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
            images: Vec::new(),
            maths: Maths::default(),
            html: None,
            in_comment: false,
        }
    }

    /// Parses a whole text and closes the blocks that are still open at its end.
    pub(super) fn text(&mut self, source: &str) {
        // Included files contain formulas of their own.
        let source = self.maths.hidden(source);
        let flavor = self.flavor;
        let undefined = |link: BrokenLink<'_>| {
            let is_link = names_an_object(&link, &source, flavor);
            is_link.then_some((CowStr::Borrowed(""), CowStr::Borrowed("")))
        };
        for event in Parser::new_with_broken_link_callback(&source, options(flavor), Some(undefined)) {
            self.event(event);
        }
        self.flush();
        self.in_comment = false;
    }

    /// Adds a block that does not come from Markdown.
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
            Event::Html(html) if self.html.is_some() => {
                self.html.as_mut().into_iter().for_each(|open| open.push_str(&html));
            }
            Event::Html(html) | Event::InlineHtml(html) => self.html(&html),
            Event::Text(text) if self.in_comment => self.html(&text),
            _ if self.in_comment => {}
            Event::Text(text) => {
                let text = self.maths.shown(&text);
                self.code.as_mut().unwrap_or(&mut self.text).push_str(&text);
            }
            Event::Code(code) => push_code(&mut self.text, &self.maths.shown(&code)),
            Event::SoftBreak => self.text.push(' '),
            Event::HardBreak => self.text.push('\n'),
            Event::TaskListMarker(done) => self.text.push_str(if done { "[x] " } else { "[ ] " }),
            Event::InlineMath(math) | Event::DisplayMath(math) => self.text.push_str(&math),
            Event::Rule | Event::FootnoteReference(_) => {}
        }
    }

    /// Adds the text of raw HTML. A comment may end in a later block than the one it starts in.
    fn html(&mut self, html: &str) {
        let mut shown = html;
        if self.in_comment {
            let Some((_, after)) = html.split_once("-->") else { return };
            self.in_comment = false;
            shown = after;
        }
        if let Some(at) = shown.rfind("<!--").filter(|at| !shown[*at..].contains("-->")) {
            self.in_comment = true;
            shown = &shown[..at];
        }
        if shown.trim_start().starts_with("<br") {
            self.text.push(' ');
        }
        let words = self.maths.shown(&with_characters(&mdx::strip_tags(shown).replace("\n ", "\n")));
        self.text.push_str(words.trim_matches('\n'));
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            // Text in a comment is not a heading.
            Tag::Heading { .. } if self.in_comment => {}
            Tag::Heading { level, id, .. } => {
                self.flush();
                self.heading = Some((level, id.map(|id| id.to_string())));
            }
            // The first paragraph of a definition continues on the term's line.
            Tag::Paragraph if self.lists.is_empty() && self.text.ends_with(": ") => {}
            Tag::Paragraph | Tag::HtmlBlock => {
                if self.lists.is_empty() {
                    self.flush();
                } else if !self.text.is_empty() && !self.text.ends_with(' ') {
                    self.text.push_str("\n  ");
                }
                if matches!(tag, Tag::HtmlBlock) {
                    self.html = Some(String::new());
                }
            }
            Tag::BlockQuote(kind) => {
                self.flush();
                self.quotes += 1;
                if let Some(kind) = kind.filter(|_| !self.in_comment) {
                    self.builder.block(BlockKind::Admonition, note_label(kind));
                }
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
            Tag::Image { dest_url, .. } => self.images.push((self.text.len(), dest_url.to_string())),
            Tag::FootnoteDefinition(_) | Tag::DefinitionListTitle => self.flush(),
            // A term precedes its definition.
            Tag::DefinitionListDefinition if !self.text.trim().is_empty() => {
                let term = self.text.trim_end().trim_end_matches(':').len();
                self.text.truncate(term);
                self.text.push_str(": ");
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        if tag == TagEnd::HtmlBlock
            && let Some(html) = self.html.take()
        {
            if let Some((caption, address)) = html_figure(&html) {
                self.builder.figure(&caption, &address);
            }
            // A line break in HTML is a space, except in preformatted text.
            let html = if html.contains("<pre") { html } else { html.replace('\n', " ") };
            self.html(html.trim());
        }
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
                    self.builder.block(BlockKind::Table, &rendered(&table.rows, 1));
                }
            }
            TagEnd::Image => self.end_image(),
            _ => {}
        }
    }

    /// An image is a figure whose words are its description. One in a heading only illustrates the heading.
    fn end_image(&mut self) {
        let Some((from, address)) = self.images.pop() else { return };
        if self.heading.is_none()
            && let Some(description) = self.text.get(from..)
        {
            self.builder.figure(description, &address);
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
            Flavor::Docusaurus | Flavor::Plain => explicit_id(&written),
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

    /// Ends the current block.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        let kind = if self.quotes > 0 { BlockKind::Admonition } else { BlockKind::Text };
        let text: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
        let text = text.join("\n");
        // A list marker alone is dropped: the content of its item became a code block.
        if !matches!(text.trim(), "-" | "") {
            self.builder.block(kind, if self.lists.is_empty() { text.trim() } else { &text });
        }
    }

    pub(super) fn finish(mut self) -> Parsed {
        self.flush();
        Parsed { title: self.title, sections: self.builder.finish(), warnings: self.warnings }
    }
}

/// The label that the page shows for `[!NOTE]` at the start of a quote.
fn note_label(kind: BlockQuoteKind) -> &'static str {
    match kind {
        BlockQuoteKind::Note => "Note:",
        BlockQuoteKind::Tip => "Tip:",
        BlockQuoteKind::Important => "Important:",
        BlockQuoteKind::Warning => "Warning:",
        BlockQuoteKind::Caution => "Caution:",
    }
}

/// Whether a link whose reference the page does not define names an object of an API, as mkdocstrings
/// resolves it: ``[`Decimal`][decimal.Decimal]``. Other brackets, such as `a[0][1]`, are text.
fn names_an_object(link: &BrokenLink<'_>, source: &str, flavor: Flavor) -> bool {
    let name = link.reference.trim_matches('`');
    if !matches!(link.link_type, LinkType::Reference | LinkType::Collapsed)
        || !name.contains(char::is_alphabetic)
    {
        return false;
    }
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let is_path = name.contains('.') && name.split('.').all(is_part);
    let is_code = source.get(link.span.clone()).is_some_and(|written| written.starts_with("[`"));
    flavor == Flavor::MkDocs || is_path || is_code
}

/// Replaces the character references of raw HTML: `&lt;` becomes `<`.
fn with_characters(text: &str) -> String {
    /// The longest one that is replaced.
    const LONGEST: usize = 10;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest[..rest.floor_char_boundary(LONGEST)].find(';');
        match end.and_then(|end| Some((character(&rest[1..end])?, end))) {
            Some((character, end)) => {
                out.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The character with this name or number in HTML.
fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        return code.ok().and_then(char::from_u32).filter(|c| !c.is_control());
    }
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" | "ensp" | "emsp" | "thinsp" => ' ',
        "mdash" => '—',
        "ndash" => '–',
        "hellip" => '…',
        "rarr" => '→',
        "larr" => '←',
        "times" => '×',
        "deg" => '°',
        "plusmn" => '±',
        "micro" => 'µ',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        _ => return None,
    })
}

/// The caption and the address of the image in `<figure>…<figcaption>…`.
fn html_figure(html: &str) -> Option<(String, String)> {
    let (_, image) = html.split_once("<img")?;
    let (_, address) = image.split_once('>')?.0.split_once("src=")?;
    let quote = address.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let address = address[1..].split_once(quote)?.0;
    let (_, caption) = html.split_once("<figcaption")?.1.split_once('>')?;
    let caption = with_characters(&mdx::strip_tags(caption.split_once("</figcaption")?.0));
    Some((caption, address.to_owned()))
}

/// The text of a heading, as displayed and used for its anchor: without backticks.
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
        Some((at, id))
            if !trimmed[..at].trim().is_empty() && !id.is_empty() && !id.contains(char::is_whitespace) =>
        {
            (trimmed[..at].trim_end(), Some(id.to_owned()))
        }
        _ => (heading, None),
    }
}

/// The opening fence with the language, after the block's title, which the page shows above it.
fn opening_fence(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else { return "```\n".to_owned() };
    // `{ .yaml .annotate }` and `{python}` start with the language too.
    let named = info.trim_start().trim_start_matches(['{', ' ', '.']);
    let language = named.split([' ', ',', '{', '}']).next().unwrap_or_default();
    let title = info.split_once("title=\"").and_then(|(_, rest)| rest.split_once('"'));
    match title {
        Some((title, _)) => format!("```{language} title=\"{title}\"\n"),
        None => format!("```{language}\n"),
    }
}

/// Closes the fence and drops the lines that site generators hide.
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
mod tests;
