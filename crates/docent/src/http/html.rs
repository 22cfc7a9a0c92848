//! Renders the Markdown of answers and pages as HTML that is safe to insert into a page.
//!
//! Invariant: the HTML contains no scripts, styles or forms, and only http(s) URLs.

use std::collections::HashSet;
use std::sync::LazyLock;

use ammonia::Builder;
use docent_core::answer::{AgentResponse, Citation};
use docent_parse::maths::Maths;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, html};

use crate::plot::escape;
use crate::{formula, highlight};

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
        .add_tag_attributes("pre", ["data-title"])
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
    let mut code: Option<Code> = None;
    // HTML in an answer is text of the book, so it is shown, not interpreted.
    let events = Parser::new_ext(&markdown, options).filter_map(|event| {
        Some(match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                code = Some(Code::new(&kind));
                return None;
            }
            Event::Text(text) if let Some(code) = &mut code => {
                code.text.push_str(&text);
                return None;
            }
            Event::End(TagEnd::CodeBlock) => Event::Html(code.take()?.html().into()),
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::Code(text) => Event::Code(maths.shown(&text).into()),
            // In attributes, a formula is its source.
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let (dest_url, title) = (maths.shown(&dest_url).into(), maths.shown(&title).into());
                Event::Start(Tag::Link { link_type, dest_url, title, id })
            }
            other => other,
        })
    });
    html::push_html(&mut raw, events);
    CLEANER.clean(maths.replaced(raw.trim(), formula::html).trim()).to_string()
}

/// A code block: its language, its title and its text.
struct Code {
    language: String,
    title: Option<String>,
    text: String,
}

impl Code {
    fn new(kind: &CodeBlockKind<'_>) -> Self {
        let info = match kind {
            CodeBlockKind::Fenced(info) => info.as_ref(),
            CodeBlockKind::Indented => "",
        };
        let language = info.split([' ', ',', '{']).next().unwrap_or_default().to_owned();
        let title = info.split_once("title=\"").and_then(|(_, rest)| rest.split_once('"'));
        let title = title.map(|(title, _)| title.to_owned()).filter(|title| !title.trim().is_empty());
        // Only a script could draw it.
        let title = title.or_else(|| (language == "mermaid").then(|| "Diagram (Mermaid)".to_owned()));
        Self { language, title, text: String::new() }
    }

    /// The title is an attribute, so that it is not part of the text that is copied and quoted.
    fn html(&self) -> String {
        let title = self.title.as_ref().map(|title| format!(" data-title=\"{}\"", escape(title)));
        let language = match self.language.as_str() {
            "" => String::new(),
            language => format!(" class=\"language-{}\"", escape(language)),
        };
        let text = highlight::html(&self.text, &self.language);
        format!("<pre{}><code{language}>{text}</code></pre>\n", title.unwrap_or_default())
    }
}

/// Adds the HTML of every sentence and every quote.
pub fn add(response: &mut AgentResponse) {
    response.citations.iter_mut().for_each(add_quote);
    for sentence in &mut response.sentences {
        sentence.html = Some(piece(&sentence.text));
    }
}

/// Adds the HTML of a quote.
pub fn add_quote(citation: &mut Citation) {
    citation.html = Some(piece(&citation.quote));
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
            "<pre><code class=\"language-python\">x &lt; <span class=\"code-number\">1</span>\n</code></pre>"
        );
    }

    #[test]
    fn code_has_its_title_and_a_diagram_is_code() {
        assert_eq!(
            piece("```toml title=\"docent.toml\"\nk = \"v\"\n```"),
            "<pre data-title=\"docent.toml\"><code class=\"language-toml\">k = <span class=\"code-text\">\"v\"</span>\n</code></pre>"
        );
        assert_eq!(
            piece("```mermaid\nA --> B\n```"),
            "<pre data-title=\"Diagram (Mermaid)\"><code class=\"language-mermaid\">A --&gt; B\n</code></pre>"
        );
        assert_eq!(piece("    a < b"), "<pre><code>a &lt; b</code></pre>");
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
