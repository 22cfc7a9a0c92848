//! The sources of the book, as `docent.toml` lists them.

use std::path::Path;

use docent_backends::index::parts::{SiteOptions, SourceRecord};
use docent_backends::source::site::is_address;
use serde::Deserialize;

use super::Book;
use crate::exit::{Exit, Failure};

/// `[[sources]]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A folder, a file or an address; a path is taken from the folder of `docent.toml`.
    pub location: String,
    /// What the book is called, to be asked for by name.
    pub name: Option<String>,
    /// Where it is published.
    pub base_url: Option<String>,
    /// The generator's rules.
    pub layout: Option<String>,
    /// Of a site, only pages that one of these patterns fits.
    #[serde(default)]
    pub include: Vec<String>,
    /// No pages that one of these fits.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// The most pages asked for.
    pub max_pages: Option<usize>,
    /// The most links from the start to a page.
    pub max_depth: Option<usize>,
    /// Whether the site may be in a private network.
    #[serde(default)]
    pub allow_private: bool,
}

impl Source {
    /// Takes a relative path from `folder`.
    pub(super) fn anchor(&mut self, folder: &Path) {
        if !is_address(&self.location) {
            let path = folder.join(&self.location);
            self.location = std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned();
        }
    }

    /// As an ingest wants it; what is not said here is said for all in `[book]`.
    pub fn record(&self, book: &Book) -> Result<SourceRecord, Failure> {
        let site = SiteOptions {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            max_pages: self.max_pages,
            max_depth: self.max_depth,
            allow_private: self.allow_private,
        };
        let site = (site != SiteOptions::default()).then_some(site);
        if site.is_some() && !is_address(&self.location) {
            return Err(self.wrong("include, exclude, max_pages, max_depth and allow_private are for sites"));
        }
        let base_url = self.base_url.clone().or_else(|| book.base_url.clone());
        if base_url.as_ref().is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
            return Err(self.wrong("base_url must start with http:// or https://"));
        }
        Ok(SourceRecord {
            name: self.name.clone(),
            location: self.location.clone(),
            base_url,
            layout: self.layout.clone().or_else(|| book.layout.clone()),
            site,
        })
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::new(Exit::NotConfigured, format!("the source {}: {what}", self.location))
    }
}

/// Names tell books apart: all sources have one, or none has.
pub(super) fn check(sources: &[Source]) -> Result<(), Failure> {
    let names: Vec<&str> = sources.iter().filter_map(|source| source.name.as_deref()).collect();
    for (number, name) in names.iter().enumerate() {
        if name.trim().is_empty() {
            return Err(Failure::new(Exit::NotConfigured, "the name of a source is empty"));
        }
        if names[..number].contains(name) {
            return Err(Failure::new(Exit::NotConfigured, format!("two sources are named `{name}`"))
                .hint("a name belongs to one book; give each source its own"));
        }
    }
    if let Some(unnamed) = sources.iter().find(|source| source.name.is_none())
        && !names.is_empty()
    {
        return Err(unnamed.wrong("it has no name, but others have").hint("name every source, or none"));
    }
    for source in sources {
        source.record(&Book::default())?;
        if source.location.trim().is_empty() {
            return Err(Failure::new(Exit::NotConfigured, "the location of a source is empty"));
        }
    }
    Ok(())
}
