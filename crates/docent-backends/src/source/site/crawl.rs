//! Take the pages of a site one by one: follow links, tell copies apart, count what is left out.
//!
//! Links are followed level by level and results are taken in the order of the questions, so
//! that the same site gives the same book however fast its pages come.
//!
//! Invariant: every address asked for is a page of the book, or counted with the reason why it is none.
//! Of a page no more is held than its text; of the addresses met, their hashes and those yet to be asked for.

use std::collections::HashSet;

use docent_core::document::{Document, Section, Warning};
use docent_core::parse::markdown::Flavor;
use docent_core::parse::{Format, parse, title_from_path};
use futures_util::StreamExt as _;
use futures_util::stream;
use reqwest::Url;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::discover::Listed;
use super::fetch::FetchError;
use super::page::{Candidate, How, Left, PageReader, SitePage, has_text};
use super::scope::{Scope, key};
use super::{SiteReport, llms, modules};
use crate::index::parts::SourceRecord;
use crate::ingest::Progress;
use crate::source::{Read, SourceError};

/// Addresses remembered, so that none is asked for twice; beyond, none are followed.
const MOST_KNOWN: usize = 1_000_000;

/// Addresses named for each reason to skip pages.
const EXAMPLES: usize = 3;

/// Warnings about single pages that are worth reading.
const MOST_WARNINGS: usize = 100;

/// A crawl under way.
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
    /// Hashes of the addresses met.
    known: HashSet<u64>,
    /// Addresses of pages in the book.
    taken: HashSet<String>,
    /// Hashes of what the pages say.
    texts: HashSet<u64>,
    /// Pages that say they are another page, which is yet to be read.
    waiting: Vec<(String, Document)>,
    /// Those others, when nothing else leads to them.
    named: Vec<Candidate>,
    /// Pages asked for.
    asked: usize,
    failures: usize,
}

/// Where the pages of a level lead: no more than may be asked for, each once.
#[derive(Default)]
struct Links {
    pages: Vec<Url>,
    met: HashSet<u64>,
    /// Whether there are others.
    more: bool,
}

/// An address as it is remembered.
fn name(url: &Url) -> u64 {
    xxh3_64(key(url).as_bytes())
}

impl<'a> Crawl<'a> {
    /// Nothing was taken yet.
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
            named: Vec::new(),
            asked: 0,
            failures: 0,
        }
    }

    /// Reads the pages that are listed, or those that links lead to.
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

    /// Reads pages and returns where they lead.
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

    /// Puts one page where it belongs and adds where it leads.
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
        // A redirect leads to it; so may a link.
        self.is_new(&page.url);
        self.add_links(&page, links);
        self.put(asked, page);
        Ok(())
    }

    fn put(&mut self, asked: &Url, page: SitePage) {
        let Some(url) = self.scope.own(&page.url) else { return self.skip(asked, "lead to another site") };
        if !self.scope.wants(&url) {
            return self.skip(asked, "left out by --include or --exclude");
        }
        if page.head.no_index {
            return self.skip(asked, "ask not to be indexed");
        }
        if !has_text(&page.sections) {
            return self.skip(asked, "without text");
        }
        let canonical = page.head.canonical.as_deref().and_then(|address| self.scope.resolve(&url, address));
        for warning in page.warnings {
            self.warn(&url, warning);
        }
        let title = page.title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
        let mut document = Document {
            id: url.to_string(),
            title: title.unwrap_or_else(|| title_from_path(url.path().trim_end_matches('/'))),
            module: page.module.unwrap_or_default(),
            sections: page.sections,
            url: url.to_string(),
        };
        match canonical {
            // Another spelling of the same address: the one the page prefers.
            Some(other) if key(&other) == key(&url) => {
                document.id = other.to_string();
                document.url = other.to_string();
            }
            // Sites that are not careful name their first page as that of all.
            Some(other) if key(&other) != key(&self.scope.folder) => {
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
        let text = hash(&document.sections);
        if !self.taken.insert(key(&url)) || self.texts.contains(&text) {
            return self.skip(&url, "the same as another page");
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
        self.add(Document {
            id: url.to_string(),
            title: title.unwrap_or_else(|| title_from_path(url.path())),
            module: String::new(),
            sections: parsed.sections,
            url: url.to_string(),
        });
    }

    /// Adds where a page leads, but for what was met before. Whether a link to a page of this level
    /// is among them is seen at its end, when all redirects are known.
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
                    self.skip(&url, "left out by --include or --exclude");
                }
            } else if links.pages.len() < self.reader.limits.pages {
                links.met.insert(name);
                links.pages.push(url);
            } else {
                links.more = true;
            }
        }
    }

    /// The links that were not met before, as pages to read; and the real ones of pages that are none.
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

    /// Whether an address is met for the first time.
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

    /// The book so far, in the order of the pages.
    pub fn finish(mut self, source: &SourceRecord) -> Result<Read, SourceError> {
        // A page that names another as the real one is left out only if that one was read.
        for (other, document) in std::mem::take(&mut self.waiting) {
            match Url::parse(&other) {
                Ok(url) if self.taken.contains(&key(&url)) => {
                    let own = Url::parse(&document.url).unwrap_or(url);
                    self.skip(&own, "the same as another page");
                }
                _ => self.add(document),
            }
        }
        if self.documents.is_empty() {
            let reasons =
                self.report.skipped.iter().map(|(reason, pages)| format!("{} {reason}", pages.count));
            let reasons = reasons.collect::<Vec<_>>().join(", ");
            let what = if reasons.is_empty() { "nothing was found there".to_owned() } else { reasons };
            return Err(SourceError::NoSite { url: source.location.clone(), what });
        }
        if let Err(error) = self.reader.forget_others() {
            tracing::warn!(%error, "old pages could not be removed from the data folder");
        }
        if self.warnings_beyond > 0 {
            let more = format!("{} more warnings", self.warnings_beyond);
            self.warnings.push(Warning::new(&source.location, more));
        }
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
            ..Read::default()
        })
    }
}

/// A site that was read in one place and is published in another.
fn publish(documents: &mut [Document], scope: &Scope, base: &str) {
    for document in documents {
        let relative = Url::parse(&document.url).ok().and_then(|url| scope.relative(&url).map(str::to_owned));
        if let Some(relative) = relative {
            document.url = format!("{}/{relative}", base.trim_end_matches('/'));
        }
    }
}

/// Why a page is not in the book, as it is counted.
fn reason(left: &Left) -> String {
    match left {
        Left::Failed(FetchError::Robots) => "forbidden by robots.txt".to_owned(),
        Left::Failed(FetchError::Elsewhere) => "lead to another site".to_owned(),
        Left::Failed(FetchError::Private) => "lead to a private address".to_owned(),
        Left::Failed(FetchError::Trouble { .. }) => "failed at the server".to_owned(),
        Left::Failed(other) => other.to_string(),
        Left::TotalSize => "beyond the bytes allowed for a site".to_owned(),
        Left::TotalTime => "beyond the time allowed for a site".to_owned(),
    }
}

/// What a page says, whatever its address.
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
