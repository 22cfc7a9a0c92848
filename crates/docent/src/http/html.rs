//! Renders the Markdown of answers and pages as HTML that is safe to insert into a page.
//!
//! Invariant: the HTML contains no scripts, styles or forms, and only http(s) URLs.

use std::collections::HashSet;
use std::sync::LazyLock;

use ammonia::Builder;
use docent_core::answer::AgentResponse;
use pulldown_cmark::{Event, Options, Parser, html};

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut cleaner = Builder::default();
    cleaner
        .url_schemes(HashSet::from(["http", "https"]))
        .link_rel(Some("noopener noreferrer"))
        // An image would trigger a request to another server.
        .rm_tags(["img"])
        .add_tag_attributes("code", ["class"]);
    cleaner
});

/// Renders a sentence, list, table or code block; a sentence becomes inline HTML.
pub fn piece(markdown: &str) -> String {
    let clean = document(markdown);
    let clean = clean.trim();
    match clean.strip_prefix("<p>").and_then(|inside| inside.strip_suffix("</p>")) {
        Some(inside) if !inside.contains("<p>") => inside.to_owned(),
        _ => clean.to_owned(),
    }
}

/// Renders whole paragraphs.
pub fn document(markdown: &str) -> String {
    let mut raw = String::new();
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    // HTML in an answer is text of the book, so it is shown, not interpreted.
    let events = Parser::new_ext(markdown, options).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        other => other,
    });
    html::push_html(&mut raw, events);
    CLEANER.clean(raw.trim()).to_string()
}

/// Adds the HTML of every sentence.
pub fn add(response: &mut AgentResponse) {
    for sentence in &mut response.sentences {
        sentence.html = Some(piece(&sentence.text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_become_inline_html_and_lists_become_blocks() {
        assert_eq!(piece("A **node** runs `spin()`."), "A <strong>node</strong> runs <code>spin()</code>.");
        assert_eq!(piece("- a\n- b"), "<ul>\n<li>a</li>\n<li>b</li>\n</ul>");
        assert_eq!(
            piece("```python\nx < 1\n```"),
            "<pre><code class=\"language-python\">x &lt; 1\n</code></pre>"
        );
    }

    #[test]
    fn html_in_the_text_is_escaped() {
        assert_eq!(piece("Use <img src=x> here."), "Use &lt;img src=x&gt; here.");
    }

    #[test]
    fn dangerous_html_is_removed() {
        for hostile in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "![x](https://evil.example/pixel.png)",
            "[x](javascript:alert(1))",
            "<a href='data:text/html,x'>x</a>",
            "<div style='position:fixed' onclick=alert(1)>x</div>",
            "<iframe src='https://evil.example'></iframe>",
            "<form action='https://evil.example'><input></form>",
        ] {
            let html = piece(hostile);
            for bad in [
                "<script",
                "<div",
                "<img",
                "<iframe",
                "<form",
                "<input",
                "href=\"javascript:",
                "href=\"data:",
            ] {
                assert!(!html.contains(bad), "{hostile} became {html}");
            }
        }
    }
}
