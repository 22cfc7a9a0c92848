//! Finds the pages that a site lists itself: in sitemaps and in `llms.txt`.
//!
//! Invariant: memory is bounded by the maximum number of pages, not by the length of a list.

use std::collections::{HashMap, HashSet, VecDeque};

use reqwest::Url;

use super::fetch::{Fetched, Validators, Wanted};
use super::llms::{self, FullPage};
use super::page::{Candidate, PageReader};
use super::scope::{Scope, key};
use super::{charset, sitemap};

/// Maximum number of sitemaps; no documentation site has more.
const MOST_SITEMAPS: usize = 500;

/// The pages that a site lists.
#[derive(Debug, Default)]
pub struct Listed {
    /// The lists they were found in, as shown to the user; empty if there is none.
    pub by: Vec<&'static str>,
    /// The pages, in the order of the list.
    pub pages: Vec<Candidate>,
    /// Whether there are more than the maximum number of pages.
    pub more: bool,
    /// Pages whose text is part of the list.
    pub full: Vec<FullPage>,
    /// Warnings about the lists.
    pub notes: Vec<String>,
}

/// Finds and reads the lists of a site.
pub struct Discovery<'a> {
    /// Fetches them.
    pub reader: &'a PageReader,
    /// The site.
    pub scope: &'a Scope,
}

impl Discovery<'_> {
    /// The pages listed at the address itself; `None` if it is a page.
    pub async fn named(&self, start: &Url) -> Option<Listed> {
        let mut listed = Listed::default();
        if llms::is_full(start) {
            self.full(start, &mut listed).await;
        } else if llms::is_list(start) {
            self.list(std::slice::from_ref(start), &mut listed).await;
        } else if is_sitemap(start) {
            self.sitemaps(vec![start.clone()], &mut listed).await;
        } else {
            return None;
        }
        Some(listed)
    }

    /// The pages in all lists of the site.
    pub async fn all(&self) -> Listed {
        let mut listed = Listed::default();
        let named = self.reader.fetcher.sitemaps(&self.scope.folder).await;
        let named: Vec<Url> = named.iter().filter_map(|address| self.same_host(address)).collect();
        if named.is_empty() {
            for place in self.places(&["sitemap.xml", "/sitemap.xml", "/sitemap_index.xml"]) {
                self.sitemaps(vec![place], &mut listed).await;
                if !listed.pages.is_empty() {
                    break;
                }
            }
        } else {
            self.sitemaps(named, &mut listed).await;
        }
        self.list(&self.places(&["llms.txt", "/llms.txt"]), &mut listed).await;
        if listed.pages.is_empty() {
            for place in self.places(&["llms-full.txt", "/llms-full.txt"]) {
                if listed.full.is_empty() {
                    self.full(&place, &mut listed).await;
                }
            }
            // Pages without an address cannot be cited; following links is better.
            listed.full.retain(|page| page.address.is_some());
            if listed.full.is_empty() {
                listed.by.clear();
            }
        }
        listed
    }

    fn places(&self, names: &[&str]) -> Vec<Url> {
        let mut places: Vec<Url> =
            names.iter().filter_map(|name| self.scope.folder.join(name).ok()).collect();
        places.dedup();
        places
    }

    /// The address, if it is on the same host; lists on other hosts are ignored.
    fn same_host(&self, address: &str) -> Option<Url> {
        let url = self.scope.folder.join(address.trim()).ok()?;
        (url.host_str() == self.scope.folder.host_str()
            && url.port_or_known_default() == self.scope.folder.port_or_known_default())
        .then_some(url)
    }

    async fn get(&self, url: &Url) -> Option<Fetched> {
        let most = self.reader.limits.sitemap_bytes;
        let wanted = Wanted {
            most,
            cut: true,
            only_text: false,
            inside: &|_| true,
            known: &|_| Validators::default(),
        };
        self.reader.fetcher.get(url, &wanted).await.ok()
    }

    async fn sitemaps(&self, first: Vec<Url>, listed: &mut Listed) {
        let mut seen: HashSet<String> = first.iter().map(Url::to_string).collect();
        let mut waiting: VecDeque<Url> = first.into();
        let mut keys: HashSet<String> = listed.pages.iter().map(|page| key(&page.url)).collect();
        let most = self.reader.limits.pages;
        while let Some(url) = waiting.pop_front().filter(|_| !listed.more) {
            let Some(fetched) = self.get(&url).await else { continue };
            if fetched.cut {
                listed.notes.push(format!("{url} is too large; only its beginning was read"));
            }
            let before = listed.pages.len();
            sitemap::read(&fetched.body.unwrap_or_default(), |entry| {
                if entry.is_sitemap {
                    if let Some(url) = self.same_host(&entry.address)
                        && seen.len() < MOST_SITEMAPS
                        && seen.insert(url.to_string())
                    {
                        waiting.push_back(url);
                    }
                    return true;
                }
                let page = self.scope.resolve(&self.scope.folder, &entry.address);
                if let Some(page) = page.filter(|page| self.scope.wants(page)) {
                    listed.more |= listed.pages.len() >= most;
                    if !listed.more && keys.insert(key(&page)) {
                        let changed = entry.changed.as_deref().and_then(sitemap::http_date);
                        listed.pages.push(Candidate { url: page, markdown: None, changed });
                    }
                }
                !listed.more
            });
            if listed.pages.len() > before && !listed.by.contains(&"sitemap") {
                listed.by.push("sitemap");
            }
        }
    }

    /// Adds the pages of the first `llms.txt` that exists. A Markdown file next to a known page is used as
    /// the text of that page.
    async fn list(&self, places: &[Url], listed: &mut Listed) {
        let by_key: HashMap<String, usize> =
            listed.pages.iter().enumerate().map(|(at, page)| (key(&page.url), at)).collect();
        let mut keys: HashSet<String> = by_key.keys().cloned().collect();
        for place in places {
            let Some(fetched) = self.get(place).await else { continue };
            let (text, _) = charset::decode(&fetched.body.unwrap_or_default(), &fetched.content_type);
            let mut named = false;
            for address in llms::addresses(&text) {
                let Some(url) = self.scope.resolve(&fetched.url, &address) else { continue };
                if !self.scope.wants(&url) || llms::is_full(&url) || llms::is_list(&url) {
                    continue;
                }
                named = true;
                let page = llms::without_ending(&url);
                let known =
                    page.as_ref().and_then(|page| by_key.get(&key(page)).or(by_key.get(&html_key(page))));
                if let Some(at) = known {
                    listed.pages[*at].markdown.get_or_insert(url);
                } else if listed.pages.len() >= self.reader.limits.pages {
                    listed.more = true;
                } else if keys.insert(key(&url)) {
                    listed.pages.push(Candidate { url, markdown: None, changed: None });
                }
            }
            if named {
                listed.by.push("llms.txt");
                return;
            }
        }
    }

    async fn full(&self, place: &Url, listed: &mut Listed) {
        let Some(fetched) = self.get(place).await else { return };
        let (text, _) = charset::decode(&fetched.body.unwrap_or_default(), &fetched.content_type);
        listed.full = llms::full_pages(&text);
        listed.full.retain(|page| match &page.address {
            Some(address) => self.scope.resolve(place, address).is_some_and(|url| self.scope.wants(&url)),
            None => true,
        });
        listed.more |= fetched.cut || listed.full.len() > self.reader.limits.pages;
        listed.full.truncate(self.reader.limits.pages);
        if !listed.full.is_empty() {
            listed.by.push("llms-full.txt");
        }
    }
}

/// Whether an address is that of a sitemap, judging by its name.
pub fn is_sitemap(url: &Url) -> bool {
    let name = url.path().rsplit('/').next().unwrap_or_default();
    (name.ends_with(".xml") || name.ends_with(".xml.gz")) && name.contains("sitemap")
}

fn html_key(page: &Url) -> String {
    format!("{}.html", key(page))
}
