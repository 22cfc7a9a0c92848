//! The streamable HTTP transport, with sessions.
//!
//! Clients of protocol 2026-07-28 and later have no sessions: each of their requests stands alone. Older clients begin
//! a session with `initialize`.
//!
//! Invariant: only `initialize` opens a session, and the number of open sessions is limited, in total and per
//! client.

use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::Mutex;

use super::{Client, Server, Service};

/// Maximum size of a message, in bytes; the longest question takes a few thousand.
pub const LONGEST_MESSAGE: usize = 256 * 1024;

/// How long a session may be idle. The SDK's five minutes are too short for a user who is reading.
const LONGEST_SILENCE: Duration = Duration::from_secs(30 * 60);

const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";

/// Which clients may use the server, and how many sessions they may open.
#[derive(Debug, Clone)]
pub struct Access {
    /// Allowed host names, with or without a port; empty allows any. Prevents malicious pages from reaching a
    /// server on the user's machine (DNS rebinding).
    pub hosts: Vec<String>,
    /// Allowed origins, with their scheme, in addition to those of `hosts`. If both are empty, any origin is
    /// allowed. Clients other than browsers send no origin.
    pub origins: Vec<String>,
    /// Maximum number of open sessions.
    pub most_sessions: usize,
    /// Maximum number of open sessions per client.
    pub most_sessions_of_a_client: usize,
}

impl Default for Access {
    /// Settings for a server on the user's own machine.
    fn default() -> Self {
        let hosts = ["localhost", "127.0.0.1", "::1"];
        Self {
            hosts: hosts.map(str::to_owned).to_vec(),
            origins: Vec::new(),
            most_sessions: 1000,
            most_sessions_of_a_client: 50,
        }
    }
}

impl Access {
    /// The origins of the hosts, followed by the other allowed origins.
    fn all_origins(&self) -> Vec<String> {
        let own = self.hosts.iter().flat_map(|host| {
            let bare_v6 = host.parse::<Ipv6Addr>().is_ok();
            let host = if bare_v6 { format!("[{host}]") } else { host.clone() };
            [format!("http://{host}"), format!("https://{host}")]
        });
        own.chain(self.origins.iter().cloned()).collect()
    }
}

/// The service to mount with `nest_service("/mcp", …)`; with `nest`, `/mcp/` would not be found.
///
/// When `shutdown` completes, open streams end, so that a graceful shutdown does not wait for clients that
/// keep listening.
pub fn service(
    service: Service,
    access: Access,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Router {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(LONGEST_SILENCE);
    with_sessions(service, access, shutdown, Arc::new(sessions))
}

/// Like [`service`], but with a given session manager, so that tests can inspect it.
pub(super) fn with_sessions(
    service: Service,
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
    let serve = StreamableHttpService::new(move || Ok(Server(service.clone())), sessions.clone(), config);
    let gate = Arc::new(Gate {
        sessions,
        most_sessions: access.most_sessions,
        most_of_a_client: access.most_sessions_of_a_client,
        clients: Mutex::default(),
    });
    Router::new().fallback_service(serve).layer(from_fn_with_state(gate, enter))
}

struct Gate {
    sessions: Arc<LocalSessionManager>,
    most_sessions: usize,
    most_of_a_client: usize,
    /// The client of each session.
    clients: Mutex<HashMap<String, Client>>,
}

async fn enter(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LONGEST_MESSAGE).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let client = parts.extensions.get::<Client>().cloned().unwrap_or_default();
    let begins = !parts.headers.contains_key(SESSION_HEADER) && is_initialize(&body);
    if begins {
        if let Err(refusal) = gate.check_sessions(&client).await {
            return refusal;
        }
        // The body names the version; the SDK would reject a different one in the header.
        parts.headers.remove(VERSION_HEADER);
    }
    let leaves = parts.method == Method::DELETE;
    let mut response = next.run(Request::from_parts(parts, Body::from(body))).await;
    if begins && let Some(session) = response.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok()) {
        gate.clients.lock().await.insert(session.to_owned(), client);
    }
    // The session is closed already, and the Python client logs a warning for 202 Accepted.
    if leaves && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

fn is_initialize(body: &[u8]) -> bool {
    matches!(
        serde_json::from_slice(body),
        Ok(ClientJsonRpcMessage::Request(request))
            if matches!(request.request, ClientRequest::InitializeRequest(_))
    )
}

impl Gate {
    /// Checks whether this client may open another session.
    async fn check_sessions(&self, client: &Client) -> Result<(), Response> {
        let open = self.sessions.sessions.read().await;
        let mut clients = self.clients.lock().await;
        clients.retain(|session, _| open.contains_key(session.as_str()));
        let own = clients.values().filter(|other| *other == client).count();
        if open.len() < self.most_sessions && own < self.most_of_a_client {
            return Ok(());
        }
        let retry = [(header::RETRY_AFTER, "60")];
        Err((StatusCode::SERVICE_UNAVAILABLE, retry, "too many open sessions").into_response())
    }
}
