//! Fetches one page: within the limits, respecting `robots.txt`, and only from allowed addresses.
//!
//! Redirects are followed here and not by the HTTP client, so that every hop is checked like the first
//! address: scheme, private networks, `robots.txt`.
//!
//! Invariant: whatever the server sends, a response never exceeds its size limit or [`Limits::request_time`].

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::header::{self, HeaderMap, HeaderName};
use reqwest::{Response, StatusCode, Url, redirect};
use serde::{Deserialize, Serialize};

use super::address::{CheckedResolver, PrivateAddress, Reach};
use super::fetch_error::FetchError;
use super::host::{Host, LONGEST_ROBOTS, Rules};
use super::limits::Limits;
use crate::resilience::http::{connection_trouble, retry_after};
use crate::resilience::{self, Breaker, Policy};

/// Prefers Markdown, since it is what the author wrote.
const ACCEPT: &str =
    "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.5, */*;q=0.1";

/// Maximum number of redirects for a `robots.txt`, as recommended by RFC 9309.
const ROBOTS_REDIRECTS: usize = 5;

/// Fetches pages.
#[derive(Debug)]
pub struct Fetcher {
    client: reqwest::Client,
    reach: Reach,
    limits: Limits,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
}

/// The headers for conditional requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    /// `ETag`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// `Last-Modified`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// A server's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its address, after all redirects.
    pub url: Url,
    /// The uncompressed body; `None` if the page is unchanged (304).
    pub body: Option<Vec<u8>>,
    /// Whether the body was truncated at the size limit.
    pub cut: bool,
    /// The headers for the next conditional request.
    pub validators: Validators,
    /// `Content-Type`
    pub content_type: String,
    /// `X-Robots-Tag`
    pub robots_tag: String,
}

/// Requirements for a response.
pub struct Wanted<'a> {
    /// Maximum size in bytes, uncompressed.
    pub most: usize,
    /// Whether a larger body is truncated instead of rejected.
    pub cut: bool,
    /// Whether responses with another content type than text are rejected.
    pub only_text: bool,
    /// Whether a redirect to an address is allowed.
    pub inside: &'a (dyn Fn(&Url) -> bool + Sync),
    /// The cached validators of an address.
    pub known: &'a (dyn Fn(&Url) -> Validators + Sync),
}

/// The result of one request: a page or a redirect.
enum Hop {
    Page(Box<Fetched>),
    Elsewhere(Url),
}

impl Fetcher {
    /// Sets up the HTTP client; does not connect yet.
    pub fn new(reach: Reach, limits: Limits) -> Result<Self, FetchError> {
        let mut builder = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .dns_resolver(Arc::new(CheckedResolver { reach }))
            .connect_timeout(limits.request_time)
            .user_agent(concat!(
                "docent/",
                env!("CARGO_PKG_VERSION"),
                " (reads documentation for its operator)"
            ));
        // With a proxy, the final address cannot be checked.
        if reach != Reach::Everything {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|_| FetchError::trouble("cannot set up the HTTP client"))?;
        Ok(Self { client, reach, limits, hosts: Mutex::default() })
    }

    /// Fetches a page, following redirects.
    pub async fn get(&self, url: &Url, wanted: &Wanted<'_>) -> Result<Fetched, FetchError> {
        let mut url = url.clone();
        for _ in 0..=self.limits.redirects {
            self.check(&url)?;
            if !self.allowed(&url).await? {
                return Err(FetchError::Robots);
            }
            match self.hop(&url, wanted).await? {
                Hop::Page(page) => return Ok(*page),
                Hop::Elsewhere(next) if !(wanted.inside)(&next) => return Err(FetchError::Elsewhere),
                Hop::Elsewhere(next) => url = next,
            }
        }
        Err(FetchError::Redirects)
    }

    /// The sitemaps listed in a site's `robots.txt`.
    pub async fn sitemaps(&self, url: &Url) -> Vec<String> {
        let host = self.host(url);
        self.rules(&host, url).await.as_ref().map(|rules| rules.sitemaps.clone()).unwrap_or_default()
    }

    fn check(&self, url: &Url) -> Result<(), FetchError> {
        let plain = matches!(url.scheme(), "http" | "https") && url.has_host();
        if !plain || !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::Scheme);
        }
        self.reach.check(url).map_err(|PrivateAddress| FetchError::Private)
    }

    fn host(&self, url: &Url) -> Arc<Host> {
        let name = url.origin().ascii_serialization();
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.entry(name).or_insert_with(|| Arc::new(Host::new(self.limits.per_host))).clone()
    }

    async fn allowed(&self, url: &Url) -> Result<bool, FetchError> {
        let host = self.host(url);
        self.rules(&host, url).await.as_ref().map(|rules| rules.allow(url.as_str())).map_err(Clone::clone)
    }

    async fn rules<'a>(&self, host: &'a Host, url: &Url) -> &'a Result<Rules, FetchError> {
        host.rules.get_or_init(|| self.read_rules(url)).await
    }

    /// A host without `robots.txt` allows everything; a host whose `robots.txt` cannot be fetched is not
    /// crawled.
    async fn read_rules(&self, url: &Url) -> Result<Rules, FetchError> {
        let Ok(mut url) = url.join("/robots.txt") else { return Ok(Rules::default()) };
        let wanted = Wanted {
            most: LONGEST_ROBOTS,
            cut: true,
            only_text: false,
            inside: &|_| true,
            known: &|_| Validators::default(),
        };
        for _ in 0..=ROBOTS_REDIRECTS {
            self.check(&url)?;
            match self.hop(&url, &wanted).await {
                Ok(Hop::Page(page)) => {
                    return Ok(Rules::parse(&page.body.unwrap_or_default(), self.limits.crawl_delay));
                }
                Ok(Hop::Elsewhere(next)) => url = next,
                Err(error @ (FetchError::Trouble { .. } | FetchError::Private)) => return Err(error),
                Err(_) => return Ok(Rules::default()),
            }
        }
        Ok(Rules::default())
    }

    /// Requests one address, with retries.
    async fn hop(&self, url: &Url, wanted: &Wanted<'_>) -> Result<Hop, FetchError> {
        let host = self.host(url);
        let _permit = host.permit().await;
        let policy = Policy {
            attempts: self.limits.attempts,
            first_delay: self.limits.retry_delay,
            max_delay: self.limits.retry_delay * 8,
            attempt_timeout: self.limits.request_time,
        };
        let attempt = async || {
            self.ask(url, wanted).await.map_err(|error| match error {
                FetchError::Trouble { what, wait } if !host.delay().is_zero() => {
                    FetchError::Trouble { what, wait: Some(wait.unwrap_or_default().max(host.delay())) }
                }
                error => error,
            })
        };
        // A failing page says nothing about the next one, so each has its own circuit breaker.
        resilience::call(&policy, &Breaker::new("site"), None, attempt).await
    }

    async fn ask(&self, url: &Url, wanted: &Wanted<'_>) -> Result<Hop, FetchError> {
        let mut request = self.client.get(url.clone());
        request = request.header(header::ACCEPT, ACCEPT).header(header::ACCEPT_ENCODING, "gzip");
        let known = (wanted.known)(url);
        if let Some(etag) = known.etag {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        if let Some(date) = known.last_modified {
            request = request.header(header::IF_MODIFIED_SINCE, date);
        }
        let response = request.send().await.map_err(|error| trouble(&error))?;
        let status = response.status();
        let headers = response.headers();
        if let Some(next) = elsewhere(status, headers) {
            return Ok(Hop::Elsewhere(url.join(&next).map_err(|_| FetchError::Scheme)?));
        }
        let mut page = Fetched {
            url: url.clone(),
            body: None,
            cut: false,
            validators: Validators {
                etag: text(headers, header::ETAG),
                last_modified: text(headers, header::LAST_MODIFIED),
            },
            content_type: text(headers, header::CONTENT_TYPE).unwrap_or_default(),
            robots_tag: robots_tags(headers),
        };
        match status.as_u16() {
            200..=299 => {
                if wanted.only_text && !is_text(&page.content_type) {
                    return Err(FetchError::NotText(kind(&page.content_type)));
                }
                let (body, cut) = read_body(response, wanted).await?;
                (page.body, page.cut) = (Some(body), cut);
                Ok(Hop::Page(Box::new(page)))
            }
            304 => Ok(Hop::Page(Box::new(page))),
            code @ (404 | 410) => Err(FetchError::Missing(code)),
            code @ (408 | 429 | 500..=599) => {
                let wait = retry_after(None, text(headers, header::RETRY_AFTER).as_deref());
                Err(FetchError::Trouble { what: format!("the server returned HTTP {code}"), wait })
            }
            code => Err(FetchError::Refused(code)),
        }
    }
}

/// The target of a redirect.
fn elsewhere(status: StatusCode, headers: &HeaderMap) -> Option<String> {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308).then(|| text(headers, header::LOCATION)).flatten()
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    // The standard requires ASCII, but many servers send addresses in UTF-8.
    let text = String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
    Some(text).filter(|text| !text.is_empty())
}

fn robots_tags(headers: &HeaderMap) -> String {
    let tags = headers.get_all("x-robots-tag").iter().filter_map(|tag| tag.to_str().ok());
    tags.collect::<Vec<_>>().join(", ")
}

/// A content type without its parameters.
pub(super) fn kind(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_text(content_type: &str) -> bool {
    let kind = kind(content_type);
    kind.is_empty() || kind.starts_with("text/") || kind == "application/xhtml+xml"
}

/// The uncompressed body of a response, and whether it was truncated.
async fn read_body(mut response: Response, wanted: &Wanted<'_>) -> Result<(Vec<u8>, bool), FetchError> {
    let encoding =
        text(response.headers(), header::CONTENT_ENCODING).unwrap_or_default().to_ascii_lowercase();
    let packed = match encoding.as_str() {
        "" | "identity" => false,
        "gzip" | "x-gzip" => true,
        other => return Err(FetchError::NotText(format!("unsupported compression {other}"))),
    };
    let announced = response.content_length().unwrap_or_default();
    if announced > wanted.most as u64 && !wanted.cut {
        return Err(FetchError::TooLarge);
    }
    let mut body = Vec::new();
    let mut cut = false;
    while let Some(piece) = response.chunk().await.map_err(|error| trouble(&error))? {
        let room = wanted.most - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            cut = true;
            break;
        }
    }
    if packed || body.starts_with(&[0x1f, 0x8b]) {
        let (whole, more) = unpack(&body, wanted.most, cut)?;
        (body, cut) = (whole, cut || more);
    }
    if cut && !wanted.cut { Err(FetchError::TooLarge) } else { Ok((body, cut)) }
}

/// Decompresses up to `most` bytes; also returns whether there were more. An incomplete end is an error only
/// if the input was not truncated here (`torn`).
fn unpack(packed: &[u8], most: usize, torn: bool) -> Result<(Vec<u8>, bool), FetchError> {
    let mut out = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(packed).take(most as u64 + 1);
    if reader.read_to_end(&mut out).is_err() && !torn {
        return Err(FetchError::trouble("the compressed response is damaged"));
    }
    let more = out.len() > most;
    out.truncate(most);
    Ok((out, more))
}

fn trouble(error: &reqwest::Error) -> FetchError {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = next {
        if inner.is::<PrivateAddress>() {
            return FetchError::Private;
        }
        next = inner.source();
    }
    let kind = connection_trouble(error).map(|kind| format!(": {kind}")).unwrap_or_default();
    let what = if error.is_connect() { "cannot connect" } else { "the connection failed" };
    FetchError::trouble(format!("{what}{kind}"))
}

#[cfg(test)]
mod tests;
