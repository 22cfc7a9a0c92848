//! Links that open the page at the quoted words.
//!
//! A browser scrolls to and marks the words of a `:~:text=` fragment; one that does not
//! know it still goes to the heading.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything a text fragment gives a meaning to, and all else that needs it.
const FRAGMENT_TEXT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'~').remove(b'!').remove(b'*');

/// Quotes up to this many words are named whole; longer ones by both ends.
const WHOLE_QUOTE: usize = 8;

/// Words at each end of a longer quote.
const END_WORDS: usize = 5;

/// Words in front of an end that stands on the page more than once.
const PREFIX_WORDS: usize = 4;

/// `url` with a fragment for the words of `quote`, as they stand in `page`. Without one when
/// the browser could not find them: in code, in tables, in a file.
pub fn deep_link(url: &str, quote: &str, page: &str) -> String {
    let is_page = url.starts_with("http://") || url.starts_with("https://");
    if !is_page || quote.contains("```") || quote.trim_start().starts_with('|') {
        return url.to_owned();
    }
    let plain_quote = plain(quote);
    let words: Vec<&str> = plain_quote.split_whitespace().collect();
    if words.is_empty() {
        return url.to_owned();
    }
    let page = plain(page);
    let start = if words.len() <= WHOLE_QUOTE { words.join(" ") } else { words[..END_WORDS].join(" ") };
    let mut fragment = String::new();
    if page.matches(&start).count() > 1
        && let Some(before) = prefix(&page, &words.join(" "))
    {
        fragment.push_str(&format!("{}-,", encode(&before)));
    }
    fragment.push_str(&encode(&start));
    if words.len() > WHOLE_QUOTE {
        fragment.push_str(&format!(",{}", encode(&words[words.len() - END_WORDS..].join(" "))));
    }
    let separator = if url.contains('#') { "" } else { "#" };
    format!("{url}{separator}:~:text={fragment}")
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, FRAGMENT_TEXT).to_string()
}

/// The words in front of the quote on the page.
fn prefix(page: &str, quote: &str) -> Option<String> {
    let at = page.find(quote)?;
    let words: Vec<&str> = page[..at].split_whitespace().collect();
    let from = words.len().saturating_sub(PREFIX_WORDS);
    (from < words.len()).then(|| words[from..].join(" "))
}

/// The text as the page shows it: no backticks, no list markers, single spaces.
fn plain(text: &str) -> String {
    let mut words = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("```")) {
        let line = line.trim_start();
        let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let line = match line.strip_prefix("- ") {
            Some(item) => item,
            None if digits > 0 => line[digits..].strip_prefix(". ").unwrap_or(line),
            None => line,
        };
        words.extend(line.split_whitespace().map(|word| word.replace('`', "")));
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, quote: &str, page: &str, expected: &str) {
        assert_eq!(deep_link(url, quote, page), expected);
    }

    #[test]
    fn a_short_quote_is_named_whole() {
        check(
            "https://x.org/a#b",
            "Use `rclpy`, please.",
            "First. Use `rclpy`, please.",
            "https://x.org/a#b:~:text=Use%20rclpy%2C%20please.",
        );
    }

    #[test]
    fn a_long_quote_is_named_by_both_ends() {
        check(
            "https://x.org/a",
            "one two three four five six seven eight nine ten",
            "",
            "https://x.org/a#:~:text=one%20two%20three%20four%20five,six%20seven%20eight%20nine%20ten",
        );
    }

    #[test]
    fn words_that_stand_there_twice_get_a_prefix() {
        check(
            "https://x.org/a",
            "It works.",
            "Alpha. It works. Beta comes now. It works. Gamma.",
            "https://x.org/a#:~:text=Alpha.-,It%20works.",
        );
    }

    #[test]
    fn code_and_files_get_no_fragment() {
        check("https://x.org/a#b", "```sh\nls\n```", "", "https://x.org/a#b");
        check("file:///a.md#b", "Words.", "Words.", "file:///a.md#b");
    }
}
