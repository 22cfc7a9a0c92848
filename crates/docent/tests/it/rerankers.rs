//! The real binary with a reranker: Cohere over a real socket, and a model in a folder.

use docent_testkit::scripted_provider::Act;
use serde_json::{Value, json};

use crate::embedders::{Provider, model_folder};
use crate::support::Docent;

/// A book whose pages all mention nodes, searched by keywords.
fn book(docent: &Docent) {
    docent.write("book/a.md", "# Nodes\n\nA node is what takes part in the graph. A node has a name.\n");
    docent.write("book/b.md", "# Robots\n\nA robot boils pasta while a node watches.\n");
    docent.write("book/c.md", "# Topics\n\nA topic carries messages between nodes.\n");
    docent.ok(&["ingest", "book"]);
}

fn with_cohere(provider: &Provider) -> Docent {
    // The built-in reader would add its own score.
    let docent = Docent::without_vectors()
        .with("DOCENT_READER__KIND", "none")
        .with("DOCENT_RERANKER__KIND", "cohere")
        .with("DOCENT_RERANKER__BASE_URL", &provider.url())
        .with("COHERE_API_KEY", "sk-secret-1234567890");
    book(&docent);
    docent
}

fn pages(found: &Value) -> Vec<&str> {
    found["chunks"].as_array().unwrap().iter().map(|chunk| chunk["document_id"].as_str().unwrap()).collect()
}

#[test]
fn cohere_reorders_and_its_score_is_shown() {
    let plain = Docent::without_vectors().with("DOCENT_READER__KIND", "none");
    book(&plain);
    let before = plain.json(&["search", "what is a node?"]);
    assert_eq!((pages(&before)[0], &before["chunks"][0]["rerank_score"]), ("a.md", &Value::Null));

    let provider = Provider::start(8, vec![], Act::Prefer("pasta"));
    let docent = with_cohere(&provider);
    let found = docent.json(&["search", "what is a node?"]);
    assert_eq!(pages(&found)[0], "b.md");
    let score = |place: usize| found["chunks"][place]["rerank_score"].as_f64().unwrap();
    assert!((score(0) - 0.9).abs() < 1e-6 && (score(1) - 0.1).abs() < 1e-6, "{found}");
    assert_eq!(found["relevance"], before["relevance"], "reranking does not change the relevance");
    let body = &provider.requests()[0].body;
    assert_eq!((&body["model"], &body["query"]), (&json!("rerank-v3.5"), &json!("what is a node?")));
    // An answer includes the score too.
    let answer = docent.json(&["ask", "What is a node?"]);
    assert!(answer["sources"][0]["rerank_score"].is_number(), "{answer}");
}

#[test]
fn a_failing_reranker_only_loses_its_order() {
    for act in [Act::Status(401), Act::Status(503), Act::Closed, Act::TooFew, Act::HalfJson] {
        let provider = Provider::start(8, vec![], act.clone());
        let docent = with_cohere(&provider);
        let run = docent.run(&["search", "what is a node?", "--json", "--verbose"]);
        assert_eq!(run.status, 0, "{act:?}: {}", run.stderr);
        let found: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(pages(&found)[0], "a.md", "{act:?}");
        assert_eq!(found["chunks"][0]["rerank_score"], Value::Null);
        assert!(run.stderr.contains("reranking failed"), "{act:?}: {}", run.stderr);
        assert!(!run.stderr.contains("secret") && !run.stderr.contains("boils"), "{}", run.stderr);
    }
}

#[test]
fn a_cross_encoder_in_a_folder_reorders() {
    let docent = Docent::without_vectors()
        .with("DOCENT_RERANKER__KIND", "onnx")
        .with("DOCENT_RERANKER__FOLDER", "judge");
    model_folder(&docent, "judge", "cross_encoder.onnx");
    book(&docent);
    let found = docent.json(&["search", "topic messages between nodes robot"]);
    assert_eq!(pages(&found)[0], "c.md");
    assert!(found["chunks"][0]["rerank_score"].as_f64() > found["chunks"][1]["rerank_score"].as_f64());
}

#[test]
fn missing_configuration_is_reported_with_a_hint() {
    let docent = Docent::without_vectors().with("DOCENT_RERANKER__KIND", "cohere");
    docent.fails(
        &["search", "node"],
        3,
        "error: the reranker cannot be used: Cohere: the API key is missing; set COHERE_API_KEY",
    );
    let docent = Docent::without_vectors().with("DOCENT_RERANKER__KIND", "onnx");
    docent.fails(
        &["search", "node"],
        3,
        "error: reranker.kind is `onnx` but reranker.folder is not set\n\
         hint: set reranker.folder to a folder with model.onnx and tokenizer.json",
    );
    let docent = Docent::without_vectors().with("DOCENT_RERANKER__CANDIDATES", "0");
    docent.fails(&["search", "node"], 3, "error: reranker.candidates must be between 1 and 200, got 0");
}

#[test]
fn the_doctor_checks_the_reranker() {
    let finding = |provider: &Provider| {
        let run = with_cohere(provider).run(&["doctor", "--json"]);
        let findings: Value = serde_json::from_str(&run.stdout).unwrap();
        findings.as_array().unwrap().iter().find(|finding| finding["check"] == "reranker").cloned().unwrap()
    };
    let well = finding(&Provider::start(8, vec![], Act::Answer));
    assert!(well["message"].as_str().unwrap().starts_with("cohere/rerank-v3.5 answers in"), "{well}");
    let ill = finding(&Provider::start(8, vec![], Act::Status(401)));
    assert_eq!(ill["health"], "bad");
    assert!(ill["message"].as_str().unwrap().ends_with("check COHERE_API_KEY"), "{ill}");
}
