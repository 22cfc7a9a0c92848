//! What is owed to one host: few calls at a time, pauses between them, and its `robots.txt`.
//!
//! Invariant: no call to a host begins without a [`Turn`].

use std::time::Duration;

use texting_robots::Robot;
use tokio::sync::{Mutex, OnceCell, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use super::fetch::FetchError;

/// The name rules in `robots.txt` call us by.
pub const AGENT: &str = "docent";

/// As much of a `robots.txt` as is read; RFC 9309 asks for this.
pub const LONGEST_ROBOTS: usize = 500 << 10;

/// One host and how it is treated.
#[derive(Debug)]
pub struct Host {
    permits: Semaphore,
    /// When the next call may begin.
    next: Mutex<Instant>,
    /// Its rules, once they were read; why not, when they could not be.
    pub rules: OnceCell<Result<Rules, FetchError>>,
}

/// Leave to make one call; given back when dropped.
#[derive(Debug)]
pub struct Turn<'a>(#[allow(dead_code)] SemaphorePermit<'a>);

impl Host {
    /// A host that nothing is known about.
    pub fn new(at_a_time: usize) -> Self {
        Self {
            permits: Semaphore::new(at_a_time.max(1)),
            next: Mutex::new(Instant::now()),
            rules: OnceCell::new(),
        }
    }

    /// Waits until the host may be called again.
    pub async fn turn(&self) -> Option<Turn<'_>> {
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
        Some(Turn(permit))
    }

    /// The pause its rules ask for.
    pub fn delay(&self) -> Duration {
        self.rules.get().and_then(|rules| rules.as_ref().ok()).map_or(Duration::ZERO, |rules| rules.delay)
    }
}

/// A host's `robots.txt`.
#[derive(Debug, Default)]
pub struct Rules {
    robot: Option<Robot>,
    /// The pause between calls.
    pub delay: Duration,
    /// The sitemaps it names.
    pub sitemaps: Vec<String>,
}

impl Rules {
    /// Reads a `robots.txt`; one that makes no sense forbids nothing.
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

    /// Whether an address may be asked for.
    pub fn allow(&self, url: &str) -> bool {
        self.robot.as_ref().is_none_or(|robot| robot.allowed(url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_for_us_win_over_those_for_all() {
        let text =
            b"User-agent: *\nDisallow: /\n\nUser-agent: Docent\nDisallow: /private/\nCrawl-delay: 90\n\
                     \nSitemap: https://x.org/map.xml\n";
        let rules = Rules::parse(text, Duration::from_secs(10));
        assert!(rules.allow("https://x.org/docs/") && !rules.allow("https://x.org/private/a"));
        assert_eq!(rules.delay, Duration::from_secs(10), "honoured up to the bound");
        assert_eq!(rules.sitemaps, ["https://x.org/map.xml"]);
        let closed = Rules::parse(b"User-agent: *\nDisallow: /", Duration::ZERO);
        assert!(!closed.allow("https://x.org/docs/"));
        assert!(Rules::parse(&[0xff; 4096], Duration::ZERO).allow("https://x.org/"));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_apart_by_the_pause() {
        let host = Host::new(4);
        host.rules.set(Ok(Rules { delay: Duration::from_secs(3), ..Rules::default() })).ok();
        let start = Instant::now();
        for _ in 0..4 {
            drop(host.turn().await);
        }
        assert_eq!((Instant::now() - start).as_secs(), 9);
    }
}
