//! Tests with EPUB files that are built in memory.

use std::io::Write;

use super::*;
use crate::layout::{Base, Layout};

const CONTAINER: &str = r#"<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">
    <rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"#;

const PACKAGE: &str = r#"<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">
    <metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Pump Book</dc:title></metadata>
    <manifest>
      <item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>
      <item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>
      <item id="two" href="text/two%20b.xhtml" media-type="application/xhtml+xml"/>
      <item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/>
      <item id="cover" href="text/cover.xhtml" media-type="application/xhtml+xml"/>
      <item id="gone" href="text/gone.xhtml" media-type="application/xhtml+xml"/>
    </manifest>
    <spine toc="ncx"><itemref idref="cover"/><itemref idref="nav"/><itemref idref="two"/><itemref idref="one"/><itemref idref="gone"/></spine>
    </package>"#;

const NAV: &str = r##"<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><body>
    <nav epub:type="toc"><ol><li><a href="text/two%20b.xhtml">Gear  <b>pumps</b></a><ol><li><a href="text/two%20b.xhtml#s">Inside</a></li></ol></li></ol></nav>
    <nav epub:type="landmarks"><ol><li><a href="text/one.xhtml">Start</a></li></ol></nav></body></html>"##;

const NCX: &str = r#"<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">
    <ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint id="a"><navLabel><text>Valves</text></navLabel><content src="text/one.xhtml#top"/></navPoint></navMap></ncx>"#;

const TWO: &str = r#"<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x.js"/></head><body>
    <h1 id="top">Pumps</h1><p>A pump<a id="page7"/> moves 4 litres.</p><h2 id="s">Code</h2><pre>a
  b</pre><table><tr><th>x</th></tr><tr><td>1</td></tr></table></body></html>"#;

const ONE: &str = "<html><body><h1>Wrong title</h1><p>A valve opens.</p></body></html>";

fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn book() -> Vec<(&'static str, &'static str)> {
    vec![
        ("META-INF/container.xml", CONTAINER),
        ("OEBPS/book.opf", PACKAGE),
        ("OEBPS/nav.xhtml", NAV),
        ("OEBPS/toc.ncx", NCX),
        ("OEBPS/text/two b.xhtml", TWO),
        ("OEBPS/text/one.xhtml", ONE),
        ("OEBPS/text/cover.xhtml", "<html><body><svg/></body></html>"),
    ]
}

fn parse(bytes: &[u8]) -> Epub {
    let site = Site {
        root_module: "books".to_owned(),
        ..Site::new(Layout::Plain, Base::Published("https://x.org".into()))
    };
    parse_epub("shelf/pump-book.epub", bytes, &site)
}

#[test]
fn pages_follow_the_order_of_the_spine() {
    let epub = parse(&zipped(&book()));
    assert_eq!(epub.title.as_deref(), Some("The Pump Book"));
    let pages: Vec<_> = epub.pages.iter().map(|page| (page.title.as_str(), page.url.as_str())).collect();
    assert_eq!(
        pages,
        [
            ("Gear pumps", "https://x.org/shelf/pump-book.epub/OEBPS/text/two%20b.xhtml"),
            ("Valves", "https://x.org/shelf/pump-book.epub/OEBPS/text/one.xhtml"),
        ]
    );
    assert_eq!(epub.pages[0].module, "pump-book");
    let warnings: Vec<_> =
        epub.warnings.iter().map(|warning| format!("{}: {}", warning.path, warning.message)).collect();
    assert_eq!(
        warnings,
        [
            "shelf/pump-book.epub/OEBPS/text/cover.xhtml: no text found in the page",
            "shelf/pump-book.epub/OEBPS/nav.xhtml: table of contents; used for titles, not indexed as a page",
            "shelf/pump-book.epub/OEBPS/text/gone.xhtml: listed in the spine but missing or unreadable",
        ]
    );
}

#[test]
fn anchors_come_from_ids_and_code_and_tables_keep_their_lines() {
    let epub = parse(&zipped(&book()));
    let sections = &epub.pages[0].sections;
    let anchors: Vec<_> =
        sections.iter().filter_map(|section| section.heading.as_ref()?.anchor.as_deref()).collect();
    assert_eq!(anchors, ["top", "s"]);
    assert_eq!(sections[0].blocks[0].text, "A pump moves 4 litres.");
    let texts: Vec<_> = sections[1].blocks.iter().map(|block| block.text.as_str()).collect();
    assert_eq!(texts, ["```\na\n  b\n```", "| x |\n| --- |\n| 1 |"]);
}

#[test]
fn encrypted_pages_are_skipped_with_a_warning() {
    let mut files = book();
    files.push((
        "META-INF/encryption.xml",
        r#"<encryption><EncryptedData><CipherData><CipherReference URI="OEBPS/text/one.xhtml"/></CipherData></EncryptedData></encryption>"#,
    ));
    let epub = parse(&zipped(&files));
    assert_eq!(epub.pages.len(), 1);
    assert!(epub.warnings.iter().any(|warning| warning.message.starts_with("encrypted")));
}

#[test]
fn an_invalid_epub_gives_one_warning_and_no_pages() {
    for bytes in [
        b"not a zip".to_vec(),
        zipped(&[("a.txt", "x")]),
        zipped(&[("META-INF/container.xml", "<container/>")]),
        zipped(&[("META-INF/container.xml", "<<<")]),
        zipped(&[("META-INF/container.xml", CONTAINER)]),
        zipped(&[("META-INF/container.xml", CONTAINER), ("OEBPS/book.opf", "<package/>")]),
    ] {
        let epub = parse(&bytes);
        assert!(epub.pages.is_empty());
        assert_eq!(epub.warnings.len(), 1, "{:?}", epub.warnings);
    }
}

#[test]
fn a_page_that_is_too_large_unpacked_is_skipped() {
    let bomb = " ".repeat(LARGEST_FILE as usize + 1);
    let mut files = book();
    files.retain(|(name, _)| !name.ends_with("one.xhtml"));
    files.push(("OEBPS/text/one.xhtml", &bomb));
    let epub = parse(&zipped(&files));
    assert_eq!(epub.pages.len(), 1);
    assert!(epub.warnings.iter().any(|warning| warning.path.ends_with("one.xhtml")));
}

#[test]
fn xml_entities_cannot_expand_without_limit() {
    let bomb = r#"<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;"><!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;"><!ENTITY g "&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;"><!ENTITY h "&g;&g;&g;&g;&g;&g;&g;&g;&g;&g;">]><container>&h;</container>"#;
    assert!(parse(&zipped(&[("META-INF/container.xml", bomb)])).pages.is_empty());
}
