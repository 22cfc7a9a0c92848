//! EPUB books: one document per page of the spine, in spine order, with titles from the table of contents.
//!
//! Invariant: no more data is unpacked than the limits here allow, and every page of the spine becomes a
//! document or is named in a warning.

use std::collections::{HashMap, HashSet};
use std::io::{Cursor, Read as _};

use roxmltree::{Document as Xml, Node, ParsingOptions};
use zip::ZipArchive;

use super::front_matter::FrontMatter;
use super::html::parse_html;
use super::{NO_TEXT, title_from_path};
use crate::document::{Document, Warning};
use crate::layout::{Site, encode_path};
use crate::path::resolve;

/// Maximum unpacked size of one file.
const LARGEST_FILE: u64 = 32 << 20;

/// Maximum unpacked size of all files of a book.
const MOST_BYTES: u64 = 256 << 20;

/// Maximum number of pages of a book.
const MOST_PAGES: usize = 10_000;

/// Whether a file name has the EPUB extension.
pub fn is_epub(name: &str) -> bool {
    name.to_lowercase().ends_with(".epub")
}

/// The contents of an EPUB.
#[derive(Debug, Default)]
pub struct Epub {
    /// The title in its metadata.
    pub title: Option<String>,
    /// The pages in reading order.
    pub pages: Vec<Document>,
    /// Pages that were skipped, and why.
    pub warnings: Vec<Warning>,
}

/// Parses the EPUB at `path` of a site.
pub fn parse_epub(path: &str, bytes: &[u8], site: &Site) -> Epub {
    let mut epub = Epub::default();
    if let Err(reason) = read(path, bytes, site, &mut epub) {
        epub.warnings.push(Warning::new(path, reason));
    }
    epub
}

fn read(path: &str, bytes: &[u8], site: &Site, epub: &mut Epub) -> Result<(), String> {
    let mut files = Files::open(bytes)?;
    let package_path = package_path(&mut files)?;
    let text =
        files.text(&package_path).ok_or_else(|| format!("package file {package_path} cannot be read"))?;
    let package = Package::parse(&text, &package_path)?;
    let titles = files.titles(&package);
    let encrypted = files.encrypted();
    let address = site.url(path, &FrontMatter::default());
    let module =
        path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or(path, |(stem, _)| stem);
    for item in package.spine.iter().take(MOST_PAGES) {
        let id = format!("{path}/{item}");
        let mut warn = |reason: &str| epub.warnings.push(Warning::new(&id, reason));
        if Some(item) == package.nav.as_ref() {
            warn("table of contents; used for titles, not indexed as a page");
            continue;
        }
        if encrypted.contains(item) {
            warn("encrypted (DRM); skipped");
            continue;
        }
        let Some(source) = files.text(item) else {
            warn("listed in the spine but missing or unreadable");
            continue;
        };
        let parsed = parse_html(&expanded(&source));
        if parsed.sections.iter().all(|section| section.blocks.is_empty()) {
            warn(NO_TEXT);
            continue;
        }
        let title = titles.get(item).cloned().or(parsed.title).filter(|title| !title.trim().is_empty());
        epub.pages.push(Document {
            url: format!("{address}/{}", encode_path(item)),
            title: title.unwrap_or_else(|| title_from_path(item)),
            module: module.to_owned(),
            sections: parsed.sections,
            ..Document::new(id, "", "")
        });
    }
    if package.spine.len() > MOST_PAGES {
        epub.warnings.push(Warning::new(path, format!("only the first {MOST_PAGES} pages were read")));
    }
    if package.spine.is_empty() {
        return Err("the spine lists no pages".to_owned());
    }
    epub.title = package.title;
    Ok(())
}

/// The path of the package file, which `container.xml` names.
fn package_path(files: &mut Files<'_>) -> Result<String, String> {
    let container =
        files.text("META-INF/container.xml").ok_or("not an EPUB: it has no META-INF/container.xml")?;
    let container = xml(&container).map_err(|error| format!("not an EPUB: container.xml: {error}"))?;
    let file = container.descendants().find(|node| is(node, "rootfile"));
    let named = file.and_then(|node| node.attribute("full-path").map(str::to_owned));
    named.ok_or_else(|| "not an EPUB: container.xml does not name a package file".to_owned())
}

/// The files of the book, unpacked on demand.
struct Files<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    left: u64,
}

impl<'a> Files<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, String> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| format!("not an EPUB: {error}"))?;
        Ok(Self { archive, left: MOST_BYTES })
    }

    /// Returns a file as text, or nothing if it is missing, damaged or too large.
    fn text(&mut self, name: &str) -> Option<String> {
        let entry = self.archive.by_name(name).ok()?;
        let limit = LARGEST_FILE.min(self.left);
        let mut bytes = Vec::new();
        entry.take(limit + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > limit {
            return None;
        }
        self.left -= bytes.len() as u64;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }

    /// The titles of pages according to the table of contents of EPUB 3 or EPUB 2.
    fn titles(&mut self, package: &Package) -> HashMap<String, String> {
        let mut titles = HashMap::new();
        for contents in [&package.nav, &package.ncx].into_iter().flatten() {
            let Some(text) = self.text(contents) else { continue };
            let Ok(document) = xml(&text) else { continue };
            for (target, title) in entries(&document) {
                let page = joined(contents, target.split('#').next().unwrap_or_default());
                let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
                if !title.is_empty() {
                    titles.entry(page).or_insert(title);
                }
            }
        }
        titles
    }

    fn encrypted(&mut self) -> HashSet<String> {
        let Some(text) = self.text("META-INF/encryption.xml") else { return HashSet::new() };
        let Ok(document) = xml(&text) else { return HashSet::new() };
        let references = document.descendants().filter(|node| is(node, "CipherReference"));
        references.filter_map(|node| node.attribute("URI").map(str::to_owned)).collect()
    }
}

/// The entries of a table of contents: link target and title.
fn entries<'a>(document: &'a Xml<'_>) -> Vec<(&'a str, String)> {
    let mut entries = Vec::new();
    for node in document.descendants() {
        if is(&node, "navPoint") {
            let child = |name: &str| node.children().find(|child| is(child, name));
            let target = child("content").and_then(|content| content.attribute("src"));
            entries.extend(target.zip(child("navLabel").map(words)));
        } else if is(&node, "a")
            && let Some(target) = node.attribute("href")
            && node.ancestors().any(|above| is(&above, "nav") && is_contents(&above))
        {
            entries.push((target, words(node)));
        }
    }
    entries
}

fn is_contents(nav: &Node<'_, '_>) -> bool {
    nav.attributes()
        .find(|attribute| attribute.name() == "type")
        .is_none_or(|kind| kind.value().contains("toc"))
}

fn words(node: Node<'_, '_>) -> String {
    node.descendants().filter_map(|node| if node.is_text() { node.text() } else { None }).collect()
}

fn is(node: &Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

fn xml(text: &str) -> Result<Xml<'_>, roxmltree::Error> {
    Xml::parse_with_options(
        text,
        ParsingOptions { allow_dtd: true, nodes_limit: 1_000_000, ..ParsingOptions::default() },
    )
}

/// The package file: the book's title, its pages, and where its table of contents is.
#[derive(Debug, Default)]
struct Package {
    title: Option<String>,
    spine: Vec<String>,
    nav: Option<String>,
    ncx: Option<String>,
}

impl Package {
    fn parse(text: &str, path: &str) -> Result<Self, String> {
        let document = xml(text).map_err(|error| format!("package file {path} is not valid: {error}"))?;
        let mut package = Self::default();
        let mut items = HashMap::new();
        for node in document.descendants() {
            if is(&node, "title") && package.title.is_none() {
                package.title = Some(words(node).trim().to_owned()).filter(|title| !title.is_empty());
            } else if is(&node, "item")
                && let (Some(id), Some(target)) = (node.attribute("id"), node.attribute("href"))
            {
                let file = joined(path, target);
                let kind = node.attribute("media-type").unwrap_or_default();
                if node.attribute("properties").is_some_and(|own| own.split(' ').any(|own| own == "nav")) {
                    package.nav = Some(file.clone());
                }
                if kind == "application/x-dtbncx+xml" {
                    package.ncx = Some(file.clone());
                }
                items.insert(id.to_owned(), file);
            }
        }
        let references = document.descendants().filter(|node| is(node, "itemref"));
        let mut seen = HashSet::new();
        for file in references.filter_map(|node| items.get(node.attribute("idref")?)) {
            if seen.insert(file) {
                package.spine.push(file.clone());
            }
        }
        Ok(package)
    }
}

/// Resolves a name inside `file` to a path in the archive.
fn joined(file: &str, name: &str) -> String {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    resolve(folder, &percent_decoded(name))
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Closes empty XHTML elements explicitly: in HTML, `<a id="x"/>` would never be closed.
fn expanded(source: &str) -> String {
    const VOID: [&str; 14] = [
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
        "track", "wbr",
    ];
    let mut out = String::with_capacity(source.len() + 64);
    let mut rest = source;
    while let Some(end) = rest.find("/>") {
        let (before, after) = (&rest[..end], &rest[end + 2..]);
        let tag = before.rfind('<').map(|at| &before[at + 1..]).filter(|tag| !tag.contains('>'));
        let name = tag.map(|tag| &tag[..tag.find(|c: char| c.is_whitespace()).unwrap_or(tag.len())]);
        let is_name = |name: &&str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '-'))
        };
        out.push_str(before);
        match name.filter(is_name) {
            Some(name) if !VOID.contains(&name.to_lowercase().as_str()) => {
                out.push_str(&format!("></{name}>"))
            }
            _ => out.push_str("/>"),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests;
