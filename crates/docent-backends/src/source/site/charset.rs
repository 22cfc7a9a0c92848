//! Decodes the bytes of a page. The encoding comes from the byte order mark, the header, the page or a guess.
//!
//! Invariant: every byte sequence can be decoded; invalid bytes are skipped and reported.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Number of bytes in which a page may declare its encoding, as in browsers.
const META_WITHIN: usize = 1024;

/// The text, and whether there were invalid bytes.
pub fn decode(bytes: &[u8], content_type: &str) -> (String, bool) {
    let encoding = match Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding,
        None => label(content_type, "charset=")
            .or_else(|| label(&head(bytes), "charset="))
            .or_else(|| label(&head(bytes), "encoding="))
            .unwrap_or_else(|| guess(bytes)),
    };
    // A page with a wrong label is usually UTF-8.
    let encoding = if std::str::from_utf8(bytes).is_ok() && !encoding.is_ascii_compatible() && !has_bom(bytes)
    {
        UTF_8
    } else {
        encoding
    };
    let (text, _, broken) = encoding.decode(bytes);
    (if broken { text.replace('\u{fffd}', "") } else { text.into_owned() }, broken)
}

fn has_bom(bytes: &[u8]) -> bool {
    Encoding::for_bom(bytes).is_some()
}

fn head(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(META_WITHIN)]).to_ascii_lowercase()
}

/// The encoding named after `key`, with or without quotes.
fn label(text: &str, key: &str) -> Option<&'static Encoding> {
    let text = text.to_ascii_lowercase();
    let rest = text[text.find(key)? + key.len()..].trim_start().trim_start_matches(['"', '\'']);
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:".contains(c))).unwrap_or(rest.len());
    Encoding::for_label(&rest.as_bytes()[..end])
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { WINDOWS_1252 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_byte_sequence_can_be_decoded(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            kind in "(text/html)?;? ?(charset=)?[\"a-zA-Z0-9_:é-]{0,12}",
            word in "(<meta charset=|encoding=)?[\"'a-z0-9-]{0,12}",
        ) {
            let whole = [word.as_bytes(), &bytes].concat();
            let (text, broken) = decode(&whole, &kind);
            prop_assert!(!broken || !text.contains('\u{fffd}'), "{kind}");
        }

        #[test]
        fn valid_utf_8_is_unchanged(text in "[^\u{feff}]{0,60}") {
            prop_assert_eq!(decode(text.as_bytes(), "text/html; charset=utf-8"), (text, false));
        }
    }

    #[test]
    fn the_most_reliable_sign_of_an_encoding_is_used() {
        let check = |bytes: &[u8], kind: &str, text: &str| assert_eq!(decode(bytes, kind).0, text, "{kind}");
        check("é".as_bytes(), "text/html", "é");
        check(b"\xe9", "text/html; charset=ISO-8859-1", "é");
        check(b"\xe9", "text/html", "é");
        check(b"\xef\xbb\xbf\xc3\xa9", "text/html; charset=latin1", "é");
        check(b"\xff\xfea\0", "text/html", "a");
        check(b"<meta charset=\"shift_jis\">\x82\xa0", "text/html", "<meta charset=\"shift_jis\">あ");
        check(
            b"<?xml version='1.0' encoding='windows-1251'?>\xef",
            "",
            "<?xml version='1.0' encoding='windows-1251'?>п",
        );
        check(b"\xd0\xb6", "text/html; charset=nonsense", "ж");
        check(b"plain", "text/html; charset=utf-16", "plain");
    }

    #[test]
    fn invalid_bytes_are_skipped_and_reported() {
        assert_eq!(decode(b"a\xffb", "text/html; charset=utf-8"), ("ab".to_owned(), true));
        assert_eq!(decode(b"", ""), (String::new(), false));
    }
}
