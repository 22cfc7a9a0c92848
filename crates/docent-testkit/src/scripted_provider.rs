//! A test double of Cohere, OpenAI and Ollama as embedders and rerankers, over a real socket.
//!
//! Every request is validated against the provider's published format; an invalid one is rejected the way the
//! provider would. Vectors are derived from the words of a text, so that whole books can be embedded and
//! searched. It can also be told to fail in various ways.
//!
//! Invariant: it never stores a key; only the scheme of an `Authorization` header is recorded.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use super::http;
pub use super::scripted_model::Request;

mod formats;

/// How the provider responds to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Responds normally.
    Answer,
    /// Responds normally after this many milliseconds.
    Late(u64),
    /// Responds with a status other than 200 and an error that quotes the key and the question.
    Status(u16),
    /// The same, with a `Retry-After` header in seconds.
    Busy(u16, u64),
    /// Announces the full length and closes the connection in the middle of the response.
    Truncated,
    /// Closes the connection without a response.
    Closed,
    /// Sends half of the JSON as if it were complete.
    HalfJson,
    /// Returns vectors of this width.
    Wide(usize),
    /// Returns one vector too few.
    TooFew,
    /// Puts a null into the last vector.
    Null,
    /// Returns a last vector of all zeros.
    Zeros,
    /// Gives documents with this word a high score, others a low one.
    Prefer(&'static str),
}

/// The server; it stops when dropped.
pub struct ScriptedProvider {
    address: SocketAddr,
    stage: Arc<Stage>,
    server: JoinHandle<()>,
}

struct Stage {
    script: Vec<Act>,
    then: Act,
    width: usize,
    requests: Mutex<Vec<(String, Request)>>,
    violations: Mutex<Vec<String>>,
}

impl ScriptedProvider {
    /// Starts on a free port: each call gets the next act of the script, later ones `then`. Vectors have
    /// `width` dimensions unless the request asks for another width.
    pub async fn start(width: usize, script: Vec<Act>, then: Act) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (requests, violations) = (Mutex::default(), Mutex::default());
        let stage = Arc::new(Stage { script, then, width, requests, violations });
        let server = tokio::spawn(serve(listener, stage.clone()));
        Ok(Self { address, stage, server })
    }

    /// The URL, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The calls so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.stage.requests().iter().map(|(_, request)| request.clone()).collect()
    }

    /// The paths of the calls so far.
    pub fn paths(&self) -> Vec<String> {
        self.stage.requests().iter().map(|(path, _)| path.clone()).collect()
    }

    /// How requests violated the published formats.
    pub fn violations(&self) -> Vec<String> {
        self.stage.violations().clone()
    }
}

impl Drop for ScriptedProvider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Stage {
    fn requests(&self) -> MutexGuard<'_, Vec<(String, Request)>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn violations(&self) -> MutexGuard<'_, Vec<String>> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, path: &str, request: Request) -> Act {
        let mut requests = self.requests();
        requests.push((path.to_owned(), request));
        self.script.get(requests.len() - 1).unwrap_or(&self.then).clone()
    }
}

async fn serve(listener: TcpListener, stage: Arc<Stage>) {
    // The set is dropped with this task and aborts its connections.
    let mut connections = JoinSet::new();
    while let Ok((connection, _)) = listener.accept().await {
        let stage = stage.clone();
        connections.spawn(async move { converse(connection, &stage).await });
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(mut connection: TcpStream, stage: &Stage) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let Some(request) = http::read_request(&mut connection).await? else { return Ok(()) };
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let noted = Request { headers: request.headers.clone(), body: body.clone() };
    let act = stage.enter(&request.path, noted);
    let fault = if request.method == "POST" {
        formats::check(&request.path, &request.headers, &body)
    } else {
        Err((405, "only POST is supported".to_owned()))
    };
    if let Err((status, violation)) = fault {
        stage.violations().push(violation);
        return refuse(&mut connection, status, &[], &request.path, &body).await;
    }
    match act {
        Act::Closed => connection.shutdown().await,
        Act::Status(code) => refuse(&mut connection, code, &[], &request.path, &body).await,
        Act::Busy(code, after) => {
            let wish = [("retry-after", after.to_string())];
            refuse(&mut connection, code, &wish, &request.path, &body).await
        }
        Act::Truncated => {
            let answer = formats::answer(&request.path, &body, stage.width, &Act::Answer).to_string();
            let length = answer.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
            );
            connection.write_all(head.as_bytes()).await?;
            connection.write_all(&answer.as_bytes()[..length / 2]).await?;
            connection.shutdown().await
        }
        act => {
            if let Act::Late(millis) = act {
                tokio::time::sleep(Duration::from_millis(millis)).await;
            }
            let mut answer = formats::answer(&request.path, &body, stage.width, &act).to_string();
            if act == Act::HalfJson {
                answer.truncate(answer.len() / 2);
            }
            http::write_whole(&mut connection, 200, &[], "application/json", &answer).await
        }
    }
}

/// An error in the provider's format. It quotes secrets that our errors must not repeat.
async fn refuse(
    connection: &mut TcpStream,
    code: u16,
    headers: &[(&str, String)],
    path: &str,
    body: &Value,
) -> io::Result<()> {
    let message = format!("Scripted error {code} for the key sk-secret and {body}");
    let error = match path {
        "/v1/embeddings" => {
            json!({"error": {"message": message, "type": "scripted", "param": null, "code": null}})
        }
        "/api/embed" => json!({"error": message}),
        _ => json!({"id": "scripted", "message": message}),
    };
    http::write_whole(connection, code, headers, "application/json", &error.to_string()).await
}
