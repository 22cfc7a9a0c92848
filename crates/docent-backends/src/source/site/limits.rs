//! Limits of a crawl: size, time, rate and retries.

use std::time::Duration;

/// The limits of a crawl, which apply whatever a site does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of pages to fetch.
    pub pages: usize,
    /// Maximum link depth from the start page, if links are followed.
    pub depth: usize,
    /// Maximum size of one page in bytes, uncompressed.
    pub page_bytes: usize,
    /// Maximum size of all pages together in bytes.
    pub total_bytes: usize,
    /// Maximum size of one sitemap in bytes, uncompressed; the rest is ignored.
    pub sitemap_bytes: usize,
    /// Maximum number of redirects per page.
    pub redirects: usize,
    /// Timeout of one request, including the body.
    pub request_time: Duration,
    /// Maximum time for the whole site.
    pub total_time: Duration,
    /// Maximum `Crawl-delay`; longer ones are reduced to this.
    pub crawl_delay: Duration,
    /// Maximum number of concurrent requests per host.
    pub per_host: usize,
    /// Maximum number of attempts per page, including the first.
    pub attempts: u32,
    /// Maximum delay before the first retry.
    pub retry_delay: Duration,
    /// Number of consecutive failed pages after which the site is considered down.
    pub failures: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pages: 10_000,
            depth: 50,
            page_bytes: 8 << 20,
            total_bytes: 1 << 30,
            sitemap_bytes: 50 << 20,
            redirects: 10,
            request_time: Duration::from_secs(30),
            total_time: Duration::from_secs(4 * 3600),
            crawl_delay: Duration::from_secs(10),
            per_host: 4,
            attempts: 3,
            retry_delay: Duration::from_secs(1),
            failures: 10,
        }
    }
}
