//! One page of a site: fetched or taken from the cache, decoded, parsed.
//!
//! Invariant: an unchanged page costs one conditional request without a body. If the server fails, the cached
//! version of a page is used.

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use docent_parse::document::{Parsed, Section};
use docent_parse::front_matter::FrontMatter;
use docent_parse::html::{Head, directives, parse_site_page};
use docent_parse::links::links;
use docent_parse::markdown::Flavor;
use docent_parse::{Format, NO_TEXT, parse};
use reqwest::Url;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::cache::{Cache, Stored};
use super::fetch::{Fetcher, Wanted, kind};
use super::fetch_error::FetchError;
use super::host::AGENT;
use super::limits::Limits;
use super::scope::Scope;
use super::{charset, llms};

/// A page to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its published address.
    pub url: Url,
    /// The address of its Markdown, if the site names one.
    pub markdown: Option<Url>,
    /// When it last changed according to the sitemap, in the HTTP format.
    pub changed: Option<String>,
}

/// Where a page came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The server sent it.
    Fetched,
    /// The cache, because the server answered 304 Not Modified.
    Unchanged,
    /// The cache, because the server failed.
    Kept,
}

/// A page that was read.
#[derive(Debug)]
pub struct SitePage {
    /// Its address, after redirects.
    pub url: Url,
    /// Where it came from.
    pub how: How,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Its module, if it names one.
    pub module: Option<String>,
    /// Its text.
    pub sections: Vec<Section>,
    /// Content that was skipped or not understood.
    pub warnings: Vec<String>,
    /// Its metadata: links, canonical address, robots directives.
    pub head: Head,
}

/// Why a page was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// It could not be fetched.
    Failed(FetchError),
    /// The size limit of the site was reached.
    TotalSize,
    /// The time limit of the site was reached.
    TotalTime,
}

/// Reads pages of one site.
#[derive(Debug)]
pub struct PageReader {
    /// Fetches pages.
    pub fetcher: Fetcher,
    /// Stores pages for the next ingest.
    pub cache: Cache,
    /// The limits of the crawl.
    pub limits: Limits,
    /// The end of the time limit.
    pub deadline: Instant,
    bytes: AtomicUsize,
    touched: Mutex<HashSet<String>>,
    parsing: Semaphore,
}

/// The bytes of a page with the relevant headers.
struct Raw {
    url: Url,
    body: Vec<u8>,
    content_type: String,
    robots_tag: String,
    how: How,
}

impl PageReader {
    /// The time limit starts now.
    pub fn new(fetcher: Fetcher, cache: Cache, limits: Limits) -> Self {
        let deadline = Instant::now() + limits.total_time;
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            fetcher,
            cache,
            limits,
            deadline,
            bytes: AtomicUsize::new(0),
            touched: Mutex::default(),
            parsing: Semaphore::new(cores),
        }
    }

    /// Reads one page, as Markdown if the site offers it.
    pub async fn read(&self, candidate: &Candidate, scope: &Scope) -> Result<SitePage, Left> {
        self.read_within(candidate, scope, &|url| scope.own(url).is_some()).await
    }

    /// Reads the start page; redirects may lead to another site.
    pub async fn read_first(&self, url: &Url, scope: &Scope) -> Result<SitePage, Left> {
        let candidate = Candidate { url: url.clone(), markdown: None, changed: None };
        self.read_within(&candidate, scope, &|_| true).await
    }

    async fn read_within(
        &self,
        candidate: &Candidate,
        scope: &Scope,
        inside: &(dyn Fn(&Url) -> bool + Sync),
    ) -> Result<SitePage, Left> {
        if let Some(markdown) = &candidate.markdown
            && let Ok(raw) = self.raw(markdown, None, inside).await
        {
            let page = self.parsed(raw).await;
            if page.head.canonical.is_none() && has_text(&page.sections) {
                return Ok(SitePage { url: candidate.url.clone(), ..page });
            }
        }
        let raw = self.raw(&candidate.url, candidate.changed.clone(), inside).await?;
        let page = self.parsed(raw).await;
        let offered = page.head.markdown.as_deref().and_then(|address| scope.resolve(&page.url, address));
        let Some(offered) = offered else { return Ok(page) };
        match self.raw(&offered, None, inside).await {
            Ok(raw) => Ok(with_markdown(page, self.parsed(raw).await)),
            Err(_) => Ok(page),
        }
    }

    /// Removes the pages from the cache that were not read by this crawl.
    pub fn forget_others(&self) -> std::io::Result<()> {
        self.cache.keep_only(&self.touched.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn raw(
        &self,
        url: &Url,
        changed: Option<String>,
        inside: &(dyn Fn(&Url) -> bool + Sync),
    ) -> Result<Raw, Left> {
        if self.bytes.load(Ordering::Relaxed) >= self.limits.total_bytes {
            return Err(Left::TotalSize);
        }
        let raw = match self.deadline.saturating_duration_since(Instant::now()).is_zero() {
            true => self.kept(url).ok_or(Left::TotalTime)?,
            false => self.fetched(url, changed, inside).await.map_err(Left::Failed)?,
        };
        self.bytes.fetch_add(raw.body.len(), Ordering::Relaxed);
        self.touch(&raw.url);
        Ok(raw)
    }

    async fn fetched(
        &self,
        url: &Url,
        changed: Option<String>,
        inside: &(dyn Fn(&Url) -> bool + Sync),
    ) -> Result<Raw, FetchError> {
        let validators = |url: &Url| self.cache.about(url).map(|about| about.validators).unwrap_or_default();
        let wanted =
            Wanted { most: self.limits.page_bytes, cut: false, only_text: true, inside, known: &validators };
        let mut page = match self.fetcher.get(url, &wanted).await {
            Ok(page) => page,
            Err(error @ FetchError::Trouble { .. }) => return self.kept(url).ok_or(error),
            Err(error) => return Err(error),
        };
        let Some(body) = page.body.take() else {
            let stored = self.cache.load(&page.url);
            let stored = stored.ok_or(FetchError::Refused(304))?;
            return Ok(of_stored(page.url, stored, How::Unchanged));
        };
        // If it cannot be cached, the next ingest fetches it again.
        if let Err(error) = self.cache.store(&page, &body, changed) {
            tracing::warn!(%error, "cannot cache a page for the next ingest");
        }
        Ok(Raw {
            url: page.url,
            body,
            content_type: page.content_type,
            robots_tag: page.robots_tag,
            how: How::Fetched,
        })
    }

    /// Parses a page on a blocking thread, so that other pages are fetched meanwhile. The tree of a page is
    /// many times its size, so at most one page per core is parsed at a time.
    async fn parsed(&self, raw: Raw) -> SitePage {
        let (url, how) = (raw.url.clone(), raw.how);
        let _turn = self.parsing.acquire().await;
        let page = tokio::task::spawn_blocking(move || parse_raw(&raw)).await;
        page.unwrap_or_else(|_| SitePage {
            url,
            how,
            title: None,
            module: None,
            sections: Vec::new(),
            warnings: vec!["the page could not be parsed".to_owned()],
            head: Head::default(),
        })
    }

    fn kept(&self, url: &Url) -> Option<Raw> {
        Some(of_stored(url.clone(), self.cache.load(url)?, How::Kept))
    }

    fn touch(&self, url: &Url) {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).insert(url.to_string());
    }
}

fn of_stored(url: Url, stored: Stored, how: How) -> Raw {
    let about = stored.about;
    Raw { url, body: stored.body, content_type: about.content_type, robots_tag: about.robots_tag, how }
}

fn parse_raw(raw: &Raw) -> SitePage {
    let (text, broken) = charset::decode(&raw.body, &raw.content_type);
    let text = if text.contains(['\r', '\0']) { text.replace("\r\n", "\n").replace('\0', "") } else { text };
    let (front, parsed, mut head) = match format(raw, &text) {
        Format::Html => {
            let (parsed, head) = parse_site_page(&text, AGENT);
            (FrontMatter::default(), parsed, head)
        }
        format => {
            let (front, mut parsed) = parse(format, &text, Flavor::Plain, &mut |_| None);
            // The title is at the top of the page, and Markdown does not tell whether it has an anchor there.
            let headings = parsed.sections.iter_mut().filter_map(|section| section.heading.as_mut());
            headings.filter(|heading| heading.level == 1).for_each(|heading| heading.anchor = None);
            let links = links(&text).into_iter().map(|link| link.address).collect();
            let mut head = Head::default();
            head.links = links;
            (front, parsed, head)
        }
    };
    let (no_index, no_follow) = header_directives(&raw.robots_tag);
    head.no_index |= no_index;
    head.no_follow |= no_follow;
    let Parsed { title, mut sections, mut warnings, .. } = parsed;
    for section in &mut sections {
        section.figures.retain_mut(|figure| match raw.url.join(&figure.image) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => {
                figure.image = url.to_string();
                true
            }
            _ => false,
        });
    }
    warnings.retain(|warning| warning != NO_TEXT);
    if broken {
        warnings.push("some bytes are invalid in the page's encoding and were skipped".to_owned());
    }
    SitePage {
        url: raw.url.clone(),
        how: raw.how,
        title: front.title.or(title),
        module: front.module,
        sections,
        warnings,
        head,
    }
}

/// The format given by the server, unless the content is obviously HTML.
fn format(raw: &Raw, text: &str) -> Format {
    if llms::looks_like_html(text) {
        return Format::Html;
    }
    match kind(&raw.content_type).as_str() {
        "text/markdown" | "text/x-markdown" => Format::Markdown,
        "text/html" | "application/xhtml+xml" => Format::Html,
        _ => match Format::of(raw.url.path()) {
            Some(format) => format,
            None if kind(&raw.content_type).is_empty() => Format::Html,
            None => Format::Text,
        },
    }
}

/// Parses `X-Robots-Tag`, which may address a single robot: `docent: noindex`.
fn header_directives(tag: &str) -> (bool, bool) {
    let mut for_us = true;
    let mut words = Vec::new();
    for word in tag.split(',') {
        let word = match word.split_once(':') {
            // `unavailable_after: …` and the like are not names of robots.
            Some((name, rest)) if !name.contains('_') && !name.trim().starts_with("max-") => {
                for_us = name.trim().eq_ignore_ascii_case(AGENT);
                rest
            }
            _ => word,
        };
        if for_us {
            words.push(word.trim());
        }
    }
    directives(&words.join(","))
}

/// Whether the sections contain any text.
pub fn has_text(sections: &[Section]) -> bool {
    sections.iter().any(|section| !section.blocks.is_empty())
}

/// The page with the text of its Markdown and the anchors of its HTML.
fn with_markdown(page: SitePage, markdown: SitePage) -> SitePage {
    if !has_text(&markdown.sections) || markdown.head.canonical.is_some() {
        return page;
    }
    let mut sections = markdown.sections;
    let mut published = page.sections.iter().filter_map(|section| section.heading.as_ref());
    for heading in sections.iter_mut().filter_map(|section| section.heading.as_mut()) {
        let before = published.clone();
        match published.find(|shown| words(&shown.text) == words(&heading.text)) {
            Some(shown) => heading.anchor.clone_from(&shown.anchor),
            None => {
                heading.anchor = None;
                published = before;
            }
        }
    }
    SitePage {
        sections,
        title: page.title.or(markdown.title),
        how: if page.how == How::Unchanged { markdown.how } else { page.how },
        ..page
    }
}

fn words(heading: &str) -> String {
    heading.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(content_type: &str, path: &str, body: &str) -> Raw {
        Raw {
            url: Url::parse(&format!("https://x.org{path}")).unwrap(),
            body: body.as_bytes().to_vec(),
            content_type: content_type.to_owned(),
            robots_tag: String::new(),
            how: How::Fetched,
        }
    }

    #[test]
    fn the_format_is_given_by_the_server_unless_the_content_is_html() {
        let of = |kind: &str, path: &str, body: &str| format(&raw(kind, path, body), body);
        assert_eq!(of("text/markdown; charset=utf-8", "/a", "# A"), Format::Markdown);
        assert_eq!(of("text/plain", "/a.md", "# A"), Format::Markdown);
        assert_eq!(of("text/plain", "/a", "A"), Format::Text);
        assert_eq!(of("text/markdown", "/a.md", "<!doctype html><p>x"), Format::Html);
        assert_eq!(of("", "/a", "<p>x"), Format::Html);
    }

    #[test]
    fn robots_headers_can_address_a_single_robot() {
        assert_eq!(header_directives("noindex"), (true, false));
        assert_eq!(header_directives("otherbot: noindex, nofollow"), (false, false));
        assert_eq!(header_directives("otherbot: nofollow, docent: noindex"), (true, false));
        assert_eq!(header_directives("unavailable_after: 2030-01-01, noindex"), (true, false));
    }

    #[test]
    fn markdown_keeps_the_anchors_of_the_published_page() {
        let html = "<article><h1>T</h1><h2 id='s-1'>First <em>step</em></h2><p>a</p><h2 id='s-2'>Last</h2></article>";
        let html = parse_raw(&raw("text/html", "/a", html));
        let markdown = "# T\n\n## First *step*\n\nOf the author.\n\n## Hidden\n\nx\n\n## Last\n\ny\n";
        let page = with_markdown(html, parse_raw(&raw("text/markdown", "/a.md", markdown)));
        let anchors: Vec<_> = (page.sections.iter())
            .map(|section| section.heading.as_ref().and_then(|heading| heading.anchor.as_deref()))
            .collect();
        assert_eq!(anchors, [None, Some("s-1"), None, Some("s-2")]);
        assert_eq!(page.url.path(), "/a");
    }
}
