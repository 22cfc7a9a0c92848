//! `docent doctor`, `status` and `modules`.

use docent_testkit::scripted_model::Reply;

use crate::model::Model;
use crate::support::Docent;

fn check(docent: &Docent, name: &str) -> serde_json::Value {
    let run = docent.run(&["doctor", "--json"]);
    let findings: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    findings.as_array().unwrap().iter().find(|finding| finding["check"] == name).cloned().unwrap_or_default()
}

#[test]
fn a_fresh_machine_has_no_problems() {
    let run = Docent::new().run(&["doctor"]);
    assert_eq!(run.status, 0, "{}", run.stdout);
    for line in ["ok   configuration", "ok   embedder", "ok   data folder", "warn index"] {
        assert!(run.stdout.contains(line), "{}", run.stdout);
    }
    assert!(run.stdout.contains("run `docent ingest FOLDER`"), "{}", run.stdout);
}

#[test]
fn a_damaged_index_of_the_right_size_is_found() {
    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# A\n\nA node.\n");
    docent.ok(&["ingest", "book"]);
    let file = docent.generation().join("pages.jsonl");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let finding = check(&docent, "index");
    assert_eq!(finding["health"], "bad");
    assert!(
        finding["message"].as_str().unwrap().contains("pages.jsonl has changed since it was published"),
        "{finding}"
    );
    assert_eq!(docent.run(&["doctor"]).status, 1);
}

#[test]
fn the_doctor_asks_the_model_for_a_word() {
    assert_eq!(check(&Docent::without_vectors(), "model")["health"], "good");
    let model = Model::start(vec![Reply::text("ok".to_owned()), Reply::status(401)]);
    let docent = model.serve(Docent::without_vectors());
    let finding = check(&docent, "model");
    assert_eq!(finding["health"], "good", "{finding}");
    let finding = check(&docent, "model");
    assert_eq!(finding["health"], "bad", "{finding}");
    assert!(finding["message"].as_str().unwrap().contains("401"), "{finding}");
    let unknown = Docent::without_vectors().with("DOCENT_GENERATOR__PROVIDER", "foo");
    let finding = check(&unknown, "model");
    assert!(finding["message"].as_str().unwrap().contains("unknown provider `foo`"), "{finding}");
}

#[test]
fn keys_are_checked_by_format_and_never_shown() {
    let secret = "sk-live-1234567890abcdefghij";
    let docent = Docent::without_vectors()
        .with("OPENAI_API_KEY", secret)
        .with("COHERE_API_KEY", "\"quoted-secret\"")
        .with("DOCENT_GENERATOR__KIND", "extractive");
    let run = docent.run(&["doctor", "--verbose"]);
    assert!(run.stdout.contains("OPENAI_API_KEY is set and looks like a key"), "{}", run.stdout);
    assert!(run.stdout.contains("COHERE_API_KEY is set but does not look like a key"), "{}", run.stdout);
    for shown in [&run.stdout, &run.stderr] {
        assert!(!shown.contains("1234567890") && !shown.contains("quoted-secret"), "{shown}");
    }
}

#[test]
fn the_environment_overrides_a_key_in_a_dotenv_file() {
    let docent = Docent::without_vectors().with("DOCENT_GENERATOR__KIND", "extractive");
    docent.write(".env", "OPENAI_API_KEY=sk-live-1234567890abcdefghij\n");
    let run = docent.run(&["doctor", "--verbose"]);
    assert!(run.stdout.contains("OPENAI_API_KEY is set and looks like a key"), "{}", run.stdout);
    assert!(!run.stdout.contains("1234567890") && !run.stderr.contains("1234567890"), "{}", run.stderr);
    let docent = docent.with("OPENAI_API_KEY", "short");
    let run = docent.run(&["doctor"]);
    assert!(run.stdout.contains("OPENAI_API_KEY is set but does not look like a key"), "{}", run.stdout);
}

#[test]
fn an_invalid_configuration_is_reported() {
    let docent = Docent::new();
    docent.write("docent.toml", "[retrieval]\ntopk = 3\n");
    let finding = check(&docent, "configuration");
    assert_eq!(
        (finding["health"].as_str(), finding["hint"].as_str()),
        (Some("bad"), Some("did you mean `top_k`?"))
    );
}

#[test]
fn an_unknown_language_and_an_invalid_public_url_are_reported() {
    let docent = Docent::without_vectors();
    for (settings, expected) in [
        ("[book]\nlanguage = \"english\"\n", "book.language: unknown language `english`"),
        (
            "[serve]\npublic_url = \"docent.example.org\"\n",
            "serve.public_url: invalid URL `docent.example.org`",
        ),
    ] {
        docent.write("docent.toml", settings);
        let finding = check(&docent, "configuration");
        assert_eq!(finding["health"], "bad", "{finding}");
        assert!(finding["message"].as_str().unwrap().starts_with(expected), "{finding}");
    }
    docent.write("docent.toml", "[book]\nlanguage = \"de\"\n[serve]\npublic_url = \"\"\n");
    assert_eq!(check(&docent, "configuration")["health"], "good");
}

#[test]
fn the_given_configuration_file_is_checked() {
    let docent = Docent::without_vectors();
    docent.write("other/docent.toml", "[book]\nbase_url = \"https://book.example\"\n");
    let named = docent.run(&["doctor", "--config", "other/docent.toml"]);
    assert!(named.stdout.contains("other/docent.toml is valid"), "{}", named.stdout);
    docent.write("docent.toml", "");
    let named = docent.run(&["doctor", "--config", "other/docent.toml"]);
    assert!(named.stdout.contains("other/docent.toml is valid"), "{}", named.stdout);
    let own = docent.run(&["doctor"]);
    assert!(own.stdout.contains(" docent.toml is valid"), "{}", own.stdout);
}

#[test]
fn status_and_modules_work_without_a_working_embedder() {
    let docent = Docent::new();
    docent.write("book/guide/a.md", "# Nodes\n\nA node is a process.\n");
    docent.ok(&["ingest", "book"]);
    let broken = docent.with("DOCENT_EMBEDDER__KIND", "onnx").with("DOCENT_EMBEDDER__FOLDER", "nowhere");
    assert_ne!(broken.run(&["search", "node"]).status, 0);
    assert_eq!(broken.json(&["status"])["pages"], 1);
    assert_eq!(broken.json(&["modules"])["guide"]["pages"], 1);
    let fresh =
        Docent::new().with("DOCENT_EMBEDDER__KIND", "onnx").with("DOCENT_EMBEDDER__FOLDER", "nowhere");
    assert_eq!(fresh.json(&["status"])["sample"], true);
    assert_eq!(fresh.json(&["modules"]).as_object().map(|modules| modules.len()), Some(5));
}
