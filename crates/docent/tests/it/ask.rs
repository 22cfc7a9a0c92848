use crate::support::Docent;

#[test]
fn an_answer_is_the_books_words_with_its_sources() {
    let run = Docent::new().run(&["ask", "What is a ROS 2 node?"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("A node is a participant in the ROS 2 graph"), "{}", run.stdout);
    assert!(run.stdout.contains("[1] Nodes\n    sample-book/ros2/01-nodes.md"), "{}", run.stdout);
    assert!(run.stderr.contains("from the book · extractive"), "{}", run.stderr);
}

#[test]
fn the_json_is_the_contracts() {
    let response = Docent::new().json(&["ask", "What is a ROS 2 node?"]);
    for field in [
        "turn_id",
        "session_id",
        "query",
        "answer",
        "sentences",
        "citations",
        "sources",
        "grounded",
        "confidence",
        "relevance",
        "model_used",
        "tokens_used",
        "retrieval_count",
        "degraded",
        "error",
        "timestamp",
        "metadata",
    ] {
        assert!(response.get(field).is_some(), "{field}");
    }
    assert_eq!(
        (response["grounded"].as_bool(), response["model_used"].as_str()),
        (Some(true), Some("extractive"))
    );
    for citation in response["citations"].as_array().unwrap() {
        let sources = response["sources"].as_array().unwrap();
        let source = sources.iter().find(|source| source["chunk_id"] == citation["chunk_id"]).unwrap();
        let (start, end) =
            (citation["start"].as_u64().unwrap() as usize, citation["end"].as_u64().unwrap() as usize);
        assert_eq!(&source["content"].as_str().unwrap()[start..end], citation["quote"].as_str().unwrap());
    }
}

#[test]
fn what_the_book_does_not_cover_is_an_abstention_not_a_failure() {
    let run = Docent::new().run(&["ask", "What's the weather today?"]);
    assert_eq!(run.status, 0);
    assert!(
        run.stdout.starts_with("I don't have information about that in the book content."),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("The nearest sections are:"), "{}", run.stdout);
}

#[test]
fn a_follow_up_is_understood_from_its_session() {
    let docent = Docent::new();
    let first = docent.json(&["ask", "What is Isaac Sim?", "--session", "new"]);
    let session = first["session_id"].as_str().unwrap();
    let second = docent.json(&["ask", "How do I use it for synthetic data?", "--session", session]);
    assert_eq!(second["grounded"], true);
    assert!(
        second["citations"][0]["page_title"].as_str().unwrap().contains("Isaac Sim"),
        "{}",
        second["citations"][0]
    );
    let shown = docent.json(&["sessions", "show", session]);
    assert_eq!(shown["turn_count"], 2);
    assert_eq!(shown["turns"][1]["rewritten_query"], "How do I use it for synthetic data? (Isaac Sim)");
    assert_eq!(shown["turns"][1]["response"], second);
}

#[test]
fn sessions_are_listed_exported_reset_and_deleted() {
    let docent = Docent::new();
    let id = docent.json(&["ask", "What is a ROS 2 node?", "--session", "new"])["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(docent.json(&["sessions", "list"])[0]["title"], "What is a ROS 2 node?");
    assert!(
        docent
            .ok(&["sessions", "export", &id])
            .contains("## What is a ROS 2 node?\n\nA node is a participant")
    );
    docent.ok(&["sessions", "reset", &id]);
    assert_eq!(docent.json(&["sessions", "show", &id])["turns"], serde_json::json!([]));
    docent.ok(&["sessions", "delete", &id]);
    docent.fails(
        &["sessions", "show", &id],
        1,
        &format!("error: there is no session {id}\nhint: `docent sessions list` shows those there are"),
    );
    docent.fails(
        &["sessions", "show", "x"],
        2,
        "error: `x` is not a session id\nhint: `docent sessions list` shows those there are",
    );
}

#[test]
fn limits_of_an_answer() {
    let docent = Docent::new();
    let fails = |arguments: &[&str], message: &str| {
        let run = docent.run(arguments);
        assert_eq!(run.status, 2, "{}", run.stderr);
        assert!(run.stderr.contains(message), "{}", run.stderr);
    };
    fails(&["ask", " "], "Query cannot be empty");
    fails(&["ask", "x", "--top-k", "11"], "top_k must be between 1 and 10, got 11");
    fails(&["ask", "x", "--module", "ros"], "did you mean `ros2`?");
}

#[test]
fn a_model_that_cannot_be_reached_costs_its_prose_not_the_answer() {
    // Nothing listens on the discard port of this machine.
    let docent = Docent::new()
        .with("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        .with("OPENAI_API_KEY", "sk-secret-1234567890");
    let run = docent.run(&["ask", "What is a ROS 2 node?"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("A node is a participant"), "{}", run.stdout);
    assert!(run.stderr.contains("the model is unavailable"), "{}", run.stderr);
    assert!(!run.stderr.contains("1234567890") && !run.stdout.contains("1234567890"));
}
