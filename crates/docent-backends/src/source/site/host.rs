//! Politeness towards a host: few concurrent requests, delays between them, and its `robots.txt`.
//!
//! Invariant: every request to a host holds a [`HostPermit`].

use std::time::Duration;

use texting_robots::Robot;
use tokio::sync::{Mutex, OnceCell, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use super::fetch_error::FetchError;

/// The user agent that rules in `robots.txt` refer to.
pub const AGENT: &str = "docent";

/// Maximum number of bytes read of a `robots.txt`, as required by RFC 9309.
pub const LONGEST_ROBOTS: usize = 500 << 10;

/// The state of one host.
#[derive(Debug)]
pub struct Host {
    permits: Semaphore,
    /// When the next request may begin.
    next: Mutex<Instant>,
    /// Its rules, or the error if they could not be fetched; read on first use.
    pub rules: OnceCell<Result<Rules, FetchError>>,
}

/// The permit for one request; released when dropped.
#[derive(Debug)]
pub struct HostPermit<'a>(#[allow(dead_code)] SemaphorePermit<'a>);

impl Host {
    /// A host whose rules have not been read yet.
    pub fn new(at_a_time: usize) -> Self {
        Self {
            permits: Semaphore::new(at_a_time.max(1)),
            next: Mutex::new(Instant::now()),
            rules: OnceCell::new(),
        }
    }

    /// Waits until another request to the host is allowed.
    pub async fn permit(&self) -> Option<HostPermit<'_>> {
        let permit = self.permits.acquire().await.ok()?;
        let delay = self.delay();
        if !delay.is_zero() {
            let begin = {
                let mut next = self.next.lock().await;
                let begin = (*next).max(Instant::now());
                *next = begin + delay;
                begin
            };
            sleep_until(begin).await;
        }
        Some(HostPermit(permit))
    }

    /// The `Crawl-delay` from its rules.
    pub fn delay(&self) -> Duration {
        self.rules.get().and_then(|rules| rules.as_ref().ok()).map_or(Duration::ZERO, |rules| rules.delay)
    }
}

/// A host's `robots.txt`.
#[derive(Debug, Default)]
pub struct Rules {
    robot: Option<Robot>,
    /// The delay between requests.
    pub delay: Duration,
    /// The sitemaps it lists.
    pub sitemaps: Vec<String>,
}

impl Rules {
    /// Parses a `robots.txt`; an invalid one allows everything.
    pub fn parse(text: &[u8], longest_delay: Duration) -> Self {
        let text = &text[..text.len().min(LONGEST_ROBOTS)];
        let Ok(robot) = Robot::new(AGENT, text) else { return Self::default() };
        let delay = robot.delay.and_then(|seconds| Duration::try_from_secs_f32(seconds).ok());
        Self {
            delay: delay.unwrap_or_default().min(longest_delay),
            sitemaps: robot.sitemaps.clone(),
            robot: Some(robot),
        }
    }

    /// Whether an address may be requested.
    pub fn allow(&self, url: &str) -> bool {
        self.robot.as_ref().is_none_or(|robot| robot.allowed(url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_for_docent_take_precedence_over_general_rules() {
        let text =
            b"User-agent: *\nDisallow: /\n\nUser-agent: Docent\nDisallow: /private/\nCrawl-delay: 90\n\
                     \nSitemap: https://x.org/map.xml\n";
        let rules = Rules::parse(text, Duration::from_secs(10));
        assert!(rules.allow("https://x.org/docs/") && !rules.allow("https://x.org/private/a"));
        assert_eq!(rules.delay, Duration::from_secs(10), "reduced to the maximum");
        assert_eq!(rules.sitemaps, ["https://x.org/map.xml"]);
        let closed = Rules::parse(b"User-agent: *\nDisallow: /", Duration::ZERO);
        assert!(!closed.allow("https://x.org/docs/"));
        assert!(Rules::parse(&[0xff; 4096], Duration::ZERO).allow("https://x.org/"));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_separated_by_the_crawl_delay() {
        let host = Host::new(4);
        host.rules.set(Ok(Rules { delay: Duration::from_secs(3), ..Rules::default() })).ok();
        let start = Instant::now();
        for _ in 0..4 {
            drop(host.permit().await);
        }
        assert_eq!((Instant::now() - start).as_secs(), 9);
    }
}
