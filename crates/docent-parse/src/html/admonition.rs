//! The titles of notes, tips and warnings.
//!
//! Invariant: an admonition always has a title; without its own it is named after its kind.

use scraper::ElementRef;

use super::element::is_admonition_title;
use super::line::one_line;

/// The label of an admonition, from its title or its class.
pub(super) fn title(element: ElementRef<'_>) -> String {
    const NEAR: usize = 6;
    let written =
        element.descendent_elements().skip(1).take(NEAR).find(|inside| is_admonition_title(*inside));
    let written = written.map(one_line).unwrap_or_default();
    let written = written.trim_end_matches(':');
    if !written.is_empty() {
        return capitalized(written);
    }
    let named = element.value().classes().find_map(|class| {
        let kind = class.rsplit('-').next().unwrap_or_default();
        ["note", "tip", "info", "warning", "danger", "caution", "important", "seealso", "hint"]
            .contains(&kind)
            .then(|| capitalized(kind))
    });
    named.unwrap_or_else(|| "Note".to_owned())
}

/// `[!NOTE]` at the start of a quote, as GitHub writes admonitions.
pub(super) fn quote_marker(quote: ElementRef<'_>) -> Option<String> {
    let first = quote.text().map(str::trim_start).find(|text| !text.is_empty())?;
    let (kind, _) = first.strip_prefix("[!")?.split_once(']')?;
    let is_word = !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphabetic());
    is_word.then(|| capitalized(&kind.to_ascii_lowercase()))
}

fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}
