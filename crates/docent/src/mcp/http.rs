//! The server at an address: streamable HTTP with sessions.
//!
//! Invariant: only `initialize` opens a session, and only so many are open. The SDK (rmcp 1.8)
//! opens one for any request without a session's id and forgets to close those it refuses.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Json, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::{Server, Shelf};

/// The longest message of a client, in bytes; the longest question takes a few thousand.
const LONGEST_MESSAGE: usize = 256 * 1024;

/// How long a session may be silent: a reader thinks for longer than the SDK's five minutes.
const LONGEST_SILENCE: Duration = Duration::from_secs(30 * 60);

const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";

/// Who may speak to the server.
#[derive(Debug, Clone)]
pub struct Access {
    /// Names the server is reached by, with or without a port; none allows any. It keeps pages
    /// of strangers from reaching a server on the reader's machine (DNS rebinding).
    pub hosts: Vec<String>,
    /// Origins whose pages may call it, with their scheme, besides those of `hosts`. With
    /// neither, any may; callers that are no browsers send no origin.
    pub origins: Vec<String>,
    /// How many sessions may be open.
    pub most_sessions: usize,
}

impl Default for Access {
    /// For a server on the reader's own machine.
    fn default() -> Self {
        let hosts = ["localhost", "127.0.0.1", "::1"];
        Self { hosts: hosts.map(str::to_owned).to_vec(), origins: Vec::new(), most_sessions: 1000 }
    }
}

impl Access {
    /// The origins of the hosts, then the others.
    fn all_origins(&self) -> Vec<String> {
        let own = self.hosts.iter().flat_map(|host| {
            let bare_v6 = host.parse::<Ipv6Addr>().is_ok();
            let host = if bare_v6 { format!("[{host}]") } else { host.clone() };
            [format!("http://{host}"), format!("https://{host}")]
        });
        own.chain(self.origins.iter().cloned()).collect()
    }
}

/// The server, for `nest_service("/mcp", …)`; `nest` would not find `/mcp/`.
///
/// When `shutdown` completes, open streams end, so that a graceful shutdown need not wait for
/// clients that listen for ever.
pub fn service(shelf: Shelf, access: Access, shutdown: impl Future<Output = ()> + Send + 'static) -> Router {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(LONGEST_SILENCE);
    with_sessions(shelf, access, shutdown, Arc::new(sessions))
}

/// The same with sessions that can be looked at.
pub(super) fn with_sessions(
    shelf: Shelf,
    access: Access,
    shutdown: impl Future<Output = ()> + Send + 'static,
    sessions: Arc<LocalSessionManager>,
) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(access.all_origins())
        .with_allowed_hosts(access.hosts);
    let stop = config.cancellation_token.clone();
    tokio::spawn(async move {
        shutdown.await;
        stop.cancel();
    });
    let serve = StreamableHttpService::new(move || Ok(Server(shelf.clone())), sessions.clone(), config);
    let door = Arc::new(Door { sessions, most_sessions: access.most_sessions });
    Router::new().fallback_service(serve).layer(from_fn_with_state(door, enter))
}

struct Door {
    sessions: Arc<LocalSessionManager>,
    most_sessions: usize,
}

async fn enter(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LONGEST_MESSAGE).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    if parts.method == Method::POST && !parts.headers.contains_key(SESSION_HEADER) {
        if let Err(refusal) = door.open(&body).await {
            return refusal;
        }
        // The body of `initialize` names the version; a header that differs would be refused
        // after the session was opened.
        parts.headers.remove(VERSION_HEADER);
    }
    let leaves = parts.method == Method::DELETE;
    let mut response = next.run(Request::from_parts(parts, Body::from(body))).await;
    // The session is gone, not about to go; the Python client complains of anything else.
    if leaves && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

impl Door {
    /// Whether this message may open a session.
    async fn open(&self, body: &[u8]) -> Result<(), Response> {
        let id = match serde_json::from_slice(body) {
            Ok(ClientJsonRpcMessage::Request(request)) => match request.request {
                ClientRequest::InitializeRequest(_) => return self.room().await,
                _ => Some(request.id),
            },
            _ => None,
        };
        let error = ErrorData::invalid_request("a session begins with initialize", None);
        Err((StatusCode::BAD_REQUEST, Json(ServerJsonRpcMessage::error(error, id))).into_response())
    }

    async fn room(&self) -> Result<(), Response> {
        if self.sessions.sessions.read().await.len() < self.most_sessions {
            return Ok(());
        }
        let retry = [(header::RETRY_AFTER, "60")];
        Err((StatusCode::SERVICE_UNAVAILABLE, retry, "too many sessions are open").into_response())
    }
}
