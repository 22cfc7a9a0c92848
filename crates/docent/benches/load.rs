//! Benchmark of the server under load: `cargo bench -p docent --bench load` (set `DOCENT_BENCH_SECONDS` for
//! the duration, `DOCENT_BENCH_USERS=1,50,500` for the number of concurrent users).
//!
//! Users ask the real binary, which uses a scripted model on a socket: 300 ms to the first word, 50 words per
//! second. The overhead of Docent is the time of a turn minus the time of the model.
//!
//! At the end, a greedy client uses each cheap route on 64 connections, while a modest client at another
//! address searches ten times per second. The benchmark reports the modest client's p95, alone and next to
//! the greedy client, and what the greedy client got. `DOCENT_BENCH_ROUTES=search,read` selects routes, and
//! `DOCENT_BENCH_USERS=` (empty) skips the first part.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use docent_testkit::scripted_model::{Reply, ScriptedModel};
use serde_json::{Value, json};

/// Two sentences of the sample book, paraphrased.
const ANSWER: &str = "A node is a participant in the ROS 2 graph that does one job and communicates with other \
                      nodes [1]. The ROS 2 graph is the network of the running nodes and of the connections \
                      between them [1].";
const FIRST_MS: u64 = 300;
const PER_SECOND: u32 = 50;
const STEPS: [&str; 4] = ["embedding", "retrieval", "generation", "response"];

struct Server {
    url: String,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(model: Option<&str>) -> (Server, Duration) {
    start_with(
        model,
        &[("DOCENT_SERVE__REQUESTS_PER_MINUTE", "0"), ("DOCENT_SERVE__CONNECTIONS_PER_ADDRESS", "0")],
    )
}

fn start_with(model: Option<&str>, variables: &[(&str, &str)]) -> (Server, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let mut command = Command::new(program());
    command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path()).env_clear();
    command.env("DOCENT_DATA_DIR", folder.path()).envs(variables.iter().copied());
    command.env("DOCENT_AGENT__CACHED_ANSWERS", "0").env("RUST_LOG", "error");
    if let Some(model) = model {
        command.env("OPENAI_BASE_URL", model).env("OPENAI_API_KEY", "sk-scripted");
    }
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("serving on ")).unwrap();
    let ready = begun.elapsed();
    std::thread::spawn(move || lines.for_each(drop));
    let url = line.trim_start_matches("serving on ").split('/').take(3).collect::<Vec<_>>().join("/");
    (Server { url, child, _folder: folder }, ready)
}

/// Resident memory in megabytes.
fn resident(child: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

fn quantile(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(((times.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(f64::NAN)
}

#[derive(Default)]
struct Outcomes {
    added: Vec<f64>,
    /// Measured by the server: embedding, retrieval, generation, the whole turn.
    steps: [Vec<f64>; STEPS.len()],
    refused: Vec<f64>,
    errors: Vec<String>,
}

/// The client of a user, with an address of its own: limits are per address.
fn user_client(user: usize) -> reqwest::Client {
    let address = std::net::Ipv4Addr::new(127, 0, 1, u8::try_from(user % 250).unwrap_or_default() + 1);
    reqwest::Client::builder().local_address(std::net::IpAddr::from(address)).build().unwrap()
}

/// A question in one of a thousand wordings. A number in it would be a detail that the book does not mention.
fn question(number: usize) -> String {
    const BEGINNINGS: [&str; 10] = [
        "",
        "Hello, ",
        "So ",
        "Well, ",
        "Sorry, ",
        "One more: ",
        "Now ",
        "And ",
        "Just to be sure: ",
        "Please: ",
    ];
    const QUESTIONS: [&str; 10] = [
        "what is a node",
        "what is a ROS 2 node",
        "what is meant by a node",
        "what does node mean",
        "tell me what a node is",
        "explain what a ROS 2 node is",
        "can you explain what a node is",
        "what exactly is a ROS 2 node",
        "how would you describe a node",
        "I want to know what a node is",
    ];
    const ENDINGS: [&str; 10] = [
        "?",
        " please?",
        ", in short?",
        ", in simple words?",
        " again?",
        ", for a beginner?",
        " really?",
        " here?",
        ", briefly?",
        " then?",
    ];
    let part = |parts: [&'static str; 10], place: usize| parts[number / place % 10];
    [part(BEGINNINGS, 1), part(QUESTIONS, 10), part(ENDINGS, 100)].concat()
}

/// `count` users, each asking one question after the other.
async fn users(url: &str, count: usize, time: Duration) -> Outcomes {
    let words = ANSWER.split_inclusive(' ').count() as f64;
    let models_own = FIRST_MS as f64 + (words - 1.0) * 1000.0 / f64::from(PER_SECOND);
    let number = Arc::new(AtomicUsize::new(0));
    let end = Instant::now() + time;
    let users: Vec<_> = (0..count)
        .map(|user| {
            let (client, url, number) = (user_client(user), format!("{url}/api/v1/ask"), number.clone());
            tokio::spawn(async move {
                let mut outcomes = Outcomes::default();
                while Instant::now() < end {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    let query = question(number);
                    let begun = Instant::now();
                    let sent = client
                        .post(&url)
                        .json(&json!({"query": query, "include_sources": false}))
                        .send()
                        .await;
                    let answered = match sent {
                        Ok(response) => {
                            let status = response.status().as_u16();
                            response.json::<Value>().await.map(|body| (status, body))
                        }
                        Err(error) => Err(error),
                    };
                    let took = begun.elapsed().as_secs_f64() * 1000.0;
                    match answered {
                        Ok((200, body)) if body["degraded"] == false => {
                            outcomes.added.push(took - models_own);
                            for (times, step) in outcomes.steps.iter_mut().zip(STEPS) {
                                let time = &body["metadata"][format!("{step}_time_ms")];
                                times.push(time.as_f64().unwrap_or(f64::NAN));
                            }
                        }
                        Ok((503, body)) if body["error"] == "overloaded" => {
                            outcomes.refused.push(took);
                            tokio::time::sleep(Duration::from_secs(1)).await;
                        }
                        Ok((status, body)) => outcomes.errors.push(format!("{status}: {body}")),
                        Err(error) => outcomes.errors.push(error.to_string()),
                    }
                }
                outcomes
            })
        })
        .collect();
    let mut all = Outcomes::default();
    for user in users {
        let outcomes = user.await.unwrap();
        all.added.extend(outcomes.added);
        for (all, times) in all.steps.iter_mut().zip(outcomes.steps) {
            all.extend(times);
        }
        all.refused.extend(outcomes.refused);
        all.errors.extend(outcomes.errors);
    }
    all
}

async fn searches(url: &str, clients: usize, time: Duration) -> (f64, Vec<f64>) {
    let number = Arc::new(AtomicUsize::new(0));
    let (begun, end) = (Instant::now(), Instant::now() + time);
    let searching: Vec<_> = (0..clients)
        .map(|user| {
            let (client, url, number) = (user_client(user), format!("{url}/api/v1/search"), number.clone());
            tokio::spawn(async move {
                let mut times = Vec::new();
                while Instant::now() < end {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    let query = format!("How does robot {number} publish commands?");
                    let begun = Instant::now();
                    let response = client.post(&url).json(&json!({ "query": query })).send().await.unwrap();
                    assert_eq!(response.status(), 200);
                    response.bytes().await.unwrap();
                    times.push(begun.elapsed().as_secs_f64() * 1000.0);
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for client in searching {
        times.extend(client.await.unwrap());
    }
    (times.len() as f64 / begun.elapsed().as_secs_f64(), times)
}

/// Number of connections of the greedy client.
const GREEDY: usize = 64;

/// What a greedy client sends, again and again.
struct Greedy {
    name: &'static str,
    method: reqwest::Method,
    path: &'static str,
    /// Sent as `Mcp-Session-Id`.
    session: Option<String>,
    /// The body of each request, by its number; null for none.
    body: Box<dyn Fn(usize) -> Value + Send + Sync>,
}

/// Responses of a greedy client, by status.
type Statuses = std::collections::BTreeMap<u16, usize>;

impl Greedy {
    async fn send(&self, client: &reqwest::Client, url: &str, number: usize) -> Option<u16> {
        let mut request = client.request(self.method.clone(), format!("{url}{}", self.path));
        request = request.header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let body = (self.body)(number);
        if !body.is_null() {
            request = request.json(&body);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        response.bytes().await.ok()?;
        Some(status)
    }
}

/// Latencies of a modest client's searches while a greedy one sends as fast as it can, and what it got.
async fn beside(url: &str, time: Duration, greedy: Option<Greedy>) -> (Vec<f64>, Statuses) {
    let end = Instant::now() + time;
    let hungry = reqwest::Client::builder().pool_max_idle_per_host(GREEDY).build().unwrap();
    let (greedy, number) = (greedy.map(Arc::new), Arc::new(AtomicUsize::new(0)));
    let eating: Vec<_> = (0..if greedy.is_some() { GREEDY } else { 0 })
        .map(|_| {
            let (client, greedy, url, number) =
                (hungry.clone(), greedy.clone(), url.to_owned(), number.clone());
            tokio::spawn(async move {
                let mut statuses = Statuses::new();
                let Some(greedy) = greedy else { return statuses };
                while Instant::now() < end {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    if let Some(status) = greedy.send(&client, &url, number).await {
                        *statuses.entry(status).or_default() += 1;
                    }
                }
                statuses
            })
        })
        .collect();
    // The rate limit is per address, so the modest client gets its own.
    let modest =
        reqwest::Client::builder().local_address(std::net::IpAddr::from([127, 0, 0, 2])).build().unwrap();
    let mut times = Vec::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    while Instant::now() < end {
        ticks.tick().await;
        let query = format!("How does robot {} publish commands?", times.len());
        let begun = Instant::now();
        let response = modest
            .post(format!("{url}/api/v1/search"))
            .json(&json!({ "query": query }))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        response.bytes().await.unwrap();
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    let mut statuses = Statuses::new();
    for task in eating {
        for (status, count) in task.await.unwrap() {
            *statuses.entry(status).or_default() += count;
        }
    }
    (times, statuses)
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"greedy","version":"1"}}}"#;

/// Opens a session of the greedy client at `/mcp`.
async fn mcp_session(url: &str) -> String {
    let client = reqwest::Client::new();
    let post = || {
        let request =
            client.post(format!("{url}/mcp")).header("accept", "application/json, text/event-stream");
        request.header("content-type", "application/json")
    };
    // The rate limit may still be in effect from the previous route.
    let session = loop {
        let begun = post().body(INITIALIZE).send().await.unwrap();
        if let Some(session) = begun.headers().get("mcp-session-id") {
            break session.to_str().unwrap().to_owned();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    post().header("mcp-session-id", &session).body(initialized).send().await.unwrap();
    session
}

/// Routes that look cheap. Searches are all different, so that no cache answers them.
async fn cheap_routes(url: &str) -> Vec<Greedy> {
    use reqwest::Method;
    fn greedy(
        name: &'static str,
        method: Method,
        path: &'static str,
        body: impl Fn(usize) -> Value + Send + Sync + 'static,
    ) -> Greedy {
        Greedy { name, method, path, session: None, body: Box::new(body) }
    }
    fn call(number: usize, method: &str, params: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params })
    }
    fn tool(number: usize, name: &str, arguments: Value) -> Value {
        call(number, "tools/call", json!({ "name": name, "arguments": arguments }))
    }
    let selection = "a ".repeat(31_000);
    let initialize: Value = serde_json::from_str(INITIALIZE).unwrap();
    let mut routes = vec![
        greedy("suggestions", Method::GET, "/api/v1/suggestions?limit=20", |_| Value::Null),
        greedy(
            "search",
            Method::POST,
            "/api/v1/search",
            |number| json!({ "query": format!("Where is robot {number}?"), "top_k": 100 }),
        ),
        greedy("read", Method::GET, "/read/ros2/nodes.md", |_| Value::Null),
        greedy("status", Method::GET, "/api/v1/status", |_| Value::Null),
        greedy(
            "selection",
            Method::POST,
            "/api/v1/ask",
            move |number| json!({ "query": format!("What is node {number}?"), "selection": { "text": selection } }),
        ),
        greedy("mcp initialize", Method::POST, "/mcp", move |_| initialize.clone()),
        greedy("mcp search_book", Method::POST, "/mcp", |number| {
            tool(number, "search_book", json!({ "query": format!("Where is robot {number}?"), "top_k": 20 }))
        }),
        greedy("mcp read_page", Method::POST, "/mcp", |number| {
            tool(number, "read_page", json!({ "page": "ros2/nodes.md" }))
        }),
        greedy("mcp resources/list", Method::POST, "/mcp", |number| {
            call(number, "resources/list", json!({}))
        }),
    ];
    for route in routes.iter_mut().filter(|route| route.path == "/mcp" && route.name != "mcp initialize") {
        route.session = Some(mcp_session(url).await);
    }
    routes
}

#[tokio::main]
async fn main() {
    let seconds = std::env::var("DOCENT_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let time = Duration::from_secs(seconds);
    let reply = Reply::Paced { text: ANSWER.to_owned(), first_ms: FIRST_MS, per_second: PER_SECOND };
    let model = ScriptedModel::start(vec![reply]).await.unwrap();
    let (server, ready) = start(Some(&model.url()));
    println!(
        "ready after {:.0} ms, {:.0} MB resident",
        ready.as_secs_f64() * 1000.0,
        resident(&server.child)
    );
    let counts = std::env::var("DOCENT_BENCH_USERS").unwrap_or("1,50,500".to_owned());
    for count in counts.split(',').filter_map(|count| count.parse().ok()) {
        let mut outcomes = users(&server.url, count, time).await;
        println!(
            "{count} users, {seconds} s: {} answered, overhead p50 {:.0} ms, p95 {:.0} ms; {} rejected, p50 {:.1} ms, p95 {:.1} ms; {} errors; {:.0} MB resident",
            outcomes.added.len(),
            quantile(&mut outcomes.added, 0.5),
            quantile(&mut outcomes.added, 0.95),
            outcomes.refused.len(),
            quantile(&mut outcomes.refused, 0.5),
            quantile(&mut outcomes.refused, 0.95),
            outcomes.errors.len(),
            resident(&server.child),
        );
        for (times, step) in outcomes.steps.iter_mut().zip(STEPS) {
            println!("  {step} p50 {:.1} ms, p95 {:.1} ms", quantile(times, 0.5), quantile(times, 0.95));
        }
        if let Some(error) = outcomes.errors.first() {
            println!("  first error: {error}");
        }
    }
    drop(server);
    let (server, _) = start(None);
    for clients in [1, 50] {
        let (rate, mut times) = searches(&server.url, clients, Duration::from_secs(seconds.min(20))).await;
        println!(
            "{clients} clients searching: {rate:.0}/s, p50 {:.1} ms, p95 {:.1} ms",
            quantile(&mut times, 0.5),
            quantile(&mut times, 0.95)
        );
    }
    drop(server);
    // The modest client stays within the limit that stops the greedy one.
    let (server, _) = start_with(None, &[("DOCENT_SERVE__REQUESTS_PER_MINUTE", "900")]);
    let time = Duration::from_secs(seconds.min(20));
    let (mut alone, _) = beside(&server.url, time, None).await;
    let alone = quantile(&mut alone, 0.95);
    println!("a modest client alone: p95 {alone:.1} ms");
    let only = std::env::var("DOCENT_BENCH_ROUTES").ok();
    for greedy in cheap_routes(&server.url).await {
        let name = greedy.name;
        if only.as_ref().is_some_and(|only| !only.split(',').any(|wanted| wanted == name)) {
            continue;
        }
        let (mut times, statuses) = beside(&server.url, time, Some(greedy)).await;
        let p95 = quantile(&mut times, 0.95);
        let change = (p95 / alone - 1.0) * 100.0;
        println!("next to a greedy client on {name}: p95 {p95:.1} ms, {change:+.0} %; it got {statuses:?}");
    }
}

/// The program to measure: `DOCENT_BENCH_PROGRAM`, such as one built from an earlier commit, or this one.
fn program() -> std::ffi::OsString {
    std::env::var_os("DOCENT_BENCH_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_docent").into())
}
