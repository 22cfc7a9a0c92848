//! Properties of every parser, tested with random bytes and text.
//!
//! Invariant: no input makes a parser panic, and every file gives a page or a warning.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::HashSet;

use docent_parse::document::Document;
use docent_parse::layout::{Base, Layout, Site};
use docent_parse::parse_page;
use proptest::prelude::*;

/// A path and layout for each parser.
const PAGES: [(&str, Layout); 12] = [
    ("a.md", Layout::Plain),
    ("a.md", Layout::MdBook),
    ("a.md", Layout::MkDocs { folders: true }),
    ("a.md", Layout::VitePress { clean: false }),
    ("a.mdx", Layout::Docusaurus),
    ("a.html", Layout::Plain),
    ("a.rst", Layout::Sphinx),
    ("a.adoc", Layout::Asciidoctor),
    ("a.ipynb", Layout::Plain),
    ("a.txt", Layout::Plain),
    ("a.pdf", Layout::Plain),
    ("a.xyz", Layout::Plain),
];

fn parse(path: &str, layout: Layout, bytes: &[u8]) -> Option<Document> {
    let site = Site::new(layout, Base::Published("https://x.org".into())).with_root_module("m");
    // Every include returns the page itself: the worst case of a cycle.
    let mut load = |_: &str| Some(String::from_utf8_lossy(bytes).into_owned());
    let (document, warnings) = parse_page(path, bytes, &site, &mut load);
    assert!(document.is_some() || !warnings.is_empty(), "{path}: neither a page nor a warning");
    document
}

/// Checks the invariants that hold for every document.
fn check(path: &str, document: &Document) {
    let mut anchors = HashSet::new();
    for section in &document.sections {
        if let Some(heading) = &section.heading {
            assert!((1..=6).contains(&heading.level), "{path}");
            if let Some(anchor) = heading.anchor.as_ref().filter(|_| path != "a.pdf") {
                assert!(anchors.insert(anchor), "{path}: duplicate anchor {anchor}");
            }
        }
        for block in &section.blocks {
            assert!(!block.text.trim().is_empty(), "{path}: a block without text");
        }
    }
}

fn text(document: &Document) -> String {
    let mut text = document.title.clone();
    for section in &document.sections {
        for heading in section.heading.iter().map(|heading| &heading.text) {
            text.push_str(&format!("\n{heading}"));
        }
        for block in &section.blocks {
            text.push_str(&format!("\n{}", block.text));
        }
    }
    text
}

/// Characters with a special meaning in one of the formats.
const SIGNS: &str = "[#=*_`|<>{}\\[\\]():.~+^&;!\\-\"'/\\\\ a-z0-9éß\t\r]{0,24}";

/// Writes the same headings and text in each format.
fn written(path: &str, sections: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut cells = Vec::new();
    for (heading, words) in sections {
        match path {
            "a.html" => out.push_str(&format!("<h2 id=\"{heading}\">{heading}</h2><p>{words}</p>")),
            "a.rst" => {
                out.push_str(&format!("{heading}\n{}\n\n{words}\n\n", "-".repeat(heading.len().max(4))))
            }
            "a.adoc" => out.push_str(&format!("== {heading}\n\n{words}\n\n")),
            "a.ipynb" => cells.push(
                serde_json::json!({"cell_type": "markdown", "source": format!("## {heading}\n\n{words}")}),
            ),
            "a.txt" => out.push_str(&format!("{heading}\n\n{words}\n\n")),
            _ => out.push_str(&format!("## {heading}\n\n{words}\n\n")),
        }
    }
    if path == "a.ipynb" { serde_json::json!({"cells": cells}).to_string() } else { out }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        for (path, layout) in PAGES {
            if let Some(document) = parse(path, layout, &bytes) {
                check(path, &document);
            }
        }
    }

    #[test]
    fn arbitrary_markup_keeps_the_invariants(lines in proptest::collection::vec(SIGNS, 0..40)) {
        let source = lines.join("\n");
        for (path, layout) in PAGES {
            if let Some(document) = parse(path, layout, source.as_bytes()) {
                check(path, &document);
            }
        }
    }

    #[test]
    fn simple_documents_keep_all_words(
        sections in proptest::collection::vec(("[a-z]{5,12}", "[a-z]{2,9}( [a-z]{2,9}){0,12}\\."), 1..8)
    ) {
        for (path, layout) in PAGES.into_iter().filter(|(path, _)| !matches!(*path, "a.pdf" | "a.xyz")) {
            let document = parse(path, layout, written(path, &sections).as_bytes());
            let document = document.as_ref().ok_or_else(|| TestCaseError::fail("no page"))?;
            check(path, document);
            let text = text(document);
            for (heading, words) in &sections {
                prop_assert!(text.contains(heading) && text.contains(words), "{path}: {words} is not in {text}");
            }
        }
    }
}
