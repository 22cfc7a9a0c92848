//! `docent quiz`: questions about the sample book, its pages and its modules, and flashcards.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use docent_testkit::scripted_model::Reply;

use crate::model::Model;
use crate::support::Docent;

fn text<'a>(question: &'a Value, field: &str) -> &'a str {
    question[field].as_str().unwrap()
}

/// The questions about every page of the sample book.
fn about_the_sample_book(docent: &Docent) -> Vec<Value> {
    let quiz = docent.json(&["quiz", "--limit", "1000"]);
    quiz["questions"].as_array().unwrap().clone()
}

/// The letters and digits of the sample book's sources, which contain every quote.
fn sources() -> String {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-book")];
    let mut all = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                all.push_str(&std::fs::read_to_string(path).unwrap())
            }
        }
    }
    // The targets of links are not part of the text.
    let text: String = all
        .split("](")
        .enumerate()
        .map(
            |(part, text)| if part == 0 { text } else { text.split_once(')').map_or(text, |(_, rest)| rest) },
        )
        .collect();
    letters(&text)
}

fn letters(text: &str) -> String {
    text.chars().filter(|sign| sign.is_alphanumeric()).collect()
}

#[test]
fn the_sample_book_has_at_least_forty_questions_whose_answers_are_quoted() {
    let questions = about_the_sample_book(&Docent::without_vectors());
    assert!(questions.len() >= 40, "{}", questions.len());
    let sources = sources();
    for question in &questions {
        let quote = text(question, "quote");
        for line in quote.lines().filter(|line| !line.starts_with("```")) {
            assert!(sources.contains(&letters(line)), "not in the book: {line}");
        }
        for line in text(question, "answer").lines() {
            let answer = line.strip_prefix("- ").unwrap_or(line);
            assert!(quote.contains(answer), "{answer} is not in {quote}");
        }
        let length = question["end"].as_u64().unwrap() - question["start"].as_u64().unwrap();
        assert_eq!(length, quote.len() as u64);
    }
    let ids: std::collections::HashSet<&str> =
        questions.iter().map(|question| text(question, "id")).collect();
    assert_eq!(ids.len(), questions.len());
    for kind in ["definition", "term", "list", "item", "steps", "table", "does", "reason"] {
        assert!(
            questions.iter().any(|question| text(question, "kind") == kind),
            "no question of kind {kind}"
        );
    }
}

/// Read the questions when this fails: their quality is what users judge.
#[test]
fn the_questions_about_the_sample_book_are_reviewed() {
    let mut questions = about_the_sample_book(&Docent::without_vectors());
    questions.sort_by_key(|question| text(question, "document_id").to_owned());
    let mut shown = String::new();
    let mut page = "";
    for question in &questions {
        if text(question, "document_id") != page {
            page = text(question, "document_id");
            let _ = writeln!(shown, "\n# {page}");
        }
        let _ = writeln!(
            shown,
            "\n{}\n  {}",
            text(question, "question"),
            text(question, "answer").replace('\n', "\n  ")
        );
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_pipe_gets_questions_with_answers() {
    let docent = Docent::without_vectors();
    let run = docent.run(&["quiz", "Nodes", "--limit", "3"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.contains("1. "), "{}", run.stdout);
    assert!(run.stdout.contains("sample-book/ros2/01-nodes.md"), "{}", run.stdout);
    assert_eq!(run.stdout.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count(), 3);
    assert_eq!(docent.ok(&["quiz", "Nodes", "--limit", "3"]), run.stdout, "the same questions every time");
}

#[test]
fn a_quiz_can_be_about_a_module_or_a_page() {
    let docent = Docent::without_vectors();
    let quiz = docent.json(&["quiz", "--module", "vla", "--limit", "10"]);
    let questions = quiz["questions"].as_array().unwrap();
    assert_eq!(questions.len(), 10);
    assert!(questions.iter().all(|question| question["module_name"] == "vla"));
    let pages: std::collections::HashSet<&str> =
        questions.iter().map(|question| text(question, "document_id")).collect();
    assert!(pages.len() >= 4, "{pages:?}");
    for name in ["ros2/02-topics.md", "02-topics", "topics and quality of service"] {
        let quiz = docent.json(&["quiz", name]);
        let questions = quiz["questions"].as_array().unwrap();
        assert!(questions.iter().all(|question| question["document_id"] == "ros2/02-topics.md"), "{name}");
        assert!(questions.len() > 3, "{name}");
    }
    for (arguments, message) in [
        (["quiz", "Nodez"], "error: there is no page `Nodez`\nhint: did you mean Nodes?"),
        (["quiz", "ros2/"], "error: 7 pages match `ros2/`\nhint: name one of them: ros2/00-overview.md, "),
        (["quiz", "--module=kitchen"], "error: there is no module `kitchen` in this book"),
        (["quiz", "--limit=0"], "must be between 1 and 1000"),
    ] {
        let run = docent.run(&arguments);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(run.stderr.contains(message), "{}", run.stderr);
    }
}

#[test]
fn flashcards_are_written_for_anki() {
    let docent = Docent::without_vectors();
    let run = docent.run(&["quiz", "--module", "ros2", "--anki", "cards.txt"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stderr.contains("flashcards written to cards.txt"), "{}", run.stderr);
    let cards = std::fs::read_to_string(docent.home.path().join("cards.txt")).unwrap();
    let (head, cards): (Vec<&str>, Vec<&str>) = cards.lines().partition(|line| line.starts_with('#'));
    assert!(head.contains(&"#separator:tab") && head.contains(&"#html:true"), "{head:?}");
    assert!(cards.len() > 20, "{}", cards.len());
    for card in cards {
        let fields: Vec<&str> = card.split('\t').collect();
        assert_eq!(fields.len(), 3, "{card}");
        assert_eq!(fields[2], "ros2");
    }
}

#[test]
fn a_page_without_anything_to_ask_about_says_so() {
    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# Pumps\n\nHello. It works.\n");
    docent.ok(&["ingest", "book"]);
    let run = docent.run(&["quiz"]);
    assert_eq!((run.status, run.stdout.as_str()), (0, ""));
    assert!(run.stderr.contains("nothing to ask about here"), "{}", run.stderr);
}

#[test]
fn a_model_may_phrase_the_questions() {
    let model = Model::start(vec![Reply::text("1. How would you define a node?")]);
    let docent = model.serve(Docent::without_vectors());
    let first = |arguments: &[&str]| {
        let quiz = docent.json(&[&["quiz", "Nodes", "--limit", "1"], arguments].concat());
        text(&quiz["questions"][0], "question").to_owned()
    };
    assert_eq!(first(&[]), "How would you define a node?");
    assert_eq!(first(&["--as-written"]), "What is a node?");
    assert_eq!(model.requests().len(), 1);
    let model = Model::start(vec![Reply::status(401)]);
    let run = model.serve(Docent::without_vectors()).run(&["quiz", "Nodes", "--limit", "1"]);
    assert!(run.stdout.starts_with("1. What is a node?"), "{}", run.stdout);
    assert!(run.stderr.contains("the questions are asked as they are"), "{}", run.stderr);
}
