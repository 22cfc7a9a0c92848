//! `docent ask`: answers, abstentions and their JSON.

use serde_json::json;

use crate::support::Docent;

#[test]
fn an_answer_quotes_the_book_and_lists_its_sources() {
    let run = Docent::new().run(&["ask", "What is a ROS 2 node?"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("A node is a participant in the ROS 2 graph"), "{}", run.stdout);
    assert!(run.stdout.contains("[1] Nodes\n    sample-book/ros2/01-nodes.md"), "{}", run.stdout);
    assert!(run.stderr.contains("from the book · extractive"), "{}", run.stderr);
}

#[test]
fn json_output_follows_the_contract() {
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
    let metadata = &response["metadata"];
    let time = |name: &str| metadata[name].as_f64().filter(|time| *time >= 0.0).unwrap();
    let parts = time("embedding_time_ms") + time("retrieval_time_ms") + time("generation_time_ms");
    assert!(time("response_time_ms") > 0.0 && time("response_time_ms") >= parts - 0.01, "{metadata}");
    assert_eq!((&metadata["chunk_count"], &response["retrieval_count"]), (&json!(5), &json!(5)));
    assert_eq!((&metadata["cache_hit"], &response["scope"]), (&json!(false), &json!("book")));
    assert!(response["timestamp"].as_str().unwrap().ends_with('Z'));
    assert!(response["turn_id"].as_str().unwrap().parse::<uuid::Uuid>().is_ok());
    for citation in response["citations"].as_array().unwrap() {
        assert!(["intro", "ros2"].contains(&citation["module_name"].as_str().unwrap()), "{citation}");
        let sources = response["sources"].as_array().unwrap();
        let source = sources.iter().find(|source| source["chunk_id"] == citation["chunk_id"]).unwrap();
        let (start, end) =
            (citation["start"].as_u64().unwrap() as usize, citation["end"].as_u64().unwrap() as usize);
        assert_eq!(&source["content"].as_str().unwrap()[start..end], citation["quote"].as_str().unwrap());
    }
}

#[test]
fn an_uncovered_question_is_an_abstention_not_an_error() {
    let run = Docent::new().run(&["ask", "What's the weather today?"]);
    assert_eq!(run.status, 0);
    assert!(
        run.stdout.starts_with("I don't have information about that in the book content."),
        "{}",
        run.stdout
    );
    // No section is relevant, so the reply names the contents of the book instead.
    assert!(run.stdout.contains("The book covers: Introduction to Physical AI, "), "{}", run.stdout);
}

#[test]
fn an_abstention_names_the_unknown_name() {
    let run = Docent::new().run(&["ask", "How do I connect Webots to ROS 2?"]);
    let expected =
        "I don't have information about that in the book content. The book does not mention “Webots”.";
    assert!(run.stdout.starts_with(expected), "{}", run.stdout);
    assert!(run.stdout.contains("The nearest sections are:"), "{}", run.stdout);
}

#[test]
fn misspelled_words_are_corrected() {
    let docent = Docent::new();
    let response = docent.json(&["ask", "what is the simplist way to pubish a mesage in ros 2"]);
    assert_eq!(
        response["rewritten_query"], "what is the simplest way to publish a message in ros 2",
        "{response}"
    );
    assert_eq!(response["query"], "what is the simplist way to pubish a mesage in ros 2");
    let run = docent.run(&["ask", "how does a humanoyd keep its balence?"]);
    assert!(run.stderr.contains("searched for: how does a humanoid keep its balance?"), "{}", run.stderr);
}

#[test]
fn small_talk_gets_a_suitable_reply() {
    let docent = Docent::new();
    let hello = docent.json(&["ask", "hello"]);
    assert_eq!((hello["kind"].as_str(), hello["grounded"].as_bool()), (Some("conversation"), Some(false)));
    assert!(hello["answer"].as_str().unwrap().starts_with("Hello!"), "{hello}");
    let about = docent.json(&["ask", "What is this book about?"]);
    assert_eq!(
        (about["kind"].as_str(), about["grounded"].as_bool()),
        (Some("answer"), Some(true)),
        "{about}"
    );
}

#[test]
fn a_standalone_question_in_a_conversation_is_not_rewritten() {
    let docent = Docent::new();
    let first = docent.json(&["ask", "What is a ROS 2 node?", "--session", "new"]);
    let session = first["session_id"].as_str().unwrap();
    let second = docent.json(&["ask", "what is friction", "--session", session]);
    assert!(second["rewritten_query"].is_null(), "{second}");
    let third = docent.json(&["ask", "how do I start it?", "--session", session]);
    assert!(third["rewritten_query"].as_str().unwrap().starts_with("how do I start it? ("), "{third}");
}

#[test]
fn a_follow_up_is_rewritten_using_its_session() {
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
fn invalid_questions_are_rejected() {
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
fn an_unreachable_model_falls_back_to_an_extractive_answer() {
    // Nothing listens on the local discard port.
    let docent = Docent::new()
        .with("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        .with("OPENAI_API_KEY", "sk-secret-1234567890");
    let run = docent.run(&["ask", "What is a ROS 2 node?"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("A node is a participant"), "{}", run.stdout);
    assert!(run.stderr.contains("the model is unavailable"), "{}", run.stderr);
    assert!(!run.stderr.contains("1234567890") && !run.stdout.contains("1234567890"));
}

#[test]
fn what_is_ros_2_is_answered_from_its_module() {
    let response = Docent::new().json(&["ask", "What is ROS 2?"]);
    assert_eq!(response["grounded"], true);
    let citations = response["citations"].as_array().unwrap();
    assert!(citations.iter().any(|citation| citation["module_name"] == "ros2"), "{citations:?}");
}

#[test]
fn an_answer_can_be_limited_to_a_module() {
    let response = Docent::new().json(&["ask", "What is a ROS 2 node?", "--module", "vla"]);
    let sources = response["sources"].as_array().unwrap();
    assert!(!sources.is_empty() && sources.iter().all(|source| source["module_name"] == "vla"));
}

#[test]
fn the_abstention_threshold_can_be_configured() {
    let strict = Docent::new().with("DOCENT_RETRIEVAL__MIN_RELEVANCE_SCORE", "1");
    let response = strict.json(&["ask", "What is a ROS 2 node?"]);
    assert_eq!((&response["grounded"], &response["confidence"]), (&json!(false), &json!("low")));
    let nothing = Docent::new().with("DOCENT_RETRIEVAL__THRESHOLD", "1");
    let response = nothing.json(&["ask", "What is a ROS 2 node?"]);
    assert_eq!((&response["grounded"], &response["confidence"]), (&json!(false), &json!("none")));
}

#[test]
fn output_to_a_pipe_is_the_complete_answer_as_plain_text() {
    let run = Docent::new().run(&["ask", "What is a ROS 2 node?", "--verbose"]);
    assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
    let states: Vec<&str> = ["received", "validating", "retrieving", "generating", "completed"].into();
    let heard: Vec<&str> = run.stderr.lines().filter(|line| states.contains(line)).collect();
    assert_eq!(heard, states);
}
