//! Bytes of a file become a page: one file per format, none of them ever fails.
//!
//! A parser returns what it understood and a list of warnings. It reads nothing: files
//! named inside a page (includes, partials) are asked of the caller.

pub mod markdown;
pub mod mdx;
pub mod mdbook;
pub mod mkdocs;
pub mod vitepress;
pub mod html;
pub mod rst;
pub mod asciidoc;
pub mod notebook;
pub mod epub;
pub mod pdf;
pub mod text;
pub mod links;
pub mod front_matter;
pub mod anchors;
mod fence;
mod include;
mod output;
mod table;

use std::collections::HashSet;

use crate::document::{Document, Parsed, Section, Warning};
use crate::layout::{Layout, Site};
use front_matter::FrontMatter;
use markdown::Flavor;

/// A format Docent reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.md`, `.mdx`, `.markdown`
    Markdown,
    /// `.html`, `.htm`
    Html,
    /// `.rst`
    Rst,
    /// `.adoc`, `.asciidoc`, `.asc`
    AsciiDoc,
    /// `.ipynb`
    Notebook,
    /// `.pdf`
    Pdf,
    /// `.txt`
    Text,
}

impl Format {
    /// The format a file's name promises.
    pub fn of(path: &str) -> Option<Self> {
        let extension = path.rsplit('/').next()?.rsplit_once('.')?.1.to_lowercase();
        match extension.as_str() {
            "md" | "mdx" | "markdown" => Some(Self::Markdown),
            "html" | "htm" | "xhtml" => Some(Self::Html),
            "rst" => Some(Self::Rst),
            "adoc" | "asciidoc" | "asc" => Some(Self::AsciiDoc),
            "ipynb" => Some(Self::Notebook),
            "pdf" => Some(Self::Pdf),
            "txt" | "text" => Some(Self::Text),
            _ => None,
        }
    }
}

/// Finds the text of a file named relative to the page being parsed.
pub type Load<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

/// Parses the file at `path` of a site. No document means there is no page in it, and a
/// warning says why.
pub fn parse_page(path: &str, bytes: &[u8], site: &Site, load: Load<'_>) -> (Option<Document>, Vec<Warning>) {
    let warn = |message: &str| vec![Warning::new(path, message)];
    let Some(format) = Format::of(path) else { return (None, warn("not a format that can be read")) };
    if format == Format::Pdf {
        let parsed = pdf::parse_pdf(bytes);
        let warnings = parsed.warnings.iter().map(|message| Warning::new(path, message)).collect();
        let is_empty = parsed.sections.is_empty();
        let document = document(path, site, FrontMatter::default(), parsed);
        return (Some(document).filter(|_| !is_empty), warnings);
    }
    if bytes.contains(&0) {
        return (None, warn("not a text file"));
    }
    let source = String::from_utf8_lossy(bytes);
    let mut warnings = Vec::new();
    if matches!(source, std::borrow::Cow::Owned(_)) {
        warnings.push(Warning::new(path, "not valid UTF-8; the unreadable bytes are left out"));
    }
    let source = source.replace('\u{fffd}', "").replace("\r\n", "\n");
    let (front, parsed) = parse(format, &source, flavor(path, site.layout), load);
    warnings.extend(parsed.warnings.iter().map(|message| Warning::new(path, message)));
    if front.draft == Some(true) {
        return (None, warn("a draft: not published, not indexed"));
    }
    if !parsed.sections.iter().any(|section| !section.blocks.is_empty()) && warnings.is_empty() {
        warnings.push(Warning::new(path, "no text found in the page"));
    }
    (Some(document(path, site, front, parsed)), warnings)
}

fn document(path: &str, site: &Site, front: FrontMatter, parsed: Parsed) -> Document {
    Document {
        id: path.to_owned(),
        url: site.url(path, &front),
        title: title(path, site, &front, &parsed),
        module: site.module(path, &front),
        sections: parsed.sections,
    }
}

/// Parses text of a known format.
pub fn parse(format: Format, source: &str, flavor: Flavor, load: Load<'_>) -> (FrontMatter, Parsed) {
    let (front, mut parsed) = match format {
        Format::Markdown => markdown::parse_markdown(source, flavor, load),
        Format::Html => (FrontMatter::default(), html::parse_html(source)),
        Format::Rst => (FrontMatter::default(), rst::parse_rst(source, load)),
        Format::AsciiDoc => (FrontMatter::default(), asciidoc::parse_asciidoc(source, load)),
        Format::Notebook => notebook::parse_notebook(source),
        // A PDF is bytes, not text: `parse_page` reads those.
        Format::Pdf => (FrontMatter::default(), pdf::parse_pdf(source.as_bytes())),
        Format::Text => (FrontMatter::default(), text::parse_text(source)),
    };
    if format != Format::Pdf {
        keep_first_anchors(&mut parsed.sections);
    }
    (front, parsed)
}

/// An id that a page gives twice leads to the first of the two; the second heading has none then.
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

/// `02-hello_world.md` → `Hello world`; an index is called by its folder.
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

/// A page for the eye: a line a heading, `##` its level and `#id` its anchor, and an entry a block.
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
        let site = Site {
            layout: Layout::Docusaurus,
            base: Base::Published("https://x.org".into()),
            root_module: "docs".into(),
            chapters: Default::default(),
        };
        let (document, warnings) = parse_page(path, bytes, &site, &mut |_| None);
        (document, warnings.into_iter().map(|warning| warning.message).collect())
    }

    #[test]
    fn titles_come_from_front_matter_then_the_heading_then_the_file() {
        let title = |source: &str| page("01-a/02-hello_world.md", source.as_bytes()).0.unwrap().title;
        assert_eq!(title("---\ntitle: Front\n---\n# Heading\nx"), "Front");
        assert_eq!(title("# Heading\nx"), "Heading");
        assert_eq!(title("x"), "Hello world");
    }

    #[test]
    fn what_is_no_page_says_why() {
        assert_eq!(page("a.md", b"x\0y"), (None, vec!["not a text file".to_owned()]));
        assert_eq!(page("a.md", b"---\ndraft: true\n---\nx").1, ["a draft: not published, not indexed"]);
        assert_eq!(page("a.md", b"").1, ["no text found in the page"]);
    }

    #[test]
    fn broken_bytes_cost_only_themselves() {
        let (document, warnings) = page("a.md", b"good \xff text");
        assert_eq!(document.unwrap().sections[0].blocks[0].text, "good  text");
        assert_eq!(warnings, ["not valid UTF-8; the unreadable bytes are left out"]);
    }
}
