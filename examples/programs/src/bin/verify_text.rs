//! Checks every sentence of a text against a page: which sentences does the page support, and with which words?
//!
//! `cargo run -p docent-examples --bin verify_text -- PAGE.md TEXT.txt`

#![allow(clippy::print_stdout)]

use std::sync::Arc;

use anyhow::Context;
use docent_backends::embed::local::LocalEmbedder;
use docent_backends::reader::local::LocalReader;
use docent_core::chunk::chunk;
use docent_core::embed::Embedder;
use docent_core::language::Language;
use docent_core::reader::Reader;
use docent_core::sentence::sentences;
use docent_core::terms::Analyzer;
use docent_core::verify::{Evidence, SUPPORTED, Verifier};
use docent_parse::layout::{Base, Layout, Site};
use docent_parse::parse_page;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let page = arguments.next().context("usage: verify_text PAGE TEXT")?;
    let text = std::fs::read_to_string(arguments.next().context("usage: verify_text PAGE TEXT")?)?;

    let site = Site::new(Layout::Plain, Base::Local("file:///".to_owned()));
    let (document, _) = parse_page(&page, &std::fs::read(&page)?, &site, &mut |_| None);
    let document = document.context("the page has no text")?;
    // About 200 words per passage; four bytes are roughly one token.
    let chunks = chunk(&document, 256, &|text| text.len().div_ceil(4));
    let headings: Vec<String> = chunks.iter().map(|chunk| chunk.breadcrumb()).collect();
    let evidence: Vec<Evidence<'_>> = chunks
        .iter()
        .zip(&headings)
        .map(|(chunk, heading)| Evidence { heading, content: &chunk.content })
        .collect();

    let embedder: Arc<dyn Embedder> = Arc::new(LocalEmbedder::bundled()?);
    let reader: Arc<dyn Reader> = Arc::new(LocalReader::bundled()?);
    let analyzer = Arc::new(Analyzer::new(Language::default()));
    let verifier = Verifier::new(analyzer, Some(embedder), Some(reader));
    for span in sentences(&text) {
        let sentence = &text[span];
        match verifier.support(sentence, &evidence).await.first() {
            Some(support) if support.score >= SUPPORTED => {
                let quote = &evidence[support.passage].content[support.span.clone()];
                println!("supported ({:.2}): {sentence}\n  “{quote}”", support.score);
            }
            _ => println!("NOT SUPPORTED: {sentence}"),
        }
    }
    Ok(())
}
