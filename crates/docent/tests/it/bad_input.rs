//! Every invalid input gets a one-line error, a hint and the right exit code, and changes nothing.

use crate::support::Docent;

fn ingested() -> Docent {
    let docent = Docent::without_vectors();
    docent.write("book/ros2/a.md", "# Nodes\n\nA node is a process.\n");
    docent.ok(&["ingest", "book"]);
    docent
}

#[test]
fn questions_outside_the_limits_are_rejected() {
    let docent = Docent::without_vectors();
    docent.fails(&["search", "  "], 2, "error: Query cannot be empty");
    let long = "x".repeat(8001);
    docent.fails(
        &["search", &long],
        2,
        "error: Query is too long: 8001 characters, at most 8000 are allowed",
    );
    docent.fails(&["search", "x", "--top-k", "0"], 2, "error: top_k must be between 1 and 100, got 0");
    docent.fails(
        &["search", "x", "--threshold", "2"],
        2,
        "error: threshold must be between 0.0 and 1.0, got 2",
    );
}

#[test]
fn an_unknown_module_suggests_a_similar_one() {
    let docent = ingested();
    docent.fails(
        &["search", "node", "--module", "ros"],
        2,
        "error: there is no module `ros` in this book\nhint: did you mean `ros2`?",
    );
    docent.fails(
        &["search", "node", "--module", "kitchen"],
        2,
        "error: there is no module `kitchen` in this book\nhint: available modules: ros2",
    );
}

#[test]
fn missing_or_unsupported_sources_are_errors() {
    let docent = ingested();
    docent.fails(
        &["ingest", "nowhere"],
        1,
        "error: ~/nowhere does not exist\nhint: check the path; the index is unchanged",
    );
    std::fs::create_dir(docent.home.path().join("empty")).unwrap();
    docent.fails(
        &["ingest", "empty"],
        1,
        "error: no pages found in ~/empty\nhint: supported formats are Markdown, MDX, HTML, reStructuredText, AsciiDoc, Jupyter, PDF, EPUB and plain text; the index is unchanged",
    );
    docent.fails(
        &["ingest", "ftp://example.org/docs"],
        2,
        "error: unsupported address ftp://example.org/docs: use http or https, without a user name or password",
    );
    assert_eq!(docent.json(&["search", "node"])["index_version"], "g000001");
}

#[test]
fn ingest_without_sources_is_an_error() {
    Docent::without_vectors().fails(
        &["ingest"],
        2,
        "error: no source given\nhint: pass a folder, such as `docent ingest ./docs --base-url https://example.org/docs`, or list [[sources]] in docent.toml",
    );
}

#[test]
fn an_invalid_corpus_names_the_line() {
    let docent = Docent::without_vectors();
    docent.write("corpus.jsonl", "{\"_id\":\"1\",\"text\":\"a\"}\n{broken\n");
    let run = docent.run(&["ingest", "corpus.jsonl"]);
    assert_eq!(run.status, 1);
    assert!(run.stderr.contains("corpus.jsonl, line 2: key must be a string"), "{}", run.stderr);
}

#[test]
fn a_damaged_generation_is_reported_and_can_be_rebuilt() {
    let docent = ingested();
    let file = docent.generation().join("pages.jsonl");
    std::fs::write(&file, "{").unwrap();
    for command in ["search", "ask"] {
        let run = docent.run(&[command, "node"]);
        assert_eq!(run.status, 1);
        assert!(run.stderr.starts_with("error: the index is damaged: "), "{}", run.stderr);
        assert!(run.stderr.contains("pages.jsonl has 1 bytes, expected"), "{}", run.stderr);
        assert!(
            run.stderr.contains("hint: run `docent ingest SOURCE` again to rebuild it"),
            "{}",
            run.stderr
        );
    }
    docent.ok(&["ingest"]);
    assert_eq!(docent.json(&["search", "node"])["index_version"], "g000002");
}

#[test]
fn an_index_that_has_lost_its_sources_can_be_rebuilt_as_the_hint_says() {
    let docent = ingested();
    std::fs::write(docent.generation().join("manifest.json"), "{").unwrap();
    for arguments in [&["search", "node"][..], &["ingest"]] {
        let run = docent.run(arguments);
        assert_eq!(run.status, 1, "{}", run.stderr);
        let hint = "hint: run `docent ingest SOURCE` again to rebuild it";
        assert!(run.stderr.contains(hint), "{arguments:?}: {}", run.stderr);
    }
    docent.ok(&["ingest", "book"]);
    docent.ok(&["search", "node"]);
}

#[test]
fn an_index_made_with_another_embedder_is_rejected_with_a_hint() {
    let docent = Docent::new();
    docent.write("book/a.md", "# Nodes\n\nA node is a process.\n");
    docent.ok(&["ingest", "book"]);
    let manifest = docent.generation().join("manifest.json");
    let text = std::fs::read_to_string(&manifest)
        .unwrap()
        .replace("local/granite-embedding-30m-english-int8", "cohere/embed-v3");
    std::fs::write(&manifest, text).unwrap();
    std::fs::remove_file(docent.generation().join("manifest.sum")).unwrap();
    docent.fails(
        &["search", "node"],
        3,
        "error: the index was made with cohere/embed-v3 (384 wide), but local/granite-embedding-30m-english-int8 (384 wide) is configured\n\
         hint: run `docent ingest` to embed the book again, or set embedder.kind = \"cohere\" and embedder.model = \"embed-v3\"",
    );
    docent.ok(&["ingest"]);
    docent.ok(&["search", "node"]);
}

#[test]
fn an_index_in_another_format_is_rejected_until_rebuilt() {
    let docent = ingested();
    let manifest = docent.generation().join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap().replace("\"format\": 2", "\"format\": 99");
    std::fs::write(&manifest, text).unwrap();
    docent.fails(
        &["search", "node"],
        1,
        "error: the index has format 99, but this version of Docent reads format 2\nhint: run `docent ingest` to rebuild it from the same sources",
    );
    docent.ok(&["ingest"]);
    docent.ok(&["search", "node"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_nothing() {
    let docent = Docent::new();
    docent.write("book/a.md", "# Nodes\n\nA node is a process.\n");
    docent.ok(&["ingest", "book"]);
    // Writing to this device fails as on a full disk.
    std::os::unix::fs::symlink("/dev/full", docent.index().join("journal")).unwrap();
    docent.write("book/b.md", "# Topics\n\nA topic is a name.\n");
    docent.fails(
        &["ingest"],
        1,
        "error: cannot write ~/data/index/journal: No space left on device (os error 28)\n\
         hint: free some space and run the same command again; the old index is still in use",
    );
    assert_eq!(docent.json(&["search", "node"])["index_version"], "g000001");
    assert!(!docent.index().join("journal").is_symlink(), "a journal that cannot be resumed is deleted");
    assert_eq!(docent.json(&["ingest"])["pages"]["added"], 1);
}

#[test]
fn a_data_folder_that_cannot_be_created_is_an_error() {
    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# A\n\nText.\n");
    docent.write("file", "");
    let run = docent.run(&["ingest", "book", "--data-dir", "file"]);
    assert_eq!(run.status, 1);
    assert!(run.stderr.starts_with("error: cannot create file/index"), "{}", run.stderr);
}

#[test]
fn invalid_settings_are_errors() {
    let docent = Docent::without_vectors();
    docent.write("docent.toml", "[retrieval]\ntopk = 3\n");
    docent.fails(
        &["search", "x"],
        3,
        "error: unknown setting `retrieval.topk` in docent.toml\nhint: did you mean `top_k`?",
    );
    docent.write("docent.toml", "[retrieval]\ntop_k = 0\n");
    docent.fails(&["search", "x"], 3, "error: retrieval.top_k must be between 1 and 100, got 0");
    docent.write("docent.toml", "[retrieval]\ntop_k = \"many\"\n");
    docent.fails(
        &["search", "x"],
        3,
        "error: `retrieval.top_k` in docent.toml must be a whole number, 0 or more",
    );
    docent.fails(
        &["search", "x", "--config", "none.toml"],
        3,
        "error: the configuration file none.toml does not exist",
    );
    let docent = Docent::new().with("DOCENT_EMBEDER__KIND", "none");
    docent.fails(
        &["search", "x"],
        3,
        "error: unknown setting `embeder` in the environment\nhint: did you mean `embedder`?",
    );
    let docent = Docent::new().with("DOCENT_EMBEDDER__KIND", "onnx");
    docent.fails(
        &["search", "x"],
        3,
        "error: embedder.kind is `onnx` but embedder.folder is not set\n\
         hint: set embedder.folder to a folder with model.onnx and tokenizer.json",
    );
}

#[test]
fn settings_out_of_range_are_errors() {
    let docent = Docent::without_vectors();
    for (setting, message) in [
        ("[reader]\npassages = 0", "reader.passages must be between 1 and 20, got 0"),
        ("[reader]\npassages = 21", "reader.passages must be between 1 and 20, got 21"),
        ("[agent]\nmax_history = 0", "agent.max_history must be between 1 and 100, got 0"),
        ("[agent]\nmax_history = 101", "agent.max_history must be between 1 and 100, got 101"),
        ("[agent]\ntemperature = 1.5", "agent.temperature must be between 0.0 and 1.0, got 1.5"),
        ("[agent]\nmax_tool_rounds = 11", "agent.max_tool_rounds must be between 1 and 10, got 11"),
        ("[agent]\ndeadline_seconds = 0", "agent.deadline_seconds must be between 1 and 600, got 0"),
        ("[agent]\ncontext_tokens = 10", "agent.context_tokens must be between 1000 and 2000000, got 10"),
        (
            "[agent]\nmax_output_tokens = 16000",
            "agent.max_output_tokens must be between 0 and agent.context_tokens (16000), got 16000",
        ),
        (
            "[agent]\ntool_name = \"a b\"",
            "agent.tool_name may only contain letters, digits, _ and -, got `a b`",
        ),
        (
            "[sessions]\nretention_days = 36501",
            "sessions.retention_days must be between 0 and 36500, got 36501",
        ),
        (
            "[retrieval]\nmin_relevance_score = 2",
            "retrieval.min_relevance_score must be between 0.0 and 1.0, got 2",
        ),
    ] {
        docent.write("docent.toml", setting);
        docent.fails(&["ask", "x"], 3, &format!("error: {message}"));
    }
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let docent = Docent::without_vectors().with("DOCENT_RETRIEVAL__TOP_K", "2");
    docent.write("docent.toml", "[retrieval]\ntop_k = 1\n");
    let hits = |arguments: &[&str]| docent.json(arguments)["chunks"].as_array().unwrap().len();
    assert_eq!(hits(&["search", "node"]), 2);
    assert_eq!(hits(&["search", "node", "--top-k", "3"]), 3);
}

#[test]
fn a_concurrent_ingest_fails_immediately() {
    let docent = ingested();
    let lock = std::fs::File::create(docent.index().join("ingest.lock")).unwrap();
    lock.lock().unwrap();
    docent.fails(
        &["ingest"],
        1,
        "error: another ingest is writing to ~/data/index\nhint: wait until it is done, or use another --data-dir",
    );
}

#[test]
fn a_listen_address_without_a_port_is_rejected_at_startup() {
    let docent = Docent::without_vectors();
    docent.write("docent.toml", "[serve]\nlisten = \"8080\"\n");
    docent.fails(
        &["status"],
        3,
        "error: serve.listen: invalid address `8080`\n\
         hint: use a host and a port: 127.0.0.1:8080, or 0.0.0.0:8080 for all network interfaces",
    );
}

#[test]
fn dotenv_is_read_only_from_the_current_folder_and_its_errors_are_reported() {
    let docent = Docent::without_vectors();
    docent.write(".env", "DOCENT_RETRIEVAL__TOP_K=1000\n");
    docent.fails(&["search", "node"], 3, "error: retrieval.top_k must be between 1 and 100, got 1000");
    let below = docent.home.path().join("below");
    std::fs::create_dir(&below).unwrap();
    let output = docent.command(&["search", "node"]).current_dir(&below).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    docent.write(".env", "OPENAI_API_KEY=sk-secret 1234\n");
    let run = docent.run(&["search", "node"]);
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert!(run.stderr.starts_with("error: .env has an invalid line"), "{}", run.stderr);
    assert!(!run.stderr.contains("secret"), "{}", run.stderr);
    // A folder named `.env` is a Python virtual environment.
    std::fs::remove_file(docent.home.path().join(".env")).unwrap();
    std::fs::create_dir(docent.home.path().join(".env")).unwrap();
    docent.ok(&["search", "node"]);
}

#[test]
fn a_question_does_not_need_quotes() {
    let docent = ingested();
    let quoted = docent.json(&["search", "what is a node", "--top-k", "1"]);
    assert_eq!(docent.json(&["search", "what", "is", "a", "node", "--top-k", "1"])["query"], quoted["query"]);
    let answer = docent.json(&["ask", "what", "is", "a", "node", "--no-stream"]);
    assert_eq!(answer["query"], "what is a node", "{answer}");
}

#[test]
fn ingesting_another_book_warns_that_it_replaces_the_first() {
    let docent = ingested();
    docent.write("other/b.md", "# Pumps\n\nA pump moves water.\n");
    let run = docent.run(&["ingest", "other"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let book = docent.home.path().join("book");
    let warning = format!("warning: this replaces the book made from {}; to keep both", book.display());
    assert!(run.stderr.contains(&warning), "{}", run.stderr);
    docent.write("other/b.md", "# Pumps\n\nA pump moves oil.\n");
    assert!(!docent.run(&["ingest", "other"]).stderr.contains("replaces"), "the same book again");
    assert!(!docent.run(&["ingest", "other", "book"]).stderr.contains("replaces"), "one more source");
}
