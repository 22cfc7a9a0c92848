//! A site as its readers have it: pages found by sitemap, by `llms.txt` or by links.
//!
//! Invariant: whatever a site does, it costs no more than [`Limits`] allow.

pub mod address;
mod cache;
mod charset;
mod crawl;
mod discover;
pub mod fetch;
mod host;
mod limits;
mod llms;
mod modules;
mod page;
mod scope;
mod sitemap;

use std::collections::BTreeMap;
use std::path::Path;

use reqwest::Url;
use serde::Serialize;

use self::address::Reach;
use self::cache::Cache;
use self::crawl::Crawl;
use self::discover::Discovery;
use self::fetch::{FetchError, Fetcher};
use self::page::{Left, PageReader, SitePage};
use self::scope::{Scope, folder};
use super::{Read, SourceError};
use crate::index::parts::{SiteOptions, SourceRecord};
use crate::ingest::Progress;
pub use limits::Limits;

/// What happened to a site's pages.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SiteReport {
    /// Where the site begins.
    pub address: String,
    /// How its pages were found.
    pub found_by: String,
    /// Pages the server sent.
    pub fetched: usize,
    /// Pages the server said are as they were (304).
    pub unchanged: usize,
    /// Pages as they were because the server failed.
    pub kept: usize,
    /// Pages that are not in the book, by reason.
    pub skipped: BTreeMap<String, Skipped>,
    /// Whether there are more pages than were allowed.
    pub more: bool,
}

/// Pages skipped for one reason.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Skipped {
    /// How many.
    pub count: usize,
    /// Some of them.
    pub examples: Vec<String>,
}

/// Whether a source is an address rather than a path.
pub fn is_address(location: &str) -> bool {
    location.contains("://")
}

/// Reads a site. Pages are kept below `folder` for the next time.
pub async fn read(
    source: &SourceRecord,
    limits: &Limits,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Read, SourceError> {
    let start = Url::parse(&source.location).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(start) = start else { return Err(SourceError::Address(source.location.clone())) };
    if !start.username().is_empty() || start.password().is_some() {
        return Err(SourceError::Address(start.host_str().unwrap_or_default().to_owned()));
    }
    let options = source.site.clone().unwrap_or_default();
    let mut limits = limits.clone();
    limits.pages = options.max_pages.unwrap_or(limits.pages);
    limits.depth = options.max_depth.unwrap_or(limits.depth);
    // A pattern that makes no sense is said before anything is asked.
    Scope::new(&start, &options).map_err(SourceError::Pattern)?;
    let reach = if options.allow_private { Reach::Everything } else { Reach::Public };
    let fetcher = Fetcher::new(reach, limits.clone()).map_err(|error| of_start(&start, error))?;
    let cache = Cache::open(folder, &source.location)
        .map_err(|error| SourceError::Unreadable { path: folder.join("site-cache"), source: error })?;
    let reader = PageReader::new(fetcher, cache, limits.clone());

    let (first, scope) = begin(&reader, &start, &options).await?;
    let discovery = Discovery { reader: &reader, scope: &scope };
    let listed = match discovery.named(&start).await {
        Some(listed) => listed,
        None => discovery.all().await,
    };
    let mut crawl = Crawl::new(&reader, &scope, progress, start.as_str());
    crawl.run(&start, first, listed).await?;
    crawl.finish(source)
}

/// Removes what is kept of sites that are no longer sources.
pub fn forget_others(folder: &Path, sources: &[SourceRecord]) -> std::io::Result<()> {
    cache::forget_others(folder, sources.iter().map(|source| source.location.as_str()))
}

/// The start page, if there is one, and the site it begins.
async fn begin(
    reader: &PageReader,
    start: &Url,
    options: &SiteOptions,
) -> Result<(Option<Result<SitePage, Left>>, Scope), SourceError> {
    let scope_at = |url: &Url| Scope::new(url, options).map_err(SourceError::Pattern);
    if discover::is_sitemap(start) || llms::is_list(start) || llms::is_full(start) {
        return Ok((None, scope_at(start)?));
    }
    let first = reader.read_first(start, &scope_at(start)?).await;
    if let Err(Left::Failed(
        error @ (FetchError::Robots | FetchError::Private | FetchError::Scheme | FetchError::Trouble { .. }),
    )) = first
    {
        return Err(of_start(start, error));
    }
    let Ok(page) = &first else { return Ok((Some(first), scope_at(start)?)) };
    // A start that leads elsewhere begins the site there; inside its folder, the folder stays.
    let mut typed = folder(start);
    if typed.host_str() == page.url.host_str() && typed.port() == page.url.port() {
        // From http to https of the same host.
        let _ = typed.set_scheme(page.url.scheme());
    }
    let scope = scope_at(&typed)?;
    let scope = if scope.own(&page.url).is_some() { scope } else { scope_at(&folder(&page.url))? };
    Ok((Some(first), scope))
}

fn of_start(start: &Url, error: FetchError) -> SourceError {
    let url = start.to_string();
    match error {
        FetchError::Robots => SourceError::Forbidden(url),
        FetchError::Private => SourceError::Private(url),
        FetchError::Scheme => SourceError::Address(url),
        FetchError::Trouble { what, .. } => SourceError::Unavailable { url, what },
        other => SourceError::NoSite { url, what: other.to_string() },
    }
}
