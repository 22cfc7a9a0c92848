//! Questions about a long page take bounded time; and a test that prints the questions about a folder of pages, for people
//! to judge.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::time::{Duration, Instant};

use docent_core::chunk::{Chunk, chunk};
use docent_core::quiz::{QuizQuestion, questions};
use docent_parse::layout::{Base, Layout, Site};
use docent_parse::{Format, parse_page};

/// The passages of every page below a folder, by path.
fn pages(folder: &Path, layout: Layout) -> Vec<Vec<Chunk>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let site = Site::new(layout, Base::Published("https://book.example".into()));
    let parsed = files.iter().filter_map(|file| {
        let path = file.strip_prefix(folder).unwrap().to_str()?;
        Format::of(path)?;
        let (document, _) = parse_page(path, &std::fs::read(file).unwrap(), &site, &mut |_| None);
        Some(chunk(&document?, 256, &|text| text.len().div_ceil(4)))
    });
    parsed.collect()
}

#[test]
fn a_long_page_takes_no_longer_than_its_share() {
    let sentences: String = (0..6000).map(|n| format!("Widget{n} is a machine that moves water. ")).collect();
    let site = Site::new(Layout::Plain, Base::Published("https://book.example".into()));
    let (page, _) =
        parse_page("pumps.md", format!("# Pumps\n\n{sentences}").as_bytes(), &site, &mut |_| None);
    let passages = chunk(&page.unwrap(), 256, &|text| text.len().div_ceil(4));
    let begun = Instant::now();
    assert_eq!(questions(&passages).len(), 12);
    // Quadratic time would be minutes.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// `DOCENT_TEST_QUIZ_FOLDER=… cargo test -p docent-core --test quiz -- --ignored --nocapture`
#[test]
#[ignore = "prints the questions about a folder of pages, for reading them"]
fn print_questions() {
    let Ok(folder) = std::env::var("DOCENT_TEST_QUIZ_FOLDER") else {
        return println!("set DOCENT_TEST_QUIZ_FOLDER to a folder of pages");
    };
    let layout = match std::env::var("DOCENT_TEST_QUIZ_LAYOUT").as_deref() {
        Ok("mdbook") => Layout::MdBook,
        Ok("sphinx") => Layout::Sphinx,
        _ => Layout::Docusaurus,
    };
    let pages = pages(Path::new(&folder), layout);
    let mut total = 0;
    for page in &pages {
        for QuizQuestion { kind, question, answer, document_id, .. } in questions(page) {
            println!("{kind:?} [{document_id}]\n  Q {question}\n  A {}", answer.replace('\n', " "));
            total += 1;
        }
    }
    println!("{total} questions on {} pages", pages.len());
}
