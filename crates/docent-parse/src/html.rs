//! Rendered pages of documentation sites become sections: only the main content, not the navigation around
//! it.
//!
//! Knows the markup of Docusaurus, Sphinx, mdBook, MkDocs, VitePress, GitBook and Hugo. On any other page it
//! uses the `article` or `main` element, or the element with most of the text.
//!
//! Invariant: a heading's anchor is an id that exists on the page; anchors are never computed.

mod admonition;
mod code;
mod depth;
mod element;
mod head;
mod line;
mod readability;
mod table;
mod walk;

use scraper::{ElementRef, Html, Selector};

use super::NO_TEXT;
use crate::document::Parsed;
pub use head::{Head, directives};

/// Parses a rendered page into sections.
pub fn parse_html(source: &str) -> Parsed {
    let (page, cut) = depth::tree(source);
    parse(&page, cut)
}

/// Parses a page together with its metadata for programs. `agent` is our name in `robots` directives.
pub fn parse_site_page(source: &str, agent: &str) -> (Parsed, Head) {
    let (page, cut) = depth::tree(source);
    (parse(&page, cut), head::head(&page, agent))
}

fn parse(page: &Html, cut: bool) -> Parsed {
    let root = content(page).map(|root| match root.value().name() {
        "body" => readability::content(page, root),
        _ => root,
    });
    let (heading, sections) = match root {
        Some(root) => walk::sections(root),
        None => (None, Vec::new()),
    };
    let mut warnings = Vec::new();
    if cut {
        warnings.push("the markup grows without limit; only the beginning was read".to_owned());
    }
    if sections.iter().all(|section| section.blocks.is_empty()) {
        warnings.push(NO_TEXT.to_owned());
    }
    Parsed { title: heading.or_else(|| title(page)), sections, warnings }
}

/// Where site generators put the text of a page, most reliable first.
///
/// No selector looks at ancestors, so finding a match takes time linear in the page.
const CONTENT: [&str; 15] = [
    ".theme-doc-markdown",
    "article.md-content__inner",
    ".md-content",
    ".vp-doc",
    ".sl-markdown-content",
    ".td-content",
    ".markdown-section",
    "article[role=main]",
    "[role=main]",
    "div.body",
    "div.document",
    "article",
    "main",
    "#content",
    "body",
];

/// Enough to find the page's article among teasers of other pages.
const MOST_CANDIDATES: usize = 64;

/// The element that contains the text of the page; among several, the one with the most text.
fn content(page: &Html) -> Option<ElementRef<'_>> {
    CONTENT.iter().find_map(|selector| {
        let selector = Selector::parse(selector).ok()?;
        page.select(&selector)
            .take(MOST_CANDIDATES)
            .map(|element| (element.text().map(|text| text.trim().len()).sum::<usize>(), element))
            .filter(|(length, _)| *length > 0)
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, element)| element)
    })
}

/// The `<title>` without the name of the site.
fn title(page: &Html) -> Option<String> {
    let selector = Selector::parse("head > title").ok()?;
    let title = page.select(&selector).map(line::one_line).find(|title| !title.is_empty())?;
    let end = [" | ", " — ", " – ", " · ", " - "].iter().filter_map(|sign| title.rfind(sign)).max();
    Some(end.map_or(title.as_str(), |end| &title[..end]).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Section;

    /// Renders one line per heading (`##` for its level, `#id` for its anchor) and one entry per block.
    fn render(sections: &[Section]) -> String {
        let mut out = String::new();
        for section in sections {
            if let Some(heading) = &section.heading {
                let anchor = heading.anchor.as_ref().map_or(String::new(), |anchor| format!(" #{anchor}"));
                let level = "#".repeat(heading.level.into());
                out.push_str(&format!("{level} {}{anchor}\n", heading.text));
            }
            for block in &section.blocks {
                out.push_str(&format!("[{:?}] {}\n", block.kind, block.text));
            }
        }
        out
    }

    fn check(page: &str, expected: &str) {
        assert_eq!(render(&parse_html(page).sections), expected);
    }

    #[test]
    fn the_navigation_of_a_docbook_page_is_left_out() {
        check(
            r##"<body><ul class="docnav top"><li class="home">The Handbook</li></ul>
            <div class="section"><h2>Cron</h2><p>Run it daily.</p></div>
            <ul class="docnav"><li class="up"><a href="#"><strong>Up</strong></a></li>
            <li class="home"><a href="index.html"><strong>Home</strong></a></li></ul></body>"##,
            "## Cron\n[Text] Run it daily.\n",
        );
    }

    #[test]
    fn only_the_article_of_a_docusaurus_page_is_read() {
        let page = r##"<body><nav>Docs</nav><main><div class="container">
            <nav class="theme-doc-breadcrumbs">Home</nav>
            <article><div class="theme-doc-markdown markdown"><header><h1>Nodes</h1></header>
            <p>A <a href="/n"><strong>node</strong></a> is
               a <code>process</code>.</p>
            <h2 class="anchor" id="start">Start<a href="#start" class="hash-link" title="Direct link">&#8203;</a></h2>
            <div class="language-bash codeBlockContainer"><div class="codeBlockTitle_x">run.sh</div>
            <pre class="prism-code language-bash"><code><span class="token-line" style="color:red"><span>ros2</span><span> run</span><br></span><span class="token-line"><span style="display:inline-block"></span><br></span><span class="token-line">  indented<br></span></code></pre>
            <div class="buttonGroup"><button>Copy</button></div></div>
            <div class="theme-admonition theme-admonition-tip alert alert--success"><div class="admonitionHeading_a"><span class="admonitionIcon_b"><svg></svg></span>tip</div>
            <div class="admonitionContent_c"><p>Try it.</p><p>Twice.</p></div></div>
            </div><footer><a href="/edit">Edit this page</a></footer></article></main></body>"##;
        check(
            page,
            "# Nodes\n\
             [Text] A node is a `process`.\n\
             ## Start #start\n\
             [Text] run.sh\n\
             [Code] ```bash\nros2 run\n\n  indented\n```\n\
             [Admonition] Tip: Try it.\n\
             [Admonition] Twice.\n",
        );
        assert_eq!(parse_html(page).title.as_deref(), Some("Nodes"));
    }

    #[test]
    fn tab_panels_start_with_the_tab_name_and_hidden_panels_are_kept() {
        check(
            r#"<article><div class="tabs-container"><ul role="tablist"><li role="tab">npm</li><li role="tab">Yarn</li></ul>
            <div><div role="tabpanel"><pre>npm i</pre></div><div role="tabpanel" hidden=""><pre>yarn</pre></div></div></div>
            <p hidden>gone</p></article>"#,
            "[Text] npm:\n[Code] ```\nnpm i\n```\n[Text] Yarn:\n[Code] ```\nyarn\n```\n",
        );
    }

    #[test]
    fn sphinx_anchors_come_from_section_elements() {
        check(
            r##"<div class="sphinxsidebar">Contents</div><div class="body" role="main">
            <section id="the-enum"><span id="old"></span><h1>The <code><span class="pre">enum</span></code><a class="headerlink" href="#the-enum">¶</a></h1>
            <nav class="contents local">toc</nav><aside class="topic"><p class="topic-title">Abstract</p><p>Short.</p></aside>
            <div class="section" id="usage"><h2><a class="toc-backref" href="#id1">Usage</a><a class="headerlink" href="#usage">¶</a></h2>
            <div class="highlight-python3 notranslate"><div class="highlight"><pre><span></span><span class="kn">import</span> <span class="nn">enum</span>
    x = 1
</pre></div></div>
            <div class="highlight-default"><pre>a</pre></div>
            <div class="admonition warning"><p class="admonition-title">Warning</p><p>Careful.</p><pre>b</pre></div></div></section></div>
            <div class="related">next</div>"##,
            "# The enum #the-enum\n\
             [Text] Abstract\n\
             [Text] Short.\n\
             ## Usage #usage\n\
             [Code] ```python3\nimport enum\n    x = 1\n```\n\
             [Code] ```\na\n```\n\
             [Admonition] Warning: Careful.\n\
             [Code] ```\nb\n```\n",
        );
    }

    #[test]
    fn signatures_terms_and_footnotes_keep_their_definitions() {
        check(
            r##"<div role="main"><dl class="py function"><dt class="sig sig-object py" id="m.run"><span class="sig-prename">m.</span><span class="sig-name">run</span><span class="sig-paren">(</span><em>x</em>, <em>*a</em><span class="sig-paren">)</span><a class="headerlink" href="#m.run">¶</a></dt>
            <dd><p>Runs.</p><dl class="field-list"><dt>Returns<span class="colon">:</span></dt><dd><p>A number.</p></dd>
            <dt>Raises</dt><dd><ul><li><p>E</p></li></ul></dd></dl></dd></dl>
            <aside class="footnote"><span class="label">[<a href="#r">1</a>]</span><p>Really.</p></aside></div>"##,
            "[Text] `m.run(x, *a)`\n\
             [Text] Runs.\n\
             [Text] Returns: A number.\n\
             [Text] Raises:\n\
             [Text] - E\n\
             [Text] [1] Really.\n",
        );
    }

    #[test]
    fn mdbook_linked_headings_keep_their_text_and_boring_lines_are_hidden() {
        check(
            r##"<div id="content"><div id="menu-bar"><div class="left-buttons buttons">x</div></div><main>
            <h1 id="hello"><a class="header" href="#hello">Hello</a></h1>
            <pre><pre class="playground"><code class="language-rust edition2024"><span class="boring">fn main() {
</span>let x = "```";<span class="boring">
}</span></code></pre></pre>
            <h2><a class="header" href="#why" id="why">Why?</a></h2><p>So.</p>
            </main><nav class="nav-wrapper">next</nav></div>"##,
            "# Hello #hello\n[Code] ````rust\nlet x = \"```\";\n````\n## Why? #why\n[Text] So.\n",
        );
    }

    #[test]
    fn anchors_are_found_inside_or_just_before_a_heading() {
        check(
            r##"<main><p><a name="above"></a></p><h2>A</h2><h2>B <a id="in"></a><a class="anchor" href="#in">#</a></h2>
            <a id="taken">text</a><h3>C</h3><h3>D <a href="#d" class="anchor">🔗</a></h3></main>"##,
            "## A #above\n## B #in\n[Text] text\n### C\n### D #d\n",
        );
    }

    #[test]
    fn lists_nest_and_code_inside_them_is_a_separate_block() {
        check(
            "<main><ol start=2><li><p>One</p><p>more</p><ul><li>a<br>b</li><li>c</li></ul></li>\
             <li>Run: <pre>  ls\n</pre> then</li><li>End</li></ol></main>",
            "[Text] 2. One\n  more\n  - a\n    b\n  - c\n3. Run:\n[Code] ```\n  ls\n```\n[Text] then\n4. End\n",
        );
    }

    #[test]
    fn tables_are_read_row_by_row() {
        check(
            "<main><table><caption>Sizes</caption><thead><tr><th>a<th>b</tr></thead><tbody><tr><td rowspan=2>1</td>\
             <td><p>x</p><p><code>y</code></p></td></tr><tr><td>2</td></tr><tr><td colspan=2>wide</td></tr></table></main>",
            "[Text] Sizes\n[Table] | a | b |\n| --- | --- |\n| 1 | x `y` |\n|  | 2 |\n| wide |  |\n",
        );
    }

    #[test]
    fn line_numbers_beside_code_are_not_a_table() {
        check(
            r#"<main><div class="highlight-c"><table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>1
2</pre></div></td><td class="code"><div class="highlight"><pre>int a;
<span class="linenos">7</span>int b;</pre></div></td></tr></table></div></main>"#,
            "[Code] ```c\nint a;\nint b;\n```\n",
        );
    }

    #[test]
    fn notes_of_other_site_generators_get_a_label() {
        check(
            r#"<div class="vp-doc"><div class="custom-block danger"><p class="custom-block-title">STOP</p><p>No.</p></div>
            <blockquote><p>[!NOTE]<br>Quoted.</p></blockquote><blockquote><p>Plain.</p></blockquote>
            <div class="alert alert-warning" role="alert"><pre>x</pre></div></div>"#,
            "[Admonition] STOP: No.\n\
             [Admonition] Note: Quoted.\n\
             [Text] Plain.\n\
             [Admonition] Warning:\n\
             [Code] ```\nx\n```\n",
        );
    }

    #[test]
    fn asciidoctor_notes_and_mkdocs_tabs_are_recognized() {
        check(
            r#"<div id="content"><div class="admonitionblock tip"><table><tr><td class="icon"><div class="title">Tip</div></td>
            <td class="content">Listen.</td></tr></table></div>
            <div class="tabbed-set"><input type="radio"><div class="tabbed-labels"><label>npm</label><label>Yarn</label></div>
            <div class="tabbed-content"><div class="tabbed-block"><p>One.</p></div><div class="tabbed-block"><p>Two.</p></div></div></div>
            <details class="alert alert--info"><summary>More</summary><p>Text.</p></details></div>"#,
            "[Admonition] Tip: Listen.\n[Text] npm:\n[Text] One.\n[Text] Yarn:\n[Text] Two.\n[Text] More\n[Text] Text.\n",
        );
    }

    #[test]
    fn images_with_a_caption_or_alone_in_a_paragraph_are_figures() {
        let parsed = parse_html(
            "<main><p>Text.</p><p><img alt='The graph' src='g.png'></p><p>In <img alt='a text' src='t.png'> a line</p>\
             <figure><img alt='A wheel' src='/w.png'><figcaption>The <b>big</b> wheel</figcaption></figure></main>",
        );
        let figures: Vec<_> = parsed.sections.iter().flat_map(|section| &section.figures).collect();
        let shown: Vec<_> = figures.iter().map(|one| (one.caption.as_str(), one.image.as_str())).collect();
        assert_eq!(shown, [("The graph", "g.png"), ("The big wheel", "/w.png")]);
    }

    #[test]
    fn inline_code_gets_enough_backticks_and_alt_text_is_used_only_in_image_paragraphs() {
        check(
            "<main><p><code>a`b</code> <kbd><kbd>Ctrl</kbd>+<kbd>C</kbd></kbd><code>x</code> <img alt=no></p>\
             <p><img alt='The  graph'></p><details><summary>More</summary>Text</details></main>",
            "[Text] ``a`b`` `Ctrl+C` `x`\n[Text] The graph\n[Text] More\n[Text] Text\n",
        );
    }

    #[test]
    fn adjacent_code_elements_are_merged() {
        check(
            "<main><table><tr><th>a</th></tr><tr><td><code>undefine</code><a href=x><code>d</code></a></td></tr></table></main>",
            "[Table] | a |\n| --- |\n| `undefined` |\n",
        );
    }

    #[test]
    fn the_article_with_the_most_text_is_used() {
        check(
            "<article>Teaser</article><article><h1>Page</h1>A long text.</article>",
            "# Page\n[Text] A long text.\n",
        );
    }

    #[test]
    fn the_title_falls_back_to_the_title_element_without_the_site_name() {
        for (title, expected) in [
            ("Install | My Docs", "Install"),
            ("Enum — Python 3.11 documentation", "Enum"),
            ("Why - not - The Book", "Why - not"),
            ("Alone", "Alone"),
        ] {
            let parsed = parse_html(&format!("<title>{title}</title><p>x"));
            assert_eq!(parsed.title.as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_page_without_text_gives_a_warning() {
        for page in ["", "<main><nav>Docs</nav></main>", "<script>1</script>"] {
            let parsed = parse_html(page);
            assert_eq!(parsed.warnings, ["no text found in the page"]);
            assert!(parsed.sections.is_empty());
        }
    }

    #[test]
    fn deep_nesting_and_garbage_do_not_stop_the_parser() {
        let deep = "<div>".repeat(50_000) + "deep";
        check(&deep, "[Text] deep\n");
        let lists = "<ul><li>".repeat(2_000) + "item";
        assert!(render(&parse_html(&lists).sections).contains("item"));
        let garbage: Vec<u8> =
            (0..20_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        parse_html(&String::from_utf8_lossy(&garbage));
    }
}
