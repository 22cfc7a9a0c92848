//! Pointers become citations, and citations become links.
//!
//! The model may only point (`[2]`) at numbered passages; titles, addresses and quotes come
//! from the index. What points nowhere, and every address the book does not have, is removed.
//!
//! Invariant: nothing here invents an address, a title or a quote.

use serde::{Deserialize, Serialize};

use crate::answer::Citation;

pub use link::deep_link;

mod link;

/// How citations look in the answer's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CitationStyle {
    /// `[Title - Heading](URL)`
    #[default]
    Markdown,
    /// `[Source: Title]`
    Source,
    /// `(from Title: Heading)`
    Inline,
    /// `[1]`, with a list at the end.
    Numbered,
}

impl CitationStyle {
    /// A citation as it stands behind a sentence.
    pub fn mark(self, citation: &Citation) -> String {
        let Citation { id, page_title, heading, url, .. } = citation;
        match (self, heading) {
            (Self::Markdown, Some(heading)) => format!("[{} - {}]({url})", label(page_title), label(heading)),
            (Self::Markdown, None) => format!("[{}]({url})", label(page_title)),
            (Self::Source, _) => format!("[Source: {page_title}]"),
            (Self::Inline, Some(heading)) => format!("(from {page_title}: {heading})"),
            (Self::Inline, None) => format!("(from {page_title})"),
            (Self::Numbered, _) => format!("[{id}]"),
        }
    }

    /// What stands below the answer, if anything.
    pub fn list(self, citations: &[Citation]) -> Option<String> {
        if self != Self::Numbered || citations.is_empty() {
            return None;
        }
        let line = |citation: &Citation| format!("[{}] {}", citation.id, Self::Markdown.mark(citation));
        Some(citations.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// Brackets inside a link's label would end it.
pub(crate) fn label(text: &str) -> String {
    text.replace('[', "(").replace(']', ")")
}

/// A sentence without its pointers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pointed {
    /// The words alone.
    pub text: String,
    /// The passages pointed at, from 0, each once.
    pub passages: Vec<usize>,
    /// Pointers and addresses that lead nowhere.
    pub removed: usize,
}

/// Which addresses a model may write.
pub trait Addresses {
    /// Whether the book has a page at `url`.
    fn is_page(&self, url: &str) -> bool;
    /// Whether the book's own text has `url`, as a command may.
    fn is_in_text(&self, url: &str) -> bool;
}

/// Takes the pointers out of a sentence a model wrote. `passages` of them exist.
pub fn take_pointers(sentence: &str, passages: usize, addresses: &dyn Addresses) -> Pointed {
    let mut pointed = Pointed::default();
    let mut rest = sentence;
    let mut fence: Option<usize> = None;
    while let Some(c) = rest.chars().next() {
        let backticks = rest.len() - rest.trim_start_matches('`').len();
        if backticks > 0 {
            // Code is not searched for pointers: `list[1]` is not one.
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

/// `[1]`, `[1, 2]` and `[words](address)` at the start of `rest`; returns what follows.
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
            // A picture's mark goes with its address.
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

/// The length of an address at the start of `rest`.
fn address(rest: &str) -> Option<usize> {
    let start = ["https://", "http://", "www."].iter().find(|start| rest.starts_with(**start))?;
    let length = rest
        .find(|c: char| c.is_whitespace() || matches!(c, ')' | ']' | '>' | '"' | '<' | '`'))
        .unwrap_or(rest.len());
    let length = rest[..length].trim_end_matches(['.', ',', ';', ':', '!', '?']).len();
    (length >= start.len()).then_some(length)
}

/// Closes the gap that something taken out leaves: no two spaces, none before a full stop.
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

    /// A book at book.org whose text has one more address.
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
    fn pointers_are_taken_out_and_counted_once() {
        check("A node is a process [1].", "A node is a process.", &[0], 0);
        check("Both [1, 3] and [3][2] agree.", "Both and agree.", &[0, 2, 1], 0);
    }

    #[test]
    fn a_pointer_to_nothing_is_removed() {
        check("A node [7] runs [0].", "A node runs.", &[], 2);
    }

    #[test]
    fn addresses_the_book_does_not_have_are_removed() {
        check("See [here](https://evil.org/x) or https://evil.org/y.", "See here or.", &[], 2);
        check("See ![x](https://evil.org/x.png) now! [y](https://evil.org)", "See x now! y", &[], 2);
        check("See https://book.org/a.", "See https://book.org/a.", &[], 0);
        check("See [a](https://book.org/a).", "See [a](https://book.org/a).", &[], 0);
    }

    #[test]
    fn code_is_left_alone() {
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
            chunk_id: String::new(),
            quote: String::new(),
            start: 0,
            end: 0,
        }
    }

    #[test]
    fn every_style_has_its_mark() {
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

    proptest! {
        #[test]
        fn no_pointer_leaves_the_passages_and_no_foreign_address_stays(
            sentence in "([a-z .`]{0,8}(\\[[0-9, ]{0,5}\\]|https?://[a-z./]{1,12}|\\[[a-z]{0,4}\\]\\([a-z:/.]{0,16}\\))?){0,8}",
        ) {
            let pointed = take_pointers(&sentence, 3, &Book);
            prop_assert!(pointed.passages.iter().all(|passage| *passage < 3));
            prop_assert!(!pointed.text.contains("https://") && !pointed.text.contains("http://"), "{}", pointed.text);
        }
    }
}
