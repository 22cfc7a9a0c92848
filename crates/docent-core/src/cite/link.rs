//! Links that open the page at the quoted words.
//!
//! A browser scrolls to and marks the words of a `:~:text=` fragment; one that does not
//! know it still goes to the heading. A browser looks for each end of the words within one
//! block of the page, and for what the page shows: a list has no hyphens there, a note no colon
//! behind its name, a row of a table no bars.
//!
//! Invariant: each end of a fragment stands on one line of the quote, in words the page shows.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything a text fragment gives a meaning to, and all else that needs it.
const FRAGMENT_TEXT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'~').remove(b'!').remove(b'*');

/// Quotes up to this many words are named whole; longer ones by both ends.
const WHOLE_QUOTE: usize = 8;

/// Words at each end of a longer quote; more where these stand on the page more than once.
const END_WORDS: usize = 5;

/// Words in front of an end that stands on the page more than once.
const PREFIX_WORDS: usize = 4;

/// The longest name of a note or a term, in words.
const LABEL_WORDS: usize = 5;

/// Fewer words than this, or letters, stand in many places of a page.
const SURE_WORDS: usize = 3;
const SURE_LENGTH: usize = 12;

/// `url` with a fragment for the words of `quote`, as they stand in `page`. Without one when
/// there are no words to find, and for a file.
pub fn deep_link(url: &str, quote: &str, page: &str) -> String {
    let is_page = url.starts_with("http://") || url.starts_with("https://");
    let lines = shown_lines(quote);
    if !is_page || lines.is_empty() {
        return url.to_owned();
    }
    let page: Vec<String> =
        shown_lines(page).iter().map(|line| line.words.join(" ").to_lowercase()).collect();
    let separator = if url.contains('#') { "" } else { "#" };
    format!("{url}{separator}:~:text={}", fragment(&lines, &page))
}

/// A line of a text as the page shows it.
struct Line {
    words: Vec<String>,
    /// Nothing the page shows stands between it and the line before.
    follows: bool,
}

fn fragment(lines: &[Line], page: &[String]) -> String {
    // A first line of a word or two says where the second is better than it says where it is.
    if let [first, second, ..] = lines
        && !is_sure(&first.words, page)
    {
        if !second.follows {
            return fragment(&lines[1..], page);
        }
        let from = first.words.len().saturating_sub(PREFIX_WORDS);
        return format!("{}-,{}", encode(&first.words[from..].join(" ")), ends(&lines[1..], page));
    }
    let start = start(lines, page);
    format!("{}{}", before(&start, page), ends(lines, page))
}

fn is_sure(words: &[String], page: &[String]) -> bool {
    let text = words.join(" ");
    words.len() >= SURE_WORDS && text.len() >= SURE_LENGTH && count(&text, page) < 2
}

/// The words, or both ends of them.
fn ends(lines: &[Line], page: &[String]) -> String {
    let start = start(lines, page);
    let used = start.split(' ').count();
    let words: Vec<&str> = lines.iter().flat_map(|line| &line.words).map(String::as_str).collect();
    if used == words.len() {
        return encode(&start);
    }
    // The last line that does not stand among the others before it; the rest is left unmarked.
    let mut length = words.len();
    for line in lines.iter().rev() {
        let first = length - line.words.len();
        let between = words[used.min(length)..length].join(" ").to_lowercase();
        if let Some(end) = end(&words[first.max(used).min(length)..length], &between) {
            return format!("{},{}", encode(&start), encode(&end));
        }
        length = first;
    }
    encode(&start)
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, FRAGMENT_TEXT).to_string()
}

/// A short line whole, of a longer one as many of its first words as it takes to stand on the
/// page once.
fn start(lines: &[Line], page: &[String]) -> String {
    let Some(Line { words, .. }) = lines.first() else { return String::new() };
    if lines.len() == 1 && words.len() <= WHOLE_QUOTE {
        return words.join(" ");
    }
    let room = if lines.len() == 1 { words.len() - 1 } else { words.len() };
    let least = END_WORDS.min(room);
    let unique = (least..=room).map(|count| words[..count].join(" ")).find(|text| count(text, page) < 2);
    unique.unwrap_or_else(|| words[..least].join(" "))
}

/// As many of the last words as it takes not to stand before their place in `between`.
fn end(words: &[&str], between: &str) -> Option<String> {
    let least = END_WORDS.min(words.len()).max(1);
    let mut ends = (least..=words.len()).map(|count| words[words.len() - count..].join(" "));
    ends.find(|text| between.matches(&text.to_lowercase()).count() == 1)
}

/// The words in front of a text that stands on the page more than once, where it stands first.
/// Only words of the same line are sure to be next to it.
fn before(text: &str, page: &[String]) -> String {
    if count(text, page) < 2 {
        return String::new();
    }
    let text = text.to_lowercase();
    let Some((line, at)) = page.iter().find_map(|line| Some((line, line.find(&text)?))) else {
        return String::new();
    };
    let words: Vec<&str> = line[..at].split_whitespace().collect();
    let from = words.len().saturating_sub(PREFIX_WORDS);
    if words.is_empty() { String::new() } else { format!("{}-,", encode(&words[from..].join(" "))) }
}

fn count(text: &str, page: &[String]) -> usize {
    let text = text.to_lowercase();
    page.iter().map(|line| line.matches(&text).count()).sum()
}

/// The text as the page shows it: a line for each that a browser searches by itself.
fn shown_lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut gap = true;
    for line in text.lines() {
        let bare = line.trim();
        let marker = &bare[..bare.len() - bare.trim_start_matches('`').len()];
        let mut pieces: Vec<String> = Vec::new();
        if marker.len() >= 3 && fence.is_none_or(|open| bare == open) {
            fence = if fence.is_some() { None } else { Some(marker) };
            gap = true;
        } else if fence.is_some() {
            // Code keeps its spaces, and a browser does not look past two of them.
            pieces.extend(bare.split("  ").map(str::to_owned));
        } else if let Some(row) = bare.strip_prefix('|') {
            let cells = row.trim_end_matches('|').split(" | ").map(without_backticks);
            // The rule below the head is not on the page.
            pieces.extend(cells.filter(|cell| !cell.trim().chars().all(|c| c == '-')));
        } else {
            let item = without_marker(bare);
            let said = without_label(item);
            gap |= bare.is_empty() || bare.starts_with('[') || !item.starts_with(said);
            pieces.push(without_backticks(said));
        }
        for piece in pieces {
            let words: Vec<String> = piece.split_whitespace().map(str::to_owned).collect();
            if words.iter().any(|word| word.contains(char::is_alphanumeric)) {
                lines.push(Line { words, follows: !gap });
                gap = false;
            } else {
                // Signs alone are nothing to look for, but they are there.
                gap |= !words.is_empty();
            }
        }
    }
    lines
}

/// `- text` and `2. text` without what the browser draws, `[1] text` without the number that
/// stands beside a footnote.
fn without_marker(line: &str) -> &str {
    if let Some(item) = line.strip_prefix("- ") {
        return item;
    }
    if let Some((label, note)) = line.strip_prefix('[').and_then(|rest| rest.split_once("] "))
        && !label.contains(char::is_whitespace)
    {
        return note;
    }
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    line[digits..].strip_prefix(". ").filter(|_| digits > 0).unwrap_or(line)
}

/// `Note: text` without the name of the note, which is a block of its own on the page; so is a term.
fn without_label(line: &str) -> &str {
    let Some((label, text)) = line.split_once(": ") else { return line.trim_end_matches(':') };
    let is_label = !label.is_empty() && label.split_whitespace().count() <= LABEL_WORDS;
    let is_enough = text.contains(char::is_alphanumeric);
    if is_label && is_enough { without_label(text) } else { line.trim_end_matches(':') }
}

/// Code spans as they show: what stands between backticks, which may be backticks too.
fn without_backticks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let marker = &rest[..rest.len() - rest.trim_start_matches('`').len()];
        rest = &rest[marker.len()..];
        match rest.find(marker) {
            Some(end) => {
                out.push_str(&rest[..end]);
                rest = &rest[end + marker.len()..];
            }
            None => break,
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(quote: &str, page: &str, expected: &str) {
        let link = deep_link("https://x.org/a#b", quote, page);
        assert_eq!(link.strip_prefix("https://x.org/a#b").unwrap(), expected);
    }

    #[test]
    fn a_short_quote_is_named_whole() {
        check("Use `rclpy`, please.", "First. Use `rclpy`, please.", ":~:text=Use%20rclpy%2C%20please.");
        assert_eq!(deep_link("https://x.org/a", "Yes.", ""), "https://x.org/a#:~:text=Yes.");
    }

    #[test]
    fn a_long_quote_is_named_by_both_ends() {
        check(
            "one two three four five six seven eight nine ten",
            "",
            ":~:text=one%20two%20three%20four%20five,six%20seven%20eight%20nine%20ten",
        );
    }

    #[test]
    fn an_end_is_as_long_as_it_takes_to_be_the_only_one() {
        check(
            "a b c d e f g h i j",
            "A b c d e x.\na b c d e f g h i j",
            ":~:text=a%20b%20c%20d%20e%20f,g%20h%20i%20j",
        );
        check(
            "p q r s t f g h i j and then f g h i j",
            "",
            ":~:text=p%20q%20r%20s%20t,then%20f%20g%20h%20i%20j",
        );
    }

    #[test]
    fn words_that_stand_there_twice_get_those_in_front_of_them() {
        check(
            "It works.",
            "Alpha. It works. Beta comes now. It works. Gamma.",
            ":~:text=alpha.-,It%20works.",
        );
        // What stands before a block is not sure to be next to it on the page.
        check("It works.", "Alpha.\n\nIt works.\n\nIt works.", ":~:text=It%20works.");
    }

    #[test]
    fn no_end_runs_over_a_line() {
        check(
            "- One is enough here\n- Two\n  - three four",
            "",
            ":~:text=One%20is%20enough%20here,three%20four",
        );
        check("1. Stop.\n2. Go on.", "", ":~:text=Stop.-,Go%20on.");
        check("| a | b |\n| --- | --- |\n| `x` | 1 y |", "", ":~:text=a-,b,1%20y");
        check(
            "```py\ndef run(x):\n    return x  # x\n```",
            "",
            ":~:text=def%20run%28x%29%3A-,return%20x,%23%20x",
        );
        check("```sh\nls\n```", "", ":~:text=ls");
        // What stands between two lines parts them, be it only signs.
        check("```py\n>>> x\n...\n>>> y\n>>> z\n```", "", ":~:text=%3E%3E%3E%20y-,%3E%3E%3E%20z");
        // A last line that stands in the quote before is not where the browser would end.
        check(
            "| gate | opened by |\n| sea gate | the tide |\n| wheel | gate |",
            "",
            ":~:text=gate-,opened%20by,wheel",
        );
    }

    #[test]
    fn names_that_stand_apart_are_left_out() {
        check("Warning: Stand back.", "", ":~:text=Stand%20back.");
        check("Note: Why not\nbecause", "", ":~:text=Why%20not-,because");
        check("sill: The beam.", "", ":~:text=The%20beam.");
        check("sill: The beam.\nleat: The ditch.", "", ":~:text=The%20ditch.");
        check("Debian:", "", ":~:text=Debian");
        check("[Hale1901] A book.", "", ":~:text=A%20book.");
        check("Use ``a`b`` now.", "", ":~:text=Use%20a%60b%20now.");
    }

    #[test]
    fn signs_and_files_get_no_fragment() {
        check("---", "", "");
        assert_eq!(deep_link("file:///a.md#b", "Words.", "Words."), "file:///a.md#b");
    }
}
