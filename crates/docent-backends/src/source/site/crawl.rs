//! Crawls the pages of a site: follows links, detects duplicates, counts what is skipped.
//!
//! Links are followed level by level, and results are processed in the order of the requests, so that the
//! same site gives the same book regardless of response times.
//!
//! Invariant: every requested address is a page of the book, or counted with the reason why it is not. Memory
//! holds only the text of pages, the hashes of known addresses, and the addresses still to be requested.

use std::collections::{HashMap, HashSet};

use docent_parse::document::{Document, Section, Warning};
use docent_parse::markdown::Flavor;
use docent_parse::{Format, parse, title_from_path};
use futures_util::StreamExt as _;
use futures_util::stream;
use reqwest::Url;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::discover::Listed;
use super::fetch_error::FetchError;
use super::page::{Candidate, How, Left, PageReader, SitePage, has_text};
use super::scope::{Scope, key};
use super::{SiteReport, editions, llms, modules};
use crate::index::contents::SourceRecord;
use crate::progress::Progress;
use crate::source::{Read, SourceError};

/// Maximum number of known addresses, which are remembered so that none is requested twice. When it is
/// reached, no more links are followed.
const MOST_KNOWN: usize = 1_000_000;

/// Number of examples per reason for skipping pages.
const EXAMPLES: usize = 3;

/// Maximum number of warnings about single pages; further ones are only counted.
const MOST_WARNINGS: usize = 100;

/// A crawl in progress.
pub struct Crawl<'a> {
    reader: &'a PageReader,
    scope: &'a Scope,
    progress: &'a dyn Progress,
    report: SiteReport,
    documents: Vec<Document>,
    warnings: Vec<Warning>,
    warnings_beyond: usize,
    generator: Option<String>,
    /// Whether links are followed.
    by_links: bool,
    /// Hashes of known addresses.
    known: HashSet<u64>,
    /// Addresses of pages in the book.
    taken: HashSet<String>,
    /// Hashes of the pages' text.
    texts: HashSet<u64>,
    /// Pages with a canonical address that has not been read yet.
    waiting: Vec<(String, Document)>,
    /// The language of each page, by its id.
    languages: HashMap<String, String>,
    /// Canonical addresses that nothing else links to.
    named: Vec<Candidate>,
    /// Number of pages requested.
    asked: usize,
    failures: usize,
}

/// The distinct links of a level's pages, up to the maximum number of pages.
#[derive(Default)]
struct Links {
    pages: Vec<Url>,
    met: HashSet<u64>,
    /// Whether there are more.
    more: bool,
}

/// The hash by which an address is remembered.
fn name(url: &Url) -> u64 {
    xxh3_64(key(url).as_bytes())
}

impl<'a> Crawl<'a> {
    /// A crawl that has not read any page yet.
    pub fn new(reader: &'a PageReader, scope: &'a Scope, progress: &'a dyn Progress, address: &str) -> Self {
        Self {
            reader,
            scope,
            progress,
            report: SiteReport { address: address.to_owned(), ..SiteReport::default() },
            documents: Vec::new(),
            warnings: Vec::new(),
            warnings_beyond: 0,
            generator: None,
            by_links: false,
            known: HashSet::new(),
            taken: HashSet::new(),
            texts: HashSet::new(),
            waiting: Vec::new(),
            languages: HashMap::new(),
            named: Vec::new(),
            asked: 0,
            failures: 0,
        }
    }

    /// Reads the listed pages, or follows links if there are none.
    pub async fn run(
        &mut self,
        start: &Url,
        first: Option<Result<SitePage, Left>>,
        listed: Listed,
    ) -> Result<(), SourceError> {
        self.by_links = listed.by.is_empty();
        self.report.found_by = if self.by_links { "links".to_owned() } else { listed.by.join(" and ") };
        self.report.more = listed.more;
        for note in listed.notes {
            self.warn(start, note);
        }
        for page in listed.full {
            self.full_page(start, page);
        }
        let mut links = Links::default();
        if let Some(first) = first {
            self.asked = 1;
            self.is_new(start);
            self.take(start, first, &mut links)?;
        }
        if !self.by_links {
            let mut pages: Vec<Candidate> =
                listed.pages.into_iter().filter(|page| self.is_new(&page.url)).collect();
            while !pages.is_empty() {
                self.level(pages).await?;
                pages = std::mem::take(&mut self.named);
            }
            return Ok(());
        }
        let mut level = self.choose(links);
        let mut depth = 0;
        while !level.is_empty() && depth < self.reader.limits.depth {
            let links = self.level(level).await?;
            level = self.choose(links);
            depth += 1;
        }
        self.report.more |= !level.is_empty();
        Ok(())
    }

    /// Reads pages and returns their links.
    async fn level(&mut self, mut pages: Vec<Candidate>) -> Result<Links, SourceError> {
        let room = self.reader.limits.pages.saturating_sub(self.asked);
        self.report.more |= pages.len() > room;
        pages.truncate(room);
        let (reader, scope) = (self.reader, self.scope);
        let total = self.asked + pages.len();
        let at_once = reader.limits.per_host.max(1) * 2;
        let mut results = stream::iter(pages)
            .map(|page| async move { (reader.read(&page, scope).await, page.url) })
            .buffered(at_once);
        let mut links = Links::default();
        while let Some((result, url)) = results.next().await {
            self.asked += 1;
            self.take(&url, result, &mut links)?;
            self.progress.pages(self.asked, total);
        }
        Ok(links)
    }

    /// Processes the result of one page and collects its links.
    fn take(
        &mut self,
        asked: &Url,
        result: Result<SitePage, Left>,
        links: &mut Links,
    ) -> Result<(), SourceError> {
        let page = match result {
            Ok(page) => page,
            Err(left) => {
                self.skip(asked, &reason(&left));
                let failed = matches!(left, Left::Failed(FetchError::Trouble { .. }));
                self.failures = if failed { self.failures + 1 } else { 0 };
                return match left {
                    Left::Failed(FetchError::Trouble { what, .. })
                        if self.failures >= self.reader.limits.failures =>
                    {
                        let what = format!("{} pages in a row failed: {what}", self.failures);
                        Err(SourceError::Unavailable { url: self.report.address.clone(), what })
                    }
                    _ => Ok(()),
                };
            }
        };
        self.failures = 0;
        match page.how {
            How::Fetched => self.report.fetched += 1,
            How::Unchanged => self.report.unchanged += 1,
            How::Kept => self.report.kept += 1,
        }
        if self.generator.is_none() {
            self.generator.clone_from(&page.head.generator);
        }
        // The page may be a redirect target that is also linked.
        self.is_new(&page.url);
        self.add_links(&page, links);
        self.put(asked, page);
        Ok(())
    }

    fn put(&mut self, asked: &Url, page: SitePage) {
        let Some(url) = self.scope.own(&page.url) else { return self.skip(asked, "on another site") };
        if !self.scope.wants(&url) {
            return self.skip(asked, "excluded by --include or --exclude");
        }
        if page.head.no_index {
            return self.skip(asked, "marked noindex");
        }
        if !has_text(&page.sections) {
            return self.skip(asked, "without text");
        }
        let canonical = page.head.canonical.as_deref().and_then(|address| self.scope.resolve(&url, address));
        for warning in page.warnings {
            self.warn(&url, warning);
        }
        let title = page.title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| title_from_path(url.path().trim_end_matches('/')));
        let mut document = Document::new(url.as_str(), url.as_str(), title)
            .with_module(page.module.unwrap_or_default())
            .with_sections(page.sections);
        editions::note(&mut document, &page.head);
        if let Some(language) = page.head.language {
            self.languages.insert(document.id.clone(), language);
        }
        match canonical {
            // The canonical address is another spelling of the same address: use it.
            Some(other) if key(&other) == key(&url) => {
                document.id = other.to_string();
                document.url = other.to_string();
            }
            // Some sites give every page the start page as its canonical address; ignore that. The same page of another
            // version is a page of its own.
            Some(other) if key(&other) != key(&self.scope.folder) && editions::are_same(&other, &url) => {
                if self.is_new(&other) {
                    self.named.push(Candidate { url: other.clone(), markdown: None, changed: None });
                }
                return self.waiting.push((other.to_string(), document));
            }
            _ => {}
        }
        self.add(document);
    }

    fn add(&mut self, document: Document) {
        let Ok(url) = Url::parse(&document.url) else { return };
        // Pages of several versions are often the same.
        let text = hash(&document.sections) ^ editions::hash(&url, &document);
        if !self.taken.insert(key(&url)) || self.texts.contains(&text) {
            return self.skip(&url, "duplicates of another page");
        }
        self.texts.insert(text);
        self.documents.push(document);
    }

    fn full_page(&mut self, start: &Url, page: llms::FullPage) {
        let url = match &page.address {
            Some(address) => {
                self.scope.resolve(start, address).map(|url| llms::without_ending(&url).unwrap_or(url))
            }
            None => Some(start.clone()),
        };
        let Some(url) = url else { return };
        let (front, parsed) = parse(Format::Markdown, &page.text, Flavor::Plain, &mut |_| None);
        let title = front.title.or(parsed.title);
        if !has_text(&parsed.sections) {
            return;
        }
        self.is_new(&url);
        let title = title.unwrap_or_else(|| title_from_path(url.path()));
        self.add(Document::new(url.as_str(), url.as_str(), title).with_sections(parsed.sections));
    }

    /// Collects the links of a page to addresses that are not known yet. Links to other pages of the same
    /// level are removed at its end, when all redirects are known.
    fn add_links(&mut self, page: &SitePage, links: &mut Links) {
        if !self.by_links || page.head.no_follow {
            return;
        }
        let base = page.head.base.as_deref().and_then(|base| page.url.join(base).ok());
        let base = base.as_ref().unwrap_or(&page.url);
        for address in &page.head.links {
            let Some(url) = self.scope.resolve(base, address) else { continue };
            let name = name(&url);
            if !self.scope.leads_to_page(&url) || self.known.contains(&name) || links.met.contains(&name) {
                continue;
            }
            if !self.scope.wants(&url) {
                if self.is_new(&url) {
                    self.skip(&url, "excluded by --include or --exclude");
                }
            } else if links.pages.len() < self.reader.limits.pages {
                links.met.insert(name);
                links.pages.push(url);
            } else {
                links.more = true;
            }
        }
    }

    /// The pages to read next: new links, and canonical addresses.
    fn choose(&mut self, links: Links) -> Vec<Candidate> {
        self.report.more |= links.more;
        let mut chosen = std::mem::take(&mut self.named);
        for url in links.pages {
            if self.is_new(&url) {
                chosen.push(Candidate { url, markdown: None, changed: None });
            }
        }
        chosen
    }

    /// Whether an address is new; remembers it.
    fn is_new(&mut self, url: &Url) -> bool {
        self.known.len() < MOST_KNOWN && self.known.insert(name(url))
    }

    fn warn(&mut self, url: &Url, warning: String) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(Warning::new(url.as_str(), warning));
        } else {
            self.warnings_beyond += 1;
        }
    }

    fn skip(&mut self, url: &Url, reason: &str) {
        let skipped = self.report.skipped.entry(reason.to_owned()).or_default();
        skipped.count += 1;
        if skipped.examples.len() < EXAMPLES {
            skipped.examples.push(url.to_string());
        }
    }

    /// The pages that were read, in order.
    pub fn finish(mut self, source: &SourceRecord) -> Result<Read, SourceError> {
        // A page with another canonical address is skipped only if that address was read.
        for (other, document) in std::mem::take(&mut self.waiting) {
            match Url::parse(&other) {
                Ok(url) if self.taken.contains(&key(&url)) => {
                    let own = Url::parse(&document.url).unwrap_or(url);
                    self.skip(&own, "duplicates of another page");
                }
                _ => self.add(document),
            }
        }
        if self.documents.is_empty() {
            let reasons =
                self.report.skipped.iter().map(|(reason, pages)| format!("{} {reason}", pages.count));
            let reasons = reasons.collect::<Vec<_>>().join(", ");
            let what = if reasons.is_empty() { "nothing to read".to_owned() } else { reasons };
            return Err(SourceError::NoSite { url: source.location.clone(), what });
        }
        if let Err(error) = self.reader.forget_others() {
            tracing::warn!(%error, "cannot remove old pages from the site cache");
        }
        if self.warnings_beyond > 0 {
            let more = format!("{} more warnings", self.warnings_beyond);
            self.warnings.push(Warning::new(&source.location, more));
        }
        let released = editions::assign(&mut self.documents, self.scope, &self.languages);
        modules::assign(&mut self.documents, self.scope);
        if let Some(base) = &source.base_url {
            publish(&mut self.documents, self.scope, base);
        }
        let made_by = self.generator.map(|name| format!(", {name}")).unwrap_or_default();
        Ok(Read {
            documents: self.documents,
            warnings: self.warnings,
            kind: format!("site ({}{made_by})", self.report.found_by),
            site: Some(self.report),
            released,
            ..Read::default()
        })
    }
}

/// Replaces the addresses of a site that is published elsewhere.
fn publish(documents: &mut [Document], scope: &Scope, base: &str) {
    for document in documents {
        let relative = Url::parse(&document.url).ok().and_then(|url| scope.relative(&url).map(str::to_owned));
        if let Some(relative) = relative {
            document.url = format!("{}/{relative}", base.trim_end_matches('/'));
        }
    }
}

/// The reason under which a skipped page is counted.
fn reason(left: &Left) -> String {
    match left {
        Left::Failed(FetchError::Robots) => "forbidden by robots.txt".to_owned(),
        Left::Failed(FetchError::Elsewhere) => "on another site".to_owned(),
        Left::Failed(FetchError::Private) => "at a private address".to_owned(),
        Left::Failed(FetchError::Trouble { .. }) => "failed at the server".to_owned(),
        Left::Failed(other) => other.to_string(),
        Left::TotalSize => "over the size limit of a site".to_owned(),
        Left::TotalTime => "over the time limit of a site".to_owned(),
    }
}

/// A hash of a page's text, for detecting duplicates.
fn hash(sections: &[Section]) -> u64 {
    let mut hasher = Xxh3Default::new();
    for section in sections {
        hasher.update(section.heading.as_ref().map(|heading| heading.text.as_bytes()).unwrap_or_default());
        for block in &section.blocks {
            hasher.update(block.text.as_bytes());
            hasher.update(b"\n");
        }
    }
    hasher.digest()
}
