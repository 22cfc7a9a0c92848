//! Limits for crawling a site.

use std::time::Duration;

use docent_backends::source::site::Limits;
use serde::{Deserialize, Serialize};

use super::out_of_range;
use crate::exit::Failure;

/// `[site]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Site {
    /// The maximum number of pages to fetch.
    pub max_pages: usize,
    /// The maximum link depth from the start page.
    pub max_depth: usize,
    /// The maximum size of a page after decompression, in bytes.
    pub max_page_bytes: usize,
    /// The maximum size of all pages together, in bytes.
    pub max_site_bytes: usize,
    /// The maximum size of a sitemap after decompression, in bytes.
    pub max_sitemap_bytes: usize,
    /// The maximum number of redirects per request.
    pub max_redirects: usize,
    /// The timeout of a request, in seconds.
    pub timeout: f64,
    /// The time limit for a whole site, in seconds.
    pub max_seconds: f64,
    /// The upper limit for `Crawl-delay`, in seconds.
    pub max_crawl_delay: f64,
    /// The maximum number of concurrent requests per host.
    pub concurrency: usize,
    /// The maximum number of attempts per page, including the first.
    pub attempts: u32,
    /// The maximum delay before the first retry, in seconds.
    pub retry_delay: f64,
    /// The number of consecutive failures after which the site is considered down.
    pub max_failures: usize,
}

impl Default for Site {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            max_pages: limits.pages,
            max_depth: limits.depth,
            max_page_bytes: limits.page_bytes,
            max_site_bytes: limits.total_bytes,
            max_sitemap_bytes: limits.sitemap_bytes,
            max_redirects: limits.redirects,
            timeout: limits.request_time.as_secs_f64(),
            max_seconds: limits.total_time.as_secs_f64(),
            max_crawl_delay: limits.crawl_delay.as_secs_f64(),
            concurrency: limits.per_host,
            attempts: limits.attempts,
            retry_delay: limits.retry_delay.as_secs_f64(),
            max_failures: limits.failures,
        }
    }
}

impl Site {
    /// The limits as the crawler needs them.
    pub fn limits(&self) -> Limits {
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let mut limits = Limits::default();
        limits.pages = self.max_pages;
        limits.depth = self.max_depth;
        limits.page_bytes = self.max_page_bytes;
        limits.total_bytes = self.max_site_bytes;
        limits.sitemap_bytes = self.max_sitemap_bytes;
        limits.redirects = self.max_redirects;
        limits.request_time = seconds(self.timeout);
        limits.total_time = seconds(self.max_seconds);
        limits.crawl_delay = seconds(self.max_crawl_delay);
        limits.per_host = self.concurrency;
        limits.attempts = self.attempts;
        limits.retry_delay = seconds(self.retry_delay);
        limits.failures = self.max_failures;
        limits
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        let seconds = [
            ("site.timeout", self.timeout, 600.0),
            ("site.max_seconds", self.max_seconds, 1e6),
            ("site.max_crawl_delay", self.max_crawl_delay, 600.0),
            ("site.retry_delay", self.retry_delay, 60.0),
        ];
        for (name, value, most) in seconds {
            if !(0.0..=most).contains(&value) {
                return Err(out_of_range(name, &format!("0 and {most}"), value));
            }
        }
        if !(1..=10).contains(&self.attempts) {
            return Err(out_of_range("site.attempts", "1 and 10", self.attempts));
        }
        if !(1..=32).contains(&self.concurrency) {
            return Err(out_of_range("site.concurrency", "1 and 32", self.concurrency));
        }
        if !(1..=1_000_000).contains(&self.max_pages) {
            return Err(out_of_range("site.max_pages", "1 and 1000000", self.max_pages));
        }
        Ok(())
    }
}
