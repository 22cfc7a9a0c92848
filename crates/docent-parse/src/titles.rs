//! Collects the titles and labels of the files of a book, before its pages are parsed.
//!
//! Invariant: a file has the labels that its own parser finds in it.

use super::Format;
use super::references::{Titles, stem};

impl Titles {
    /// Adds the titles of the file at `path`.
    pub fn add(&mut self, path: &str, source: &str) {
        let page = stem(path);
        let named = match Format::of(path) {
            #[cfg(feature = "rst")]
            Some(Format::Rst) => super::rst::named(source),
            #[cfg(feature = "rst")]
            Some(Format::Text) if super::rst::is_rst(source) => super::rst::named(source),
            #[cfg(feature = "asciidoc")]
            Some(Format::AsciiDoc) => {
                let mut named = super::asciidoc::named(source);
                named.labels.iter_mut().for_each(|(id, _)| *id = format!("{page}#{id}"));
                named
            }
            Some(Format::Markdown) => super::markdown::named(source),
            _ => return,
        };
        self.insert(page, named);
    }
}
