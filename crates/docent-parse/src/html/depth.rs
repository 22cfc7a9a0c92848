//! Keeps parsing linear in time and memory.
//!
//! For every tag, the HTML parser may search all open elements, so fifty thousand nested `div`s would take
//! seconds. Browsers cut off such pages too. In addition, every paragraph reopens all bold and italic
//! elements that were left open before it, so four bytes can become a thousand elements.
//!
//! Invariant: a page within the depth limit is read unchanged. The tree of any page has at most as many nodes
//! as the page has bytes, plus a constant.

use std::borrow::Cow;

use html5ever::tendril::TendrilSink;
use scraper::{Html, HtmlTreeSink};

/// Twice the depth that browsers allow.
const DEEPEST: usize = 1024;

/// Elements without an end tag, or whose end tag is often omitted; they do not add depth.
const NOT_COUNTED: [&str; 31] = [
    "area", "base", "body", "br", "col", "colgroup", "dd", "dt", "embed", "head", "hr", "html", "img",
    "input", "li", "link", "meta", "optgroup", "option", "p", "param", "rp", "rt", "source", "tbody", "td",
    "tfoot", "th", "thead", "tr", "wbr",
];

/// Elements whose content is not parsed as HTML tags, and what ends them.
const OPAQUE: [(&str, &str); 5] =
    [("!--", "-->"), ("script", "</script"), ("style", "</style"), ("svg", "</svg"), ("math", "</math")];

/// Depth at which parsing stops. [`limited`] knows tags but not the rules of HTML, so elements can nest
/// deeper than it counts: lists are twice as deep.
const TOO_DEEP: usize = 3 * DEEPEST;

/// A page may have as many nodes as bytes plus `SPARE_NODES`, but never more than `MOST_NODES`.
const SPARE_NODES: usize = 10_000;
const MOST_NODES: usize = 1_000_000;

/// The number of bytes parsed between two checks of the tree.
const STRIDE: usize = 4096;

/// Parses a page. Returns the tree and whether parsing stopped before the end of the page.
pub(super) fn tree(source: &str) -> (Html, bool) {
    let source = limited(source);
    let most = MOST_NODES.min(source.len() + SPARE_NODES);
    let mut parser = html5ever::parse_document(HtmlTreeSink::new(Html::new_document()), Default::default());
    let mut rest = &*source;
    let mut whole = true;
    while whole && !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(STRIDE));
        parser.process(piece.into());
        let page = parser.tokenizer.sink.sink.0.borrow();
        let mut nodes = page.tree.nodes();
        whole = nodes.len() <= most
            && nodes.next_back().is_none_or(|last| last.ancestors().take(TOO_DEEP).count() < TOO_DEEP);
        rest = after;
    }
    (parser.finish(), !whole)
}

/// Removes the tags that nest too deeply; their text is kept.
fn limited(source: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut copied = 0;
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(open) = source[at..].find('<').map(|found| at + found) {
        let rest = &source[open + 1..];
        at = open + 1;
        let opaque = OPAQUE.iter().find(|(start, _)| {
            let after = rest.strip_prefix(start);
            after.is_some_and(|after| {
                *start == "!--" || !after.starts_with(|c: char| c.is_ascii_alphanumeric())
            })
        });
        if let Some((start, end)) = opaque {
            match rest[start.len()..].find(end) {
                Some(found) => at += start.len() + found,
                None => break,
            }
            continue;
        }
        let closes = rest.starts_with('/');
        let name = rest.trim_start_matches('/');
        let name = &name[..name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len())];
        if name.is_empty() || NOT_COUNTED.iter().any(|tag| tag.eq_ignore_ascii_case(name)) {
            continue;
        }
        let Some(end) = rest.find('>') else { break };
        at += end + 1;
        let too_deep = if closes { depth > DEEPEST } else { depth >= DEEPEST };
        depth = if closes { depth.saturating_sub(1) } else { depth + 1 };
        if too_deep {
            kept.push_str(&source[copied..open]);
            copied = at;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(source);
    }
    kept.push_str(&source[copied..]);
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_normal_depth_is_not_copied() {
        let page = "<p>a<br>b".repeat(5_000)
            + "<div><b>c</b></div><!-- <div> -->"
            + &"<svg><g/></svg>".repeat(5_000);
        assert!(matches!(limited(&page), Cow::Borrowed(_)));
    }

    #[test]
    fn tags_beyond_the_limit_are_removed_and_their_text_kept() {
        let page = format!("{}deep{}after<i>x</i>", "<div>".repeat(5_000), "</div>".repeat(5_000));
        let expected = format!("{}deep{}after<i>x</i>", "<div>".repeat(DEEPEST), "</div>".repeat(DEEPEST));
        assert_eq!(limited(&page), expected);
    }

    #[test]
    fn parsing_stops_when_the_tree_outgrows_the_page() {
        let open: String = (0..1000).map(|number| format!("<b id={number}>")).collect();
        let (page, cut) = tree(&format!("<p>{open}</p>{}", "<p>x".repeat(100_000)));
        assert!(cut && page.tree.nodes().len() < 3_000_000, "{} nodes", page.tree.nodes().len());
        // HTML elements break out of an `svg` and nest as usual.
        let (page, cut) = tree(&format!("<svg>{}</svg>", "<div>".repeat(100_000)));
        assert!(cut && page.tree.nodes().len() < 10_000, "{} nodes", page.tree.nodes().len());
        let (_, cut) = tree(&"<p>A <b>word</b><br>".repeat(50_000));
        assert!(!cut);
    }

    #[test]
    fn tag_names_with_the_prefix_of_an_opaque_element_are_counted() {
        let page = format!("<styled>{}", "<div>".repeat(5_000));
        assert_eq!(limited(&page).matches("<div>").count(), DEEPEST - 1);
    }

    #[test]
    fn unfinished_tags_are_left_alone() {
        for page in ["<", "<div", "<!--", "a < b", "</", "<ä>", "<script><div>"] {
            assert_eq!(limited(page), page);
        }
    }
}
