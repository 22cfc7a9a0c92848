//! How much of a site is read, how fast and how patiently.

use std::time::Duration;

/// The bounds of a crawl. Whatever a site does, it costs no more than this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Pages asked for.
    pub pages: usize,
    /// Links from the start to a page, when links are followed.
    pub depth: usize,
    /// Bytes of one page, unpacked.
    pub page_bytes: usize,
    /// Bytes of all pages together.
    pub total_bytes: usize,
    /// Bytes of one sitemap, unpacked; what is beyond is not read.
    pub sitemap_bytes: usize,
    /// Redirects from an address to its page.
    pub redirects: usize,
    /// Time for one answer, from the call to its last byte.
    pub request_time: Duration,
    /// Time for the whole site.
    pub total_time: Duration,
    /// The longest `Crawl-delay` that is honoured in full.
    pub crawl_delay: Duration,
    /// Calls to one host at a time.
    pub per_host: usize,
    /// Calls for one page, the first included.
    pub attempts: u32,
    /// The longest wait before the second.
    pub retry_delay: Duration,
    /// Pages in a row that fail before the site is taken to be down.
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
