//! Tests of the MCP server as a client sees it, over a pipe and over HTTP.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use docent_core::chunk::Chunk;
use docent_core::embed::{EmbedError, Embedder, EmbedderId, Purpose, Vector};
use docent_core::testing::{LetterEmbedder, MemoryIndex, StoppedClock, chunk};
use rmcp::RoleClient;
use rmcp::service::{PeerRequestOptions, RunningService};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::sync::watch;
use tower::ServiceExt as _;

use super::*;

fn book() -> Vec<Chunk> {
    let mut chunks = vec![
        chunk("guide/nodes.md", 0, "A node is a participant in the graph. It may publish at 50 Hz."),
        chunk("guide/nodes.md", 1, "Create one with `rclpy.create_node` in Python."),
        chunk("guide/nodes.md", 2, "Or in C++."),
        chunk("topics.md", 0, "A topic carries messages between nodes."),
    ];
    for (chunk, path) in chunks[1..].iter_mut().zip([&["Use", "Create"][..], &["Use", "Create"]]) {
        chunk.heading_hierarchy = path.iter().map(|heading| (*heading).to_owned()).collect();
        chunk.heading = chunk.heading_hierarchy.last().cloned();
    }
    chunks[2].section = 1;
    chunks[3].url = "file:///book/topics.md".to_owned();
    chunks
        .extend((0..LISTED).map(|number| chunk(&format!("more/{number}"), 0, &format!("Filler {number}."))));
    chunks
}

fn service(embedder: Option<Arc<dyn Embedder>>) -> Service {
    let with_vector = |chunk: Chunk| {
        let vector = LetterEmbedder::vector(&chunk.embedded_text());
        (chunk, vector)
    };
    let index = MemoryIndex::new(book().into_iter().map(with_vector).collect());
    let clock = Arc::new(StoppedClock);
    let retriever =
        Retriever::new(Arc::new(index), embedder, Default::default(), Default::default(), clock.clone());
    let library = Library::from(retriever);
    let agent = Agent::builder(library.clone(), clock).build();
    Service { answers: Arc::new(agent), library: library.clone(), title: Title::fixed("Robots", library) }
}

async fn client(service: Service) -> RunningService<RoleClient, ()> {
    let (ours, theirs) = tokio::io::duplex(4096);
    let pipe = tokio::io::split(theirs);
    tokio::spawn(async move { Server(service).serve(pipe).await.unwrap().waiting().await });
    ().serve(ours).await.unwrap()
}

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone())
}

/// The text and the object that a tool returns.
async fn called(tool: &'static str, arguments: Value) -> (String, Value) {
    let result = client(service(None)).await.call_tool(call(tool, arguments)).await.unwrap();
    assert_eq!(result.is_error, Some(false), "{result:?}");
    (words(&result), result.structured_content.unwrap())
}

async fn refused(tool: &'static str, arguments: Value) -> String {
    let result = client(service(None)).await.call_tool(call(tool, arguments)).await.unwrap();
    assert_eq!((result.is_error, &result.structured_content), (Some(true), &None), "{result:?}");
    words(&result)
}

fn words(result: &CallToolResult) -> String {
    result.content[0].as_text().unwrap().text.clone()
}

#[tokio::test]
async fn the_server_introduces_itself() {
    let client = client(service(None)).await;
    let info = client.peer_info().unwrap();
    let server = info.server_info.as_ref().unwrap();
    assert_eq!((server.name.as_str(), server.title.as_deref()), ("docent", Some("Robots")));
    assert!(info.instructions.as_ref().unwrap().contains("“Robots” from the book alone"));
}

#[tokio::test]
async fn every_tool_is_described_and_read_only() {
    let tools = client(service(None)).await.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["search_book", "ask_book", "read_page"]);
    for tool in &tools {
        let hints = tool.annotations.as_ref().unwrap();
        let hints = (hints.read_only_hint, hints.idempotent_hint, hints.open_world_hint);
        assert_eq!(hints, (Some(true), Some(true), Some(false)));
        assert_eq!(tool.input_schema["additionalProperties"], json!(false), "{}", tool.name);
        assert_eq!(tool.output_schema.as_ref().unwrap()["type"], "object");
    }
    assert_eq!(tools[0].input_schema["required"], json!(["query"]));
    assert_eq!(tools[0].input_schema["properties"]["top_k"]["maximum"], 20);
    assert_eq!(tools[1].input_schema["properties"]["top_k"]["maximum"], 10);
}

#[tokio::test]
async fn tool_results_match_their_output_schemas() {
    let tools = client(service(None)).await.list_all_tools().await.unwrap();
    let arguments = [
        json!({"query": "node graph"}),
        json!({"question": "What is a node in the graph?"}),
        json!({"page": "topics.md"}),
    ];
    for (tool, arguments) in tools.iter().zip(arguments) {
        let name =
            [tools::SEARCH, tools::ASK, tools::READ].into_iter().find(|name| *name == tool.name).unwrap();
        let (_, object) = called(name, arguments).await;
        promised(&Value::Object((**tool.output_schema.as_ref().unwrap()).clone()), &object);
    }
}

/// Asserts that all required fields are present, recursively.
fn promised(schema: &Value, object: &Value) {
    for field in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(object.get(field).is_some(), "`{field}` is missing in {object}");
        for item in object[field].as_array().into_iter().flatten() {
            promised(&schema["properties"][field]["items"], item);
        }
    }
}

#[tokio::test]
async fn a_search_returns_passages_with_links() {
    let (words, object) =
        called("search_book", json!({"query": " node graph ", "top_k": 2, "module": "m"})).await;
    assert!(words.starts_with("1. guide/nodes.md [m] "), "{words}");
    assert!(words.contains("\nhttps://x.org/guide/nodes.md#s0\nA node is a participant"), "{words}");
    assert_eq!((&object["query"], &object["chunks"][0]["position"]), (&json!("node graph"), &json!(1)));
}

#[tokio::test]
async fn an_answer_has_citations_and_sources() {
    let (words, object) = called("ask_book", json!({"question": "What is a node in the graph?"})).await;
    assert!(
        words.starts_with(
            "A node is a participant in the graph. It may publish at 50 Hz. [guide/nodes.md](https://x.org/"
        ),
        "{words}"
    );
    assert!(words.contains("\n\nSources:\n1. guide/nodes.md: https://x.org/guide/nodes.md#s0"), "{words}");
    assert_eq!((&object["grounded"], &object["session_id"]), (&json!(true), &Value::Null));
    assert!(object["sources"].as_array().is_some_and(|sources| !sources.is_empty()));
}

#[tokio::test]
async fn an_abstention_is_not_an_error() {
    let (words, object) = called("ask_book", json!({"question": "zebra"})).await;
    assert!(words.contains(docent_core::agent::NO_INFORMATION), "{words}");
    assert_eq!(object["grounded"], false);
    let (words, object) = called("search_book", json!({"query": "zebra"})).await;
    assert_eq!((words.as_str(), &object["chunks"]), ("Nothing in the book matches this.", &json!([])));
}

#[tokio::test]
async fn a_page_is_found_by_id_url_and_uri() {
    let (words, object) = called("read_page", json!({"page": "guide/nodes.md"})).await;
    assert_eq!(
        words,
        "# guide/nodes.md\n\nA node is a participant in the graph. It may publish at 50 Hz.\n\n\
         ## Use\n\n### Create\n\nCreate one with `rclpy.create_node` in Python.\n\nOr in C++.\n\n\
         Links:\n- guide/nodes.md: https://x.org/guide/nodes.md\n\
         - guide/nodes.md: https://x.org/guide/nodes.md#s0\n\
         - Create: https://x.org/guide/nodes.md#s1\n- Create: https://x.org/guide/nodes.md#s2\n"
    );
    assert_eq!(object["sections"][1], json!({"heading": "Create", "url": "https://x.org/guide/nodes.md#s1"}));
    for name in [
        "https://x.org/guide/nodes.md#s1:~:text=Create",
        "https://x.org/guide/nodes.md/",
        "https://x.org/guide%2Fnodes.md/index.html",
        "docent://page/guide%2Fnodes.md",
        " guide/nodes.md#s1 ",
        "guide/nodes",
    ] {
        assert_eq!(
            called("read_page", json!({"page": name})).await.1["document_id"],
            "guide/nodes.md",
            "{name}"
        );
    }
}

#[tokio::test]
async fn invalid_arguments_return_helpful_errors() {
    for (tool, arguments, expected) in [
        ("search_book", json!({"query": " "}), "Query cannot be empty"),
        ("search_book", json!({"query": "x", "top_k": 21}), "top_k must be between 1 and 20, got 21"),
        (
            "search_book",
            json!({"query": "x", "threshold": 2}),
            "threshold must be between 0.0 and 1.0, got 2",
        ),
        ("search_book", json!({}), "invalid arguments for `search_book`: missing field `query`"),
        ("ask_book", json!({"question": "x", "top_k": 11}), "top_k must be between 1 and 10, got 11"),
        (
            "ask_book",
            json!({"question": "x", "module": "n"}),
            "there is no module `n` in this book\nhint: did you mean `m`?",
        ),
        (
            "read_page",
            json!({"page": "topic.md"}),
            "there is no page `topic.md` in this book\nhint: did you mean `topics.md`?",
        ),
        (
            "read_page",
            json!({"page": "https://x.org/guide/node.md"}),
            "there is no page `https://x.org/guide/node.md` in this book\nhint: did you mean `https://x.org/guide/nodes.md`?",
        ),
        (
            "read_page",
            json!({"page": ""}),
            "there is no page `` in this book\nhint: use the `document_id` of a passage found by search_book",
        ),
        ("write_page", json!({}), "there is no tool `write_page`"),
    ] {
        assert_eq!(refused(tool, arguments).await, expected);
    }
    let unknown = refused("ask_book", json!({"question": "x", "k": 3})).await;
    assert!(unknown.contains("unknown field `k`, expected one of `question`"), "{unknown}");
}

#[tokio::test]
async fn every_page_is_a_resource_that_can_be_read() {
    let client = client(service(None)).await;
    let first = client.list_resources(None).await.unwrap();
    assert_eq!(first.resources.len(), LISTED);
    let pages = client.list_all_resources().await.unwrap();
    let uris: BTreeSet<&str> = pages.iter().map(|page| page.uri.as_str()).collect();
    assert_eq!((pages.len(), uris.len()), (LISTED + 2, LISTED + 2));
    assert_eq!(pages[0].uri, "https://x.org/guide/nodes.md");
    assert_eq!(pages[1].uri, "docent://page/topics.md");
    assert_eq!(
        (pages[1].description.as_deref(), pages[1].mime_type.as_deref()),
        (Some("m"), Some("text/markdown"))
    );
    for page in &pages {
        let read = client.read_resource(ReadResourceRequestParams::new(&page.uri)).await.unwrap();
        let ResourceContents::TextResourceContents { uri, text, .. } = &read.contents[0] else { panic!() };
        assert_eq!(uri, &page.uri);
        assert!(text.starts_with(&format!("# {}\n\n", page.name)), "{text}");
    }
    let templates = client.list_all_resource_templates().await.unwrap();
    assert_eq!(templates[0].uri_template, "docent://page/{document_id}");

    let unknown = client.read_resource(ReadResourceRequestParams::new("docent://page/topic.md")).await;
    assert!(unknown.unwrap_err().to_string().contains("did you mean `topics.md`?"));
    let cursor = PaginatedRequestParams::default().with_cursor(Some("nowhere".to_owned()));
    assert!(client.list_resources(Some(cursor)).await.is_err());
}

#[tokio::test]
async fn the_prompt_names_the_tool_and_the_question() {
    let client = client(service(None)).await;
    assert_eq!(client.list_all_prompts().await.unwrap()[0].name, "ask");
    let arguments = json!({"question": "What is a node?"}).as_object().unwrap().clone();
    let prompt =
        client.get_prompt(GetPromptRequestParams::new("ask").with_arguments(arguments)).await.unwrap();
    let text = &prompt.messages[0].content.as_text().unwrap().text;
    assert!(text.contains("ask_book") && text.ends_with("What is a node?"), "{text}");
    assert!(client.get_prompt(GetPromptRequestParams::new("ask")).await.is_err());
}

/// An embedder that hangs, panics or fails, and reports when its future starts and when it is dropped.
struct Bad {
    id: EmbedderId,
    how: &'static str,
    stage: watch::Sender<Stage>,
}

/// The state of a future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Running,
    Dropped,
}

struct Dropped(watch::Sender<Stage>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send_replace(Stage::Dropped);
    }
}

#[async_trait]
impl Embedder for Bad {
    fn id(&self) -> &EmbedderId {
        &self.id
    }

    fn max_tokens(&self) -> usize {
        64
    }

    fn batch_size(&self) -> usize {
        1
    }

    fn count_tokens(&self, _: &str) -> usize {
        1
    }

    async fn embed(&self, _: &[&str], _: Purpose) -> Result<Vec<Vector>, EmbedError> {
        self.stage.send_replace(Stage::Running);
        let _dropped = Dropped(self.stage.clone());
        match self.how {
            "stuck" => std::future::pending().await,
            "panic" => panic!("at /secret/path"),
            _ => Err(EmbedError::Unusable("/secret/path".to_owned())),
        }
    }
}

fn bad(how: &'static str) -> (Service, watch::Receiver<Stage>) {
    let (stage, told) = watch::channel(Stage::New);
    let id = EmbedderId { name: how.to_owned(), width: 26 };
    (service(Some(Arc::new(Bad { id, how, stage }))), told)
}

#[tokio::test]
async fn internal_errors_reveal_no_details() {
    for (how, expected) in [("panic", "Internal error"), ("fail", "Embedding generation failed")] {
        let client = client(bad(how).0).await;
        for (tool, arguments) in
            [("search_book", json!({"query": "x"})), ("ask_book", json!({"question": "x"}))]
        {
            let result = client.call_tool(call(tool, arguments)).await.unwrap();
            assert_eq!((result.is_error, words(&result).as_str()), (Some(true), expected));
        }
    }
}

#[tokio::test]
async fn a_cancelled_call_is_dropped() {
    let (service, mut stage) = bad("stuck");
    let client = client(service).await;
    let request = CallToolRequest::new(call("ask_book", json!({"question": "x"})));
    let options = PeerRequestOptions::no_options();
    let pending =
        client.send_cancellable_request(ClientRequest::CallToolRequest(request), options).await.unwrap();
    stage.wait_for(|stage| *stage == Stage::Running).await.unwrap();
    pending.cancel(None).await.unwrap();
    let dropped = stage.wait_for(|stage| *stage == Stage::Dropped);
    tokio::time::timeout(Duration::from_secs(120), dropped).await.unwrap().unwrap();
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;

/// A server on a pipe: the client's lines in, the server's lines out.
fn piped(size: usize) -> (WriteHalf<DuplexStream>, Lines<BufReader<ReadHalf<DuplexStream>>>) {
    let (ours, theirs) = tokio::io::duplex(size);
    let pipe = tokio::io::split(theirs);
    tokio::spawn(async move { Server(service(None)).serve(pipe).await.unwrap().waiting().await });
    let (read, write) = tokio::io::split(ours);
    (write, BufReader::new(read).lines())
}

/// A request as clients of protocol 2026-07-28 send it, which stands alone.
fn alone(method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

#[tokio::test]
async fn a_probe_and_invalid_lines_may_come_before_initialize() {
    let (mut write, mut answers) = piped(4096);
    let mut say = async |line: &str| {
        // Invalid lines are ignored; there is no request to answer.
        write.write_all(format!("\u{fffd}{{\n{line}\r\n").as_bytes()).await.unwrap();
        serde_json::from_str::<Value>(&answers.next_line().await.unwrap().unwrap()).unwrap()
    };
    let incomplete = r#"{"jsonrpc":"2.0","id":"a","method":"server/discover","params":{}}"#;
    let refused = say(incomplete).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("a"), &json!(-32602)));
    let discovered = say(&alone("server/discover", json!({}))).await;
    assert!(discovered["result"]["instructions"].as_str().unwrap().contains("“Robots” from the book alone"));
    assert_eq!(say(INITIALIZE).await["result"]["serverInfo"]["name"], "docent");
    assert_eq!(say(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await["id"], 2);
}

#[tokio::test]
async fn requests_that_stand_alone_need_no_initialize() {
    let (mut write, mut answers) = piped(4096);
    let read = alone("tools/call", json!({"name": "read_page", "arguments": {"page": "topics.md"}}));
    write.write_all(format!("{read}\n").as_bytes()).await.unwrap();
    let read: Value = serde_json::from_str(&answers.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!(read["result"]["structuredContent"]["page_title"], "topics.md");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_are_all_answered() {
    let (mut write, mut answers) = piped(100);
    let questions = (2..500).map(|id| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"read_page","arguments":{{"page":"topics.md"}}}}}}"#)
    });
    let lines: Vec<String> = [INITIALIZE.to_owned()].into_iter().chain(questions).collect();
    tokio::spawn(async move {
        for line in lines {
            write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    let mut answered = BTreeSet::new();
    while answered.len() < 499 {
        let line = tokio::time::timeout(Duration::from_secs(120), answers.next_line()).await.unwrap();
        let answer: Value = serde_json::from_str(&line.unwrap().unwrap()).unwrap();
        assert!(answer["result"].is_object(), "{answer}");
        answered.insert(answer["id"].as_u64().unwrap());
    }
}

struct Site {
    router: axum::Router,
    sessions: Arc<LocalSessionManager>,
}

fn site(access: Access) -> Site {
    let sessions = Arc::new(LocalSessionManager::default());
    let mcp = http::with_sessions(service(None), access, std::future::pending(), sessions.clone());
    Site { router: axum::Router::new().nest_service("/mcp", mcp), sessions }
}

impl Site {
    async fn post(&self, headers: &[(&str, &str)], body: impl Into<Body>) -> StatusCode {
        self.send(Request::post("/mcp"), headers, body).await.status()
    }

    async fn send(
        &self,
        request: axum::http::request::Builder,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> axum::response::Response {
        let mut request = request
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header(header::HOST, "localhost:8080");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap()
    }

    async fn open(&self) -> usize {
        self.sessions.sessions.read().await.len()
    }
}

#[tokio::test]
async fn only_initialize_opens_a_session() {
    let site = site(Access::default());
    for (body, expected) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, StatusCode::BAD_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, StatusCode::BAD_REQUEST),
        ("{", StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ] {
        assert_eq!(site.post(&[], body).await, expected, "{body}");
    }
    assert_eq!(site.post(&[], vec![b' '; 300 * 1024]).await, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(site.open().await, 0);
    assert_eq!(site.post(&[("mcp-protocol-version", "2024-11-05")], INITIALIZE).await, StatusCode::OK);
    assert_eq!(site.open().await, 1);
}

#[tokio::test]
async fn requests_that_stand_alone_need_no_session() {
    let site = site(Access { most_sessions: 0, ..Access::default() });
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "read_page")];
    let read = |page: &str| alone("tools/call", json!({"name": "read_page", "arguments": {"page": page}}));
    let response = site.send(Request::post("/mcp"), &headers, read("topics.md")).await;
    assert_eq!((response.status(), response.headers().get("mcp-session-id")), (StatusCode::OK, None));
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    assert!(String::from_utf8_lossy(&body).contains("A topic carries messages between nodes."));
    assert_eq!(site.open().await, 0);
    assert_eq!(
        site.post(&headers[..1], read("topics.md")).await,
        StatusCode::BAD_REQUEST,
        "without mcp-method"
    );
}

#[tokio::test]
async fn delete_ends_a_session() {
    let site = site(Access::default());
    let opened = site.send(Request::post("/mcp/"), &[], INITIALIZE).await;
    let session = [("mcp-session-id", opened.headers()["mcp-session-id"].to_str().unwrap())];
    let ended = site.send(Request::delete("/mcp"), &session, Body::empty()).await;
    assert_eq!((ended.status(), site.open().await), (StatusCode::NO_CONTENT, 0));
    assert_eq!(site.post(&session, INITIALIZE).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_number_of_open_sessions_is_limited() {
    let site = site(Access { most_sessions: 2, ..Access::default() });
    for expected in [StatusCode::OK, StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE] {
        assert_eq!(site.post(&[], INITIALIZE).await, expected);
    }
}

#[tokio::test]
async fn the_number_of_sessions_per_client_is_limited() {
    let site = site(Access { most_sessions_of_a_client: 2, ..Access::default() });
    let open = async |client: &str| {
        let request = Request::post("/mcp").extension(Client(client.to_owned()));
        site.send(request, &[], INITIALIZE).await
    };
    let first = open("greedy").await;
    let session = [("mcp-session-id", first.headers()["mcp-session-id"].to_str().unwrap())];
    assert_eq!(open("greedy").await.status(), StatusCode::OK);
    assert_eq!(open("greedy").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(open("other").await.status(), StatusCode::OK);
    site.send(Request::delete("/mcp"), &session, Body::empty()).await;
    assert_eq!(open("greedy").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn unknown_hosts_and_origins_are_rejected() {
    let hosts = vec!["book.org".to_owned(), "::1".to_owned()];
    let site = site(Access { hosts, origins: vec!["https://app.org".to_owned()], ..Access::default() });
    for (headers, expected) in [
        (&[("host", "book.org")][..], StatusCode::OK),
        (&[("host", "[::1]:8080")], StatusCode::OK),
        (&[("host", "evil.org")], StatusCode::FORBIDDEN),
        (&[("host", "book.org"), ("origin", "https://book.org")], StatusCode::OK),
        (&[("host", "[::1]:8080"), ("origin", "http://[::1]:3000")], StatusCode::OK),
        (&[("host", "book.org"), ("origin", "https://app.org")], StatusCode::OK),
        (&[("host", "book.org"), ("origin", "https://evil.org")], StatusCode::FORBIDDEN),
    ] {
        assert_eq!(site.post(headers, INITIALIZE).await, expected, "{headers:?}");
    }
}
