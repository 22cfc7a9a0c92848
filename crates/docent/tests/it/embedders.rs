//! The real binary with embedders behind an API, over a real socket.

use std::path::Path;

use docent_testkit::scripted_provider::{Act, Request, ScriptedProvider};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::support::Docent;

const KEY: &str = "sk-secret-1234567890";

/// A scripted provider in its own thread.
pub struct Provider {
    _runtime: Runtime,
    server: ScriptedProvider,
}

impl Provider {
    pub fn start(width: usize, script: Vec<Act>, then: Act) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(ScriptedProvider::start(width, script, then)).unwrap();
        Self { _runtime: runtime, server }
    }

    /// A user of Cohere with short timeouts.
    pub fn cohere(&self, docent: Docent) -> Docent {
        docent
            .with("DOCENT_EMBEDDER__KIND", "cohere")
            .with("DOCENT_EMBEDDER__BASE_URL", &self.server.url())
            .with("DOCENT_EMBEDDER__ATTEMPTS", "1")
            .with("COHERE_API_KEY", KEY)
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    pub fn requests(&self) -> Vec<Request> {
        assert_eq!(self.server.violations(), Vec::<String>::new());
        self.server.requests()
    }

    /// The texts of every call with this purpose.
    fn texts(&self, purpose: &str) -> Vec<Value> {
        let of_kind = |request: &Request| request.body["input_type"] == purpose;
        let requests = self.requests().into_iter().filter(of_kind);
        requests.flat_map(|request| request.body["texts"].as_array().unwrap().clone()).collect()
    }
}

/// Writes a book of `pages` pages with one passage each.
pub fn write_book(docent: &Docent, pages: usize) {
    for page in 0..pages {
        let text = format!("# Page {page}\n\nThis page is about subject{page} and nothing else.\n");
        docent.write(&format!("book/p{page}.md"), &text);
    }
}

#[test]
fn a_book_is_embedded_by_cohere_and_found_again() {
    let provider = Provider::start(1024, vec![], Act::Answer);
    let docent = provider.cohere(Docent::new());
    write_book(&docent, 100);
    let report = docent.json(&["ingest", "book"]);
    assert_eq!(report["embedder"], "cohere/embed-multilingual-v3.0 (1024 wide)");
    let sizes: Vec<usize> =
        provider.requests().iter().map(|request| request.body["texts"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [96, 4]);
    let found = docent.json(&["search", "what is subject42 about?", "--top-k", "1"]);
    assert_eq!(found["chunks"][0]["document_id"], "p42.md");
    assert_eq!(provider.texts("search_query"), ["what is subject42 about?"]);
    assert_eq!(provider.texts("search_document").len(), 100);
    // Without changes nothing is embedded; after a change, only what changed.
    docent.json(&["ingest"]);
    docent.write("book/p7.md", "# Page 7\n\nNow it is about something new.\n");
    assert_eq!(docent.json(&["ingest"])["embedded"], 1);
    assert_eq!(provider.texts("search_document").len(), 101);
}

#[test]
fn an_answer_needs_one_embedding_call() {
    let provider = Provider::start(1024, vec![], Act::Answer);
    let docent = provider.cohere(Docent::new());
    write_book(&docent, 5);
    docent.ok(&["ingest", "book"]);
    assert_eq!(docent.json(&["ask", "What is subject3 about?"])["grounded"], true);
    assert_eq!(provider.texts("search_query").len(), 1);
}

#[test]
fn environment_variables_set_the_model_and_the_base_url() {
    let provider = Provider::start(1024, vec![], Act::Answer);
    let docent = provider.cohere(Docent::new()).with("COHERE_MODEL", "embed-english-v3.0");
    write_book(&docent, 2);
    assert_eq!(docent.json(&["ingest", "book"])["embedder"], "cohere/embed-english-v3.0 (1024 wide)");

    let provider = Provider::start(1536, vec![], Act::Answer);
    let docent = Docent::new()
        .with("DOCENT_EMBEDDER__KIND", "openai")
        .with("DOCENT_GENERATOR__KIND", "extractive")
        .with("OPENAI_BASE_URL", &format!("{}/v1", provider.url()))
        .with("OPENAI_MODEL", "gpt-4o-mini")
        .with("OPENAI_API_KEY", KEY);
    write_book(&docent, 3);
    assert_eq!(docent.json(&["ingest", "book"])["embedder"], "openai/text-embedding-3-small (1536 wide)");
    let found = docent.json(&["search", "subject1"]);
    assert_eq!(found["chunks"][0]["document_id"], "p1.md");
    assert_eq!(provider.requests().len(), 2);

    let provider = Provider::start(768, vec![], Act::Answer);
    let docent = Docent::new()
        .with("DOCENT_EMBEDDER__KIND", "ollama")
        .with("DOCENT_EMBEDDER__BASE_URL", &provider.url());
    write_book(&docent, 3);
    let embedder = docent.json(&["ingest", "book"])["embedder"].clone();
    assert!(embedder.as_str().unwrap().starts_with("ollama/nomic-embed-text+"), "{embedder}");
    assert_eq!(docent.json(&["search", "subject2"])["chunks"][0]["document_id"], "p2.md");
    assert!(provider.requests().iter().all(|request| !request.headers.contains_key("authorization")));
}

#[test]
fn an_ingest_resumes_after_a_server_failure_without_embedding_twice() {
    let dying = Provider::start(1024, vec![Act::Answer, Act::Answer], Act::Closed);
    let docent = dying.cohere(Docent::new());
    write_book(&docent, 300);
    let run = docent.run(&["ingest", "book"]);
    assert_eq!(run.status, 4, "{}", run.stderr);
    assert!(run.stderr.contains("what was embedded so far is kept"), "{}", run.stderr);
    assert!(!run.stderr.contains("secret") && !run.stderr.contains("subject"), "{}", run.stderr);

    let well = Provider::start(1024, vec![], Act::Answer);
    let docent = well.cohere(docent);
    let report = docent.json(&["ingest", "book"]);
    assert_eq!((&report["resumed"], &report["embedded"]), (&192.into(), &108.into()));
    let mut sent: Vec<String> = [&dying.texts("search_document")[..192], &well.texts("search_document")]
        .concat()
        .iter()
        .map(Value::to_string)
        .collect();
    sent.sort();
    sent.dedup();
    assert_eq!(sent.len(), 300, "each passage was embedded once");
    assert_eq!(docent.json(&["search", "subject299"])["chunks"][0]["document_id"], "p299.md");
}

#[test]
fn a_busy_provider_is_retried() {
    let provider = Provider::start(1024, vec![Act::Busy(429, 1)], Act::Answer);
    let docent = provider.cohere(Docent::new()).with("DOCENT_EMBEDDER__ATTEMPTS", "3");
    write_book(&docent, 2);
    docent.ok(&["ingest", "book"]);
    assert_eq!(provider.requests().len(), 2);
}

#[test]
fn an_index_made_with_another_embedder_is_rejected_with_the_settings_to_restore() {
    let provider = Provider::start(1024, vec![], Act::Answer);
    let docent = provider.cohere(Docent::new());
    write_book(&docent, 2);
    docent.ok(&["ingest", "book"]);
    let docent = docent.with("DOCENT_EMBEDDER__KIND", "local");
    docent.fails(
        &["search", "subject1"],
        3,
        "error: the index was made with cohere/embed-multilingual-v3.0 (1024 wide), but local/granite-embedding-30m-english-int8 (384 wide) is configured\n\
         hint: run `docent ingest` to embed the book again, or set embedder.kind = \"cohere\" and embedder.model = \"embed-multilingual-v3.0\"",
    );
}

#[test]
fn missing_configuration_is_reported_with_a_hint() {
    let docent = Docent::new().with("DOCENT_EMBEDDER__KIND", "cohere");
    write_book(&docent, 2);
    docent.fails(
        &["ingest", "book"],
        3,
        "error: the embedder cannot be used: Cohere: the API key is missing; set COHERE_API_KEY",
    );
    let docent = Docent::new().with("DOCENT_EMBEDDER__KIND", "openai");
    docent.fails(
        &["search", "node"],
        3,
        "error: the embedder cannot be used: OpenAI: the API key is missing; set OPENAI_API_KEY",
    );
}

#[test]
fn provider_errors_are_reported_without_the_key() {
    for (act, status, message) in [
        (Act::Status(401), 3, "the API key was rejected (HTTP 401); check COHERE_API_KEY"),
        (Act::Wide(768), 3, "it returned vectors of width 768 instead of 1024; check embedder.model"),
        (Act::Status(503), 4, "the server returned HTTP 503"),
    ] {
        let provider = Provider::start(1024, vec![], act);
        let docent = provider.cohere(Docent::new());
        write_book(&docent, 2);
        let run = docent.run(&["ingest", "book", "--verbose"]);
        assert_eq!(run.status, status, "{}", run.stderr);
        assert!(run.stderr.contains(message), "{}", run.stderr);
        assert!(!run.stderr.contains("secret") && !run.stderr.contains("subject1"), "{}", run.stderr);
    }
}

#[test]
fn the_doctor_embeds_a_test_word() {
    let finding = |docent: &Docent| {
        let run = docent.run(&["doctor", "--json"]);
        let findings: Value = serde_json::from_str(&run.stdout).unwrap();
        findings.as_array().unwrap().iter().find(|finding| finding["check"] == "embedder").cloned().unwrap()
    };
    let provider = Provider::start(1024, vec![], Act::Answer);
    let well = finding(&provider.cohere(Docent::new()));
    assert_eq!(well["health"], "good");
    assert!(
        well["message"]
            .as_str()
            .unwrap()
            .starts_with("cohere/embed-multilingual-v3.0 (1024 wide) answers in"),
        "{well}"
    );
    assert_eq!(provider.requests().len(), 1);
    let provider = Provider::start(1024, vec![], Act::Status(401));
    let ill = finding(&provider.cohere(Docent::new()));
    assert_eq!(ill["health"], "bad");
    assert!(ill["message"].as_str().unwrap().ends_with("check COHERE_API_KEY"), "{ill}");
}

/// The tiny sentence model in a folder.
#[test]
fn a_model_in_a_folder_works_and_its_prefixes_are_part_of_its_identity() {
    let docent = Docent::new().with("DOCENT_EMBEDDER__KIND", "onnx").with("DOCENT_EMBEDDER__FOLDER", "tiny");
    docent.fails(&["search", "node"], 3, "error: the embedder cannot be used: tiny is not a folder");
    model_folder(&docent, "tiny", "tokens.onnx");
    docent.write("book/a.md", "# Nodes\n\nA node is what takes part in the graph.\n");
    docent.write("book/b.md", "# Pasta\n\nBoil the water and add salt.\n");
    let embedder = docent.json(&["ingest", "book"])["embedder"].as_str().unwrap().to_owned();
    assert!(embedder.starts_with("onnx/tiny-") && embedder.ends_with("(8 wide)"), "{embedder}");
    assert_eq!(docent.json(&["search", "boil pasta water"])["chunks"][0]["document_id"], "b.md");
    let run = docent.with("DOCENT_EMBEDDER__QUERY_PREFIX", "question: ").run(&["search", "node"]);
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert!(run.stderr.contains("set embedder.kind = \"onnx\" and the folder"), "{}", run.stderr);
}

/// Copies a tiny model into a folder below the home folder.
pub fn model_folder(docent: &Docent, name: &str, graph: &str) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docent-backends/tests/fixtures/onnx");
    let folder = docent.home.path().join(name);
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(fixtures.join(graph), folder.join("model.onnx")).unwrap();
    std::fs::copy(fixtures.join("tokenizer.json"), folder.join("tokenizer.json")).unwrap();
}
