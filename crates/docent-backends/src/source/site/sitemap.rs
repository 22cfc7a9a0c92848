//! Sitemaps: lists of pages, and lists of such lists.
//!
//! Invariant: entries are read one by one; memory holds only one of them, however long the sitemap is.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};
use time::{Date, Month, OffsetDateTime, Time, UtcOffset};

/// One entry of a sitemap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// The address, verbatim.
    pub address: String,
    /// When it last changed, verbatim.
    pub changed: Option<String>,
    /// Whether it is another sitemap rather than a page.
    pub is_sitemap: bool,
}

/// Reads a sitemap and calls `take` with each entry until it returns `false`. Anything else has no entries.
pub fn read(text: &[u8], mut take: impl FnMut(Entry) -> bool) {
    let mut reader = Reader::from_reader(text);
    reader.config_mut().check_end_names = false;
    let mut entry = Entry::default();
    let mut path: Vec<Vec<u8>> = Vec::new();
    let mut words = String::new();
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                // Real sitemaps are three levels deep; ignore deeper nesting, which may be an attack.
                if path.len() < 32 {
                    path.push(start.name().as_ref().to_vec());
                }
                words.clear();
            }
            Ok(Event::Text(text)) => words.push_str(&text.decode().unwrap_or_default()),
            Ok(Event::CData(text)) => words.push_str(&String::from_utf8_lossy(&text)),
            Ok(Event::GeneralRef(name)) => words.extend(character(&name)),
            Ok(Event::End(end)) => {
                let name = end.name().as_ref().to_vec();
                while path.pop().is_some_and(|open| open != name) {}
                let inside = path.last().map(Vec::as_slice).unwrap_or_default();
                let of_entry = matches!(inside, b"url" | b"sitemap");
                match name.as_slice() {
                    b"loc" if of_entry => entry.address = words.trim().to_owned(),
                    b"lastmod" if of_entry => entry.changed = Some(words.trim().to_owned()),
                    b"url" | b"sitemap" => {
                        entry.is_sitemap = name == b"sitemap";
                        let done = std::mem::take(&mut entry);
                        if !done.address.is_empty() && !take(done) {
                            return;
                        }
                    }
                    _ => {}
                }
                words.clear();
            }
            Ok(Event::Eof) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// The character that an entity stands for.
fn character(name: &BytesRef<'_>) -> Option<char> {
    match &**name {
        b"amp" => Some('&'),
        b"apos" => Some('\''),
        b"quot" => Some('"'),
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        _ => name.resolve_char_ref().ok().flatten(),
    }
}

/// Converts a date of a sitemap to the HTTP format, for `If-Modified-Since`.
pub fn http_date(w3c: &str) -> Option<String> {
    let number = |range: std::ops::Range<usize>| w3c.get(range)?.parse::<u16>().ok();
    let month = Month::try_from(u8::try_from(number(5..7)?).ok()?).ok()?;
    let date = Date::from_calendar_date(number(0..4)?.into(), month, number(8..10)?.try_into().ok()?).ok()?;
    let mut moment = date.with_time(Time::MIDNIGHT).assume_utc();
    if w3c.as_bytes().get(10) == Some(&b'T') {
        let part = |range| number(range).and_then(|number| u8::try_from(number).ok());
        let seconds = if w3c.as_bytes().get(16) == Some(&b':') { part(17..19)? } else { 0 };
        let time = Time::from_hms(part(11..13)?, part(14..16)?, seconds).ok()?;
        moment = date.with_time(time).assume_offset(offset(w3c)?).to_offset(UtcOffset::UTC);
    }
    Some(written(moment))
}

/// The UTC offset at the end: `Z`, nothing, or `+02:00`.
fn offset(w3c: &str) -> Option<UtcOffset> {
    let Some(at) = w3c.get(11..)?.rfind(['+', '-']).map(|at| at + 11) else { return Some(UtcOffset::UTC) };
    let hours: i8 = w3c.get(at + 1..at + 3)?.parse().ok()?;
    let minutes: i8 = w3c.get(at + 4..at + 6)?.parse().ok()?;
    let sign = if w3c.as_bytes()[at] == b'-' { -1 } else { 1 };
    UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
}

fn written(moment: OffsetDateTime) -> String {
    let day = &moment.weekday().to_string()[..3];
    let month = &moment.month().to_string()[..3];
    format!(
        "{day}, {:02} {month} {} {:02}:{:02}:{:02} GMT",
        moment.day(),
        moment.year(),
        moment.hour(),
        moment.minute(),
        moment.second()
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parts of sitemap syntax, in any order.
    const PIECES: &str = "(<urlset>|<url>|</url>|<loc>|</loc>|<sitemap>|</sitemap>|<!\\[CDATA\\[|\\]\\]>|<!--|-->|&amp;|&#6;|&x;|<\\?|\\?>|<a b='|'/>|[<>&a-zé/ ]{0,8}){0,40}";

    proptest! {
        #[test]
        fn reading_terminates_on_any_input(text in PIECES, bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let whole = [text.as_bytes(), &bytes].concat();
            read(&whole, |entry| !entry.address.is_empty());
        }

        #[test]
        fn http_date_accepts_any_text(text in "[0-9T:Z.+éa-]{0,30}|[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.+-]{0,14})?") {
            if let Some(date) = http_date(&text) {
                prop_assert!(date.ends_with(" GMT"), "{date}");
            }
        }
    }

    fn all(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        read(text.as_bytes(), |entry| {
            let kind = if entry.is_sitemap { "sitemap " } else { "" };
            found.push(format!("{kind}{} {}", entry.address, entry.changed.unwrap_or_default()));
            true
        });
        found
    }

    #[test]
    fn pages_and_sitemaps_are_distinguished_and_images_are_ignored() {
        let pages = "<?xml version='1.0'?><urlset xmlns:image='i'><url><loc> https://x.org/a?b=1&amp;c=2 </loc>\
                     <lastmod>2024-05-01</lastmod><image:image><image:loc>https://x.org/a.png</image:loc></image:image>\
                     </url><url><loc><![CDATA[https://x.org/b]]></loc></url></urlset>";
        assert_eq!(all(pages), ["https://x.org/a?b=1&c=2 2024-05-01", "https://x.org/b "]);
        let index = "<sitemapindex><sitemap><loc>https://x.org/1.xml</loc></sitemap></sitemapindex>";
        assert_eq!(all(index), ["sitemap https://x.org/1.xml "]);
        for broken in ["", "<html><body><p>Not found", "<urlset><url><loc>https://x.org", "\u{0}<<<>>>"] {
            assert_eq!(all(broken), [""; 0], "{broken}");
        }
    }

    #[test]
    fn reading_stops_when_take_returns_false() {
        let endless = "<urlset>".to_owned() + &"<url><loc>https://x.org/a</loc></url>".repeat(100_000);
        let mut count = 0;
        read(endless.as_bytes(), |_| {
            count += 1;
            count < 10
        });
        assert_eq!(count, 10);
    }

    #[test]
    fn dates_are_converted_to_the_http_format() {
        let check = |w3c: &str, http: Option<&str>| assert_eq!(http_date(w3c).as_deref(), http, "{w3c}");
        check("2024-05-01", Some("Wed, 01 May 2024 00:00:00 GMT"));
        check("2024-05-01T12:30:15Z", Some("Wed, 01 May 2024 12:30:15 GMT"));
        check("2024-05-01T01:30:15.123+02:00", Some("Tue, 30 Apr 2024 23:30:15 GMT"));
        check("2024-05-01T12:30+00:00", Some("Wed, 01 May 2024 12:30:00 GMT"));
        for bad in ["", "yesterday", "2024-13-01", "2024-05-01T99:00:00Z", "2024-05-01T", "ä024-05-01"] {
            check(bad, None);
        }
    }
}
