//! Keep the nesting of a page within what can be parsed in linear time.
//!
//! Every tag the HTML parser meets may make it look through all open elements; fifty
//! thousand nested `div`s would take seconds. Browsers cut such pages too.
//!
//! Invariant: a page nested less deeply is returned as it is.

use std::borrow::Cow;

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

/// The page with the tags that nest too deeply left out; their text stays.
pub(super) fn limited(source: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut copied = 0;
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(open) = source[at..].find('<').map(|found| at + found) {
        let rest = &source[open + 1..];
        at = open + 1;
        if let Some((start, end)) = OPAQUE.iter().find(|(start, _)| rest.starts_with(start)) {
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
    fn unfinished_tags_are_left_alone() {
        for page in ["<", "<div", "<!--", "a < b", "</", "<ä>", "<script><div>"] {
            assert_eq!(limited(page), page);
        }
    }
}
