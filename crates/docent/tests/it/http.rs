//! The server over real HTTP.

mod book_page;
mod books;
mod crash;
mod embedder;
mod figures;
mod pdf_pages;
mod generations;
mod limits;
mod look;
mod owners;
#[cfg(unix)]
mod postgres;
mod proxy;
mod quiz;
mod suggest;
mod suggestions;
mod turns;
mod versions;

use docent_testkit::scripted_model::Reply;
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::model::Model;
use crate::support::{Docent, Served};

const NODE: &str = "What is a ROS 2 node?";

/// A client of one server.
pub struct Site {
    _owner: Option<Docent>,
    served: Served,
    client: Client,
    runtime: Runtime,
}

impl Site {
    pub fn new(docent: &Docent) -> Self {
        Self::with(docent.serve())
    }

    fn with(served: Served) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        // Responses are looked at as they were sent.
        let client = Client::builder().no_gzip().build().unwrap();
        Self { _owner: None, served, client, runtime }
    }

    /// Keeps `docent`, whose folder would be deleted otherwise.
    fn of(docent: Docent) -> Self {
        let mut site = Self::new(&docent);
        site._owner = Some(docent);
        site
    }

    fn send(&self, method: Method, path: &str, body: Option<Value>, headers: &[(&str, &str)]) -> Response {
        let mut request = self.client.request(method, format!("{}{path}", self.served.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        self.runtime.block_on(request.send()).unwrap()
    }

    pub fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.read(self.send(Method::POST, path, Some(body), &[]))
    }

    pub fn get(&self, path: &str) -> (u16, Value) {
        self.read(self.send(Method::GET, path, None, &[]))
    }

    /// The metrics, read with an admin's `Authorization` header.
    fn metrics(&self, admin: &str) -> String {
        let response = self.send(Method::GET, "/metrics", None, &[("authorization", admin)]);
        self.read(response).1.as_str().unwrap().to_owned()
    }

    /// Creates a conversation; returns its id and its key.
    pub fn begin(&self) -> (String, String) {
        let (status, session) = self.post("/api/v1/sessions", json!({}));
        assert_eq!(status, 201, "{session}");
        let text = |field: &str| session[field].as_str().unwrap().to_owned();
        (text("session_id"), text("session_key"))
    }

    /// Sends a request with a conversation's key.
    pub fn with_key(&self, method: Method, path: &str, body: Option<Value>, key: &str) -> (u16, Value) {
        self.read(self.send(method, path, body, &[("x-docent-session-key", key)]))
    }

    /// Asks a question in a conversation.
    fn ask_in(&self, (id, key): (&str, &str), query: &str) -> Value {
        let body = json!({ "query": query, "session_id": id });
        let (status, answer) = self.with_key(Method::POST, "/api/v1/ask", Some(body), key);
        assert_eq!(status, 200, "{answer}");
        answer
    }

    fn read(&self, response: Response) -> (u16, Value) {
        let status = response.status().as_u16();
        let text = self.runtime.block_on(response.text()).unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// The events of a streamed answer: names and data.
    fn stream(&self, body: Value) -> Vec<(String, Value)> {
        let response = self.send(Method::POST, "/api/v1/ask", Some(body), &[("accept", "text/event-stream")]);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let text = self.runtime.block_on(response.text()).unwrap();
        text.split("\n\n")
            .filter_map(|event| {
                let (name, data) = event.trim().split_once('\n')?;
                Some((
                    name.strip_prefix("event: ")?.to_owned(),
                    serde_json::from_str(data.strip_prefix("data: ")?).unwrap(),
                ))
            })
            .collect()
    }

    /// Expects an error in the format of the contract.
    fn fails(&self, response: Response, status: u16, code: &str, message: &str) {
        let header = response.headers().get("x-request-id").unwrap().to_str().unwrap().to_owned();
        let (found, body) = self.read(response);
        assert_eq!(
            (found, &body["error"], &body["status_code"]),
            (status, &json!(code), &json!(status)),
            "{body}"
        );
        assert!(body["message"].as_str().unwrap().contains(message), "{body}");
        assert_eq!(body["request_id"], json!(header));
        let mut fields: Vec<&String> = body.as_object().unwrap().keys().collect();
        fields.sort();
        assert_eq!(fields, ["detail", "error", "message", "request_id", "status_code"]);
    }
}

#[test]
fn an_answer_has_the_same_json_as_on_the_command_line() {
    let docent = Docent::new();
    docent.write("book/nodes.md", "# Nodes\n\nA ROS 2 node is a participant in the graph.\n");
    docent.ok(&["ingest", "book", "--base-url", "https://book.example", "--quiet"]);
    let site = Site::new(&docent);
    let (status, mut over_http) = site.post("/api/v1/ask", json!({ "query": NODE }));
    assert_eq!(status, 200);
    let mut typed = docent.json(&["ask", NODE]);
    for response in [&mut over_http, &mut typed] {
        for changing in ["turn_id", "timestamp", "metadata"] {
            response[changing] = Value::Null;
        }
    }
    assert_eq!(over_http, typed);
    let (_, bare) = site.post("/api/v1/ask", json!({ "query": NODE, "include_sources": false }));
    assert!(bare.get("sources").is_none());
}

#[test]
fn pages_of_an_unpublished_book_are_read_on_the_server() {
    let site = Site::of(Docent::new());
    let (_, answer) = site.post("/api/v1/ask", json!({ "query": "What is the computation graph?" }));
    let citation = &answer["citations"][0];
    let url = citation["url"].as_str().unwrap();
    let address = url.strip_prefix(&site.served.url).unwrap().split(":~:").next().unwrap();
    let (path, anchor) = address.split_once('#').unwrap_or((address, ""));
    let response = site.send(Method::GET, path, None, &[]);
    assert!(!response.headers()["content-security-policy"].to_str().unwrap().contains("unsafe"));
    let page = site.runtime.block_on(response.text()).unwrap();
    assert!(page.contains(&format!("<h1>{}</h1>", citation["page_title"].as_str().unwrap())), "{page}");
    if !anchor.is_empty() {
        assert!(page.contains(&format!("id=\"{anchor}\"")), "{anchor}");
    }
    site.fails(site.send(Method::GET, "/read/nowhere.md", None, &[]), 404, "not_found", "no page nowhere.md");
}

#[test]
fn a_stream_ends_with_the_whole_answer() {
    let site = Site::of(Docent::new());
    let events = site.stream(json!({ "query": NODE, "html": true }));
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..4], ["state", "state", "state", "sources"]);
    assert_eq!(names.last(), Some(&"done"));
    let done = &events.last().unwrap().1;
    let sentences: Vec<&Value> =
        events.iter().filter(|(name, _)| name == "sentence").map(|(_, data)| &data["sentence"]).collect();
    assert_eq!(json!(sentences), done["sentences"]);
    assert!(sentences[0]["html"].as_str().unwrap().starts_with("A node is"));
    let states: Vec<&str> = events.iter().filter_map(|(_, data)| data["state"].as_str()).collect();
    assert_eq!(states, ["received", "validating", "retrieving", "generating", "completed"]);
}

#[test]
fn every_error_has_the_body_of_the_contract() {
    let site = Site::of(Docent::new());
    let ask = |body: Value| site.send(Method::POST, "/api/v1/ask", Some(body), &[]);
    site.fails(ask(json!({ "query": "  " })), 400, "validation_error", "Query cannot be empty");
    site.fails(ask(json!({ "query": "x".repeat(8001) })), 400, "validation_error", "Query is too long");
    site.fails(
        ask(json!({ "query": "x", "top_k": 11 })),
        400,
        "validation_error",
        "top_k must be between 1 and 10",
    );
    site.fails(
        ask(json!({ "query": "x", "module": "kitchen" })),
        400,
        "validation_error",
        "no module `kitchen`",
    );
    site.fails(ask(json!({ "question": "x" })), 400, "validation_error", "Invalid request body");
    site.fails(ask(json!({ "query": "x", "session_id": uuid::Uuid::nil() })), 404, "not_found", "no session");
    site.fails(ask(json!({ "query": "x".repeat(70_000) })), 413, "payload_too_large", "too large");
    let streamed = json!({ "query": " ", "stream": true });
    site.fails(ask(streamed), 400, "validation_error", "Query cannot be empty");
    let search = |body: Value| site.send(Method::POST, "/api/v1/search", Some(body), &[]);
    site.fails(search(json!({ "query": "x", "top_k": 101 })), 400, "validation_error", "between 1 and 100");
    site.fails(
        search(json!({ "query": "x", "threshold": 2 })),
        400,
        "validation_error",
        "between 0.0 and 1.0",
    );
    let get = |path: &str| site.send(Method::GET, path, None, &[]);
    site.fails(get("/nothing"), 404, "not_found", "Not found");
    site.fails(get("/assets/../Cargo.toml"), 404, "not_found", "Not found");
    site.fails(get("/api/v1/sessions/x"), 400, "validation_error", "Invalid path");
    site.fails(get("/api/v1/ask"), 405, "method_not_allowed", "Method not allowed");
    let nobody = json!({ "turn_id": uuid::Uuid::nil(), "rating": "up" });
    site.fails(site.send(Method::POST, "/api/v1/feedback", Some(nobody), &[]), 404, "not_found", "no answer");
}

#[test]
fn a_cached_answer_is_a_new_turn() {
    let site = Site::of(Docent::new());
    let (_, first) = site.post("/api/v1/ask", json!({ "query": NODE }));
    let (_, again) = site.post("/api/v1/ask", json!({ "query": NODE }));
    assert_eq!(
        (&first["metadata"]["cache_hit"], &again["metadata"]["cache_hit"]),
        (&json!(false), &json!(true))
    );
    assert_ne!(first["turn_id"], again["turn_id"]);
    assert_eq!((&first["answer"], &first["citations"]), (&again["answer"], &again["citations"]));
}

#[test]
fn a_search_can_do_without_reranking() {
    let site = Site::of(Docent::new());
    let scored = |rerank: bool| {
        let (status, found) = site.post("/api/v1/search", json!({ "query": NODE, "rerank": rerank }));
        assert_eq!(status, 200, "{found}");
        let chunks = found["chunks"].as_array().unwrap();
        chunks.iter().filter(|chunk| chunk["rerank_score"].is_number()).count()
    };
    assert!(scored(true) > 0);
    assert_eq!(scored(false), 0);
}

#[test]
fn search_follows_the_contract() {
    let site = Site::of(Docent::new());
    let (status, found) =
        site.post("/api/v1/search", json!({ "query": "publish a message", "top_k": 3, "module": "ros2" }));
    assert_eq!((status, found["chunks"].as_array().unwrap().len()), (200, 3));
    for field in ["query", "chunks", "total_found", "query_time_ms", "has_relevant_results"] {
        assert!(found.get(field).is_some(), "{field}");
    }
}

#[test]
fn a_conversation_can_be_shown_renamed_exported_reset_and_deleted() {
    let site = Site::of(Docent::new());
    let (id, key) = site.begin();
    site.ask_in((&id, &key), "What is Isaac Sim?");
    let second = site.ask_in((&id, &key), "How do I use it for synthetic data?");
    assert!(second["citations"][0]["page_title"].as_str().unwrap().contains("Isaac Sim"), "{second}");
    let path = format!("/api/v1/sessions/{id}");
    let get = |path: &str| site.with_key(Method::GET, path, None, &key).1;
    let shown = get(&format!("{path}?html=true"));
    assert_eq!((&shown["turn_count"], &shown["title"]), (&json!(2), &json!("What is Isaac Sim?")));
    assert_eq!((&shown["earlier"], &shown["read_only"]), (&Value::Null, &json!(false)));
    assert!(shown["turns"][0]["response"]["sentences"][0]["html"].is_string());
    assert!(shown["turns"][0]["response"]["sources"].is_array());
    let renamed = site.with_key(Method::PATCH, &path, Some(json!({ "title": "Isaac" })), &key).1;
    assert_eq!(renamed["title"], "Isaac");
    let headers = [("x-docent-session-key", key.as_str())];
    let exported = site.send(Method::GET, &format!("{path}/export"), None, &headers);
    assert!(exported.headers()["content-disposition"].to_str().unwrap().contains(".md"));
    let exported = site.runtime.block_on(exported.text()).unwrap();
    assert!(exported.starts_with("# Isaac\n"), "{exported}");
    let exported = get(&format!("{path}/export?format=json"));
    assert_eq!((&exported["title"], exported["turns"].as_array().unwrap().len()), (&json!("Isaac"), 2));
    assert_eq!(
        site.with_key(Method::POST, &format!("{path}/reset"), Some(json!({})), &key).1["turn_count"],
        0
    );
    assert_eq!(get(&format!("{path}/export?format=json"))["turns"], json!([]));
    assert_eq!(site.with_key(Method::DELETE, &path, None, &key).0, 204);
    site.fails(site.send(Method::GET, &path, None, &headers), 404, "not_found", "no session");
}

#[test]
fn feedback_appears_in_the_operators_report() {
    let docent = Docent::new();
    let site = Site::new(&docent);
    let (_, answer) = site.post("/api/v1/ask", json!({ "query": NODE }));
    site.post("/api/v1/ask", json!({ "query": "How do I bake a chocolate cake?" }));
    // A greeting is not a question about the book.
    assert_eq!(site.post("/api/v1/ask", json!({ "query": "hello" })).1["kind"], "conversation");
    let rating = json!({ "turn_id": answer["turn_id"], "rating": "down", "comment": "too <b>short</b>" });
    assert_eq!(site.post("/api/v1/feedback", rating).0, 204);
    docent.ok(&["report", "owner.html"]);
    let page = std::fs::read_to_string(docent.home.path().join("owner.html")).unwrap();
    assert!(page.contains("too &lt;b&gt;short&lt;/b&gt;"), "comments are text");
    assert!(page.contains("How do I bake a chocolate cake?"));
    let report = docent.json(&["report", "owner.html"]);
    assert_eq!(
        (&report["questions"], &report["answered"], &report["marked_down"], &report["file"]),
        (&json!(2), &json!(1), &json!(1), &json!("owner.html"))
    );
    assert!(!report["gaps"].as_array().unwrap().is_empty(), "{report}");
}

#[test]
fn an_answer_that_fails_verification_is_not_a_gap_of_the_book() {
    let model = Model::start(vec![Reply::text("Cheese is yellow and melts at forty degrees [1].")]);
    let docent = model.serve(Docent::new());
    let mut site = Site::new(&docent);
    assert_eq!(site.post("/api/v1/ask", json!({ "query": NODE })).1["kind"], "abstention");
    assert!(site.served.stop());
    let report = docent.json(&["report", "owner.html"]);
    assert_eq!(
        (&report["questions"], &report["unverified"], &report["gaps"]),
        (&json!(1), &json!(1), &json!([])),
        "{report}"
    );
}

#[test]
fn status_modules_and_suggestions_describe_the_book() {
    let site = Site::of(Docent::new());
    let (_, status) = site.get("/api/v1/status");
    assert_eq!(
        (&status["is_sample"], &status["pages"], &status["model"]),
        (&json!(true), &json!(29), &json!("extractive"))
    );
    let (_, modules) = site.get("/api/v1/modules");
    assert!(modules["modules"].as_array().unwrap().iter().any(|module| module["name"] == "ros2"));
    let (_, suggested) = site.get("/api/v1/suggestions?limit=3");
    let questions = suggested["questions"].as_array().unwrap();
    assert_eq!(questions.len(), 3);
    for question in questions {
        let (_, answer) = site.post("/api/v1/ask", json!({ "query": question }));
        assert_eq!(answer["grounded"], true, "{question} is answered");
    }
    assert_eq!(site.get("/healthz"), (200, json!("ok")));
    assert_eq!(site.get("/readyz").1["ready"], true);
    let (status, _) = site.get("/metrics");
    assert_eq!(status, 401, "metrics require an operator's key");
}

#[test]
fn pages_are_self_contained_and_have_a_strict_content_security_policy() {
    let site = Site::of(Docent::new());
    let page = site.send(Method::GET, "/", None, &[]);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.headers()["x-content-type-options"], "nosniff");
    let tag = page.headers()["etag"].to_str().unwrap().to_owned();
    let text = site.runtime.block_on(page.text()).unwrap();
    for asset in text.split(['"', '\'']).filter(|part| part.contains("assets/")) {
        let path = format!("/{}", asset.trim_start_matches(['.', '/']));
        assert_eq!(site.send(Method::GET, &path, None, &[]).status(), 200, "{path}");
    }
    let again = site.send(Method::GET, "/", None, &[("if-none-match", &tag)]);
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(site.send(Method::GET, "/widget.js", None, &[]).status(), 200);

    // Scripts are sent compressed to clients that can read them.
    let fetch = |headers: &[(&str, &str)]| site.send(Method::GET, "/assets/chat.js", None, headers);
    let plain = fetch(&[]);
    assert!(plain.headers().get("content-encoding").is_none());
    let packed = fetch(&[("accept-encoding", "br, gzip;q=0.8")]);
    assert_eq!(packed.headers()["content-encoding"], "gzip");
    assert!(packed.headers().get_all("vary").iter().any(|named| named == "accept-encoding"));
    let tag = packed.headers()["etag"].to_str().unwrap().to_owned();
    assert_ne!(plain.headers()["etag"], tag.as_str());
    let known = fetch(&[("accept-encoding", "gzip"), ("if-none-match", &tag)]);
    assert_eq!((known.status().as_u16(), known.headers().get("content-encoding")), (304, None));
    assert!(fetch(&[("accept-encoding", "gzip;q=0")]).headers().get("content-encoding").is_none());
    let mut unpacked = String::new();
    let bytes = site.runtime.block_on(packed.bytes()).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut unpacked).unwrap();
    assert_eq!(unpacked, site.runtime.block_on(plain.text()).unwrap());
    let docs = site.send(Method::GET, "/docs/", None, &[]);
    assert!(!docs.headers()["content-security-policy"].to_str().unwrap().contains("unsafe-inline"));
    assert_eq!(site.get("/openapi.json").1["info"]["title"], "Docent");
}

#[test]
fn text_that_looks_like_markup_is_escaped() {
    let docent = Docent::without_vectors();
    docent.write(
        "book/xss.md",
        "# Title <script>x</script>\n\nA gizmo is <img src=x onerror=alert(1)> small and `<b>` bold.\n",
    );
    docent.ok(&["ingest", "book", "--base-url", "https://book.example", "--quiet"]);
    let site = Site::new(&docent);
    let (_, answer) = site
        .post("/api/v1/ask", json!({ "query": "What is a gizmo <script>alert(1)</script>?", "html": true }));
    for sentence in answer["sentences"].as_array().unwrap() {
        let html = sentence["html"].as_str().unwrap();
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
    }
}
