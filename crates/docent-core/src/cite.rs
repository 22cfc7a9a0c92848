//! Remove passage numbers and unknown URLs from a model's text, and render citations.
//!
//! A model can only point at numbered passages (`[2]`); titles, URLs and quotes come from the index. Invalid
//! numbers, and URLs that are not in the book, are removed.
//!
//! Invariant: every URL and title in a citation comes from the index.

use serde::{Deserialize, Serialize};

use crate::answer::Citation;

pub use link::deep_link;

mod link;

/// How citations are rendered in the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CitationStyle {
    /// `[Title - Heading](URL)`
    #[default]
    Markdown,
    /// `[Source: Title]`
    Source,
    /// `(from Title: Heading)`
    Inline,
    /// `[1]`, with a list of sources at the end
    Numbered,
}

impl CitationStyle {
    /// The citation as appended to a sentence.
    pub fn mark(self, citation: &Citation) -> String {
        let Citation { id, page_title, heading, url, .. } = citation;
        // The first heading of a page often repeats its title.
        let heading = heading.as_ref().filter(|heading| *heading != page_title);
        let version = citation.version.as_ref().map(|version| format!("version {version}"));
        let beside = version.as_ref().map_or_else(String::new, |version| format!(" ({})", label(version)));
        let after = version.as_ref().map_or_else(String::new, |version| format!(", {version}"));
        match (self, heading) {
            (Self::Markdown, Some(heading)) => {
                format!("[{} - {}{beside}]({url})", label(page_title), label(heading))
            }
            (Self::Markdown, None) => format!("[{}{beside}]({url})", label(page_title)),
            (Self::Source, _) => format!("[Source: {page_title}{after}]"),
            (Self::Inline, Some(heading)) => format!("(from {page_title}: {heading}{after})"),
            (Self::Inline, None) => format!("(from {page_title}{after})"),
            (Self::Numbered, _) => format!("[{id}]"),
        }
    }

    /// The list of sources below the answer, if the style has one.
    pub fn list(self, citations: &[Citation]) -> Option<String> {
        if self != Self::Numbered || citations.is_empty() {
            return None;
        }
        let line = |citation: &Citation| format!("[{}] {}", citation.id, Self::Markdown.mark(citation));
        Some(citations.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// Replaces brackets, which would end the label of a link.
pub(crate) fn label(text: &str) -> String {
    text.replace('[', "(").replace(']', ")")
}

/// A sentence without its pointers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pointed {
    /// The text without pointers.
    pub text: String,
    /// The passages pointed at, from 0, without duplicates.
    pub passages: Vec<usize>,
    /// Number of invalid pointers and unknown URLs that were removed.
    pub removed: usize,
}

/// Decides which URLs a model may use.
pub trait Addresses {
    /// Whether the book has a page at `url`.
    fn is_page(&self, url: &str) -> bool;
    /// Whether `url` occurs in the text of the book, for example in a command.
    fn is_in_text(&self, url: &str) -> bool;
}

/// Removes pointers and unknown URLs from a model's sentence. There are `passages` valid passages.
pub fn take_pointers(sentence: &str, passages: usize, addresses: &dyn Addresses) -> Pointed {
    let mut pointed = Pointed::default();
    let mut rest = sentence;
    let mut fence: Option<usize> = None;
    while let Some(c) = rest.chars().next() {
        let backticks = rest.len() - rest.trim_start_matches('`').len();
        if backticks > 0 {
            // Pointers inside code are ignored: `list[1]` is not one.
            fence = match fence {
                Some(open) if open == backticks => None,
                Some(open) => Some(open),
                None => Some(backticks),
            };
            pointed.text.push_str(&rest[..backticks]);
            rest = &rest[backticks..];
            continue;
        }
        if let Some(length) = address(rest) {
            let url = &rest[..length];
            if addresses.is_page(url) || (fence.is_some() && addresses.is_in_text(url)) {
                pointed.text.push_str(url);
            } else {
                pointed.removed += 1;
                close_gap(&mut pointed.text, &rest[length..]);
            }
            rest = &rest[length..];
            continue;
        }
        if fence.is_none()
            && let Some(after) = bracket(rest, passages, addresses, &mut pointed)
        {
            rest = after;
            continue;
        }
        pointed.text.push(c);
        rest = &rest[c.len_utf8()..];
    }
    pointed.text = pointed.text.trim().to_owned();
    pointed
}

/// Handles `[1]`, `[1, 2]` or `[label](url)` at the start of `rest` and returns what follows.
fn bracket<'a>(
    rest: &'a str,
    passages: usize,
    addresses: &dyn Addresses,
    pointed: &mut Pointed,
) -> Option<&'a str> {
    let inside = rest.strip_prefix('[')?;
    let end = inside.find(']')?;
    let (label, after) = (&inside[..end], &inside[end + 1..]);
    if let Some(target) = after.strip_prefix('(') {
        let close = target.find(')')?;
        let url = target[..close].split_whitespace().next().unwrap_or_default();
        if addresses.is_page(url) {
            pointed.text.push_str(&rest[..rest.len() - target.len() + close + 1]);
        } else {
            // Remove the `!` of an image along with its URL.
            let before = pointed.text.strip_suffix('!');
            if before.is_some_and(|before| !before.ends_with(char::is_alphanumeric)) {
                pointed.text.pop();
            }
            pointed.text.push_str(label);
            pointed.removed += 1;
        }
        return Some(&target[close + 1..]);
    }
    let is_pointer =
        !label.is_empty() && label.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | ' ' | ';'));
    if !is_pointer {
        return None;
    }
    for number in label.split([',', ';', ' ']).filter(|number| !number.is_empty()) {
        match number.parse::<usize>() {
            Ok(number) if (1..=passages).contains(&number) => {
                if !pointed.passages.contains(&(number - 1)) {
                    pointed.passages.push(number - 1);
                }
            }
            _ => pointed.removed += 1,
        }
    }
    close_gap(&mut pointed.text, after);
    Some(after)
}

/// The length of a URL at the start of `rest`.
fn address(rest: &str) -> Option<usize> {
    let start = ["https://", "http://", "www."].iter().find(|start| rest.starts_with(**start))?;
    let length = rest
        .find(|c: char| c.is_whitespace() || matches!(c, ')' | ']' | '>' | '"' | '<' | '`'))
        .unwrap_or(rest.len());
    let length = rest[..length].trim_end_matches(['.', ',', ';', ':', '!', '?']).len();
    (length >= start.len()).then_some(length)
}

/// Removes the space that is left over after a removal: double spaces, and spaces before punctuation.
fn close_gap(text: &mut String, after: &str) {
    let next = after.chars().next();
    if text.ends_with(' ')
        && next.is_none_or(|next| matches!(next, ' ' | '\n' | '.' | ',' | ';' | ':' | '!' | '?' | ')' | '`'))
    {
        text.truncate(text.trim_end_matches(' ').len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A book at book.org whose text mentions one other URL.
    struct Book;

    impl Addresses for Book {
        fn is_page(&self, url: &str) -> bool {
            url.starts_with("https://book.org/")
        }

        fn is_in_text(&self, url: &str) -> bool {
            url == "https://tool.org/get"
        }
    }

    fn check(sentence: &str, text: &str, passages: &[usize], removed: usize) {
        let expected = Pointed { text: text.to_owned(), passages: passages.to_vec(), removed };
        assert_eq!(take_pointers(sentence, 3, &Book), expected);
    }

    #[test]
    fn pointers_are_removed_and_returned_without_duplicates() {
        check("A node is a process [1].", "A node is a process.", &[0], 0);
        check("Both [1, 3] and [3][2] agree.", "Both and agree.", &[0, 2, 1], 0);
    }

    #[test]
    fn an_invalid_pointer_is_removed() {
        check("A node [7] runs [0].", "A node runs.", &[], 2);
    }

    #[test]
    fn unknown_urls_are_removed() {
        check("See [here](https://evil.org/x) or https://evil.org/y.", "See here or.", &[], 2);
        check("See ![x](https://evil.org/x.png) now! [y](https://evil.org)", "See x now! y", &[], 2);
        check("See https://book.org/a.", "See https://book.org/a.", &[], 0);
        check("See [a](https://book.org/a).", "See [a](https://book.org/a).", &[], 0);
    }

    #[test]
    fn pointers_in_code_are_ignored() {
        check("Use `list[1]` [2].", "Use `list[1]`.", &[1], 0);
        check("```py\nx[1]\n```", "```py\nx[1]\n```", &[], 0);
        check("Run `curl https://tool.org/get` [1].", "Run `curl https://tool.org/get`.", &[0], 0);
        check("Run `curl https://evil.org/get` or https://tool.org/get.", "Run `curl` or.", &[], 2);
    }

    fn citation() -> Citation {
        Citation {
            id: 2,
            page_title: "Nodes [new]".into(),
            heading: Some("Names".into()),
            url: "https://book.org/n#names".into(),
            book_name: String::new(),
            module_name: "m".into(),
            version: None,
            locale: None,
            chunk_id: String::new(),
            quote: String::new(),
            html: None,
            start: 0,
            end: 0,
            figures: Vec::new(),
        }
    }

    #[test]
    fn a_heading_that_repeats_the_title_is_named_once() {
        let citation = Citation { page_title: "Names".into(), ..citation() };
        assert_eq!(CitationStyle::Markdown.mark(&citation), "[Names](https://book.org/n#names)");
        assert_eq!(CitationStyle::Inline.mark(&citation), "(from Names)");
    }

    #[test]
    fn each_style_renders_a_citation() {
        let marks =
            [CitationStyle::Markdown, CitationStyle::Source, CitationStyle::Inline, CitationStyle::Numbered]
                .map(|style| style.mark(&citation()));
        assert_eq!(
            marks,
            [
                "[Nodes (new) - Names](https://book.org/n#names)",
                "[Source: Nodes [new]]",
                "(from Nodes [new]: Names)",
                "[2]",
            ]
        );
        assert_eq!(
            CitationStyle::Numbered.list(&[citation()]).as_deref(),
            Some("[2] [Nodes (new) - Names](https://book.org/n#names)")
        );
    }

    #[test]
    fn a_citation_names_its_version() {
        let citation = Citation { version: Some("2.4".into()), ..citation() };
        let marks =
            [CitationStyle::Markdown, CitationStyle::Source, CitationStyle::Inline, CitationStyle::Numbered]
                .map(|style| style.mark(&citation));
        assert_eq!(
            marks,
            [
                "[Nodes (new) - Names (version 2.4)](https://book.org/n#names)",
                "[Source: Nodes [new], version 2.4]",
                "(from Nodes [new]: Names, version 2.4)",
                "[2]",
            ]
        );
    }

    proptest! {
        #[test]
        fn pointers_are_in_range_and_no_unknown_url_remains(
            sentence in "([a-z .`]{0,8}(\\[[0-9, ]{0,5}\\]|https?://[a-z./]{1,12}|\\[[a-z]{0,4}\\]\\([a-z:/.]{0,16}\\))?){0,8}",
        ) {
            let pointed = take_pointers(&sentence, 3, &Book);
            prop_assert!(pointed.passages.iter().all(|passage| *passage < 3));
            prop_assert!(!pointed.text.contains("https://") && !pointed.text.contains("http://"), "{}", pointed.text);
        }
    }
}
