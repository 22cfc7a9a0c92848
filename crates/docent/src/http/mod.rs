//! The HTTP server: its routes, its middleware and the state they share.
//!
//! Invariant: every response carries a request id, and every error body has the shape that the API specifies.

mod ask;
mod assets;
mod book;
mod book_page;
mod drawing;
mod error;
mod figure;
mod access;
mod token_budget;
mod turn_guard;
mod health;
mod hosts;
mod html;
mod log_writer;
mod look;
mod limits;
mod listen;
mod network;
mod openai;
mod owner;
mod pages;
mod pass;
mod quiz;
mod read;
mod read_cookie;
mod request;
mod request_id;
pub mod retention;
mod search;
mod sessions;
mod stopped;
mod turn;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use docent_backends::session::pending::PendingTurns;
use docent_core::agent::{Agent, Ask};
use docent_core::answer::AgentResponse;
use docent_core::library::{Library, Snapshot};
use docent_core::retrieve::RetrieveError;
use docent_core::session::SessionStore;
use docent_core::turn_log::TurnLog;
use metrics_exporter_prometheus::PrometheusHandle;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, Any, CorsLayer};
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::exit::{Exit, Failure};
use crate::mcp;
use crate::settings::{Serve, Settings};
use crate::title::Title;
use access::Access;
use error::{ApiError, Code};
use hosts::Hosts;
use log_writer::LogWriter;
use request::Arriving;

pub use listen::serve;

/// State shared by all routes.
pub struct Server {
    agent: Agent,
    /// Answers extractively, once the daily tokens are used up.
    without_model: Agent,
    library: Library,
    sessions: Arc<dyn SessionStore>,
    log_writer: LogWriter,
    access: Access,
    hosts: Hosts,
    prometheus: PrometheusHandle,
    title: Title,
    rendered: book_page::Rendered,
    drawings: drawing::Drawings,
    phrased: quiz::Phrased,
    look: look::Look,
    top_k: usize,
    threshold: f32,
    settings: Serve,
    /// The folder of the index, which also has the copies of images.
    index_folder: Option<PathBuf>,
}

/// What a server is built from.
pub struct Parts {
    /// Answers questions.
    pub agent: Agent,
    /// Finds passages.
    pub library: Library,
    /// Stores conversations.
    pub sessions: Arc<dyn SessionStore>,
    /// Stores turns for the operator.
    pub log: Arc<dyn TurnLog>,
    /// Turns that are not in the turn log yet.
    pub pending: Option<PendingTurns>,
    /// Collects metrics.
    pub prometheus: PrometheusHandle,
    /// The title of the book.
    pub title: Title,
    /// Tokens used today before the server started.
    pub spent_today: u64,
    /// The configured listen address.
    pub listen: String,
}

impl Server {
    /// Builds the server from its parts.
    pub fn new(parts: Parts, settings: &Settings) -> Self {
        let agent = parts.agent.hiding_model_errors();
        Self {
            without_model: agent.without_model(),
            agent,
            library: parts.library,
            sessions: parts.sessions,
            log_writer: LogWriter::new(parts.log, parts.pending),
            access: Access::new(&settings.serve, parts.spent_today),
            hosts: Hosts::new(&settings.serve, &parts.listen),
            prometheus: parts.prometheus,
            title: parts.title,
            rendered: book_page::Rendered::default(),
            drawings: drawing::Drawings::new(settings.index_folder().ok()),
            phrased: quiz::Phrased::default(),
            look: look::Look::new(&settings.chat),
            top_k: settings.retrieval.top_k.min(docent_core::query::MOST_AGENT_HITS),
            threshold: settings.retrieval.threshold,
            settings: settings.serve.clone(),
            index_folder: settings.index_folder().ok(),
        }
    }

    /// Writes pending entries of the turn log.
    pub async fn close(&self) {
        self.log_writer.close().await;
    }

    /// The current snapshot of the book. A request uses the same snapshot throughout.
    async fn book(&self) -> Result<Arc<Snapshot>, ApiError> {
        Ok(self.library.current().await.map_err(RetrieveError::from)?)
    }

    /// The agent to use: without a model once today's tokens are used up.
    fn agent(&self) -> &Agent {
        if self.access.tokens().is_left() { &self.agent } else { &self.without_model }
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Docent",
        description = "Answers questions from a book, and only from it. Every sentence is checked against the book and cites the words that support it."
    ),
    tags(
        (name = "answers", description = "Ask questions and search passages"),
        (name = "conversations", description = "Stored conversations. Creating one returns its session key; send that key as `X-Docent-Session-Key` to use the conversation"),
        (name = "book", description = "Contents and status of the book"),
        (name = "compatible", description = "Compatible with OpenAI clients"),
        (name = "operation", description = "Health checks and metrics for operators")
    )
)]
struct Description;

/// All routes.
///
/// MCP streams, which clients keep open indefinitely, end when `stop` completes.
pub fn app(
    server: Arc<Server>,
    access: mcp::Access,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Router {
    let (api, description) = OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(ask::ask))
        .routes(routes!(search::search))
        .routes(routes!(search::suggest))
        .routes(routes!(book_page::page))
        .routes(routes!(drawing::words))
        .routes(routes!(quiz::quiz))
        .routes(routes!(sessions::create, sessions::list))
        .routes(routes!(sessions::show, sessions::rename, sessions::delete))
        .routes(routes!(sessions::reset))
        .routes(routes!(sessions::export))
        .routes(routes!(sessions::share, sessions::unshare))
        .routes(routes!(book::feedback))
        .routes(routes!(book::modules))
        .routes(routes!(book::status))
        .routes(routes!(book::suggestions))
        .routes(routes!(pass::give))
        .routes(routes!(openai::completions))
        .routes(routes!(openai::models))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .split_for_parts();
    let service = mcp::Service {
        answers: Arc::new(Turns(server.clone())),
        library: server.library.clone(),
        title: server.title.clone(),
    };
    let cors = cors(&server.settings);
    let arriving = Arriving::new(&server.settings);
    let mcp = mcp::service(service, access, stop)
        .layer(middleware::from_fn_with_state(server.clone(), identify_mcp_client));
    api.merge(pages::routes(completed(description)))
        .route("/read/.figure/{name}", get(figure::figure))
        .route("/read/.pdf/{name}/{page}", get(drawing::drawing))
        .route("/read/{*page}", get(read::read))
        .fallback(async || ApiError::new(Code::NotFound, "Not found"))
        .method_not_allowed_fallback(async || ApiError::new(Code::MethodNotAllowed, "Method not allowed"))
        .with_state(server.clone())
        .nest_service("/mcp", mcp)
        .layer(middleware::from_fn_with_state(server, hosts::check))
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(arriving, request::arrived))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            ApiError::new(Code::Internal, "Internal server error").into_response()
        }))
        .layer(middleware::map_response(secure))
        .layer(cors)
        .layer(middleware::from_fn(request::identified))
}

/// Adds the version and the API keys to the description of the routes.
fn completed(mut description: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    description.info.version = env!("CARGO_PKG_VERSION").to_owned();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    description.components.get_or_insert_default().add_security_scheme("key", bearer);
    // A key is optional in the description, because a server without configured keys needs none.
    description.security =
        Some(vec![SecurityRequirement::default(), SecurityRequirement::new("key", [""; 0])]);
    description
}

/// Runs turns of MCP clients like all other turns: with permits, metrics and the turn log.
struct Turns(Arc<Server>);

#[async_trait]
impl mcp::Answers for Turns {
    async fn answer(&self, ask: Ask) -> Result<AgentResponse, Failure> {
        let permit = self.0.access.turn_permit().await.map_err(in_words)?;
        let ask = ask.with_threshold(self.0.threshold);
        turn::turn(&self.0, permit, ask, |_| {}).await.map_err(in_words)
    }

    async fn lookup(&self, client: &str) -> Result<mcp::Hold, Failure> {
        let permit = self.0.access.lookup(client).await.map_err(in_words)?;
        Ok(Box::new(permit))
    }
}

/// An error as text for an MCP client.
fn in_words(error: ApiError) -> Failure {
    Failure::new(Exit::Failed, error.body().message)
}

async fn identify_mcp_client(
    axum::extract::State(_): axum::extract::State<Arc<Server>>,
    access::RateLimited { client }: access::RateLimited,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().insert(mcp::Client(client));
    request.extensions_mut().insert(tracing::Span::current());
    next.run(request).await
}

/// Adds security headers to every response; pages set their own content security policy.
async fn secure(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("strict-origin-when-cross-origin"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    response
}

fn cors(settings: &Serve) -> CorsLayer {
    let origins = if settings.cors_origins.iter().any(|origin| origin == "*") {
        AllowOrigin::from(Any)
    } else {
        AllowOrigin::list(settings.cors_origins.iter().filter_map(|origin| origin.parse().ok()))
    };
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::CONTENT_TYPE,
            header::AUTHORIZATION,
            header::ACCEPT,
            HeaderName::from_static(owner::SESSION_KEY),
        ])
        .expose_headers([header::RETRY_AFTER, request::ID_HEADER.clone()])
        .max_age(Duration::from_secs(3600))
}
