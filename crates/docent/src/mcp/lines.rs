//! The stdio transport: one message per line.
//!
//! It replaces the SDK's own transport (rmcp 1.8), which has two problems. It loses a partly read line when a
//! response becomes ready before the rest arrives, so a client that sends several requests at once loses
//! some. And it ends the server if the first request is not `initialize`, although clients of the 2026
//! protocol begin with `server/discover`.
//!
//! Invariant: `receive` is cancel-safe: dropping it and calling it again loses nothing.

use std::io;
use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, ServerJsonRpcMessage};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Split};
use tokio::sync::Mutex;

/// Reads messages from `R` and writes messages to `W`.
pub struct Lines<R, W> {
    input: Split<BufReader<R>>,
    output: Arc<Mutex<W>>,
    greeted: bool,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    /// A transport that has not received any messages yet.
    pub fn new(input: R, output: W) -> Self {
        let output = Arc::new(Mutex::new(output));
        Self { input: BufReader::new(input).split(b'\n'), output, greeted: false }
    }

    /// The message to pass on to the server; other messages are answered here.
    fn heard(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        let message = match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
            Ok(message) => message,
            Err(error) => {
                tracing::debug!(%error, "received a line that is not a valid message");
                self.refuse(ServerJsonRpcMessage::error(ErrorData::parse_error("Parse error", None), None));
                return None;
            }
        };
        match &message {
            _ if self.greeted => Some(message),
            ClientJsonRpcMessage::Request(request) => match &request.request {
                ClientRequest::InitializeRequest(_) => {
                    self.greeted = true;
                    Some(message)
                }
                ClientRequest::PingRequest(_) => Some(message),
                _ => {
                    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "send `initialize` first", None);
                    self.refuse(ServerJsonRpcMessage::error(error, Some(request.id.clone())));
                    None
                }
            },
            _ => None,
        }
    }

    /// Sends the response from its own task, because `receive` may be dropped in the middle of a line.
    fn refuse(&mut self, answer: ServerJsonRpcMessage) {
        tokio::spawn(self.send(answer));
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer>
    for Lines<R, W>
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut output = output.lock().await;
            output.write_all(&line).await?;
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            match self.input.next_segment().await {
                Ok(Some(line)) if line.trim_ascii().is_empty() => {}
                Ok(Some(line)) => {
                    if let Some(message) = self.heard(&line) {
                        return Some(message);
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::error!(%error, "failed to read from the client");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.shutdown().await
    }
}
