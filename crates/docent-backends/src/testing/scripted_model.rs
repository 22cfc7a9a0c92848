//! A model that says what a script tells it, over OpenAI's protocol and a real socket.
//!
//! It also does what real servers do on bad days: stalls, cuts the line, sends nonsense or
//! far too much. It is written on bare TCP because a proper server would not misbehave.
//!
//! Invariant: it never keeps a key; of an `Authorization` header only the kind is recorded.

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

/// What the model does when it is called.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Says this, in small pieces.
    Text(String),
    /// Calls these tools, all in one message: names and arguments.
    ToolCalls(Vec<(String, String)>),
    /// Answers with a status other than 200.
    Status {
        /// The status.
        code: u16,
        /// Seconds for the `Retry-After` header.
        #[serde(default)]
        retry_after: Option<u64>,
        /// The body; an empty one is sent as an error in OpenAI's form.
        #[serde(default)]
        body: String,
    },
    /// Says this, then nothing more, and keeps the line open.
    Stall {
        /// What it says first.
        after: String,
    },
    /// Says this, then cuts the line in the middle of a chunk.
    Cut {
        /// What it says first.
        after: String,
    },
    /// Says this as fast as a real model would.
    Paced {
        /// What it says.
        text: String,
        /// Milliseconds until the first word.
        first_ms: u64,
        /// Words a second after that.
        per_second: u32,
    },
    /// Sends what looks like JSON and is none.
    InvalidJson,
    /// Says this many bytes.
    Huge(usize),
    /// Ends without saying anything.
    Empty,
    /// Repeats the last question.
    Echo,
    /// Sends this body, whatever it is.
    Raw(String),
    /// Decides when it sees the request's body.
    #[serde(skip)]
    With(Arc<Decision>),
}

/// How [`Reply::With`] makes up its mind.
pub type Decision = dyn Fn(&Value) -> Reply + Send + Sync;

impl Reply {
    /// Says this, in small pieces.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Calls one tool.
    pub fn tool_call(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::ToolCalls(vec![(name.into(), arguments.into())])
    }

    /// Answers with a status and an error in OpenAI's form.
    pub fn status(code: u16) -> Self {
        Self::Status { code, retry_after: None, body: String::new() }
    }

    /// Decides when it sees the request's body.
    pub fn with(decide: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::With(Arc::new(decide))
    }
}

/// A call the model got.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Lower-case names; the value of `authorization` is cut to its kind: `Bearer …`.
    pub headers: BTreeMap<String, String>,
    /// The body, or null if it was no JSON.
    pub body: Value,
}

/// The server. It stops when dropped.
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
    /// Starts on a free port. Each call gets the next reply of the script, then always the
    /// last one; an empty script echoes.
    pub async fn start(script: Vec<Reply>) -> io::Result<Self> {
        Self::start_at(0, script).await
    }

    /// Starts on a given port of this machine.
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

    /// How many calls there were.
    pub fn count(&self) -> usize {
        self.stage.requests().len()
    }

    /// Waits until some caller has gone away in the middle of an answer.
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

    /// Notes the call and finds the reply to it.
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
    // Dropped with this task, the set takes its connections along.
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

/// One request, one answer; an error means that the caller went away.
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

    /// The whole answer, as far as it came, to a request written by hand.
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
    async fn a_script_in_json_is_played_in_order_and_its_end_repeated() {
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
    async fn it_lists_its_model_and_knows_no_other_route() {
        let model = ScriptedModel::start(vec![]).await.unwrap();
        assert_eq!(body_of(&send(&model, "GET /v1/models", "").await)["data"][0]["id"], "scripted");
        assert!(send(&model, "GET /", "").await.starts_with("HTTP/1.1 404 "));
        assert_eq!(model.count(), 0);
    }
}
