//! What HTTP says about a call that failed: how long to wait, why there was no connection.
//!
//! Invariant: nothing here is a server's own text.

use std::error::Error;
use std::io;
use std::time::Duration;

/// Seconds, or milliseconds as some providers say more exactly. A date, the other form
/// HTTP allows, is not used by any of them.
pub(crate) fn retry_after(millis: Option<&str>, seconds: Option<&str>) -> Option<Duration> {
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<f64>().ok());
    let seconds = number(millis).map(|millis| millis / 1000.0).or_else(|| number(seconds))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The system's word for it, such as "connection refused".
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
    fn the_wish_for_patience_is_read_in_both_units() {
        assert_eq!(retry_after(None, Some("2")), Some(Duration::from_secs(2)));
        assert_eq!(retry_after(Some("150"), Some("1")), Some(Duration::from_millis(150)));
        assert_eq!(retry_after(None, Some("-1")), None);
        assert_eq!(retry_after(None, Some("1e300")), None);
        assert_eq!(retry_after(None, Some("Wed, 21 Oct 2015 07:28:00 GMT")), None);
    }
}
