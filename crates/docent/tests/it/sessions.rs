//! Stored conversations, used by one process or several.

#[cfg(unix)]
mod postgres;

use std::process::Stdio;

use crate::support::Docent;

#[test]
fn sessions_can_be_listed_exported_reset_and_deleted() {
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
        &format!(
            "error: there is no session {id}\nhint: run `docent sessions list` to see all conversations"
        ),
    );
    docent.fails(
        &["sessions", "show", "x"],
        2,
        "error: `x` is not a session id\nhint: run `docent sessions list` to see all conversations",
    );
}

#[test]
fn a_json_export_contains_everything() {
    let docent = Docent::new();
    let first = docent.json(&["ask", "What is a ROS 2 node?", "--session", "new"]);
    let id = first["session_id"].as_str().unwrap();
    let exported = docent.json(&["sessions", "export", id]);
    assert_eq!(exported["turns"][0]["response"], first);
}

#[test]
fn a_follow_up_works_after_twelve_turns() {
    let docent = Docent::new();
    let id = docent.json(&["ask", "What is a ROS 2 node?", "--session", "new"])["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    for number in 0..10 {
        let question = ["What is a topic?", "What is a digital twin?"][number % 2];
        docent.ok(&["ask", question, "--session", &id]);
    }
    docent.ok(&["ask", "What is Isaac Sim?", "--session", &id]);
    let last = docent.json(&["ask", "How do I use it for synthetic data?", "--session", &id]);
    assert!(last["citations"][0]["page_title"].as_str().unwrap().contains("Isaac Sim"), "{last}");
    assert_eq!(docent.json(&["sessions", "show", &id])["turn_count"], 13);
}

#[test]
fn several_processes_can_share_one_conversation() {
    share_one_conversation(&Docent::new());
}

/// Asks in several processes at once, in one conversation; returns its id.
fn share_one_conversation(docent: &Docent) -> String {
    let id = docent.json(&["ask", "What is a ROS 2 node?", "--session", "new"])["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let asking: Vec<_> = (0..4)
        .map(|_| {
            let mut command = docent.command(&["ask", "What is a topic?", "--session", &id, "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut answered: Vec<String> = asking
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let response: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            response["turn_id"].as_str().unwrap().to_owned()
        })
        .collect();
    let shown = docent.json(&["sessions", "show", &id]);
    let turns = shown["turns"].as_array().unwrap();
    let mut stored: Vec<String> =
        turns[1..].iter().map(|turn| turn["turn_id"].as_str().unwrap().to_owned()).collect();
    answered.sort();
    stored.sort();
    assert_eq!(stored, answered);
    id
}
