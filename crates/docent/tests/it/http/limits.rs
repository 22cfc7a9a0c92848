//! Who may use the server and how much, and how it stops.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use docent_testkit::scripted_model::Reply;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{NODE, Site};
use crate::model::Model;
use crate::support::Docent;

#[test]
fn keys_give_access_to_the_right_routes() {
    let docent = Docent::new();
    let make = |arguments: &[&str]| {
        let run = docent.run(arguments);
        (run.stdout.trim().to_owned(), run.stderr.split_once("[[serve.keys]]").unwrap().1.to_owned())
    };
    let (user, first) = make(&["key", "site"]);
    let (admin, second) = make(&["key", "operator", "--admin"]);
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
    assert_eq!(status("/api/v1/status", Some(&user)), 200);
    for admins in ["/api/v1/sessions", "/metrics"] {
        assert_eq!((status(admins, Some(&user)), status(admins, Some(&admin))), (401, 200), "{admins}");
    }
    // A page must load before it can ask for a key.
    for open in ["/", "/widget.js", "/docsearch.js", "/assets/chat.js", "/healthz", "/readyz"] {
        assert_eq!(status(open, None), 200, "{open}");
    }
    assert_eq!(site.send(Method::POST, "/mcp", Some(json!({})), &[]).status(), 401);
    // The scheme of the header is not case-sensitive.
    let lower = format!("bearer {admin}");
    let metrics = site.send(Method::GET, "/metrics", None, &[("authorization", &lower)]);
    let metrics = site.runtime.block_on(metrics.text()).unwrap();
    assert!(metrics.contains("docent_requests_total"), "{metrics}");
    assert!(!site.served.said().contains(&user), "the log contains no key");
    // The scheme is not case-sensitive.
    for scheme in ["bearer", "BEARER"] {
        let header = format!("{scheme} {user}");
        let response = site.send(Method::GET, "/api/v1/status", None, &[("authorization", &header)]);
        assert_eq!(response.status(), 200, "{scheme}");
    }
}

#[test]
fn rate_limited_requests_get_retry_after() {
    let site = Site::of(Docent::new().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "2"));
    let search = || site.send(Method::POST, "/api/v1/search", Some(json!({ "query": "node" })), &[]);
    assert_eq!((search().status(), search().status()), (StatusCode::OK, StatusCode::OK));
    let refused = search();
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=31).contains(&wait), "{wait}");
    site.fails(refused, 429, "rate_limited", "slow down");
}

#[test]
fn expensive_routes_are_rate_limited() {
    for path in ["/api/v1/suggestions?limit=1", "/read/nowhere.md"] {
        let site = Site::of(Docent::without_vectors().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "1"));
        let get = || site.send(Method::GET, path, None, &[]);
        assert_ne!(get().status(), 429, "{path}");
        site.fails(get(), 429, "rate_limited", "slow down");
        assert_eq!(site.get("/api/v1/status").0, 200, "cheap requests are not counted");
    }
}

#[test]
fn a_rejected_request_keeps_the_connection_open() {
    let site = Site::of(Docent::without_vectors().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "1"));
    let address = site.served.url.trim_start_matches("http://").to_owned();
    let mut connection = TcpStream::connect(&address).unwrap();
    let body = json!({ "query": "x".repeat(20_000) }).to_string();
    let mut ask = || {
        let head = format!(
            "POST /api/v1/search HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        // The server may respond to the head before the body arrives.
        connection.write_all(head.as_bytes()).unwrap();
        connection.write_all(body.as_bytes()).unwrap();
        read_response(&mut connection)
    };
    let statuses = [ask(), ask(), ask()].map(|response| response.split(' ').nth(1).unwrap().to_owned());
    assert_eq!(statuses, ["400", "429", "429"]);
}

/// Reads a response with a length from a connection that stays open.
fn read_response(connection: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        connection.read_exact(&mut byte).expect("the connection is open");
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).unwrap();
    assert!(!head.to_lowercase().contains("connection: close"), "{head}");
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
    connection.read_exact(&mut vec![0; length.unwrap()]).unwrap();
    head
}

#[test]
fn clients_behind_a_proxy_have_separate_limits() {
    let docent = Docent::without_vectors()
        .with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "1")
        .with("DOCENT_SERVE__TRUST_PROXY", "true");
    let site = Site::of(docent);
    let search = |forwarded: &str| {
        let headers = [("x-forwarded-for", forwarded)];
        site.send(Method::POST, "/api/v1/search", Some(json!({ "query": "node" })), &headers)
            .status()
            .as_u16()
    };
    // The proxy appends the address it saw; addresses that the client sends before it are ignored.
    assert_eq!((search("198.51.100.1"), search("203.0.113.7, 198.51.100.1")), (200, 429));
    assert_eq!((search("198.51.100.2"), search("2001:db8::1"), search("2001:db8::2")), (200, 200, 429));
}

#[test]
fn two_thousand_incomplete_requests_do_not_block_others() {
    if !may_open(2500) {
        return docent_testkit::skipped("this process may not open 2,500 files (ulimit -Hn)");
    }
    let docent = Docent::without_vectors().with("DOCENT_SERVE__REQUEST_SECONDS", "2");
    let mut site = Site::of(docent);
    let address = site.served.url.trim_start_matches("http://").to_owned();
    let starts: [&[u8]; 4] = [
        b"",
        b"PRI * HT",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST /api/v1/search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    ];
    let half: Vec<TcpStream> = (0..2000)
        .map(|number| {
            let mut connection = TcpStream::connect(&address).unwrap();
            let _ = connection.write_all(starts[number % starts.len()]);
            connection
        })
        .collect();
    // A client at another address is served meanwhile.
    let other =
        reqwest::Client::builder().local_address(std::net::IpAddr::from([127, 0, 0, 2])).build().unwrap();
    let asked =
        other.post(format!("{}/api/v1/search", site.served.url)).json(&json!({ "query": "node" })).send();
    assert_eq!(site.runtime.block_on(asked).unwrap().status(), 200);
    // All of them end: those over the limit of 256 at once, the others when they time out.
    for mut connection in half {
        connection.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut rest = Vec::new();
        if let Err(error) = connection.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        }
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
    }
    assert_eq!(site.get("/healthz").0, 200, "the address can connect again");
    // They do not prevent the server from stopping either.
    let _half = TcpStream::connect(&address).unwrap();
    assert!(site.served.stop());
}

/// Whether this process may open so many files; raises its limit if it is allowed to.
fn may_open(files: u32) -> bool {
    let own = std::process::id().to_string();
    let limit = || {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u32>().ok())
    };
    if limit().is_some_and(|limit| limit < files) {
        let raised = format!("--nofile={files}:");
        let _ = std::process::Command::new("prlimit").args(["--pid", &own, &raised]).output();
    }
    limit().is_some_and(|limit| limit >= files)
}

#[test]
fn a_long_selection_is_answered() {
    let site = Site::of(Docent::new());
    let words = "a ".repeat(31_000);
    let (status, answer) = site.post("/api/v1/ask", json!({ "query": NODE, "selection": { "text": words } }));
    assert_eq!((status, &answer["grounded"]), (200, &json!(true)));
}

#[test]
fn a_question_without_a_free_permit_is_rejected() {
    let model = Model::start(vec![Reply::Stall { after: "A node".to_owned() }]);
    let docent = model
        .serve(Docent::new())
        .with("DOCENT_SERVE__CONCURRENT_TURNS", "1")
        .with("DOCENT_SERVE__QUEUE", "0");
    let site = Site::new(&docent);
    let ask = || site.client.post(format!("{}/api/v1/ask", site.served.url)).json(&json!({ "query": NODE }));
    let first = site.runtime.spawn(ask().send());
    wait_for(|| model.requests().len() == 1);
    let refused = site.runtime.block_on(ask().send()).unwrap();
    assert!(refused.headers().contains_key("retry-after"));
    site.fails(refused, 503, "overloaded", "Too many questions at once");
    first.abort();
}

#[test]
fn a_disconnecting_client_cancels_the_turn() {
    let model = Model::start(vec![Reply::Stall { after: "A node is a participant. And".to_owned() }]);
    // With the longest deadlines, only the client can end the turn.
    let patient = model
        .serve(Docent::new())
        .with("DOCENT_AGENT__DEADLINE_SECONDS", "600")
        .with("DOCENT_AGENT__STREAM_DEADLINE_SECONDS", "600");
    let site = Site::of(patient);
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
    // The model notices that the client disconnected.
    model.hangup();
}

#[test]
fn stopping_finishes_the_current_turns() {
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
fn answers_are_extractive_once_the_daily_tokens_are_used_up() {
    let model = Model::start(vec![Reply::text("A node is a participant in the ROS 2 graph [1].")]);
    let docent = model.serve(Docent::new()).with("DOCENT_SERVE__DAILY_TOKENS", "1");
    {
        let mut site = Site::new(&docent);
        assert_eq!(site.post("/api/v1/ask", json!({ "query": NODE })).1["model_used"], "gpt-4o-mini");
        let second = site.post("/api/v1/ask", json!({ "query": "What is a topic?" })).1;
        assert_eq!((&second["model_used"], &second["degraded"]), (&json!("extractive"), &json!(false)));
        assert!(site.served.stop());
    }
    // A restart does not reset the budget.
    let site = Site::new(&docent);
    assert_eq!(site.post("/api/v1/ask", json!({ "query": NODE })).1["model_used"], "extractive");
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn only_allowed_origins_may_call_from_a_page() {
    let site = Site::of(Docent::new().with("DOCENT_SERVE__CORS_ORIGINS", "[\"https://docs.example.org\"]"));
    let allowed = |origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type,authorization,x-docent-session-key"),
        ];
        let response = site.send(Method::OPTIONS, "/api/v1/ask", None, &headers);
        response.headers().get("access-control-allow-origin").map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(allowed("https://docs.example.org").as_deref(), Some("https://docs.example.org"));
    assert_eq!(allowed("https://evil.example"), None);
}

#[test]
fn malformed_and_slow_requests_do_not_take_the_server_down() {
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
    site.fails(site.runtime.block_on(nonsense).unwrap(), 400, "validation_error", "Invalid request body");
    assert_eq!(site.post("/api/v1/ask", json!({ "query": NODE })).0, 200);
}

pub fn wait_for(done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < deadline, "timed out");
        std::thread::yield_now();
    }
}
