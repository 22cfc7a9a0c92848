//! Keep a page within what can be parsed in linear time and memory.
//!
//! Every tag the HTML parser meets may make it look through all open elements; fifty
//! thousand nested `div`s would take seconds. Browsers cut such pages too. And a paragraph repeats
//! all bold and italics that were left open before it, so that four bytes may become a
//! thousand elements.
//!
//! Invariant: a page nested less deeply is read as it is. The tree of any page has fewer
//! nodes than the page has bytes, but for a constant.

use std::borrow::Cow;

use html5ever::tendril::TendrilSink;
use scraper::{Html, HtmlTreeSink};

/// Twice what browsers allow.
const DEEPEST: usize = 1024;

/// Elements without an end tag, or whose end tag is often left out: they do not nest by themselves.
const NOT_COUNTED: [&str; 31] = [
    "area", "base", "body", "br", "col", "colgroup", "dd", "dt", "embed", "head", "hr", "html", "img",
    "input", "li", "link", "meta", "optgroup", "option", "p", "param", "rp", "rt", "source", "tbody", "td",
    "tfoot", "th", "thead", "tr", "wbr",
];

/// Content that holds no HTML tags of its own, and what ends it.
const OPAQUE: [(&str, &str); 5] =
    [("!--", "-->"), ("script", "</script"), ("style", "</style"), ("svg", "</svg"), ("math", "</math")];

/// Elements deeper than this got past [`limited`], which knows tags but not the rules of HTML. Lists
/// have twice as many as are counted.
const TOO_DEEP: usize = 3 * DEEPEST;

/// Nodes of a page: fewer than its bytes and these, and never more than the most.
const SPARE_NODES: usize = 10_000;
const MOST_NODES: usize = 1_000_000;

/// So many bytes are parsed before the tree is looked at.
const STRIDE: usize = 4096;

/// The tree of a page, and whether it ends before the page does.
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

/// The page with the tags that nest too deeply left out; their text stays.
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
    fn a_page_of_usual_depth_is_not_copied() {
        let page = "<p>a<br>b".repeat(5_000)
            + "<div><b>c</b></div><!-- <div> -->"
            + &"<svg><g/></svg>".repeat(5_000);
        assert!(matches!(limited(&page), Cow::Borrowed(_)));
    }

    #[test]
    fn tags_beyond_the_limit_go_and_their_text_stays() {
        let page = format!("{}deep{}after<i>x</i>", "<div>".repeat(5_000), "</div>".repeat(5_000));
        let expected = format!("{}deep{}after<i>x</i>", "<div>".repeat(DEEPEST), "</div>".repeat(DEEPEST));
        assert_eq!(limited(&page), expected);
    }

    #[test]
    fn a_tree_that_outgrows_its_page_ends() {
        let open: String = (0..1000).map(|number| format!("<b id={number}>")).collect();
        let (page, cut) = tree(&format!("<p>{open}</p>{}", "<p>x".repeat(100_000)));
        assert!(cut && page.tree.nodes().len() < 3_000_000, "{} nodes", page.tree.nodes().len());
        // What breaks out of a drawing nests as it does elsewhere.
        let (page, cut) = tree(&format!("<svg>{}</svg>", "<div>".repeat(100_000)));
        assert!(cut && page.tree.nodes().len() < 10_000, "{} nodes", page.tree.nodes().len());
        let (_, cut) = tree(&"<p>A <b>word</b><br>".repeat(50_000));
        assert!(!cut);
    }

    #[test]
    fn names_that_begin_like_those_of_opaque_elements_are_counted() {
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
