//! Who may use the server and how much, and what it does when told to stop.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use docent_backends::testing::scripted_model::Reply;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{NODE, Site};
use crate::model::Model;
use crate::support::Docent;

#[test]
fn keys_open_what_they_should() {
    let docent = Docent::new();
    let make = |arguments: &[&str]| {
        let run = docent.run(arguments);
        (run.stdout.trim().to_owned(), run.stderr.split_once("[[serve.keys]]").unwrap().1.to_owned())
    };
    let (reader, first) = make(&["key", "site"]);
    let (admin, second) = make(&["key", "owner", "--admin"]);
    docent.write("docent.toml", &format!("[[serve.keys]]{first}\n[[serve.keys]]{second}"));
    let site = Site::new(&docent);
    let status = |path: &str, key: Option<&str>| {
        let bearer = key.map(|key| format!("Bearer {key}")).unwrap_or_default();
        let headers: Vec<(&str, &str)> =
            key.map(|_| ("authorization", bearer.as_str())).into_iter().collect();
        site.send(Method::GET, path, None, &headers).status().as_u16()
    };
    assert_eq!(status("/api/v1/status", None), 401);
    assert_eq!(status("/api/v1/status", Some("wrong")), 401);
    assert_eq!(status("/api/v1/status", Some(&reader)), 200);
    for admins in ["/api/v1/sessions", "/metrics"] {
        assert_eq!((status(admins, Some(&reader)), status(admins, Some(&admin))), (401, 200), "{admins}");
    }
    // A page must load before it can ask for a key.
    for open in ["/", "/widget.js", "/assets/chat.js", "/healthz", "/readyz"] {
        assert_eq!(status(open, None), 200, "{open}");
    }
    assert_eq!(site.send(Method::POST, "/mcp", Some(json!({})), &[]).status(), 401);
    assert!(!site.served.said().contains(&reader), "no key in a log");
}

#[test]
fn readers_behind_a_proxy_are_no_administrators() {
    let site = Site::of(Docent::new());
    let list = |headers: &[(&str, &str)]| site.send(Method::GET, "/api/v1/sessions", None, headers).status();
    assert_eq!(list(&[]), 200);
    assert_eq!(list(&[("x-forwarded-for", "203.0.113.7")]), 401);
}

#[test]
fn too_many_requests_are_told_when_to_come_back() {
    let site = Site::of(Docent::new().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "2"));
    let search = || site.send(Method::POST, "/api/v1/search", Some(json!({ "query": "node" })), &[]);
    assert_eq!((search().status(), search().status()), (StatusCode::OK, StatusCode::OK));
    let refused = search();
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=31).contains(&wait), "{wait}");
    site.fails(refused, 429, "rate_limited", "slow down");
}

#[test]
fn when_all_places_are_taken_the_next_is_turned_away() {
    let model = Model::start(vec![Reply::Stall { after: "A node".to_owned() }]);
    let docent = model
        .serve(Docent::new())
        .with("DOCENT_SERVE__CONCURRENT_TURNS", "1")
        .with("DOCENT_SERVE__QUEUE", "0");
    let site = Site::new(&docent);
    let ask = || site.client.post(format!("{}/api/v1/ask", site.served.url)).json(&json!({ "query": NODE }));
    let first = site.runtime.spawn(ask().send());
    wait_for(|| model.requests().len() == 1);
    let begun = Instant::now();
    let refused = site.runtime.block_on(ask().send()).unwrap();
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    assert!(refused.headers().contains_key("retry-after"));
    site.fails(refused, 503, "overloaded", "Too many questions at once");
    first.abort();
}

#[test]
fn a_reader_who_leaves_takes_the_turn_along() {
    let model = Model::start(vec![Reply::Stall { after: "A node is a participant. And".to_owned() }]);
    let site = Site::of(model.serve(Docent::new()));
    let address = site.served.url.trim_start_matches("http://").to_owned();
    let mut connection = TcpStream::connect(&address).unwrap();
    let body = json!({ "query": NODE, "stream": true }).to_string();
    write!(
        connection,
        "POST /api/v1/ask HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut seen = [0u8; 64];
    connection.read_exact(&mut seen).unwrap();
    wait_for(|| model.requests().len() == 1);
    drop(connection);
    // The model notices that nobody listens any more, long before any deadline.
    let begun = Instant::now();
    model.hangup();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn stopping_finishes_the_turns_under_way() {
    let reply = Reply::Paced {
        text: "A node is a participant in the ROS 2 graph that does one job [1].".to_owned(),
        first_ms: 700,
        per_second: 50,
    };
    let model = Model::start(vec![reply]);
    let mut site = Site::of(model.serve(Docent::new()));
    let asked =
        site.client.post(format!("{}/api/v1/ask", site.served.url)).json(&json!({ "query": NODE })).send();
    let asked = site.runtime.spawn(asked);
    wait_for(|| model.requests().len() == 1);
    assert!(site.served.stop(), "{}", site.served.said());
    let (status, answer) = site.read(site.runtime.block_on(asked).unwrap().unwrap());
    assert_eq!((status, &answer["grounded"], &answer["degraded"]), (200, &json!(true), &json!(false)));
}

#[test]
fn a_days_tokens_used_up_the_answers_are_the_books_own_words() {
    let model = Model::start(vec![Reply::text("A node is a participant in the ROS 2 graph [1].")]);
    let docent = model.serve(Docent::new()).with("DOCENT_SERVE__DAILY_TOKENS", "1");
    {
        let mut site = Site::new(&docent);
        assert_eq!(site.post("/api/v1/ask", json!({ "query": NODE })).1["model_used"], "gpt-4o-mini");
        let second = site.post("/api/v1/ask", json!({ "query": "What is a topic?" })).1;
        assert_eq!((&second["model_used"], &second["degraded"]), (&json!("extractive"), &json!(false)));
        assert!(site.served.stop());
    }
    // Starting again does not give them back.
    let site = Site::new(&docent);
    assert_eq!(site.post("/api/v1/ask", json!({ "query": NODE })).1["model_used"], "extractive");
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn only_sites_on_the_list_may_call_from_a_page() {
    let site = Site::of(Docent::new().with("DOCENT_SERVE__CORS_ORIGINS", "[\"https://docs.example.org\"]"));
    let allowed = |origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type,authorization"),
        ];
        let response = site.send(Method::OPTIONS, "/api/v1/ask", None, &headers);
        response.headers().get("access-control-allow-origin").map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(allowed("https://docs.example.org").as_deref(), Some("https://docs.example.org"));
    assert_eq!(allowed("https://evil.example"), None);
}

#[test]
fn broken_and_slow_requests_do_not_take_the_server_down() {
    let site = Site::of(Docent::new());
    let address = site.served.url.trim_start_matches("http://").to_owned();
    let raw = |bytes: &[u8]| {
        let mut connection = TcpStream::connect(&address).unwrap();
        let _ = connection.write_all(bytes);
        connection
    };
    let _half = raw(b"POST /api/v1/ask HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"que");
    let _none = raw(b"GET / HT");
    drop(raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"));
    drop(raw(&[b'A'; 100_000]));
    let nonsense = site
        .client
        .post(format!("{}/api/v1/ask", site.served.url))
        .header("content-type", "application/json")
        .body("{\"query\": \"\u{0}")
        .send();
    site.fails(
        site.runtime.block_on(nonsense).unwrap(),
        400,
        "validation_error",
        "not what this route takes",
    );
    assert_eq!(site.post("/api/v1/ask", json!({ "query": NODE })).0, 200);
}

fn wait_for(done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < deadline, "it never happened");
        std::thread::yield_now();
    }
}
