//! The real binary with a model behind the OpenAI API, over a real socket.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use docent_testkit::scripted_model::{Reply, Request, ScriptedModel};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::support::Docent;

/// A scripted model in its own thread.
pub struct Model {
    runtime: Runtime,
    model: ScriptedModel,
}

impl Model {
    pub fn start(script: Vec<Reply>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let model = runtime.block_on(ScriptedModel::start(script)).unwrap();
        Self { runtime, model }
    }

    /// A user who has configured this model.
    pub fn serve(&self, docent: Docent) -> Docent {
        docent.with("OPENAI_BASE_URL", &self.model.url()).with("OPENAI_API_KEY", "sk-test-1234567890")
    }

    pub fn requests(&self) -> Vec<Request> {
        self.model.requests()
    }

    /// Waits until a client has disconnected in the middle of an answer.
    pub fn hangup(&self) {
        self.runtime.block_on(self.model.hangup());
    }
}

const QUESTION: &str = "What is a ROS 2 node?";
const ANSWER: &str = "A node is a participant in the ROS 2 graph [1].";

#[test]
fn a_models_answer_is_verified_and_cited() {
    let model = Model::start(vec![Reply::text(format!("{ANSWER} It was invented by cats in 1066 [1]."))]);
    let response = model.serve(Docent::new()).json(&["ask", QUESTION]);
    assert_eq!((&response["model_used"], &response["degraded"]), (&json!("gpt-4o-mini"), &json!(false)));
    let supported: Vec<&serde_json::Value> =
        response["sentences"].as_array().unwrap().iter().map(|sentence| &sentence["supported"]).collect();
    assert_eq!(supported, [&json!(true), &json!(false)]);
    assert!(response["tokens_used"].as_u64().unwrap() > 0);
}

#[test]
fn the_environment_variable_sets_the_model() {
    let model = Model::start(vec![Reply::text(ANSWER)]);
    let docent = model.serve(Docent::new()).with("OPENAI_MODEL", "gpt-4");
    let (first, second) = (docent.json(&["ask", QUESTION]), docent.json(&["ask", QUESTION]));
    assert_eq!(
        (&first["model_used"], &model.requests()[0].body["model"]),
        (&json!("gpt-4"), &json!("gpt-4"))
    );
    assert_ne!(first["turn_id"], second["turn_id"]);
}

#[test]
fn the_model_can_make_two_searches_in_one_message() {
    let call = |query: &str| ("retrieve_documentation".to_owned(), json!({ "query": query }).to_string());
    let calls = Reply::ToolCalls(vec![call("topics"), call("services")]);
    let model = Model::start(vec![calls, Reply::text(ANSWER)]);
    let docent = model.serve(Docent::new());
    let response = docent.json(&["ask", QUESTION, "--session", "new"]);
    assert_eq!(response["grounded"], true);
    let shown = docent.json(&["sessions", "show", response["session_id"].as_str().unwrap()]);
    let queries: Vec<&str> = shown["turns"][0]["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["query"].as_str().unwrap())
        .collect();
    assert_eq!(queries, ["topics", "services"]);
    assert_eq!(response["retrieval_count"].as_u64().unwrap(), 15);
}

#[test]
fn a_failing_model_is_tried_three_times_before_the_fallback() {
    let model = Model::start(vec![Reply::status(500)]);
    let response = model.serve(Docent::new()).json(&["ask", QUESTION]);
    assert_eq!(model.requests().len(), 3);
    assert_eq!((&response["degraded"], &response["grounded"]), (&json!(true), &json!(true)));
    assert_eq!(response["error"], "the model is unavailable: the server returned HTTP 500");
}

#[test]
fn a_busy_model_is_retried_after_the_requested_time() {
    let busy = Reply::Status { code: 429, retry_after: Some(1), body: String::new() };
    let model = Model::start(vec![busy, Reply::text(ANSWER)]);
    let start = Instant::now();
    let response = model.serve(Docent::new()).json(&["ask", QUESTION]);
    assert_eq!((model.requests().len(), &response["degraded"]), (2, &json!(false)));
    assert!(start.elapsed() >= Duration::from_secs(1), "the model asked to wait a second");
}

#[test]
fn five_failures_open_the_circuit_breaker() {
    let model = Model::start(vec![Reply::status(500)]);
    let docent = model.serve(Docent::new());
    let run =
        docent.run_with_input(&["chat"], &format!("{QUESTION}\nWhat is a topic?\nWhat is a service?\n"));
    // Three attempts, then two; the third question is answered without calling the model.
    assert_eq!(model.requests().len(), 5, "{}", run.stderr);
    assert!(run.stderr.contains("circuit breaker open after repeated failures"), "{}", run.stderr);
    assert_eq!(run.stderr.matches("answered without it").count(), 3, "{}", run.stderr);
}

#[test]
fn every_model_failure_gives_a_cited_fallback() {
    for reply in [
        Reply::Cut { after: "A node is".to_owned() },
        Reply::InvalidJson,
        Reply::Huge(10 * 1024 * 1024),
        Reply::Empty,
        Reply::status(401),
    ] {
        let model = Model::start(vec![reply]);
        let response = model.serve(Docent::new()).json(&["ask", QUESTION]);
        assert_eq!((&response["degraded"], &response["grounded"]), (&json!(true), &json!(true)));
        assert!(response["answer"].as_str().unwrap().starts_with("A node is a participant"), "{response}");
        assert!(!response.to_string().contains("1234567890"), "the answer contains no key");
    }
}

#[test]
fn a_stalled_model_gives_a_cited_fallback_in_time() {
    // The model stalls forever; getting an answer shows that the turn did not wait for it.
    let model = Model::start(vec![Reply::Stall { after: "A node".to_owned() }]);
    let response = model.serve(Docent::new()).json(&["ask", QUESTION]);
    assert_eq!((&response["degraded"], &response["grounded"]), (&json!(true), &json!(true)));
    assert!(!response["citations"].as_array().unwrap().is_empty());
}

#[test]
fn a_follow_up_is_rewritten_by_the_model() {
    let model = Model::start(vec![
        Reply::text("Isaac Sim is a simulator [1]."),
        Reply::text("How do I use Isaac Sim for synthetic data?"),
        Reply::text("Isaac Sim makes synthetic data [1]."),
    ]);
    let docent = model.serve(Docent::new());
    let first = docent.json(&["ask", "What is Isaac Sim?", "--session", "new"]);
    let session = first["session_id"].as_str().unwrap();
    docent.json(&["ask", "How do I use it for synthetic data?", "--session", session]);
    let shown = docent.json(&["sessions", "show", session]);
    assert_eq!(shown["turns"][1]["rewritten_query"], "How do I use Isaac Sim for synthetic data?");
    let messages = model.requests()[2].body["messages"].as_array().unwrap().clone();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
}

#[test]
fn a_crash_during_a_turn_loses_no_completed_turn() {
    let model = Model::start(vec![Reply::text(ANSWER), Reply::Stall { after: "A topic".to_owned() }]);
    let docent = model.serve(Docent::new());
    let mut child = docent
        .command(&["chat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut typed = child.stdin.take().unwrap();
    writeln!(typed, "{QUESTION}").unwrap();
    // The verdict is printed last, when the turn is stored.
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    said.find(|line| line.as_ref().is_ok_and(|line| line.contains("from the book"))).unwrap().unwrap();
    writeln!(typed, "What is a topic?").unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while model.requests().len() < 2 {
        assert!(Instant::now() < deadline, "the second question never reached the model");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let sessions = docent.json(&["sessions", "list"]);
    assert_eq!((sessions.as_array().unwrap().len(), &sessions[0]["turn_count"]), (1, &json!(1)));
    let id = sessions[0]["session_id"].as_str().unwrap();
    let shown = docent.json(&["sessions", "show", id]);
    assert_eq!(shown["turns"][0]["query"], QUESTION);
}
