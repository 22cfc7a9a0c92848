//! The book, served: routes, who may use them, and how the server starts and stops.
//!
//! Invariant: every response carries a request id, and every error has the contract's shape.

mod ask;
mod book;
mod error;
mod guard;
mod health;
mod html;
mod ledger;
mod openai;
mod pages;
pub mod read;
mod search;
mod sessions;
mod turn;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use docent_core::agent::{Agent, Ask};
use docent_core::answer::AgentResponse;
use docent_core::log::TurnLog;
use docent_core::retrieve::Retriever;
use docent_core::session::SessionStore;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, Any, CorsLayer};
use tracing::Instrument;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::exit::{Exit, Failure};
use crate::mcp;
use crate::settings::{Serve, Settings};
use error::{ApiError, Code};
use guard::Guard;
use ledger::Ledger;

/// What the routes share.
pub struct Server {
    agent: Agent,
    /// For when the model may not be used.
    frugal: Agent,
    retriever: Retriever,
    sessions: Arc<dyn SessionStore>,
    ledger: Ledger,
    guard: Guard,
    prometheus: PrometheusHandle,
    title: String,
    is_sample: bool,
    top_k: usize,
    threshold: f32,
    settings: Serve,
}

/// The parts a server is made of.
pub struct Parts {
    /// Answers.
    pub agent: Agent,
    /// Finds passages.
    pub retriever: Retriever,
    /// Remembers conversations.
    pub sessions: Arc<dyn SessionStore>,
    /// Remembers turns for the owner.
    pub log: Arc<dyn TurnLog>,
    /// Collects figures.
    pub prometheus: PrometheusHandle,
    /// What the book is called.
    pub title: String,
    /// Whether it is the sample book.
    pub is_sample: bool,
    /// Tokens used today before the server started.
    pub spent_today: u64,
}

impl Server {
    /// Puts the parts together.
    pub fn new(parts: Parts, settings: &Settings) -> Self {
        Self {
            frugal: parts.agent.without_model(),
            agent: parts.agent,
            retriever: parts.retriever,
            sessions: parts.sessions,
            ledger: Ledger::new(parts.log),
            guard: Guard::new(&settings.serve, parts.spent_today),
            prometheus: parts.prometheus,
            title: parts.title,
            is_sample: parts.is_sample,
            top_k: settings.retrieval.top_k.min(docent_core::query::MOST_AGENT_HITS),
            threshold: settings.retrieval.threshold,
            settings: settings.serve.clone(),
        }
    }

    /// Writes what is not written yet.
    pub async fn close(&self) {
        self.ledger.close().await;
    }

    /// The agent, without its model when today's tokens are used up.
    fn agent(&self) -> &Agent {
        if self.guard.tokens().is_left() { &self.agent } else { &self.frugal }
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Docent",
        description = "Answers readers' questions from a book, and only from it; every sentence is tied to the words it rests on."
    ),
    tags(
        (name = "answers", description = "Questions and passages"),
        (name = "conversations", description = "Sessions that are remembered; an id is all it takes to use one"),
        (name = "book", description = "What the book holds"),
        (name = "compatible", description = "For clients of OpenAI's API"),
        (name = "operation", description = "For whoever runs the server")
    )
)]
struct Description;

/// All routes.
///
/// Streams that clients keep open for ever end when `stop` completes.
pub fn app(
    server: Arc<Server>,
    access: mcp::Access,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Router {
    let (api, mut description) = OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(ask::ask))
        .routes(routes!(search::search))
        .routes(routes!(sessions::create, sessions::list))
        .routes(routes!(sessions::show, sessions::rename, sessions::delete))
        .routes(routes!(sessions::reset))
        .routes(routes!(sessions::export))
        .routes(routes!(book::feedback))
        .routes(routes!(book::modules))
        .routes(routes!(book::status))
        .routes(routes!(book::suggestions))
        .routes(routes!(openai::completions))
        .routes(routes!(openai::models))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .split_for_parts();
    description.info.version = env!("CARGO_PKG_VERSION").to_owned();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    description.components.get_or_insert_default().add_security_scheme("key", bearer);
    // A key is asked for only where the owner made some.
    description.security =
        Some(vec![SecurityRequirement::default(), SecurityRequirement::new("key", [""; 0])]);
    let shelf = mcp::Shelf {
        answers: Arc::new(Turns(server.clone())),
        retriever: server.retriever.clone(),
        title: server.title.clone(),
    };
    let limit = server.settings.body_limit;
    let cors = cors(&server.settings);
    let mcp =
        mcp::service(shelf, access, stop).layer(middleware::from_fn_with_state(server.clone(), allow_reader));
    api.merge(pages::routes(description))
        .fallback(async || ApiError::new(Code::NotFound, "There is nothing at this address"))
        .method_not_allowed_fallback(async || {
            ApiError::new(Code::MethodNotAllowed, "This address does not take that method")
        })
        .with_state(server)
        .nest_service("/mcp", mcp)
        .layer(DefaultBodyLimit::max(limit))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            ApiError::new(Code::Internal, "Something went wrong on our side").into_response()
        }))
        .layer(middleware::map_response(secure))
        .layer(cors)
        .layer(middleware::from_fn(identified))
}

/// Listens until told to stop, then finishes the turns under way.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    /// How long running turns may go on.
    const GRACE: Duration = Duration::from_secs(30);
    let (stopping, stopped) = tokio::sync::oneshot::channel::<()>();
    let stop = async move {
        stop.await;
        let _ = stopping.send(());
    };
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let serving = async move { axum::serve(listener, app).with_graceful_shutdown(stop).await };
    tokio::select! {
        ended = serving => ended,
        () = async {
            // Without a signal this side waits for ever; the other decides.
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(GRACE).await;
        } => {
            tracing::warn!("some requests did not end in {} s and were cut off", GRACE.as_secs());
            Ok(())
        }
    }
}

/// Turns of programs count like those of readers.
struct Turns(Arc<Server>);

#[async_trait]
impl mcp::Answers for Turns {
    async fn answer(&self, ask: Ask) -> Result<AgentResponse, Failure> {
        let failed = |error: ApiError| Failure::new(Exit::Failed, error.body().message);
        let _place = self.0.guard.place().await.map_err(failed)?;
        let ask = Ask { threshold: self.0.threshold, ..ask };
        turn::turn(&self.0, ask, |_| {}).await.map_err(failed)
    }
}

async fn allow_reader(
    axum::extract::State(_): axum::extract::State<Arc<Server>>,
    _: guard::Reader,
    request: Request,
    next: Next,
) -> Response {
    next.run(request).await
}

tokio::task_local! {
    static REQUEST_ID: String;
}

/// Names the request being handled.
pub fn request_id() -> String {
    REQUEST_ID.try_with(Clone::clone).unwrap_or_default()
}

static REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Gives the request a name that its log lines, its errors and its response share.
async fn identified(request: Request, next: Next) -> Response {
    let id = uuid::Uuid::new_v4().to_string();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let span = tracing::info_span!("request", request_id = %id, %method, path);
    let start = std::time::Instant::now();
    let work = REQUEST_ID.scope(id.clone(), next.run(request)).instrument(span.clone());
    let mut response = work.await;
    let status = response.status().as_u16();
    let milliseconds = start.elapsed().as_secs_f64() * 1000.0;
    span.in_scope(|| tracing::info!(status, milliseconds, "answered"));
    metrics::counter!("docent_requests_total", "status" => status.to_string()).increment(1);
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(&REQUEST_ID_HEADER, value);
    }
    response
}

/// Headers every response has; pages bring their own policy.
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
        .allow_headers([header::CONTENT_TYPE, header::AUTHORIZATION, header::ACCEPT])
        .expose_headers([header::RETRY_AFTER, REQUEST_ID_HEADER.clone()])
        .max_age(Duration::from_secs(3600))
}
