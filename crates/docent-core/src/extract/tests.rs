//! Test extractive answers.

use std::sync::Arc;

use super::*;
use crate::fuse::Fused;
use crate::language::Language;
use crate::read::{Read, SIGNALS, Signals, read};
use crate::statement::StatementKind;
use crate::testing::chunk;

fn answer(question: &str, contents: &[&str]) -> Vec<String> {
    let analyzer = Analyzer::new(Language::default());
    let chunks: Vec<Arc<Chunk>> =
        contents.iter().zip(0..).map(|(content, number)| Arc::new(chunk("page", number, content))).collect();
    let fused: Vec<Fused> = chunks
        .iter()
        .map(|chunk| {
            let score = 1.0 / f32::from(chunk.index as u16 + 1);
            Fused { chunk: chunk.clone(), score, lexical: score, dense: score, page: 1.0 }
        })
        .collect();
    let terms: Vec<_> = analyzer.distinct(question).into_iter().map(|term| (term, 1.0)).collect();
    let read = read(question, &terms, &fused, &analyzer);
    let chunks: Vec<&Chunk> = chunks.iter().map(AsRef::as_ref).collect();
    let material =
        Material { question, terms: &terms, chunks: &chunks, read: &read, parts: 1, in_doubt: false };
    extract(&material, &analyzer).into_iter().map(|extract| extract.text).collect()
}

/// A passage that is one sentence with this probability to answer.
fn sentence(passage: usize, chunks: &[&Chunk], chance: f32) -> Read {
    Read {
        passage,
        span: 0..chunks[passage].content.len(),
        kind: StatementKind::Sentence,
        block: 0,
        signals: Signals([0.0; SIGNALS]),
        part: 0,
        is_fragment: false,
        score: 0.0,
        chance,
    }
}

#[test]
fn without_passages_there_is_no_answer() {
    assert!(answer("What is a node?", &[]).is_empty());
}

#[test]
fn an_answer_may_continue_in_the_next_passage_of_its_section() {
    let answer = |section: u32, chance: f32| {
        let analyzer = Analyzer::new(Language::default());
        let first = chunk("page", 0, "Output of passing tests is captured.");
        let next = Chunk { section, ..chunk("page", 1, "Show it with --show-output.") };
        let chunks = [&first, &next];
        let read = [sentence(0, &chunks, 0.9), sentence(1, &chunks, chance)];
        let material = Material {
            question: "I do not see what tests print",
            terms: &[],
            chunks: &chunks,
            read: &read,
            parts: 1,
            in_doubt: false,
        };
        extract(&material, &analyzer).len()
    };
    assert_eq!(answer(0, 0.05), 2);
    assert_eq!(answer(1, 0.05), 1, "in another section");
    assert_eq!(answer(0, 0.01), 1, "too unlikely");
}

#[test]
fn a_lead_in_is_shown_with_its_code() {
    let found = answer(
        "How do I list the topics?",
        &["List the topics with this command:\n\n```bash\nros2 topic list\n```"],
    );
    assert_eq!(found, ["List the topics with this command:\n\n```bash\nros2 topic list\n```"]);
}

#[test]
fn a_span_that_refers_back_includes_what_it_refers_to() {
    let filler =
        "Rain falls on the field and wets the grass and the road and the roof of the house. ".repeat(5);
    let passage = format!(
        "{filler}A node is a process. It publishes messages on topics, which is why topics exist. {filler}"
    );
    let found = answer("What publishes messages on topics?", &[&passage]);
    assert!(found[0].contains("A node is a process. It publishes messages"), "{found:?}");
    assert!(!found[0].starts_with("It "), "{found:?}");
}

#[test]
fn what_a_short_definition_refers_to_may_be_long() {
    let long = format!(
        "In server rendering the page arrives complete, {}and React correlates both.",
        "and so on, ".repeat(18)
    );
    let found = answer("what is hydration", &[&format!("{long} This step is called hydration.")]);
    assert!(found[0].starts_with("In server rendering"), "{found:?}");
}

#[test]
fn an_answer_says_more_than_the_question() {
    let message = "unexpected content after expression";
    let contents =
        [format!("Could not parse: {message}\n\nBraces begin code, so escape them with a backslash.")];
    let found = answer(&format!("Could not parse: {message}"), &[&contents[0]]);
    assert!(found[0].contains("escape them"), "{found:?}");
}

#[test]
fn a_long_table_is_reduced_to_its_header_and_the_matching_row() {
    let rows: String =
        (0..40).map(|number| format!("| option{number} | about thing number {number} |\n")).collect();
    let table = format!("The options:\n\n| Name | Meaning |\n| --- | --- |\n{rows}| quality | of the JPEG |");
    let found = answer("quality of jpeg", &[&table]);
    assert_eq!(found[0], "The options:\n\n| Name | Meaning |\n| --- | --- |\n| quality | of the JPEG |");
}

#[test]
fn the_quoted_span_is_in_the_passage() {
    let analyzer = Analyzer::new(Language::default());
    let content = "A node is a process. It publishes.";
    let chunk = Arc::new(chunk("page", 0, content));
    let fused = [Fused { chunk: chunk.clone(), score: 1.0, lexical: 1.0, dense: 1.0, page: 1.0 }];
    let terms = [("node".to_owned(), 1.0)];
    let read = read("What is a node?", &terms, &fused, &analyzer);
    let chunks = [chunk.as_ref()];
    let material = Material {
        question: "What is a node?",
        terms: &terms,
        chunks: &chunks,
        read: &read,
        parts: 1,
        in_doubt: false,
    };
    for extract in extract(&material, &analyzer) {
        assert_eq!(&content[extract.span.clone()], extract.text);
    }
}

#[test]
fn adjacent_spans_are_merged() {
    let words = |number: usize| {
        format!("{} node graph {}. ", "Alpha".repeat(number + 1), "word ".repeat(28).trim_end())
    };
    let passage: String = (0..4).map(words).collect();
    let found = answer("node graph", &[&passage]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(passage.contains(&found[0]), "{found:?}");
}

#[test]
fn a_second_span_is_shown_when_in_doubt() {
    let analyzer = Analyzer::new(Language::default());
    let chunks = [chunk("one", 0, "Maps are saved by hand."), chunk("two", 0, "Maps are saved on exit.")];
    let chunks: Vec<&Chunk> = chunks.iter().collect();
    let read = [sentence(0, &chunks, 0.85), sentence(1, &chunks, 0.15)];
    let shown = |in_doubt: bool| {
        let material = Material {
            question: "who saves it",
            terms: &[],
            chunks: &chunks,
            read: &read,
            parts: 1,
            in_doubt,
        };
        extract(&material, &analyzer).len()
    };
    assert_eq!((shown(false), shown(true)), (1, 2));
}

#[test]
fn a_comparison_shows_both_sides() {
    let walrus = "The walrus lives in the Arctic, has long tusks and eats clams from the floor of the sea.";
    let seal = "The seal has no tusks. It hunts fish.";
    let contents = [walrus, seal, "Rocks are warm."];
    let found = answer("walrus or seal", &contents);
    assert!(found.len() == 2 && found[0].contains("walrus") && found[1].starts_with("The seal"), "{found:?}");
    // A side that no passage is about is left out.
    assert_eq!(answer("walrus or otter", &contents), [walrus]);
}

#[test]
fn a_section_named_after_the_other_side_comes_first() {
    let sections = [
        ("Walruses", "A walrus has long tusks and eats clams from the floor of the sea."),
        ("Walruses and seal hunters", "A seal is smaller than a walrus, and hunters prefer it."),
        ("Seals", "They have no tusks and hunt fish."),
    ];
    let chunks: Vec<Chunk> = sections
        .iter()
        .zip(0..)
        .map(|((title, content), number)| {
            let mut chunk = chunk("page", number, content);
            chunk.page_title = (*title).to_owned();
            chunk
        })
        .collect();
    let chunks: Vec<&Chunk> = chunks.iter().collect();
    let chances = [0.9, 0.05, 0.04];
    let read: Vec<Read> =
        (0..).zip(chances).map(|(passage, chance)| sentence(passage, &chunks, chance)).collect();
    let terms = [("walrus".to_owned(), 1.0), ("seal".to_owned(), 1.0)];
    let question = "difference between walrus and seal";
    let material =
        Material { question, terms: &terms, chunks: &chunks, read: &read, parts: 1, in_doubt: false };
    let found = extract(&material, &Analyzer::new(Language::default()));
    assert_eq!(found.iter().map(|extract| extract.passage).collect::<Vec<_>>(), [0, 2]);
}
