//! Turns over HTTP: streamed and complete, counted and logged, however they end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use docent_testkit::scripted_model::Reply;
use reqwest::Method;
use serde_json::{Value, json};

use super::limits::wait_for;
use super::owners::keys;
use super::{NODE, Site};
use crate::model::Model;
use crate::support::Docent;

const MARKDOWN: &str = "A node is a participant in the ROS 2 graph [1].\nRun:\n```bash\nros2 node list\n```\nSteps:\n\
    1. One\n2. Two\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n$$\nE = m c^2\n$$\n\nA node is a participant in the ROS 2 graph [1].";

/// A server whose model writes Markdown, without a cache.
fn writing(style: &str) -> (Model, Site) {
    let model = Model::start(vec![Reply::text(MARKDOWN)]);
    let docent = model
        .serve(Docent::new())
        .with("DOCENT_AGENT__CACHED_ANSWERS", "0")
        .with("DOCENT_AGENT__VERIFY", "off")
        .with("DOCENT_AGENT__CITATION_STYLE", style);
    let site = Site::of(docent);
    (model, site)
}

#[test]
fn the_deltas_of_a_stream_add_up_to_the_answer() {
    for style in ["numbered", "markdown"] {
        let (_model, site) = writing(style);
        let whole = site.post("/api/v1/ask", json!({ "query": NODE })).1["answer"].clone();
        let events = site.stream(json!({ "query": NODE }));
        let told: String = events.iter().filter_map(|(_, data)| data["delta"].as_str()).collect();
        assert_eq!(json!(told), events.last().unwrap().1["answer"]);
        assert_eq!(json!(told), whole);
        assert!(
            told.contains("Run:\n```bash\nros2 node list\n```") && told.contains("$$\nE = m c^2\n$$"),
            "{told}"
        );
        assert_eq!(told.contains("\n\n[1] ["), style == "numbered", "{told}");
    }
}

#[test]
fn a_streamed_chat_completion_equals_the_complete_one() {
    for style in ["numbered", "markdown"] {
        let (_model, site) = writing(style);
        let chat = |stream: bool| {
            json!({ "messages": [{ "role": "user", "content": NODE }], "stream": stream,
                    "stream_options": { "include_usage": true } })
        };
        let (status, whole) = site.post("/v1/chat/completions", chat(false));
        assert_eq!(status, 200, "{whole}");
        let message = &whole["choices"][0]["message"];
        let chunks = streamed_chat(&site, chat(true));
        let told: String =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(json!(told), message["content"]);
        let annotations = chunks
            .iter()
            .find_map(|chunk| chunk["choices"][0]["delta"].get("annotations"))
            .and_then(Value::as_array)
            .unwrap();
        assert_eq!(json!(annotations), message["annotations"]);
        let characters: Vec<char> = told.chars().collect();
        let places: Vec<usize> = annotations
            .iter()
            .map(|annotation| {
                let citation = &annotation["url_citation"];
                let place = |name: &str| citation[name].as_u64().unwrap() as usize;
                let (start, end) = (place("start_index"), place("end_index"));
                let words: String = characters[start..end].iter().collect();
                assert!(words == "[1]" || words.contains(citation["url"].as_str().unwrap()), "{words}");
                start
            })
            .collect();
        assert!(places.len() >= 2 && places.is_sorted_by(|one, other| one < other), "{places:?}");
        let usage = &chunks.iter().find(|chunk| chunk["usage"].is_object()).unwrap()["usage"];
        let tokens = |name: &str| usage[name].as_u64().unwrap();
        assert!(tokens("prompt_tokens") > 0 && tokens("completion_tokens") > 0, "{usage}");
        assert_eq!(tokens("total_tokens"), tokens("prompt_tokens") + tokens("completion_tokens"));
    }
}

#[test]
fn small_talk_is_streamed_only_once() {
    let site = Site::of(Docent::new());
    let chat =
        |stream: bool| json!({ "messages": [{ "role": "user", "content": "hello" }], "stream": stream });
    let whole = site.post("/v1/chat/completions", chat(false)).1;
    let told: String = streamed_chat(&site, chat(true))
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(json!(told), whole["choices"][0]["message"]["content"]);
}

/// The chunks of a streamed chat.
fn streamed_chat(site: &Site, body: Value) -> Vec<Value> {
    let response = site.send(Method::POST, "/v1/chat/completions", Some(body), &[]);
    let text = site.runtime.block_on(response.text()).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn errors_under_v1_have_the_openai_format() {
    let site = Site::of(Docent::new().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "5"));
    let chat = |content: &str| json!({ "messages": [{ "role": "user", "content": content }] });
    let check = |response: reqwest::Response,
                 status: u16,
                 kind: &str,
                 code: &str,
                 param: Value,
                 message: &str| {
        assert!(response.headers().contains_key("x-request-id"));
        let (found, body) = site.read(response);
        let error = &body["error"];
        assert_eq!((found, &error["type"], &error["code"]), (status, &json!(kind), &json!(code)), "{body}");
        assert_eq!(error["param"], param, "{body}");
        assert!(error["message"].as_str().unwrap().contains(message), "{body}");
        assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    };
    let send = |body: Value| site.send(Method::POST, "/v1/chat/completions", Some(body), &[]);
    let invalid = "invalid_request_error";
    check(send(chat("  ")), 400, invalid, "validation_error", Value::Null, "Query cannot be empty");
    check(send(json!({ "messages": [] })), 400, invalid, "validation_error", json!("messages"), "messages");
    check(send(json!({ "messages": 5 })), 400, invalid, "validation_error", Value::Null, "messages");
    check(send(chat(&"x".repeat(70_000))), 413, invalid, "payload_too_large", Value::Null, "too large");
    check(
        site.send(Method::GET, "/v1/nothing", None, &[]),
        404,
        invalid,
        "not_found",
        Value::Null,
        "Not found",
    );
    send(chat("hello"));
    send(chat("hello"));
    check(send(chat("hello")), 429, "rate_limit_error", "rate_limit_exceeded", Value::Null, "slow down");
}

#[test]
fn an_interrupted_turn_counts_against_the_token_budget() {
    let model = Model::start(vec![Reply::Stall { after: "A node is a participant. And".to_owned() }]);
    let docent = model
        .serve(Docent::new())
        .with("DOCENT_SERVE__DAILY_TOKENS", "10")
        .with("DOCENT_SERVE__PUBLIC", "true");
    let (_, admin) = keys(&docent);
    {
        let mut site = Site::new(&docent);
        let connection = begin_stream(&site, &json!({ "query": NODE, "stream": true }));
        wait_for(|| model.requests().len() == 1);
        drop(connection);
        model.hangup();
        let metrics = || site.metrics(&admin);
        wait_for(|| metrics().contains("docent_turns_total{outcome=\"abandoned\"} 1"));
        let tokens =
            metrics().lines().find_map(|line| line.strip_prefix("docent_tokens_total ")?.parse::<u64>().ok());
        assert!(tokens.unwrap() > 10, "{tokens:?}");
        assert_eq!(site.post("/api/v1/ask", json!({ "query": NODE })).1["model_used"], "extractive");
        assert!(site.served.stop());
    }
    // The turn log has it too, so that a restart does not reset the budget; the report does not count it as a
    // gap.
    let site = Site::new(&docent);
    assert_eq!(site.post("/api/v1/ask", json!({ "query": NODE })).1["model_used"], "extractive");
    assert_eq!(model.requests().len(), 1);
}

/// Asks on a separate connection, which is closed when the value is dropped.
fn begin_stream(site: &Site, body: &Value) -> TcpStream {
    let address = site.served.url.trim_start_matches("http://").to_owned();
    let mut connection = TcpStream::connect(&address).unwrap();
    let body = body.to_string();
    write!(
        connection,
        "POST /api/v1/ask HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    connection.read_exact(&mut [0u8; 64]).unwrap();
    connection
}

#[test]
fn every_log_line_of_a_streamed_turn_has_its_request_id() {
    let reply = Reply::Paced { text: MARKDOWN.to_owned(), first_ms: 300, per_second: 500 };
    let model = Model::start(vec![reply]);
    let site = Site::of(model.serve(Docent::new()).with("RUST_LOG", "docent=debug"));
    let (session, key) = site.begin();
    let body = json!({ "query": NODE, "session_id": session, "stream": true });
    let headers = [("x-docent-session-key", key.as_str())];
    let response = site.send(Method::POST, "/api/v1/ask", Some(body), &headers);
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    site.runtime.block_on(response.text()).unwrap();
    site.get(&format!("/api/v1/sessions/{session}"));
    let lines = |part: &str| -> Vec<String> {
        site.served.said().lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    };
    wait_for(|| lines("answered").iter().any(|line| line.contains(&id)));
    wait_for(|| lines("answered").iter().any(|line| line.contains("/api/v1/sessions/{id}")));
    for state in ["received", "retrieving", "generating", "completed"] {
        let said = lines(&format!("state=\"{state}\""));
        assert!(said.len() == 1 && said[0].contains(&id), "{state}: {said:?}");
    }
    let answered = lines("answered").into_iter().find(|line| line.contains(&id)).unwrap();
    let time: f64 =
        answered.split("milliseconds=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(time >= 300.0, "the time until the end of the stream: {answered}");
    assert!(lines("turn ended").iter().any(|line| line.contains(&id) && line.contains("completed")));
    assert!(!site.served.said().contains(&session), "the log contains no session id");
}

#[test]
fn log_lines_of_an_mcp_call_have_the_request_id() {
    let site = Site::of(Docent::without_vectors().with("RUST_LOG", "docent=debug"));
    let accept = ("accept", "application/json, text/event-stream");
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" }
    }});
    let begun = site.send(Method::POST, "/mcp", Some(initialize), &[accept]);
    let session = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let headers = [accept, ("mcp-session-id", session.as_str())];
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    site.send(Method::POST, "/mcp", Some(initialized), &headers);
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "ask_book", "arguments": { "question": NODE }
    }});
    let response = site.send(Method::POST, "/mcp", Some(call), &headers);
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let answered = site.runtime.block_on(response.text()).unwrap();
    assert!(answered.contains("participant in the ROS 2 graph"), "{answered}");
    let ended = || -> Option<String> {
        site.served.said().lines().find(|line| line.contains("turn ended")).map(str::to_owned)
    };
    wait_for(|| ended().is_some());
    assert!(ended().unwrap().contains(&id), "{:?}", ended());
}

#[test]
fn an_answered_turn_is_logged_even_if_the_server_is_killed() {
    let model = Model::start(vec![Reply::text("A node is a participant in the ROS 2 graph [1].")]);
    let docent = model.serve(Docent::new()).with("DOCENT_SERVE__DAILY_TOKENS", "1");
    let count = || docent.json(&["report", "r.html"])["questions"].clone();
    let site = Site::with(docent.serve_as(|command| {
        command.env("DOCENT_TEST_FAILPOINT", "turn_log.write=full");
    }));
    let (_, answer) = site.post("/api/v1/ask", json!({ "query": NODE }));
    assert_eq!(answer["model_used"], "gpt-4o-mini");
    wait_for(|| site.served.said().contains("failed to log 1 turns"));
    // Dropping the server kills it with SIGKILL.
    drop(site);
    assert_eq!(count(), 0);
    let pending = || {
        let files = std::fs::read_dir(docent.home.path().join("data")).unwrap().flatten();
        files.filter(|file| file.file_name().to_string_lossy().starts_with("turn-log-")).count()
    };
    assert!(pending() > 0);

    let mut site = Site::new(&docent);
    assert_eq!(count(), 1);
    // Its tokens count too, and it can be rated.
    assert_eq!(site.post("/api/v1/ask", json!({ "query": NODE })).1["model_used"], "extractive");
    let rating = json!({ "turn_id": answer["turn_id"], "rating": "up" });
    assert_eq!(site.post("/api/v1/feedback", rating).0, 204);
    assert!(site.served.stop());
    assert_eq!((count(), pending()), (json!(2), 0));
}

#[test]
fn model_errors_are_logged_but_hidden_from_users() {
    let model = Model::start(vec![Reply::status(401)]);
    let docent = model.serve(Docent::new()).with("DOCENT_SERVE__PUBLIC", "true");
    let (_, admin) = keys(&docent);
    let site = Site::of(docent);
    let (session, key) = site.begin();
    let answer = site.ask_in((&session, &key), NODE);
    assert_eq!((&answer["degraded"], &answer["grounded"]), (&json!(true), &json!(true)));
    assert_eq!(answer["error"], "The language model is unavailable; this answer quotes the book.");
    let shown = site.with_key(Method::GET, &format!("/api/v1/sessions/{session}"), None, &key).1;
    assert!(!shown.to_string().contains("401"), "{shown}");
    wait_for(|| site.served.said().contains("the model failed"));
    assert!(site.served.said().lines().any(|line| line.contains("the model failed") && line.contains("401")));
    let metrics = site.metrics(&admin);
    assert!(metrics.contains("docent_model_failures_total 1"), "{metrics}");
}

#[test]
fn an_unread_log_does_not_block_the_server() {
    let docent = Docent::without_vectors().with("RUST_LOG", "docent=debug");
    let mut command = docent.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("serving on ") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "the server exited before it was ready");
    }
    let url = line.trim_start_matches("serving on ").split('/').take(3).collect::<Vec<_>>().join("/");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = reqwest::Client::new();
    // A pipe holds 64 KiB, and a log line is longer than a hundred bytes.
    let path = format!("{url}/{}", "x".repeat(3000));
    for _ in 0..1500 {
        let status = runtime.block_on(client.get(&path).send()).unwrap().status();
        assert_eq!(status, 404);
    }
    drop(stderr);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn traces_reach_a_collector() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in collector.incoming().map_while(Result::ok) {
            let tell = tell.clone();
            std::thread::spawn(move || collect(connection, &tell));
        }
    });
    let mut site = Site::of(Docent::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint));
    let response =
        site.send(Method::POST, "/api/v1/ask", Some(json!({ "query": NODE, "stream": true })), &[]);
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    site.runtime.block_on(response.text()).unwrap();
    assert!(site.served.stop(), "{}", site.served.said());
    // Text is stored uncompressed in the message.
    let has = |body: &[u8], text: &str| body.windows(text.len()).any(|part| part == text.as_bytes());
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut wanted = vec![id.as_str(), "request", "turn", "retrieving", "completed"];
    while !wanted.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let (head, body): (String, Vec<u8>) = told.recv_timeout(left).expect("traces arrive");
        assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
        wanted.retain(|text| !has(&body, text));
    }
}

/// Receives requests on a connection like a collector.
fn collect(connection: TcpStream, tell: &mpsc::Sender<(String, Vec<u8>)>) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut connection = connection;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        let mut body = vec![0; length?];
        reader.read_exact(&mut body).ok()?;
        connection
            .write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n",
            )
            .ok()?;
        tell.send((head, body)).ok()?;
    }
}
