//! Pages of the book as resources: their URIs, how they are found, and their Markdown.
//!
//! Invariant: [`find`] finds every URI that is listed here.

use std::borrow::Cow;
use std::sync::Arc;

use docent_core::chunk::Chunk;
use docent_core::index::PageOutline;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{Resource, ResourceTemplate};
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;

use crate::exit::{Failure, nearest};

/// The media type of pages.
pub const MARKDOWN: &str = "text/markdown";

/// Prefix of the URI of a page that is not published on the web.
const SCHEME: &str = "docent://page/";

/// Characters that must be encoded in one segment of a URI.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A whole page.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Page {
    /// The id of the page.
    pub document_id: String,
    /// The URL of the page.
    pub url: String,
    /// The title of the page.
    pub page_title: String,
    /// The module the page belongs to.
    pub module_name: String,
    /// The version of the book; null if it has none.
    pub version: Option<String>,
    /// The locale; null if the book has only one.
    pub locale: Option<String>,
    /// The sections of the page, in order.
    pub sections: Vec<Section>,
    /// The page as Markdown.
    pub content: String,
}

/// A section of a page.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Section {
    /// The heading; null for the text before the first heading.
    pub heading: Option<String>,
    /// Opens the page at the section.
    pub url: String,
}

impl Page {
    /// Assembles the page from its chunks.
    pub fn new(page: &PageOutline, chunks: &[Arc<Chunk>]) -> Self {
        let sections = page.sections.iter();
        Self {
            document_id: page.document_id.clone(),
            url: page.url.clone(),
            page_title: page.title.clone(),
            module_name: page.module_name.clone(),
            version: page.edition.version.clone(),
            locale: page.edition.locale.clone(),
            sections: sections
                .map(|section| Section { heading: section.heading.clone(), url: section.url.clone() })
                .collect(),
            content: markdown(&page.title, chunks),
        }
    }

    /// The page, followed by links for citing it.
    pub fn with_links(&self) -> String {
        let mut text = format!("{}\nLinks:\n- {}: {}\n", self.content, self.page_title, self.url);
        for section in self.sections.iter().filter(|section| section.url != self.url) {
            let heading = section.heading.as_deref().unwrap_or(&self.page_title);
            text.push_str(&format!("- {heading}: {}\n", section.url));
        }
        text
    }
}

/// A page as an entry in the list of resources.
pub fn resource(page: &PageOutline) -> Resource {
    let description = match page.edition.label() {
        label if label.is_empty() => page.module_name.clone(),
        label => format!("{} ({label})", page.module_name),
    };
    Resource::new(uri(page), &page.title)
        .with_title(&page.title)
        .with_description(description)
        .with_mime_type(MARKDOWN)
}

/// The template for the URI of a page.
pub fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{SCHEME}{{document_id}}"), "page")
        .with_title("A page of the book")
        .with_description("A whole page as Markdown, by the document_id of a passage")
        .with_mime_type(MARKDOWN)
}

/// The page with this id or URL. If there is none, the error names the nearest.
pub fn find<'a>(pages: &'a [PageOutline], wanted: &str) -> Result<&'a PageOutline, Failure> {
    let name: Cow<'_, str> = match wanted.trim().strip_prefix(SCHEME) {
        Some(encoded) => percent_decode_str(encoded).decode_utf8_lossy(),
        None => wanted.trim().into(),
    };
    // An id may contain a `#`, so try the whole name before removing the anchor.
    let by_id = |id: &str| pages.iter().find(|page| page.document_id == id);
    let bare = name.split('#').next().unwrap_or_default();
    let by_address = || {
        let address = address(bare);
        pages.iter().find(|page| !address.is_empty() && self::address(&page.url) == address)
    };
    let by_chapter = || pages.iter().find(|page| !bare.is_empty() && chapter(&page.document_id) == bare);
    by_id(&name).or_else(|| by_id(bare)).or_else(by_address).or_else(by_chapter).ok_or_else(|| {
        let failure = Failure::usage(format!("there is no page `{}` in this book", wanted.trim()));
        let known: Vec<&str> = if bare.contains("://") {
            pages.iter().map(|page| page.url.as_str()).collect()
        } else {
            pages.iter().map(|page| page.document_id.as_str()).collect()
        };
        match nearest(bare, known) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("use the `document_id` of a passage found by search_book"),
        }
    })
}

/// The URL of the page, or a `docent://` URI if the page is not on the web.
fn uri(page: &PageOutline) -> String {
    if page.url.starts_with("https://") || page.url.starts_with("http://") {
        return page.url.clone();
    }
    format!("{SCHEME}{}", utf8_percent_encode(&page.document_id, RESERVED))
}

/// A URL, normalized so that equivalent URLs are equal.
fn address(url: &str) -> String {
    let plain = percent_decode_str(url).decode_utf8_lossy();
    let folder = plain.strip_suffix("index.html").unwrap_or(&plain);
    folder.trim_end_matches('/').to_owned()
}

/// The id without its extension, as in `chapter_id`.
fn chapter(document_id: &str) -> &str {
    match document_id.rsplit_once('.') {
        Some((stem, extension)) if !extension.contains('/') => stem,
        _ => document_id,
    }
}

/// The title, headings and passages of a page, in order.
fn markdown(title: &str, chunks: &[Arc<Chunk>]) -> String {
    let mut text = format!("# {title}\n");
    let mut last: Option<&Chunk> = None;
    for chunk in chunks {
        if last.is_none_or(|last| last.section != chunk.section) {
            let path = &chunk.heading_hierarchy;
            let above = last.map_or(&[][..], |last| &last.heading_hierarchy);
            let shared = path.iter().zip(above).take_while(|(new, old)| new == old).count();
            // A second section of the same name still needs its own heading.
            let shared = shared.min(path.len().saturating_sub(1));
            for (depth, heading) in path.iter().enumerate().skip(shared) {
                text.push_str(&format!("\n{} {heading}\n", "#".repeat((depth + 2).min(6))));
            }
        }
        text.push_str(&format!("\n{}\n", chunk.content));
        last = Some(chunk);
    }
    text
}
