//! The time used for expiry, which is protected against clock jumps.
//!
//! Invariant: if the clock jumps forward, this time advances by at most [`LONGEST_STEP`] per call, and it is
//! never ahead of the clock.

use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// Maximum advance per call. With one call per hour, downtime is caught up at a rate of one day per hour.
const LONGEST_STEP: Duration = Duration::DAY;

/// The time that follows `last`; if there is none, that of the `newest` session.
pub(super) fn advance(last: Option<&str>, newest: Option<&str>, now: &str) -> String {
    let parse = |text: &str| OffsetDateTime::parse(text, &Rfc3339).ok();
    let limit = match last.and_then(parse) {
        Some(last) => Some(last.saturating_add(LONGEST_STEP)),
        None => newest.and_then(parse),
    };
    match (limit, parse(now)) {
        (Some(limit), Some(clock)) if limit < clock => {
            limit.format(&Rfc3339).unwrap_or_else(|_| now.to_owned())
        }
        _ => now.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::advance;

    #[track_caller]
    fn check(last: Option<&str>, newest: Option<&str>, now: &str, expected: &str) {
        assert_eq!(advance(last, newest, now), expected);
    }

    #[test]
    fn time_advances_by_at_most_a_day() {
        let (first, second) = ("2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z");
        check(Some(first), None, second, second);
        check(Some(first), None, "2027-03-01T11:00:00Z", "2026-03-02T10:00:00Z");
        check(Some(second), None, first, first);
        check(None, Some(first), second, first);
        check(None, Some(second), first, first);
        check(None, None, first, first);
        check(Some("nonsense"), Some("nonsense"), first, first);
    }
}
