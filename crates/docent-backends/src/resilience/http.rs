//! Details of failed HTTP calls: the requested delay, and why a connection failed.
//!
//! Invariant: text sent by a server is never returned.

use std::error::Error;
use std::io;
use std::time::{Duration, SystemTime};

/// The delay that a server requests: in seconds or as a date, or in milliseconds, as some providers send it.
pub(crate) fn retry_after(millis: Option<&str>, header: Option<&str>) -> Option<Duration> {
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<f64>().ok());
    match number(millis).map(|millis| millis / 1000.0).or_else(|| number(header)) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        // A date in the past is ignored.
        None => httpdate::parse_http_date(header?.trim()).ok()?.duration_since(SystemTime::now()).ok(),
    }
}

/// The operating system's error kind, such as "connection refused".
pub(crate) fn connection_trouble(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind()).filter(|kind| *kind != io::ErrorKind::Other);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_seconds_and_milliseconds() {
        assert_eq!(retry_after(None, Some("2")), Some(Duration::from_secs(2)));
        assert_eq!(retry_after(Some("150"), Some("1")), Some(Duration::from_millis(150)));
        assert_eq!(retry_after(None, Some("-1")), None);
        assert_eq!(retry_after(None, Some("1e300")), None);
    }

    #[test]
    fn retry_after_may_be_a_date() {
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3600));
        let wait = retry_after(None, Some(&date)).unwrap();
        assert!(wait > Duration::from_secs(3000) && wait <= Duration::from_secs(3600), "{wait:?}");
        assert_eq!(retry_after(None, Some("Wed, 21 Oct 2015 07:28:00 GMT")), None);
        assert_eq!(retry_after(None, Some("tomorrow")), None);
    }
}
