//! References without their own text show the title of the section or page they point to.
//!
//! Invariant: titles are looked up, never made up. If there is none, a reference shows what was written.

use std::collections::HashMap;

use crate::path::resolve;

/// The titles of the pages of a book and of the labels on them.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Titles {
    /// Keyed by the path of the page without its extension.
    pages: HashMap<String, String>,
    /// Keyed by label; the label of an AsciiDoc section is `page#id`.
    labels: HashMap<String, String>,
}

impl Titles {
    /// Adds the titles of a page, given without its extension.
    pub(super) fn insert(&mut self, page: &str, named: Named) {
        if let Some(title) = named.title {
            self.pages.insert(page.to_owned(), title);
        }
        for (label, title) in named.labels {
            // If two pages define the same label, the first one wins.
            self.labels.entry(normalized(&label)).or_insert(title);
        }
    }
}

/// The title and the labels of a file.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) title: Option<String>,
    /// Labels with the titles they belong to.
    pub(super) labels: Vec<(String, String)>,
}

/// The titles as seen from one page, whose own labels take precedence.
#[derive(Debug, Default)]
pub struct References<'a> {
    page: &'a str,
    own: Titles,
    book: Option<&'a Titles>,
}

impl<'a> References<'a> {
    /// Creates the references of the file at `page`.
    pub fn new(page: &'a str, book: &'a Titles) -> Self {
        Self { page, own: Titles::default(), book: Some(book) }
    }

    /// Adds the titles and labels of the page itself.
    pub(super) fn know_own(&mut self, named: Named) {
        let named = named.labels.into_iter().map(|(label, title)| (normalized(&label), title));
        self.own.labels.extend(named);
    }

    /// The title that a label belongs to.
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        let name = normalized(name);
        let found = self.own.labels.get(&name).or_else(|| self.book?.labels.get(&name));
        found.map(String::as_str)
    }

    /// The title of a page, given relative to this one or, with a leading slash, relative to the root.
    pub(super) fn page(&self, name: &str) -> Option<&str> {
        self.book?.pages.get(&self.path(name)).map(String::as_str)
    }

    /// The title of a section of another page.
    pub(super) fn section(&self, page: &str, id: &str) -> Option<&str> {
        self.book?.labels.get(&normalized(&format!("{}#{id}", self.path(page)))).map(String::as_str)
    }

    fn path(&self, name: &str) -> String {
        let folder = self.page.rsplit_once('/').map_or("", |(folder, _)| folder);
        resolve(if name.starts_with('/') { "" } else { folder }, stem(name))
    }
}

/// Labels ignore case and runs of white space.
fn normalized(label: &str) -> String {
    label.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The path of a page without its extension.
pub(super) fn stem(path: &str) -> &str {
    const ENDINGS: [&str; 7] = [".rst", ".txt", ".md", ".mdx", ".markdown", ".adoc", ".asciidoc"];
    ENDINGS.iter().find_map(|ending| path.strip_suffix(ending)).unwrap_or(path)
}
