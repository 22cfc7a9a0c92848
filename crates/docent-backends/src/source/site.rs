//! Crawls a published site: pages are found through its sitemap, its `llms.txt` or links.
//!
//! Invariant: a crawl never exceeds the [`Limits`], whatever the site does.

pub mod address;
mod cache;
mod charset;
mod crawl;
mod discover;
mod editions;
pub mod fetch;
mod fetch_error;
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
use self::fetch::Fetcher;
use self::fetch_error::FetchError;
use self::page::{Left, PageReader, SitePage};
use self::scope::{Scope, folder};
use super::{Read, SourceError};
use crate::index::contents::{SiteOptions, SourceRecord};
use crate::progress::Progress;
pub use limits::Limits;

/// How many pages of a site were fetched, unchanged or skipped.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct SiteReport {
    /// The start page.
    pub address: String,
    /// How its pages were found.
    pub found_by: String,
    /// Pages that the server sent.
    pub fetched: usize,
    /// Pages for which the server answered 304 Not Modified.
    pub unchanged: usize,
    /// Pages taken from the cache because the server failed.
    pub kept: usize,
    /// Pages that are not in the book, by reason.
    pub skipped: BTreeMap<String, Skipped>,
    /// Whether the site has more pages than the limits allow.
    pub more: bool,
}

/// Pages skipped for one reason.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Skipped {
    /// How many.
    pub count: usize,
    /// Examples of their addresses.
    pub examples: Vec<String>,
}

/// Whether a source is an address rather than a path.
pub fn is_address(location: &str) -> bool {
    location.contains("://")
}

/// Reads a site. Pages are cached below `folder` for the next ingest.
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
    // Reject invalid patterns before the first request.
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

/// Removes the caches of sites that are no longer sources.
pub fn forget_others(folder: &Path, sources: &[SourceRecord]) -> std::io::Result<()> {
    cache::forget_others(folder, sources.iter().map(|source| source.location.as_str()))
}

/// The start page, if there is one, and the scope of the site.
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
    // If the start page redirects, the site begins at the target; but within the given folder, the folder
    // stays.
    let mut typed = folder(start);
    if typed.host_str() == page.url.host_str() && typed.port() == page.url.port() {
        // Follow a redirect from http to https on the same host.
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
