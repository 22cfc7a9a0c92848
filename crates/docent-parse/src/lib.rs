//! Parses pages of books and documentation sites into sections, with the anchors of the published page.
//!
//! Markdown in the dialects of Docusaurus (MDX), mdBook, MkDocs, VitePress and MyST, HTML, reStructuredText,
//! AsciiDoc, Jupyter notebooks, EPUB, PDF and plain text. Headings get the ids that the site generator gives them, so a
//! link to a section works on the published site.
//!
//! ```
//! use docent_parse::layout::{Base, Layout, Site};
//! use docent_parse::parse_page;
//!
//! let site = Site::new(Layout::Docusaurus, Base::Published("https://example.org/docs".to_owned()));
//! let source = b"# Install\n\nRun it.\n\n## On Windows {#win}\n\n- Open a *terminal*.\n";
//! let (page, warnings) = parse_page("guide/install.md", source, &site, &mut |_| None);
//!
//! let page = page.expect("a page with text");
//! assert_eq!(page.url, "https://example.org/docs/guide/install");
//! assert_eq!(page.title, "Install");
//! let heading = page.sections[1].heading.as_ref().expect("a heading");
//! assert_eq!((heading.text.as_str(), heading.anchor.as_deref()), ("On Windows", Some("win")));
//! assert_eq!(page.sections[1].blocks[0].text, "- Open a terminal.");
//! assert!(warnings.is_empty());
//! ```
//!
//! [`parse_page`] takes the path, because the format, the address and the title may depend on it. [`parse`] takes text
//! of a known format. Files that a page includes are loaded by the caller.
//!
//! Formats can be left out: every format except Markdown and plain text is a feature.
//!
//! Invariant: parsing does no I/O and never fails; it returns what it understood and a list of warnings.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]
// Some shared code is only used by formats that can be left out.
#![cfg_attr(
    not(all(
        feature = "asciidoc",
        feature = "epub",
        feature = "html",
        feature = "notebook",
        feature = "pdf",
        feature = "rst"
    )),
    allow(dead_code)
)]

pub mod document;
pub mod layout;
pub mod markdown;
pub mod mdx;
pub mod mdbook;
pub mod mkdocs;
pub mod vitepress;
#[cfg(feature = "html")]
pub mod html;
#[cfg(feature = "rst")]
pub mod rst;
#[cfg(feature = "asciidoc")]
pub mod asciidoc;
#[cfg(feature = "notebook")]
pub mod notebook;
#[cfg(feature = "epub")]
pub mod epub;
#[cfg(feature = "pdf")]
pub mod pdf;
pub mod text;
pub mod links;
pub mod front_matter;
pub mod anchors;
pub mod references;
pub mod path;
mod titles;
mod admonition;
mod attributes;
mod d2l;
mod hugo;
mod learn;
mod fence;
mod include;
pub mod maths;
mod myst;
mod blocks;
mod table;

use std::collections::HashSet;

use crate::document::{Document, Parsed, Section, Warning};
use crate::layout::{Layout, Site};
use front_matter::FrontMatter;
use markdown::Flavor;
use references::References;

/// The warning for a page without text.
pub const NO_TEXT: &str = "no text found in the page";

/// A format that Docent can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// `.md`, `.mdx`, `.markdown`
    Markdown,
    /// `.html`, `.htm`
    #[cfg(feature = "html")]
    Html,
    /// `.rst`
    #[cfg(feature = "rst")]
    Rst,
    /// `.adoc`, `.asciidoc`, `.asc`
    #[cfg(feature = "asciidoc")]
    AsciiDoc,
    /// `.ipynb`
    #[cfg(feature = "notebook")]
    Notebook,
    /// `.pdf`
    #[cfg(feature = "pdf")]
    Pdf,
    /// `.txt`
    Text,
}

impl Format {
    /// Anchors of a PDF are its pages; in all other formats they are ids.
    fn has_unique_anchors(self) -> bool {
        #[cfg(feature = "pdf")]
        return self != Self::Pdf;
        #[cfg(not(feature = "pdf"))]
        true
    }

    /// The format according to the file name; none if Docent, or this build, cannot read it.
    pub fn of(path: &str) -> Option<Self> {
        let extension = path.rsplit('/').next()?.rsplit_once('.')?.1.to_lowercase();
        match extension.as_str() {
            "md" | "mdx" | "markdown" => Some(Self::Markdown),
            #[cfg(feature = "html")]
            "html" | "htm" | "xhtml" => Some(Self::Html),
            #[cfg(feature = "rst")]
            "rst" => Some(Self::Rst),
            #[cfg(feature = "asciidoc")]
            "adoc" | "asciidoc" | "asc" => Some(Self::AsciiDoc),
            #[cfg(feature = "notebook")]
            "ipynb" => Some(Self::Notebook),
            #[cfg(feature = "pdf")]
            "pdf" => Some(Self::Pdf),
            "txt" | "text" => Some(Self::Text),
            _ => None,
        }
    }
}

/// Returns the text of a file, given its path relative to the page being parsed.
pub type Load<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

/// Parses the file at `path` of a site. If there is no document, a warning says why.
pub fn parse_page(path: &str, bytes: &[u8], site: &Site, load: Load<'_>) -> (Option<Document>, Vec<Warning>) {
    let warn = |message: &str| vec![Warning::new(path, message)];
    let Some(format) = Format::of(path) else { return (None, warn("unsupported format")) };
    #[cfg(feature = "pdf")]
    if format == Format::Pdf {
        return pdf_page(path, pdf::parse_pdf(bytes), site);
    }
    if bytes.contains(&0) {
        return (None, warn("not a text file"));
    }
    let source = String::from_utf8_lossy(bytes);
    let mut warnings = Vec::new();
    if matches!(source, std::borrow::Cow::Owned(_)) {
        warnings.push(Warning::new(path, "not valid UTF-8; invalid bytes were removed"));
    }
    let source = source.replace('\u{fffd}', "").replace("\r\n", "\n");
    #[cfg(feature = "rst")]
    let format = match format {
        // Some books written for Sphinx use this extension.
        Format::Text if site.layout == Layout::Sphinx && rst::is_rst(&source) => Format::Rst,
        format => format,
    };
    let references = References::new(path, &site.titles);
    let (front, parsed) = parse_among(format, &source, flavor(path, site.layout), references, load);
    warnings.extend(parsed.warnings.iter().map(|message| Warning::new(path, message)));
    if front.draft == Some(true) {
        return (None, warn("draft; not indexed"));
    }
    if !parsed.sections.iter().any(|section| !section.blocks.is_empty()) && warnings.is_empty() {
        warnings.push(Warning::new(path, NO_TEXT));
    }
    (Some(document(path, site, front, parsed)), warnings)
}

/// Builds the page of a PDF that was already parsed with [`pdf::parse_pdf`].
#[cfg(feature = "pdf")]
pub fn pdf_page(path: &str, parsed: Parsed, site: &Site) -> (Option<Document>, Vec<Warning>) {
    let warnings = parsed.warnings.iter().map(|message| Warning::new(path, message)).collect();
    let is_empty = parsed.sections.is_empty();
    let document = document(path, site, FrontMatter::default(), parsed);
    (Some(document).filter(|_| !is_empty), warnings)
}

fn document(path: &str, site: &Site, front: FrontMatter, parsed: Parsed) -> Document {
    Document::new(path, site.url(path, &front), title(path, site, &front, &parsed))
        .with_module(site.module(path, &front))
        .with_sections(parsed.sections)
}

/// Parses text of a known format that is not part of a book.
pub fn parse(format: Format, source: &str, flavor: Flavor, load: Load<'_>) -> (FrontMatter, Parsed) {
    parse_among(format, source, flavor, References::default(), load)
}

/// Parses a page of a book; `references` resolves the names of its other pages.
fn parse_among(
    format: Format,
    source: &str,
    flavor: Flavor,
    references: References<'_>,
    load: Load<'_>,
) -> (FrontMatter, Parsed) {
    let plain = |parsed: Parsed| (FrontMatter::default(), parsed);
    let (front, mut parsed) = match format {
        Format::Markdown => markdown::parse_markdown_among(source, flavor, references, load),
        #[cfg(feature = "html")]
        Format::Html => plain(html::parse_html(source)),
        #[cfg(feature = "rst")]
        Format::Rst => plain(rst::parse_rst(source, references, load)),
        #[cfg(feature = "asciidoc")]
        Format::AsciiDoc => plain(asciidoc::parse_asciidoc(source, references, load)),
        #[cfg(feature = "notebook")]
        Format::Notebook => notebook::parse_notebook(source),
        // PDFs are binary and handled by `parse_page`.
        #[cfg(feature = "pdf")]
        Format::Pdf => plain(pdf::parse_pdf(source.as_bytes())),
        Format::Text => plain(text::parse_text(source)),
    };
    if format.has_unique_anchors() {
        keep_first_anchors(&mut parsed.sections);
    }
    (front, parsed)
}

/// If an id occurs twice on a page, links lead to the first heading, so the second one gets no anchor.
fn keep_first_anchors(sections: &mut [Section]) {
    let mut seen = HashSet::new();
    for heading in sections.iter_mut().filter_map(|section| section.heading.as_mut()) {
        heading.anchor = heading.anchor.take().filter(|anchor| !anchor.is_empty());
        if let Some(anchor) = &heading.anchor
            && !seen.insert(anchor.clone())
        {
            heading.anchor = None;
        }
    }
}

fn flavor(path: &str, layout: Layout) -> Flavor {
    match layout {
        Layout::MdBook => Flavor::MdBook,
        Layout::Docusaurus => Flavor::Docusaurus,
        Layout::MkDocs { .. } => Flavor::MkDocs,
        Layout::VitePress { .. } => Flavor::VitePress,
        _ if path.ends_with(".mdx") => Flavor::Docusaurus,
        Layout::Sphinx | Layout::Asciidoctor | Layout::Plain => Flavor::Plain,
    }
}

fn title(path: &str, site: &Site, front: &FrontMatter, parsed: &Parsed) -> String {
    let named = site.chapters.get(path).map(|chapter| chapter.title.clone());
    let found = named
        .or_else(|| front.title.clone())
        .or_else(|| parsed.title.clone())
        .or_else(|| front.sidebar_label.clone());
    match found.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty()) {
        Some(title) => title,
        None => title_from_path(path),
    }
}

/// `02-hello_world.md` → `Hello world`; an index file is named after its folder.
pub fn title_from_path(path: &str) -> String {
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or(path);
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    let name = match stem.to_lowercase().as_str() {
        "index" | "readme" => parts.next().unwrap_or(stem),
        _ => stem,
    };
    let words = crate::layout::without_number(name).replace(['-', '_'], " ");
    let mut letters = words.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// Renders a page for tests: one line per heading (`##` for its level, `#id` for its anchor), one entry per
/// block.
#[cfg(test)]
fn shown(parsed: &Parsed) -> String {
    let mut out = String::new();
    for section in &parsed.sections {
        if let Some(heading) = &section.heading {
            let anchor = heading.anchor.as_ref().map_or(String::new(), |anchor| format!(" #{anchor}"));
            out.push_str(&format!("{} {}{anchor}\n", "#".repeat(heading.level.into()), heading.text));
        }
        for block in &section.blocks {
            out.push_str(&format!("[{:?}] {}\n", block.kind, block.text));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Base;

    fn page(path: &str, bytes: &[u8]) -> (Option<Document>, Vec<String>) {
        let site = Site::new(Layout::Docusaurus, Base::Published("https://x.org".into()));
        let (document, warnings) = parse_page(path, bytes, &site, &mut |_| None);
        (document, warnings.into_iter().map(|warning| warning.message).collect())
    }

    #[test]
    fn titles_come_from_the_front_matter_then_the_heading_then_the_file_name() {
        let title = |source: &str| page("01-a/02-hello_world.md", source.as_bytes()).0.unwrap().title;
        assert_eq!(title("---\ntitle: Front\n---\n# Heading\nx"), "Front");
        assert_eq!(title("# Heading\nx"), "Heading");
        assert_eq!(title("x"), "Hello world");
    }

    #[test]
    fn files_that_are_not_pages_give_a_warning() {
        assert_eq!(page("a.md", b"x\0y"), (None, vec!["not a text file".to_owned()]));
        assert_eq!(page("a.md", b"---\ndraft: true\n---\nx").1, ["draft; not indexed"]);
        assert_eq!(page("a.md", b"").1, ["no text found in the page"]);
    }

    #[test]
    #[cfg(feature = "rst")]
    fn text_files_of_a_sphinx_book_are_parsed_if_they_contain_its_markup() {
        let site = Site::new(Layout::Sphinx, Base::Published("https://x.org".into()));
        let parsed = |source: &str| {
            let (page, _) = parse_page("ref/a.txt", source.as_bytes(), &site, &mut |_| None);
            let page = page.unwrap();
            let blocks = page.sections.iter().flat_map(|section| &section.blocks);
            (
                page.title.clone(),
                blocks.map(|block| block.text.clone()).collect::<Vec<_>>().join("\n"),
                page.url,
            )
        };
        let url = "https://x.org/ref/a.html".to_owned();
        assert_eq!(
            parsed("=====\nTitle\n=====\n\n.. note::\n\n    See :class:`~a.B`.\n"),
            ("Title".to_owned(), "Note: See `B`.".to_owned(), url.clone()),
        );
        assert_eq!(parsed("Plain *text*.\n"), ("A".to_owned(), "Plain *text*.".to_owned(), url));
    }

    #[test]
    fn only_invalid_bytes_are_removed() {
        let (document, warnings) = page("a.md", b"good \xff text");
        assert_eq!(document.unwrap().sections[0].blocks[0].text, "good  text");
        assert_eq!(warnings, ["not valid UTF-8; invalid bytes were removed"]);
    }
}
