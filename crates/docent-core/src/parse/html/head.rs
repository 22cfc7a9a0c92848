//! What a page says about itself to programs: its address, its Markdown, where it leads.
//!
//! Invariant: addresses are as they stand on the page; whoever knows where the page was
//! found makes them whole.

use scraper::{ElementRef, Html, Selector};

/// More links than a page has that people read.
const MOST_LINKS: usize = 10_000;

/// A page's words to programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The address it wants to be known by.
    pub canonical: Option<String>,
    /// What its links are relative to, when not to its own address.
    pub base: Option<String>,
    /// The same page as Markdown.
    pub markdown: Option<String>,
    /// What made the page.
    pub generator: Option<String>,
    /// It wants to be in no index.
    pub no_index: bool,
    /// Its links are not to be followed.
    pub no_follow: bool,
    /// Where it leads, in order, each once in a row.
    pub links: Vec<String>,
}

/// Reads the words for programs from a page. `agent` is the name it may call us by.
pub(super) fn head(page: &Html, agent: &str) -> Head {
    let mut head = Head::default();
    let Ok(selector) = Selector::parse("link, base, meta, a, area, iframe, noscript") else { return head };
    for element in page.select(&selector) {
        match element.value().name() {
            "link" => link(element, &mut head),
            "base" => head.base = head.base.take().or_else(|| attribute(element, "href")),
            "meta" => meta(element, agent, &mut head),
            // What is shown without scripts is text to the parser.
            "noscript" => {
                let inside: String = element.text().collect();
                if let Ok(selector) = Selector::parse("a, iframe") {
                    let inside = Html::parse_fragment(&inside);
                    inside.select(&selector).for_each(|element| push(element, &mut head));
                }
            }
            _ => push(element, &mut head),
        }
    }
    head
}

fn push(element: ElementRef<'_>, head: &mut Head) {
    let name = if element.value().name() == "iframe" { "src" } else { "href" };
    let rel = element.attr("rel").unwrap_or_default().to_ascii_lowercase();
    if rel.split_whitespace().any(|word| word == "nofollow") || head.links.len() >= MOST_LINKS {
        return;
    }
    let Some(address) = attribute(element, name) else { return };
    let address = address.split('#').next().unwrap_or_default();
    if !address.is_empty() && head.links.last().map(String::as_str) != Some(address) {
        head.links.push(address.to_owned());
    }
}

fn link(element: ElementRef<'_>, head: &mut Head) {
    let rel = element.attr("rel").unwrap_or_default().to_ascii_lowercase();
    let has = |word: &str| rel.split_whitespace().any(|own| own == word);
    if has("canonical") {
        head.canonical = head.canonical.take().or_else(|| attribute(element, "href"));
    }
    let is_markdown =
        matches!(element.attr("type").unwrap_or_default().trim(), "text/markdown" | "text/x-markdown");
    if has("alternate") && is_markdown {
        head.markdown = head.markdown.take().or_else(|| attribute(element, "href"));
    }
    if has("next") || has("prev") {
        push(element, head);
    }
}

fn meta(element: ElementRef<'_>, agent: &str, head: &mut Head) {
    let name = element.attr("name").or(element.attr("http-equiv")).unwrap_or_default().to_ascii_lowercase();
    let content = element.attr("content").unwrap_or_default();
    match name.as_str() {
        "generator" => head.generator = head.generator.take().or_else(|| attribute(element, "content")),
        "refresh" => {
            let lower = content.to_ascii_lowercase();
            if let Some(at) = lower.find("url=") {
                head.links.push(content[at + 4..].trim().trim_matches(['"', '\'']).to_owned());
            }
        }
        name if name == "robots" || name == agent => {
            let (no_index, no_follow) = directives(content);
            head.no_index |= no_index;
            head.no_follow |= no_follow;
        }
        _ => {}
    }
}

/// Whether robots are asked to stay out, and not to go further; as in `noindex, nofollow`.
pub fn directives(content: &str) -> (bool, bool) {
    let content = content.to_ascii_lowercase();
    let has = |word: &str| content.split(',').any(|own| own.trim() == word);
    (has("noindex") || has("none"), has("nofollow") || has("none"))
}

fn attribute(element: ElementRef<'_>, name: &str) -> Option<String> {
    element.attr(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_who_it_is_and_where_it_leads() {
        let page = Html::parse_document(
            r##"<head><base href="/docs/"><link rel="canonical" href="https://x.org/a">
            <link rel="alternate" type="text/markdown" href="a.md"><link rel="alternate" type="text/html" hreflang="de" href="/de/a">
            <meta name="generator" content="Docusaurus v3"><meta name="ROBOTS" content="NoIndex, follow">
            <meta http-equiv="refresh" content="0; URL='next.html'"></head>
            <a href="b#c">B</a><a href="b#d">B</a><a href="#here">x</a><a rel="nofollow" href="no">no</a>
            <noscript><iframe src="toc.html"></iframe></noscript>"##,
        );
        let found = head(&page, "docent");
        let expected = Head {
            canonical: Some("https://x.org/a".into()),
            base: Some("/docs/".into()),
            markdown: Some("a.md".into()),
            generator: Some("Docusaurus v3".into()),
            no_index: true,
            no_follow: false,
            links: vec!["next.html".into(), "b".into(), "toc.html".into()],
        };
        assert_eq!(found, expected);
        assert_eq!(directives("none"), (true, true));
        assert_eq!(directives("max-snippet:5, noindexed"), (false, false));
    }
}
