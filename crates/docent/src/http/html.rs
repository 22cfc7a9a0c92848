//! Renders the Markdown of answers and pages as HTML that is safe to insert into a page.
//!
//! Invariant: the HTML contains no scripts, styles or forms, and only http(s) URLs.

use std::collections::HashSet;
use std::sync::LazyLock;

use ammonia::Builder;
use docent_core::answer::AgentResponse;
use docent_parse::maths::Maths;
use pulldown_cmark::{Event, Options, Parser, Tag, html};

use crate::formula;

/// The elements and attributes of formulas.
const MATHS: [&str; 22] = [
    "math",
    "mrow",
    "mi",
    "mn",
    "mo",
    "mtext",
    "mspace",
    "mfrac",
    "msqrt",
    "mroot",
    "msub",
    "msup",
    "msubsup",
    "munder",
    "mover",
    "munderover",
    "mtable",
    "mtr",
    "mtd",
    "mpadded",
    "mphantom",
    "mstyle",
];
const MATHS_ATTRIBUTES: [(&str, &[&str]); 9] = [
    ("math", &["display"]),
    ("span", &["class", "aria-hidden"]),
    ("mi", &["mathvariant"]),
    ("mo", &["stretchy", "symmetric", "minsize", "maxsize", "movablelimits", "lspace", "rspace", "form"]),
    ("mspace", &["width", "height", "depth"]),
    ("mfrac", &["linethickness"]),
    ("mrow", &["displaystyle", "scriptlevel"]),
    ("mtable", &["class", "displaystyle"]),
    ("mtd", &["class"]),
];

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut cleaner = Builder::default();
    cleaner
        .url_schemes(HashSet::from(["http", "https"]))
        .link_rel(Some("noopener noreferrer"))
        // An image would trigger a request to another server.
        .rm_tags(["img"])
        .add_tag_attributes("code", ["class"])
        .add_tags(MATHS);
    for (tag, attributes) in MATHS_ATTRIBUTES {
        cleaner.add_tag_attributes(tag, attributes);
    }
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
    let mut maths = Maths::default();
    let markdown = maths.hidden(markdown);
    // HTML in an answer is text of the book, so it is shown, not interpreted.
    let events = Parser::new_ext(&markdown, options).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Code(text) => Event::Code(maths.shown(&text).into()),
        // In attributes, a formula is its source.
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let (dest_url, title) = (maths.shown(&dest_url).into(), maths.shown(&title).into());
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        other => other,
    });
    html::push_html(&mut raw, events);
    CLEANER.clean(maths.replaced(raw.trim(), formula::html).trim()).to_string()
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
    fn formulas_become_mathml() {
        assert_eq!(
            piece("So $a_1 < b$ holds."),
            "So <span class=\"formula\"><math display=\"inline\"><msub><mi>a</mi><mn>1</mn></msub><mo>&lt;</mo>\
             <mi>b</mi></math><span class=\"formula-source\" aria-hidden=\"true\">$a_1 &lt; b$</span></span> holds."
        );
        let row = document("| a |\n|---|\n| \\(\\|x\\|\\) |");
        assert!(row.contains("<mi>x</mi>") && !row.contains('‖'), "{row}");
        assert_eq!(piece("It costs $5 to $10; `$x$`."), "It costs $5 to $10; <code>$x$</code>.");
        assert_eq!(
            piece("[f](https://a.example \"$x$\")"),
            "<a href=\"https://a.example\" title=\"$x$\" rel=\"noopener noreferrer\">f</a>"
        );
    }

    #[test]
    fn sixty_formulas_keep_all_their_elements() {
        for latex in include_str!("../../tests/fixtures/formulas.txt").lines() {
            let tags =
                |html: &str| html.split('<').filter(|rest| rest.starts_with(char::is_alphabetic)).count();
            let formula = format!("$${latex}$$");
            // Only inline styles (colors) are removed.
            let (shown, whole) = (piece(&formula), formula::html(&formula));
            assert_eq!(tags(&shown), tags(&whole), "{latex}:\n{shown}\n{whole}");
        }
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
            "$\\text{<script>alert(1)</script>}$",
            "$\\unknown{</code><script>alert(1)</script>}$",
            "$x</math></span><img src=x onerror=alert(1)>$",
            "[$x$](https://evil.example/$\\\"$ \"$<script>$\")",
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
