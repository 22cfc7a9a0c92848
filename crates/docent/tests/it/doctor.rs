use crate::support::Docent;

fn check(docent: &Docent, name: &str) -> serde_json::Value {
    let run = docent.run(&["doctor", "--json"]);
    let findings: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    findings.as_array().unwrap().iter().find(|finding| finding["check"] == name).cloned().unwrap_or_default()
}

#[test]
fn a_fresh_machine_is_well() {
    let run = Docent::new().run(&["doctor"]);
    assert_eq!(run.status, 0, "{}", run.stdout);
    for line in ["ok   configuration", "ok   embedder", "ok   data folder", "warn index"] {
        assert!(run.stdout.contains(line), "{}", run.stdout);
    }
    assert!(run.stdout.contains("run `docent ingest FOLDER`"), "{}", run.stdout);
}

#[test]
fn a_damaged_index_is_found_though_its_sizes_are_right() {
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
fn keys_are_judged_by_shape_and_never_shown() {
    let secret = "sk-live-1234567890abcdefghij";
    let docent =
        Docent::without_vectors().with("OPENAI_API_KEY", secret).with("COHERE_API_KEY", "\"quoted-secret\"");
    let run = docent.run(&["doctor", "--verbose"]);
    assert!(run.stdout.contains("OPENAI_API_KEY is set and looks like a key"), "{}", run.stdout);
    assert!(run.stdout.contains("COHERE_API_KEY is set but does not look like a key"), "{}", run.stdout);
    for shown in [&run.stdout, &run.stderr] {
        assert!(!shown.contains("1234567890") && !shown.contains("quoted-secret"), "{shown}");
    }
}

#[test]
fn a_key_in_a_dotenv_file_is_known_unless_the_environment_has_another() {
    let docent = Docent::without_vectors();
    docent.write(".env", "OPENAI_API_KEY=sk-live-1234567890abcdefghij\n");
    let run = docent.run(&["doctor", "--verbose"]);
    assert!(run.stdout.contains("OPENAI_API_KEY is set and looks like a key"), "{}", run.stdout);
    assert!(!run.stdout.contains("1234567890") && !run.stderr.contains("1234567890"), "{}", run.stderr);
    let docent = docent.with("OPENAI_API_KEY", "short");
    let run = docent.run(&["doctor"]);
    assert!(run.stdout.contains("OPENAI_API_KEY is set but does not look like a key"), "{}", run.stdout);
}

#[test]
fn a_bad_configuration_is_a_finding() {
    let docent = Docent::new();
    docent.write("docent.toml", "[retrieval]\ntopk = 3\n");
    let finding = check(&docent, "configuration");
    assert_eq!(
        (finding["health"].as_str(), finding["hint"].as_str()),
        (Some("bad"), Some("did you mean `top_k`?"))
    );
}
