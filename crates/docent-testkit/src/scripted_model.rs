//! A test double of a model: it replies according to a script, over the OpenAI API and a real socket.
//!
//! It also reproduces failures of real servers: it stalls, closes the connection, sends invalid data or far
//! too much. It is written directly on TCP because a proper HTTP server would not misbehave.
//!
//! Invariant: it never stores a key; only the scheme of an `Authorization` header is recorded.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::http;

mod speech;

/// How the model responds to a call.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Sends this text in small pieces.
    Text(String),
    /// Calls these tools, all in one message: names and arguments.
    ToolCalls(Vec<(String, String)>),
    /// Responds with a status other than 200.
    Status {
        /// The status.
        code: u16,
        /// Seconds for the `Retry-After` header.
        #[serde(default)]
        retry_after: Option<u64>,
        /// The body; if empty, an error in OpenAI's format is sent.
        #[serde(default)]
        body: String,
    },
    /// Sends this text, then stalls and keeps the connection open.
    Stall {
        /// The text sent first.
        after: String,
    },
    /// Sends this text, then closes the connection in the middle of a chunk.
    Cut {
        /// The text sent first.
        after: String,
    },
    /// Sends this text at the pace of a real model.
    Paced {
        /// The text.
        text: String,
        /// Milliseconds until the first word.
        first_ms: u64,
        /// Words per second after that.
        per_second: u32,
    },
    /// Sends something that looks like JSON but is invalid.
    InvalidJson,
    /// Sends this many bytes of text.
    Huge(usize),
    /// Ends without any text.
    Empty,
    /// Repeats the last question.
    Echo,
    /// Sends this raw body.
    Raw(String),
    /// Chooses the reply based on the request's body.
    #[serde(skip)]
    With(Arc<Decision>),
}

/// The function that chooses the reply for [`Reply::With`].
pub type Decision = dyn Fn(&Value) -> Reply + Send + Sync;

impl Reply {
    /// Sends this text in small pieces.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Calls one tool.
    pub fn tool_call(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::ToolCalls(vec![(name.into(), arguments.into())])
    }

    /// Responds with a status and an error in OpenAI's format.
    pub fn status(code: u16) -> Self {
        Self::Status { code, retry_after: None, body: String::new() }
    }

    /// Chooses the reply based on the request's body.
    pub fn with(decide: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::With(Arc::new(decide))
    }
}

/// A call that the model received.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Names are lower-case; the value of `authorization` is shortened to its scheme: `Bearer …`.
    pub headers: BTreeMap<String, String>,
    /// The body, or null if it was not JSON.
    pub body: Value,
}

/// The server; it stops when dropped.
pub struct ScriptedModel {
    address: SocketAddr,
    stage: Arc<Stage>,
    server: JoinHandle<()>,
}

struct Stage {
    script: Vec<Reply>,
    requests: Mutex<Vec<Request>>,
    hangups: watch::Sender<usize>,
}

impl ScriptedModel {
    /// Starts on a free port. Each call gets the next reply of the script; after that, the last one is
    /// repeated. An empty script echoes.
    pub async fn start(script: Vec<Reply>) -> io::Result<Self> {
        Self::start_at(0, script).await
    }

    /// Starts on a given local port.
    pub async fn start_at(port: u16, script: Vec<Reply>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?;
        let stage =
            Arc::new(Stage { script, requests: Mutex::new(Vec::new()), hangups: watch::Sender::new(0) });
        let server = tokio::spawn(serve(listener, stage.clone()));
        Ok(Self { address, stage, server })
    }

    /// The base URL, ending in `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The calls so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.stage.requests().clone()
    }

    /// The number of calls so far.
    pub fn count(&self) -> usize {
        self.stage.requests().len()
    }

    /// Waits until a client has disconnected in the middle of a response.
    pub async fn hangup(&self) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.stage.hangups.subscribe().wait_for(|hangups| *hangups > 0).await;
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Stage {
    fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the call and returns the reply for it.
    fn enter(&self, request: Request) -> Reply {
        let body = request.body.clone();
        let number = {
            let mut requests = self.requests();
            requests.push(request);
            requests.len() - 1
        };
        let mut reply = self.script.get(number).or(self.script.last()).cloned().unwrap_or(Reply::Echo);
        while let Reply::With(decide) = reply {
            reply = decide(&body);
        }
        reply
    }
}

async fn serve(listener: TcpListener, stage: Arc<Stage>) {
    // The set is dropped with this task and aborts its connections.
    let mut connections = JoinSet::new();
    while let Ok((connection, _)) = listener.accept().await {
        let stage = stage.clone();
        connections.spawn(async move {
            if converse(connection, &stage).await.is_err() {
                stage.hangups.send_modify(|hangups| *hangups += 1);
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Handles one request; an error means that the client disconnected.
async fn converse(mut connection: TcpStream, stage: &Stage) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let Some(request) = http::read_request(&mut connection).await? else { return Ok(()) };
    match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/v1/chat/completions") => {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let reply = stage.enter(Request { headers: request.headers, body: body.clone() });
            speech::perform(&mut connection, reply, &body).await
        }
        ("GET", "/v1/models") => {
            let model = json!({"id": "scripted", "object": "model", "created": 0, "owned_by": "docent"});
            let list = json!({"object": "list", "data": [model]}).to_string();
            http::write_whole(&mut connection, 200, &[], "application/json", &list).await
        }
        _ => {
            let body = speech::error_body(404);
            http::write_whole(&mut connection, 404, &[], "application/json", &body).await
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Sends a handwritten request and returns the response as far as it was received.
    async fn send(model: &ScriptedModel, head: &str, body: &str) -> String {
        let mut connection = TcpStream::connect(model.address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\nAuthorization: Bearer secret\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    fn body_of(answer: &str) -> Value {
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    #[tokio::test]
    async fn a_json_script_is_replayed_in_order_and_its_last_reply_repeated() {
        let script = r#"[
            {"text": "A node."}, {"tool_calls": [["search", "{}"]]}, {"status": {"code": 429, "retry_after": 3}},
            {"cut": {"after": "So"}}, "empty", "echo"
        ]"#;
        let model = ScriptedModel::start(serde_json::from_str(script).unwrap()).await.unwrap();
        let request = json!({"messages": [{"role": "user", "content": "Why?"}]}).to_string();
        let ask = || send(&model, "POST /v1/chat/completions?version=1", &request);
        let said = |answer: &str| body_of(answer)["choices"][0]["message"]["content"].clone();
        assert_eq!(said(&ask().await), "A node.");
        assert_eq!(
            body_of(&ask().await)["choices"][0]["message"]["tool_calls"][0]["function"]["name"],
            "search"
        );
        let busy = ask().await;
        assert!(busy.starts_with("HTTP/1.1 429 ") && busy.contains("retry-after: 3\r\n"), "{busy}");
        assert!(!ask().await.ends_with("0\r\n\r\n"));
        assert_eq!(said(&ask().await), "");
        assert_eq!(said(&ask().await), "You asked: Why?");
        assert_eq!(said(&ask().await), "You asked: Why?");
        assert_eq!(model.count(), 7);
        assert_eq!(model.requests()[0].headers["authorization"], "Bearer …");
    }

    #[tokio::test]
    async fn it_lists_its_model_and_has_no_other_routes() {
        let model = ScriptedModel::start(vec![]).await.unwrap();
        assert_eq!(body_of(&send(&model, "GET /v1/models", "").await)["data"][0]["id"], "scripted");
        assert!(send(&model, "GET /", "").await.starts_with("HTTP/1.1 404 "));
        assert_eq!(model.count(), 0);
    }
}
