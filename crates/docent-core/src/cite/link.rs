//! Build links that open a page at the quoted words.
//!
//! A browser scrolls to the text of a `:~:text=` fragment and highlights it; a browser without support for
//! fragments still scrolls to the heading. Browsers match the start and the end of a fragment within one
//! block of the rendered page, which has no list markers, no colon after the name of a note and no bars in
//! tables. A quote of several blocks gets one fragment per block: if the page shows one of them differently, or
//! hides it in a closed tab, the others are still highlighted.
//!
//! Invariant: the start and the end of a fragment are each on one line of the quote, in words the page shows.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters to escape: those with a meaning in text fragments, and those that always need escaping.
const FRAGMENT_TEXT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'~').remove(b'!').remove(b'*');

/// Quotes up to this many words are used whole; of longer ones, only start and end.
const WHOLE_QUOTE: usize = 8;

/// Words used from the start and the end of a longer quote; more if these are not unique on the page.
const END_WORDS: usize = 5;

/// Words of context before a text that is not unique on the page.
const PREFIX_WORDS: usize = 4;

/// Maximum number of blocks of a quote that are highlighted.
const MOST_FRAGMENTS: usize = 6;

/// Maximum number of words in the name of a note or a term.
const LABEL_WORDS: usize = 5;

/// A text with fewer words or characters may occur in many places of a page.
const SURE_WORDS: usize = 3;
const SURE_LENGTH: usize = 12;

/// Adds a text fragment for `quote`, which is part of `page`, to `url`. Returns `url` unchanged if the quote
/// has no words or `url` is a file.
pub fn deep_link(url: &str, quote: &str, page: &str) -> String {
    let is_page = url.starts_with("http://") || url.starts_with("https://");
    let blocks = shown_blocks(quote);
    let (true, Some(first)) = (is_page, blocks.first()) else { return url.to_owned() };
    let page = shown_blocks(page);
    let page: Vec<String> = page.iter().flatten().map(|line| line.words.join(" ").to_lowercase()).collect();
    // A block that is too short to be unique, such as the name of a tab, would highlight other places.
    let is_sure =
        |block: &&Vec<Line>| block.len() > 1 || block.iter().all(|line| is_sure(&line.words, &page));
    let sure = blocks.iter().filter(is_sure).take(MOST_FRAGMENTS);
    let mut fragments: Vec<String> = sure.map(|block| fragment(block, &page)).collect();
    if fragments.is_empty() {
        fragments.push(fragment(first, &page));
    }
    let separator = if url.contains('#') { "" } else { "#" };
    format!("{url}{separator}:~:text={}", fragments.join("&text="))
}

/// A line of text as the page shows it.
struct Line {
    words: Vec<String>,
    /// Whether it directly follows the line before, with nothing else shown between them.
    follows: bool,
}

fn fragment(lines: &[Line], page: &[String]) -> String {
    // A first line that is too short to be unique is better used as context for the second line.
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

/// The whole text, or its start and end.
fn ends(lines: &[Line], page: &[String]) -> String {
    let start = start(lines, page);
    let used = start.split(' ').count();
    let words: Vec<&str> = lines.iter().flat_map(|line| &line.words).map(String::as_str).collect();
    if used == words.len() {
        return encode(&start);
    }
    // End at the last line that does not occur earlier in the quote; anything after it is not highlighted.
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

/// The start of a fragment: a short line whole, or as many words of a longer one as needed to be unique on
/// the page.
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

/// The end of a fragment: as many of the last words as needed to occur only once in `between`.
fn end(words: &[&str], between: &str) -> Option<String> {
    let least = END_WORDS.min(words.len()).max(1);
    let mut ends = (least..=words.len()).map(|count| words[words.len() - count..].join(" "));
    ends.find(|text| between.matches(&text.to_lowercase()).count() == 1)
}

/// The context before the first occurrence of a text that is not unique on the page. Only words on the same
/// line are certain to be adjacent.
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

/// Splits text into paragraphs, lists, tables and code, and those into lines as the page shows them; a browser
/// matches within one line.
fn shown_blocks(text: &str) -> Vec<Vec<Line>> {
    let mut blocks: Vec<Vec<Line>> = vec![Vec::new()];
    let mut fence: Option<&str> = None;
    let mut gap = true;
    let (mut after_blank, mut was_item) = (false, false);
    for line in text.lines() {
        let bare = line.trim();
        let marker = &bare[..bare.len() - bare.trim_start_matches('`').len()];
        let mut pieces: Vec<String> = Vec::new();
        if marker.len() >= 3 && fence.is_none_or(|open| bare == open) {
            fence = if fence.is_some() { None } else { Some(marker) };
            gap = true;
            blocks.push(Vec::new());
        } else if fence.is_some() {
            // Code keeps its spaces, and browsers do not match across two of them.
            pieces.extend(bare.split("  ").map(str::to_owned));
        } else if let Some(row) = bare.strip_prefix('|') {
            let row = row.strip_suffix('|').unwrap_or(row);
            let cells = row.split(" | ").map(|cell| without_backticks(cell).replace("\\|", "|"));
            // The line below the table header is not shown on the page.
            pieces.extend(cells.filter(|cell| !cell.trim().chars().all(|c| c == '-')));
        } else {
            let item = without_marker(bare);
            let said = without_label(item);
            let is_item = item.len() < bare.len();
            // Blank lines between the items of a list do not end it.
            if after_blank && !bare.is_empty() && !(is_item && was_item) {
                blocks.push(Vec::new());
            }
            was_item = if bare.is_empty() { was_item } else { is_item };
            gap |= bare.is_empty() || bare.starts_with('[') || !item.starts_with(said);
            pieces.push(without_backticks(said));
        }
        after_blank = bare.is_empty() && fence.is_none();
        for piece in pieces {
            let words: Vec<String> = piece.split_whitespace().map(str::to_owned).collect();
            if words.iter().any(|word| word.contains(char::is_alphanumeric)) {
                if let Some(block) = blocks.last_mut() {
                    block.push(Line { words, follows: !gap });
                }
                gap = false;
            } else {
                // Punctuation alone cannot be searched for, but it separates the lines around it.
                gap |= !words.is_empty();
            }
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// Removes the markers of list items (`- text`, `2. text`) and footnotes (`[1] text`).
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

/// Removes the name in `Note: text` and `term: text`, which is a separate block on the page.
fn without_label(line: &str) -> &str {
    let Some((label, text)) = line.split_once(": ") else { return line.trim_end_matches(':') };
    let is_label = !label.is_empty() && label.split_whitespace().count() <= LABEL_WORDS;
    let is_enough = text.contains(char::is_alphanumeric);
    if is_label && is_enough { without_label(text) } else { line.trim_end_matches(':') }
}

/// Removes the backticks around code spans; backticks inside a span stay.
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
    fn a_short_quote_is_used_whole() {
        check("Use `rclpy`, please.", "First. Use `rclpy`, please.", ":~:text=Use%20rclpy%2C%20please.");
        assert_eq!(deep_link("https://x.org/a", "Yes.", ""), "https://x.org/a#:~:text=Yes.");
    }

    #[test]
    fn of_a_long_quote_only_start_and_end_are_used() {
        check(
            "one two three four five six seven eight nine ten",
            "",
            ":~:text=one%20two%20three%20four%20five,six%20seven%20eight%20nine%20ten",
        );
    }

    #[test]
    fn start_and_end_are_extended_until_they_are_unique() {
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
    fn text_that_is_not_unique_gets_a_prefix() {
        check(
            "It works.",
            "Alpha. It works. Beta comes now. It works. Gamma.",
            ":~:text=alpha.-,It%20works.",
        );
        // Text of the block before is not certain to be adjacent on the page.
        check("It works.", "Alpha.\n\nIt works.\n\nIt works.", ":~:text=It%20works.");
    }

    #[test]
    fn start_and_end_stay_on_one_line() {
        check(
            "- One is enough here\n- Two\n  - three four",
            "",
            ":~:text=One%20is%20enough%20here,three%20four",
        );
        check("1. Stop.\n2. Go on.", "", ":~:text=Stop.-,Go%20on.");
        check("| a | b |\n| --- | --- |\n| `x` | 1 y |", "", ":~:text=a-,b,1%20y");
        // The page shows an escaped bar without its backslash.
        check("| a |\n| --- |\n| `x \\| y` |", "", ":~:text=a-,x%20%7C%20y");
        check(
            "```py\ndef run(x):\n    return x  # x\n```",
            "",
            ":~:text=def%20run%28x%29%3A-,return%20x,%23%20x",
        );
        check("```sh\nls\n```", "", ":~:text=ls");
        // Punctuation between two lines separates them.
        check("```py\n>>> x\n...\n>>> y\n>>> z\n```", "", ":~:text=%3E%3E%3E%20y-,%3E%3E%3E%20z");
        // The browser would end at the first occurrence, so the last line must not occur earlier in the
        // quote.
        check(
            "| gate | opened by |\n| sea gate | the tide |\n| wheel | gate |",
            "",
            ":~:text=gate-,opened%20by,wheel",
        );
    }

    #[test]
    fn every_block_of_a_quote_gets_its_own_fragment() {
        check(
            "On a laptop it only simulates:\n\n```sh\nmill simulate --speed 60\nmill stop\n```\n\nmacOS\n\n- One is enough.\n\n- Two are better.",
            "",
            ":~:text=On%20a%20laptop%20it%20only%20simulates&text=mill%20simulate%20%2D%2Dspeed%2060,mill%20stop\
             &text=One%20is%20enough.,Two%20are%20better.",
        );
        check("Only\n\nmacOS", "", ":~:text=Only");
    }

    #[test]
    fn names_of_notes_and_terms_are_removed() {
        check("Warning: Stand back.", "", ":~:text=Stand%20back.");
        check("Note: Why not\nbecause", "", ":~:text=Why%20not-,because");
        check("sill: The beam.", "", ":~:text=The%20beam.");
        check("sill: The beam.\nleat: The ditch.", "", ":~:text=The%20ditch.");
        check("Debian:", "", ":~:text=Debian");
        check("[Hale1901] A book.", "", ":~:text=A%20book.");
        check("Use ``a`b`` now.", "", ":~:text=Use%20a%60b%20now.");
    }

    #[test]
    fn punctuation_and_files_get_no_fragment() {
        check("---", "", "");
        assert_eq!(deep_link("file:///a.md#b", "Words.", "Words."), "file:///a.md#b");
    }
}
