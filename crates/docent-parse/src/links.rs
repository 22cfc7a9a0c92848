//! The links of a Markdown text, used by crawls and by lists of pages.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// Limit on links, far above what real texts have.
const MOST_LINKS: usize = 100_000;

/// A link and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// The link text.
    pub text: String,
    /// The target, as written.
    pub address: String,
}

/// The links of a text in order, without images.
pub fn links(source: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let mut open: Option<Link> = None;
    for event in Parser::new(source) {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => {
                open = Some(Link { text: String::new(), address: dest_url.into_string() });
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(link) = &mut open {
                    link.text.push_str(&text);
                }
            }
            Event::End(TagEnd::Link) => links.extend(open.take()),
            _ => {}
        }
        if links.len() >= MOST_LINKS {
            break;
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_every_kind_are_found() {
        let found = links(
            "# T\n\n- [A `b`](https://x.org/a.md): words\n- <https://x.org/c>\n\n![i](i.png) [r]\n\n[r]: d.md\n",
        );
        let shown: Vec<_> = found.iter().map(|link| format!("{} {}", link.text, link.address)).collect();
        assert_eq!(shown, ["A b https://x.org/a.md", "https://x.org/c https://x.org/c", "r d.md"]);
    }
}
