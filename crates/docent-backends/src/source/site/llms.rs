//! `llms.txt`, a site's list of its pages for language models, and `llms-full.txt`, all pages in one file.

use docent_parse::links::links;
use reqwest::Url;

/// A page of an `llms-full.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullPage {
    /// Its published address; `None` if the file does not name it.
    pub address: Option<String>,
    /// Its Markdown.
    pub text: String,
}

/// Whether an address is that of an `llms.txt`.
pub fn is_list(url: &Url) -> bool {
    url.path().ends_with("/llms.txt")
}

/// Whether an address is that of an `llms-full.txt`.
pub fn is_full(url: &Url) -> bool {
    url.path().ends_with("/llms-full.txt")
}

/// The addresses listed in an `llms.txt`, in order.
pub fn addresses(text: &str) -> Vec<String> {
    if looks_like_html(text) {
        return Vec::new();
    }
    links(text).into_iter().map(|link| link.address).collect()
}

/// Whether a text is HTML: single-page applications answer every request with their start page.
pub fn looks_like_html(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(15).collect::<String>().to_ascii_lowercase();
    start.starts_with("<!doctype") || start.starts_with("<html") || start.starts_with("<head")
}

/// The address of a page, given that of its Markdown: `/a.md` is the page `/a`.
pub fn without_ending(url: &Url) -> Option<Url> {
    let path = url.path();
    let path = path.strip_suffix(".md").or_else(|| path.strip_suffix(".mdx"))?;
    let path = path.strip_suffix("/index").map(|folder| format!("{folder}/")).unwrap_or(path.to_owned());
    let mut page = url.clone();
    page.set_path(&path);
    Some(page)
}

/// Splits an `llms-full.txt` into pages. A page begins at a line `Source: address` or `URL: address` under a
/// title, or at front matter with a `url`.
pub fn full_pages(text: &str) -> Vec<FullPage> {
    if looks_like_html(text) || text.trim().is_empty() {
        return Vec::new();
    }
    let mut pages = Vec::new();
    let mut address: Option<String> = None;
    let mut body = String::new();
    // Lines that may belong to the next page: its title, its front matter.
    let mut held = String::new();
    let mut fenced = false;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        fenced ^= bare.starts_with("```") || bare.starts_with("~~~");
        let named = if fenced { None } else { named(bare) };
        if let Some(named) = named.filter(|_| !held.is_empty() || body.is_empty()) {
            finish(&mut pages, &mut address, &mut body);
            address = Some(named);
            body = std::mem::take(&mut held).replace("---\n", "");
            continue;
        }
        let opens = !fenced && (bare.starts_with("# ") || bare == "---");
        let still = !held.is_empty() && !fenced && (bare.is_empty() || is_field(bare));
        if opens || still {
            if opens && bare != "---" {
                body.push_str(&std::mem::take(&mut held));
            }
            held.push_str(line);
            continue;
        }
        body.push_str(&std::mem::take(&mut held));
        body.push_str(line);
    }
    body.push_str(&held);
    finish(&mut pages, &mut address, &mut body);
    // Text before the first page describes the file itself.
    if pages.iter().any(|page| page.address.is_some()) {
        pages.retain(|page| page.address.is_some());
    }
    pages
}

fn finish(pages: &mut Vec<FullPage>, address: &mut Option<String>, body: &mut String) {
    let text = std::mem::take(body);
    let text = text.trim().trim_end_matches("---").trim_start_matches("---").trim().to_owned();
    if !text.is_empty() {
        pages.push(FullPage { address: address.take(), text });
    }
    *address = None;
}

fn named(line: &str) -> Option<String> {
    let (key, value) = line.split_once(':')?;
    let is_key = ["source", "url"].iter().any(|known| key.trim().eq_ignore_ascii_case(known));
    let value = value.trim().trim_matches(['"', '\'', '<', '>']);
    let is_address = value.starts_with("http://") || value.starts_with("https://") || value.starts_with('/');
    (is_key && is_address && !value.contains(char::is_whitespace)).then(|| value.to_owned())
}

/// Whether a line looks like front matter, such as `title: Words`.
fn is_field(line: &str) -> bool {
    line.split_once(": ")
        .is_some_and(|(key, _)| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_file_is_split_into_pages_with_text(
            lines in proptest::collection::vec(
                "# [a-z]{1,5}|Source: (/|https://x.org/)[a-z]{0,5}|url: /[a-z]{1,5}|---|```|~~~|[a-zé :#]{0,12}", 0..30)
        ) {
            let text = lines.join("\n");
            let pages = full_pages(&text);
            prop_assert!(pages.iter().all(|page| !page.text.trim().is_empty()));
            prop_assert!(pages.iter().map(|page| page.text.len()).sum::<usize>() <= text.len());
            addresses(&text);
        }
    }

    fn pages(text: &str) -> Vec<(Option<String>, String)> {
        full_pages(text).into_iter().map(|page| (page.address, page.text)).collect()
    }

    #[test]
    fn llms_full_is_split_where_pages_begin() {
        let two = "# Site\n\nAbout.\n\n# One\nSource: https://x.org/1\n\nFirst.\n\n## Sub\n\nMore.\n\n# Two\n\nSource: https://x.org/2\n\nSecond.\n";
        let expected = vec![
            (Some("https://x.org/1".to_owned()), "# One\n\nFirst.\n\n## Sub\n\nMore.".to_owned()),
            (Some("https://x.org/2".to_owned()), "# Two\n\n\nSecond.".to_owned()),
        ];
        assert_eq!(pages(two), expected);
        let front =
            "---\nurl: /guide/a.md\n---\n\n# A\n\nText.\n\n---\nurl: /guide/b.md\n---\n# B\n\nWords.\n";
        let expected = vec![
            (Some("/guide/a.md".to_owned()), "# A\n\nText.".to_owned()),
            (Some("/guide/b.md".to_owned()), "# B\n\nWords.".to_owned()),
        ];
        assert_eq!(pages(front), expected);
    }

    #[test]
    fn a_file_without_addresses_is_one_page() {
        let text = "# All\n\nURL: not one\n\n```\n# x\nSource: /y\n```\n\nEnd.";
        assert_eq!(pages(text), [(None, text.to_owned())]);
        assert_eq!(pages("<!DOCTYPE html><p>x"), []);
    }

    #[test]
    fn the_page_address_is_derived_from_the_markdown_address() {
        let page = |url: &str| without_ending(&Url::parse(url).unwrap()).map(|url| url.path().to_owned());
        assert_eq!(page("https://x.org/a.md").as_deref(), Some("/a"));
        assert_eq!(page("https://x.org/a/index.md").as_deref(), Some("/a/"));
        assert_eq!(page("https://x.org/a.html.md").as_deref(), Some("/a.html"));
        assert_eq!(page("https://x.org/a"), None);
        assert_eq!(addresses("- [A](/a.md)\n- [B](https://x.org/b)"), ["/a.md", "https://x.org/b"]);
    }
}
