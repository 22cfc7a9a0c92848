//! The sources of the book, as listed in `docent.toml`.

use std::path::Path;

use docent_backends::index::contents::{SiteOptions, SourceRecord};
use docent_backends::source::site::is_address;
use docent_core::edition::ALL;
use serde::Deserialize;

use super::Book;
use crate::exit::{Exit, Failure};

/// `[[sources]]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A folder, a file or a URL. Paths are relative to the folder of `docent.toml`.
    pub location: String,
    /// The name of the book, to select it in a question.
    pub name: Option<String>,
    /// The URL at which it is published.
    pub base_url: Option<String>,
    /// The site generator.
    pub layout: Option<String>,
    /// The version of the book that it is.
    pub version: Option<String>,
    /// The locale that it is written in.
    pub locale: Option<String>,
    /// For sites: only crawl pages matching one of these globs.
    #[serde(default)]
    pub include: Vec<String>,
    /// For sites: skip pages matching one of these globs.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// For sites: the maximum number of pages to fetch.
    pub max_pages: Option<usize>,
    /// For sites: the maximum link depth from the start page.
    pub max_depth: Option<usize>,
    /// For sites: whether the site may be in a private network.
    #[serde(default)]
    pub allow_private: bool,
}

impl Source {
    /// Resolves a relative path against `folder`.
    pub(super) fn anchor(&mut self, folder: &Path) {
        if !is_address(&self.location) {
            let path = folder.join(&self.location);
            self.location = std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned();
        }
    }

    /// The source as an ingest needs it. Missing values are taken from `[book]`.
    pub fn record(&self, book: &Book) -> Result<SourceRecord, Failure> {
        let mut site = SiteOptions::default();
        site.include.clone_from(&self.include);
        site.exclude.clone_from(&self.exclude);
        site.max_pages = self.max_pages;
        site.max_depth = self.max_depth;
        site.allow_private = self.allow_private;
        let site = (site != SiteOptions::default()).then_some(site);
        if site.is_some() && !is_address(&self.location) {
            return Err(
                self.wrong("include, exclude, max_pages, max_depth and allow_private only apply to sites")
            );
        }
        let base_url = self.base_url.clone().or_else(|| book.base_url.clone());
        if base_url.as_ref().is_some_and(|url| !is_web(url)) {
            return Err(self.wrong("base_url must start with http:// or https://"));
        }
        let mut record = SourceRecord::new(&self.location);
        record.name.clone_from(&self.name);
        record.base_url = base_url;
        record.version.clone_from(&self.version);
        record.locale.clone_from(&self.locale);
        record.layout = self.layout.clone().or_else(|| book.layout.clone());
        record.site = site;
        Ok(record)
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::new(Exit::NotConfigured, format!("source {}: {what}", self.location))
    }
}

/// Whether this is an HTTP or HTTPS URL.
pub fn is_web(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

/// Checks the list. Names tell books apart, so either all sources have one or none.
pub(super) fn check(sources: &[Source]) -> Result<(), Failure> {
    let editions = |source: &Source| (source.name.clone(), source.version.clone(), source.locale.clone());
    let names: Vec<&Source> = sources.iter().filter(|source| source.name.is_some()).collect();
    for (number, source) in names.iter().enumerate() {
        let name = source.name.as_deref().unwrap_or_default();
        if name.trim().is_empty() {
            return Err(Failure::new(Exit::NotConfigured, "a source has an empty name"));
        }
        if names[..number].iter().any(|before| editions(before) == editions(source)) {
            return Err(Failure::new(Exit::NotConfigured, format!("two sources are named `{name}`"))
                .hint("give each source its own name, or its own version or locale"));
        }
    }
    if let Some(unnamed) = sources.iter().find(|source| source.name.is_none())
        && !names.is_empty()
    {
        return Err(unnamed
            .wrong("it has no name, but other sources do")
            .hint("set `name` for every source, or for none"));
    }
    for source in sources {
        source.record(&Book::default())?;
        let given = [("version", &source.version), ("locale", &source.locale)];
        for (what, name) in given.into_iter().filter_map(|(what, name)| Some((what, name.as_deref()?))) {
            if name.trim().is_empty() || name == ALL {
                return Err(source.wrong(&format!("{what} cannot be `{name}`")));
            }
        }
        if source.location.trim().is_empty() {
            return Err(Failure::new(Exit::NotConfigured, "a source has an empty location"));
        }
    }
    Ok(())
}
