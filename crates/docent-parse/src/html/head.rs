//! Metadata that a page provides for programs: its canonical address, its Markdown version, its links.
//!
//! Invariant: addresses are returned as written on the page; the caller resolves them.

use scraper::{ElementRef, Html, Selector};

/// Limit on links, far above what real pages have.
const MOST_LINKS: usize = 10_000;

/// What a page tells programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The canonical address.
    pub canonical: Option<String>,
    /// The base of relative links, if it is not the page's own address.
    pub base: Option<String>,
    /// The address of the same page as Markdown.
    pub markdown: Option<String>,
    /// The site generator.
    pub generator: Option<String>,
    /// The language of the page, as its root element says.
    pub language: Option<String>,
    /// The version of the documentation, as Docusaurus and other generators tell search engines.
    pub version: Option<String>,
    /// The locale, as Docusaurus tells search engines.
    pub locale: Option<String>,
    /// What the version is of, as Docusaurus tells search engines.
    pub version_tag: Option<String>,
    /// Whether the page asks not to be indexed.
    pub no_index: bool,
    /// Whether its links should not be followed.
    pub no_follow: bool,
    /// Link targets in order, without consecutive duplicates.
    pub links: Vec<String>,
}

/// Reads the metadata of a page. `agent` is our name in `robots` directives.
pub(super) fn head(page: &Html, agent: &str) -> Head {
    let mut head = Head { language: attribute(page.root_element(), "lang"), ..Head::default() };
    let Ok(selector) = Selector::parse("link, base, meta, a, area, iframe, noscript") else { return head };
    for element in page.select(&selector) {
        match element.value().name() {
            "link" => link(element, &mut head),
            "base" => head.base = head.base.take().or_else(|| attribute(element, "href")),
            "meta" => meta(element, agent, &mut head),
            // The parser treats the content of `noscript` as text.
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
        "docusaurus_version" | "docsearch:version" => {
            // A list of names may be given; the first one is that of the version.
            let name = content.split(',').next().map(str::trim).filter(|name| !name.is_empty());
            head.version = head.version.take().or_else(|| name.map(str::to_owned));
        }
        "docusaurus_locale" => head.locale = head.locale.take().or_else(|| attribute(element, "content")),
        "docusaurus_tag" => {
            head.version_tag = head.version_tag.take().or_else(|| attribute(element, "content"))
        }
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

/// Whether a `robots` value such as `noindex, nofollow` forbids indexing, and following links.
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
    fn metadata_and_links_are_read() {
        let page = Html::parse_document(
            r##"<html lang="en-GB"><head><meta name="docsearch:version" content="2.0,latest"><base href="/docs/"><link rel="canonical" href="https://x.org/a">
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
            language: Some("en-GB".into()),
            version: Some("2.0".into()),
            locale: None,
            version_tag: None,
            no_index: true,
            no_follow: false,
            links: vec!["next.html".into(), "b".into(), "toc.html".into()],
        };
        assert_eq!(found, expected);
        assert_eq!(directives("none"), (true, true));
        assert_eq!(directives("max-snippet:5, noindexed"), (false, false));
    }
}
