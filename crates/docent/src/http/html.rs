//! Markdown of answers becomes HTML that is safe to put on a page.
//!
//! Invariant: what comes out has no script, no style, no form and no address but http(s).

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
        // A picture would be a request to elsewhere.
        .rm_tags(["img"])
        .add_tag_attributes("code", ["class"]);
    cleaner
});

/// A sentence, list, table or code block as HTML: inline for a sentence.
pub fn piece(markdown: &str) -> String {
    let clean = document(markdown);
    let clean = clean.trim();
    match clean.strip_prefix("<p>").and_then(|inside| inside.strip_suffix("</p>")) {
        Some(inside) if !inside.contains("<p>") => inside.to_owned(),
        _ => clean.to_owned(),
    }
}

/// Whole paragraphs as HTML.
pub fn document(markdown: &str) -> String {
    let mut raw = String::new();
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    // Markup in an answer is what the book says, not what the page is made of.
    let events = Parser::new_ext(markdown, options).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        other => other,
    });
    html::push_html(&mut raw, events);
    CLEANER.clean(raw.trim()).to_string()
}

/// Gives every sentence its HTML.
pub fn add(response: &mut AgentResponse) {
    for sentence in &mut response.sentences {
        sentence.html = Some(piece(&sentence.text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_inline_and_a_list_is_not() {
        assert_eq!(piece("A **node** runs `spin()`."), "A <strong>node</strong> runs <code>spin()</code>.");
        assert_eq!(piece("- a\n- b"), "<ul>\n<li>a</li>\n<li>b</li>\n</ul>");
        assert_eq!(
            piece("```python\nx < 1\n```"),
            "<pre><code class=\"language-python\">x &lt; 1\n</code></pre>"
        );
    }

    #[test]
    fn markup_the_book_speaks_of_is_shown() {
        assert_eq!(piece("Use <img src=x> here."), "Use &lt;img src=x&gt; here.");
    }

    #[test]
    fn nothing_dangerous_gets_through() {
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
