//! Pages designed to be slow or to grow: parsing time and output stay proportional to the input.
//!
//! Invariant: every parser takes linear time, whatever pattern is repeated.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::sync::mpsc;
use std::time::{Duration, Instant};

use docent_core::chunk::chunk;
use docent_parse::layout::{Base, Layout, Site};
use docent_parse::parse_page;

/// Each pattern is repeated up to this length. Linear parsing takes less than a second; quadratic parsing
/// takes many minutes.
const LENGTH: usize = 1 << 19;

/// Timeout per page; no page takes this long, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The text of a page is at most this many times as long as its source.
const MOST_GROWTH: usize = 64;

fn layout(path: &str) -> Layout {
    match path {
        "a.mdx" => Layout::Docusaurus,
        "b.md" => Layout::MdBook,
        "k.md" => Layout::MkDocs { folders: true },
        "a.rst" => Layout::Sphinx,
        "a.adoc" => Layout::Asciidoctor,
        _ => Layout::Plain,
    }
}

/// Parses and chunks a page; returns the length of its text.
fn read(path: &str, source: &str) -> usize {
    let site = Site::new(layout(path), Base::Published("https://x.org".into()));
    let (document, _) = parse_page(path, source.as_bytes(), &site, &mut |_| None);
    let chunks = document.map(|document| chunk(&document, 256, &|text| text.len().div_ceil(4)));
    chunks.into_iter().flatten().map(|chunk| chunk.content.len()).sum()
}

/// Checks a page that consists of `start`, then `again` repeated up to `LENGTH`, then `end`.
fn check(path: &'static str, start: &str, again: &str, end: &str) {
    let source = format!("{start}{}{end}", again.repeat(LENGTH / again.len()));
    let (done, result) = mpsc::channel();
    let begun = Instant::now();
    std::thread::spawn(move || done.send(read(path, &source)));
    let name = format!("{path}: {:?} {again:?}", &start[..start.len().min(40)]);
    let text = result.recv_timeout(TIMEOUT).unwrap_or_else(|error| panic!("{name}: {error}"));
    if std::env::var_os("DOCENT_TEST_TIMES").is_some() {
        eprintln!("{:6} ms {:6} KB  {name}", begun.elapsed().as_millis(), text / 1024);
    }
    assert!(text <= LENGTH * MOST_GROWTH, "{name}: {text} bytes");
}

#[test]
fn html() {
    let many = |tag: &str, count: usize| (0..count).map(|n| format!("<{tag} id=x{n}>")).collect::<String>();
    check("a.html", "", "<div>", "x");
    check("a.html", "<styled>", "<div>", "x");
    check("a.html", "<svg>", "<div>", "x</svg>");
    check("a.html", "<svg><foreignObject>", "<g/>", "x</svg>");
    check("a.html", "<math>", "<mi>x", "");
    check("a.html", "", "<table><tr><td>", "x");
    check("a.html", "", "<ul><li>x", "");
    check("a.html", "", "<b><p>x", "");
    check("a.html", "", "<a href=x><b>x", "");
    check("a.html", &format!("<p>{}</p>", many("b", 1000)), "<p>x", "");
    check("a.html", &many("i", 1000), "x<br>", "");
    check("a.html", &format!("<section>{}", "<p>x".repeat(1 << 17)), "<h2>y</h2>", "");
    check("a.html", "<table>", "<td colspan=64 rowspan=64>x", "<tr><td>y".repeat(64).as_str());
    check("a.html", "<table>", "<tr>", "x");
    check("a.html", "<table>", "<td rowspan=99>", "x");
    check("a.html", "<dl>", "<dt>x", "");
    check("a.html", "<pre>", "`", "");
    check("a.html", "<pre>", "<span>x</span>", "");
    check("a.html", "<code>", "<code>x</code>", "");
    check("a.html", "<p>", "</b>", "x");
    check("a.html", "<p>", "&amp;&#65;&lt", "x");
    check("a.html", "", "<", "x");
    check("a.html", "", "<a ", "x");
    check("a.html", "", "<!--", "x");
    check("a.html", "", "<p class='a b c' id=a>x</p>", "");
    check("a.html", "<div class=admonition>", "<p class=admonition-title>x</p>", "");
    check("a.html", "", "<blockquote>[!NOTE]", "");
    check("a.html", "", "<select><option>x", "");
    check("a.html", "", "<template>", "x");
    check("a.html", "<div role=tablist>", "<i role=tab>x</i>", "</div><i role=tabpanel>x</i>");
    check("a.html", "<main>", "<h2 id=a>x</h2>", "");
}

#[test]
fn markdown_dialects() {
    for path in ["a.md", "a.mdx", "b.md", "k.md"] {
        check(path, "", "\\(a ", "\\)");
        check(path, "", "\\[a ", "x");
        check(path, "", "$a", " x");
        check(path, "", "$$", "x");
        check(path, "", "{", "x");
        check(path, "", "{ .a ", "}");
        check(path, "", "++a+", "x");
        check(path, "", ":material-", "x");
        check(path, "", "<a", "x");
        check(path, "", "<a:", ">");
        check(path, "", "<!-- ", "x");
        check(path, "<div>\n<!--\n\n", "a\n\n", "-->");
        check(path, "", ":::{note}\n", "x");
        check(path, "", "```{note}\n", "x");
        check(path, &format!("{}:::{{note}}\n", " ".repeat(1 << 18)), "x\n", "");
        check(path, "", "{ref}`", "x");
        check(path, "", "(a)=\n", "# x");
        check(path, "", "[](", "x");
        check(path, "", "# (1)!", "x");
        check(path, "```\n", " (1)!", "");
    }
}

#[test]
fn markdown() {
    for path in ["a.md", "a.mdx", "b.md"] {
        check(path, "", "[", "x");
        check(path, "", "![", "x");
        check(path, "", "[a](", "x");
        check(path, "", "*a _b ", "x");
        check(path, "", "**a*", "x");
        check(path, "", "`a``b", "x");
        check(path, "", "> ", "x");
        check(path, "", "> a\n", "x");
        check(path, "", "- a\n", "x");
        check(path, "", "- ", "x");
        check(path, "", "1. ", "x");
        check(path, "", "<a ", "x");
        check(path, "", "<a>", "x");
        check(path, "", "<b>\n", "x");
        check(path, "", "</", "x");
        check(path, "", "<!--", "x");
        check(path, "", "{/*", "x");
        check(path, "", "{{#include a.md}}", "x");
        check(path, "", "{{#", "x");
        check(path, "", "| a ", "|\n|--|\n");
        check(path, "| a | b |\n|---|---|\n", "| x |\n", "");
        check(path, "", "# a\n", "x");
        check(path, "", "# a {#b}\n\nx\n\n", "x");
        check(path, "", "[^1]: a\n\n", "[^1]");
        check(path, "", "[a]: b\n", "[a]");
        check(path, "", "[a] ", "\n\n[a]: b");
        check(path, "", "```\n", "x");
        check(path, "", "~~~a\nx\n~~~\n", "x");
        check(path, "", ":::note\n", "x");
        check(path, "", "::::", "x");
        check(path, "", "import A from './a.mdx'\n", "\n<A/>");
        check(path, "", "export const a = {\n", "x");
        check(path, "", "{a ", "x");
        check(path, "", "a\\\n", "x");
        check(path, "", "&#", "x");
        check(path, "", "a.b ", "x");
        check(path, "---\n", "a: {b: [", "\n---\nx");
        check(path, "---\n", "a: &a [*a, *a]\n", "\n---\nx");
        check(path, "", "https://x.org/( ", "x");
    }
}

#[test]
fn restructured_text() {
    for again in [
        "a\n=\n\n",
        "* ",
        "* a\n\n",
        ".. note::\n\n",
        ".. ",
        ".. a::\n   ",
        "`a",
        "``",
        ":a:`b` ",
        "|a| ",
        "a_ ",
        "+-",
        "+--+\n|a |\n",
        "= ",
        "== ==\na  b\n",
        "a\n  ",
        ":a: b\n",
        "::\n\n  a\n",
        "| a\n",
        ">>> a\n",
        ".. [1] a\n",
        ".. |a| replace:: b\n",
        ".. include:: a.rst\n",
        ".. _a:\n",
        "*a ",
        "**a ",
        "\\",
        "[1]_ ",
        ".. list-table::\n\n   * - a\n",
        ".. csv-table::\n\n   a,b\n",
        ".. code-block:: a\n\n   b\n",
        "__ ",
        "-a  b\n",
        "--a=b  c\n",
        "(a) ",
        "a. b\n",
        "\t",
        " ",
    ] {
        check("a.rst", "", again, "x");
    }
    // Each list is nested in the previous one.
    let deep: String = (0..1000).map(|depth| format!("{}* a\n\n", "  ".repeat(depth))).collect();
    check("a.rst", &deep, "x\n", "");
}

#[test]
fn asciidoc() {
    for again in [
        "= a\n",
        "== a\n\n",
        "* ",
        "* a\n",
        "*",
        ". a\n",
        "a:: b\n",
        "|===\n",
        "|===\n|a\n|===\n",
        "|a ",
        "----\n",
        "====\n",
        "--\n",
        "****\n",
        "[NOTE]\n",
        "[[a]]\n",
        "[",
        "<<a>> ",
        "<<",
        "{a}",
        ":a: {a}{a}\n",
        "ifdef::a[]\n",
        "ifndef::a[]\nx\nendif::[]\n",
        "include::a.adoc[]\n",
        "*a ",
        "_a ",
        "`a ",
        "#a ",
        "+++",
        "pass:[",
        "link:a[",
        "a::",
        "+\n",
        "xref:a[b] ",
        "image::a[b]\n",
        "////\n",
        "// a\n",
        "<1> a\n",
        "kbd:[",
        "a^b^ ",
        "''",
        "\"`a`\" ",
        "https://x.org[",
        "footnote:[a] ",
        "\\",
    ] {
        check("a.adoc", "", again, "x");
    }
    check(
        "a.adoc",
        ":a: xxxxxxxxxx\n:b: {a}{a}{a}{a}{a}{a}{a}{a}\n:c: {b}{b}{b}{b}{b}{b}{b}{b}\n",
        "{c}",
        "",
    );
    check("a.adoc", "[cols=\"1000000000*\"]\n|===\n", "|a\n", "|===\n");
    check("a.adoc", "|===\n", "99999999*|a\n", "|===\n");
    check("a.adoc", "|===\n", "999.999+|a\n", "|===\n");
}

#[test]
fn notebooks_and_text() {
    check("a.ipynb", "{\"cells\":", "[", "");
    check("a.ipynb", "{\"cells\":[", "{\"cell_type\":\"code\",\"source\":\"a\"},", "{}]}");
    check("a.ipynb", "{\"cells\":[{\"cell_type\":\"markdown\",\"source\":[", "\"[\",", "\"\"]}]}");
    for again in ["a", "a\n", "\n", "a. ", "é", "\u{200b}"] {
        check("a.txt", "", again, "x");
    }
}
