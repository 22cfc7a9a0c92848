//! `docent search`: results, confidence and their JSON.

use crate::support::{Docent, last_object};

#[test]
fn without_an_index_the_sample_book_is_searched_with_a_note() {
    let run = Docent::new().run(&["search", "What is a ROS 2 node?", "--top-k", "1"]);
    assert_eq!(run.status, 0);
    assert!(run.stdout.starts_with("1. Nodes"), "{}", run.stdout);
    assert!(run.stdout.contains("A node is a participant in the ROS 2 graph"), "{}", run.stdout);
    assert!(
        run.stderr.contains("no book ingested yet; searching the built-in sample book"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("high confidence"), "{}", run.stderr);
}

#[test]
fn json_output_follows_the_contract() {
    let found = Docent::new().json(&["search", "How do I publish to /cmd_vel?", "--top-k", "3"]);
    let names: Vec<_> = found.as_object().unwrap().keys().cloned().collect();
    let expected = [
        "query",
        "chunks",
        "total_found",
        "query_time_ms",
        "has_relevant_results",
        "relevance",
        "confidence",
        "index_version",
    ];
    assert!(expected.iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
    let chunks = found["chunks"].as_array().unwrap();
    assert_eq!((chunks.len(), &found["total_found"]), (3, &serde_json::json!(3)));
    for (chunk, position) in chunks.iter().zip(1..) {
        assert_eq!(chunk["position"], position);
        assert!((0.0..=1.0).contains(&chunk["similarity_score"].as_f64().unwrap()));
        for field in [
            "rerank_score",
            "content",
            "url",
            "page_title",
            "heading",
            "heading_hierarchy",
            "breadcrumb",
            "module_name",
            "chapter_id",
            "chunk_id",
            "document_id",
            "chunk_index",
            "token_count",
        ] {
            assert!(chunk.get(field).is_some(), "{field}");
        }
    }
}

#[test]
fn a_search_can_be_limited_to_a_module() {
    let found = Docent::new().json(&["search", "How do I avoid falling?", "--module", "vla"]);
    let modules: Vec<_> =
        found["chunks"].as_array().unwrap().iter().map(|chunk| chunk["module_name"].clone()).collect();
    assert!(!modules.is_empty() && modules.iter().all(|module| module == "vla"), "{modules:?}");
}

#[test]
fn an_off_topic_question_has_low_confidence() {
    let found = Docent::new().json(&["search", "How long do I have to boil pasta?"]);
    assert_eq!(found["confidence"], "low");
    assert_eq!(found["has_relevant_results"], false);
}

#[test]
fn a_covered_question_has_relevant_results() {
    let found = Docent::new().json(&["search", "What is a ROS 2 node?"]);
    assert_eq!(found["confidence"], "high");
    assert_eq!(found["has_relevant_results"], true);
    assert!(found["relevance"].as_f64().unwrap() >= 0.3, "{}", found["relevance"]);
    assert_eq!(found["chunks"].as_array().unwrap().len(), 5);
}

#[test]
fn high_confidence_starts_exactly_at_the_threshold() {
    let search = |threshold: f64| {
        Docent::without_vectors()
            .with("DOCENT_RETRIEVAL__MIN_RELEVANCE_SCORE", &threshold.to_string())
            .json(&["search", "What is a ROS 2 node?"])
    };
    let relevance = search(0.3)["relevance"].as_f64().unwrap();
    assert_eq!(search(relevance)["confidence"], "high");
    assert_eq!(search(relevance + 1e-6)["confidence"], "low");
}

#[test]
fn identifiers_are_found_as_a_whole_and_by_part() {
    let docent = Docent::without_vectors();
    for (query, part) in
        [("rclpy.create_node", "create_node"), ("--ros-args", "--ros-args"), ("cmd_vel", "/cmd_vel")]
    {
        let found = last_object(&docent.ok(&["search", "--json", "--top-k", "1", "--", query]));
        let content = found["chunks"][0]["content"].as_str().unwrap();
        assert!(content.contains(part), "{query}: {content}");
    }
}

#[test]
fn a_chinese_book_can_be_searched() {
    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# 机器人\n\n节点是机器人操作系统中的一个进程，负责一项任务。\n");
    docent.write("book/b.md", "# 面条\n\n把面条放入沸水中煮十分钟，然后加盐，最后沥干水分即可。\n");
    docent.ok(&["ingest", "book"]);
    assert_eq!(docent.json(&["status"])["language"], "zh");
    let found = docent.json(&["search", "什么是节点", "--top-k", "1"]);
    assert_eq!(found["chunks"][0]["document_id"], "a.md");
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    use std::io::Read;
    let docent = Docent::new();
    let mut command = docent.command(&["search", "What is a node?", "--top-k", "50"]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(child.wait().unwrap().success(), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn modules_are_listed_with_their_sizes() {
    let listed = Docent::new().ok(&["modules"]);
    let names: Vec<_> = listed.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["intro", "isaac", "ros2", "simulation", "vla"]);
}
