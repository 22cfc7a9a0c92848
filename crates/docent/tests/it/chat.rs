//! A conversation in the terminal.

use crate::support::Docent;

#[test]
fn a_chat_answers_runs_commands_and_remembers() {
    let docent = Docent::new();
    let run = docent.run_with_input(
        &["chat"],
        "What is Isaac Sim?\nHow do I use it for synthetic data?\n/sources\n/rest\n/module ros\n\
         /export talk.md\n/help\n/quit\n",
    );
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stdout.contains("[1] Isaac Sim"), "{}", run.stdout);
    assert!(run.stdout.contains("1. Isaac Sim"), "/sources lists the passages: {}", run.stdout);
    assert!(run.stdout.contains("/reset    clear the history of the conversation"), "{}", run.stdout);
    assert!(run.stderr.contains("unknown command /rest"), "{}", run.stderr);
    assert!(run.stderr.contains("did you mean /reset?"), "{}", run.stderr);
    assert!(run.stderr.contains("did you mean `ros2`?"), "{}", run.stderr);
    let talk = std::fs::read_to_string(docent.home.path().join("talk.md")).unwrap();
    assert!(talk.contains("## What is Isaac Sim?\n") && talk.contains("## How do I use it"), "{talk}");
    let sessions = docent.json(&["sessions", "list"]);
    assert_eq!(sessions[0]["turn_count"], 2);
    let id = sessions[0]["session_id"].as_str().unwrap();
    assert!(run.stderr.contains(&format!("continue with: docent chat --session {id}")), "{}", run.stderr);
}

#[test]
fn reset_clears_the_history_and_a_session_can_be_continued() {
    let docent = Docent::new();
    docent.run_with_input(&["chat"], "What is Isaac Sim?\n/reset\n");
    let id = docent.json(&["sessions", "list"])[0]["session_id"].as_str().unwrap().to_owned();
    assert_eq!(docent.json(&["sessions", "show", &id])["turn_count"], 0);
    docent.run_with_input(&["chat", "--session", &id], "What is a topic?\n");
    assert_eq!(docent.json(&["sessions", "show", &id])["turn_count"], 1);
}

#[test]
fn a_chat_can_be_limited_to_a_module() {
    let docent = Docent::new();
    docent.run_with_input(&["chat"], "/module vla\nWhat is a ROS 2 node?\n");
    let id = docent.json(&["sessions", "list"])[0]["session_id"].as_str().unwrap().to_owned();
    let shown = docent.json(&["sessions", "show", &id]);
    let sources = shown["turns"][0]["response"]["sources"].as_array().unwrap();
    assert!(!sources.is_empty() && sources.iter().all(|source| source["module_name"] == "vla"));
}

#[test]
fn an_invalid_question_does_not_end_a_chat() {
    let docent = Docent::new();
    let long = "x".repeat(8001);
    let run = docent.run_with_input(&["chat"], &format!("{long}\nWhat is a topic?\n"));
    assert_eq!(run.status, 0);
    assert!(run.stderr.contains("Query is too long: 8001 characters"), "{}", run.stderr);
    assert_eq!(docent.json(&["sessions", "list"])[0]["turn_count"], 1);
}
