//! `docent serve`: the server with chat page, widget, HTTP API and MCP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use docent_backends::session::pending::{self, PendingTurns};
use docent_core::session::SessionStore;
use docent_core::turn_log::TurnLog;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::net::TcpListener;

use crate::cli::Serve;
use crate::commands::ingest::refresh::Refresh;
use crate::commands::ingest::{self, sources};
use crate::compose::{self, Book, Stores};
use crate::exit::{Exit, Failure};
use crate::http::{self, Parts, Server};
use crate::mcp::Access;
use crate::output::{FAINT, LINK, Output, STRONG};
use crate::settings::{ADDRESS_HINT, Settings, period};
use crate::stop::Stop;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Serve, output: &Output) -> Result<(), Failure> {
    let stop = Stop::on_signals();
    // The first ingest may take minutes.
    let ready = tokio::select! {
        biased;
        () = stop.requested() => None,
        ready = prepare(settings, arguments, output, &stop) => Some(ready?),
    };
    if let Some(ready) = ready {
        ready.serve(settings, output, &stop).await?;
    }
    output.note("stopped");
    Ok(())
}

/// A server that is ready to start.
struct Ready {
    listener: TcpListener,
    address: SocketAddr,
    book: Book,
    server: Arc<Server>,
    sessions: Arc<dyn SessionStore>,
    log: Arc<dyn TurnLog>,
    refreshing: Option<Refreshing>,
}

async fn prepare(
    settings: &Settings,
    arguments: Serve,
    output: &Output,
    stop: &Stop,
) -> Result<Ready, Failure> {
    let listen = arguments.listen.unwrap_or_else(|| settings.serve.listen.clone());
    let address = resolve(&listen).await?;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        Failure::new(Exit::Failed, format!("cannot listen on {listen}: {error}"))
            .hint("choose another address with --listen")
    })?;
    let address = listener.local_addr().map_err(anyhow::Error::from)?;
    let here = settings
        .serve
        .public_url
        .clone()
        .filter(|url| !url.is_empty())
        .unwrap_or_else(|| format!("http://{address}"));
    let refreshing = refreshing(settings, arguments.every, output, stop).await?;
    let book = compose::book_read_at(settings, Some(here.trim_end_matches('/').to_owned())).await?;
    let Stores { sessions, log, in_memory } = compose::stores_of_server(settings).await?;
    let pending = if in_memory { None } else { pending_turns(settings, log.as_ref()).await };
    let agent = compose::agent(&book, settings, Some(sessions.clone()))?;
    let spent_today = match settings.serve.daily_tokens {
        0 => 0,
        _ => spent_today(log.as_ref()).await,
    };
    let parts = Parts {
        title: book.title.clone(),
        library: book.library.clone(),
        agent,
        sessions: sessions.clone(),
        log: log.clone(),
        pending,
        prometheus: prometheus()?,
        spent_today,
        listen: listen.clone(),
    };
    let server = Arc::new(Server::new(parts, settings));
    Ok(Ready { listener, address, book, server, sessions, log, refreshing })
}

impl Ready {
    /// Serves until a stop is requested; then requests, the turn log and a running ingest may finish within the
    /// limits in [`crate::stop`].
    async fn serve(self, settings: &Settings, output: &Output, stop: &Stop) -> Result<(), Failure> {
        let address = self.address;
        let app = http::app(self.server.clone(), access(settings, address), stop.requested());
        self.book.announce(output);
        output.note(format!(
            "{STRONG}serving on{STRONG:#} {LINK}http://{address}/{LINK:#} {FAINT}· API at /docs · Ctrl-C stops{FAINT:#}"
        ));
        if !address.ip().is_loopback() && settings.serve.keys.is_empty() {
            output.warn(
                "this server is open to anyone who can reach it; create API keys with `docent key NAME`",
            );
        }
        let refreshing = self
            .refreshing
            .map(|Refreshing { refresh, wait, period }| tokio::spawn(refresh.every(wait, period, *output)));
        let forgetting = tokio::spawn(http::retention::forget(self.sessions, self.log, settings.clone()));
        http::serve(self.listener, app, &settings.serve, stop.requested())
            .await
            .map_err(anyhow::Error::from)?;
        forgetting.abort();
        self.server.close().await;
        if let Some(refreshing) = refreshing {
            // It receives the same stop request and ends by itself.
            let _ = refreshing.await;
        }
        Ok(())
    }
}

/// A regular ingest while the server runs.
struct Refreshing {
    refresh: Arc<Refresh>,
    wait: Duration,
    period: Duration,
}

/// Prepares the regular ingest, if one is configured. Without an index, ingests once before the server starts.
async fn refreshing(
    settings: &Settings,
    every: Option<Duration>,
    output: &Output,
    stop: &Stop,
) -> Result<Option<Refreshing>, Failure> {
    let configured = settings.serve.every.as_deref().and_then(|text| period(text).ok());
    let Some(period) = every.or(configured) else { return Ok(None) };
    let language = sources::language(settings, None)?;
    let sources = sources::configured(settings)?;
    let refresh = Arc::new(Refresh::new(settings, sources, language, stop.clone()).await?);
    let has_book = refresh.has_book().await?;
    if !has_book {
        output.note("no index yet; ingesting before the server starts");
        ingest::show(&refresh.run_watched(output).await?, output)?;
    }
    let wait = if has_book { Duration::ZERO } else { period };
    Ok(Some(Refreshing { refresh, wait, period }))
}

async fn resolve(listen: &str) -> Result<SocketAddr, Failure> {
    let mut found = tokio::net::lookup_host(listen).await.map_err(|error| {
        Failure::new(Exit::NotConfigured, format!("invalid listen address `{listen}`: {error}"))
            .hint(ADDRESS_HINT)
    })?;
    found
        .next()
        .ok_or_else(|| Failure::new(Exit::NotConfigured, format!("invalid listen address `{listen}`")))
}

/// Installs the metrics recorder of this process; may be called once.
fn prometheus() -> Result<metrics_exporter_prometheus::PrometheusHandle, Failure> {
    let seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
    let builder = PrometheusBuilder::new().set_buckets(&seconds).map_err(anyhow::Error::from)?;
    Ok(builder.install_recorder().map_err(anyhow::Error::from)?)
}

/// Moves turns that a killed server left behind to the turn log, and creates the files for those of this server.
/// None if no turns are kept, or if the data folder cannot be written.
async fn pending_turns(settings: &Settings, log: &dyn TurnLog) -> Option<PendingTurns> {
    if settings.serve.retention_days == 0 {
        return None;
    }
    let folder = settings.data_dir().ok()?;
    let _ = std::fs::create_dir_all(&folder);
    match pending::recover(&folder, log).await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "logged turns that a killed server left behind"),
        Err(error) => tracing::warn!("turns that a killed server left behind cannot be logged yet: {error}"),
    }
    PendingTurns::create(&folder)
        .inspect_err(|error| {
            tracing::warn!("turns that are not in the turn log yet would be lost in a crash: {error}");
        })
        .ok()
}

/// The tokens used since midnight UTC, from the turn log, so that a restart does not reset the daily limit.
async fn spent_today(log: &dyn TurnLog) -> u64 {
    let now = docent_backends::now_rfc3339();
    let midnight = now.split('T').next().unwrap_or_default();
    log.tokens_since(midnight).await.unwrap_or_else(|error| {
        tracing::warn!("cannot read how many tokens were used today: {error}");
        0
    })
}

/// Which hosts and origins may use MCP. On a loopback address only local host names are accepted, so that a
/// foreign page cannot reach the book through the user's browser; otherwise the configured names are.
fn access(settings: &Settings, address: SocketAddr) -> Access {
    let mut access = Access { origins: settings.serve.cors_origins.clone(), ..Access::default() };
    let public = settings.serve.public_url.as_deref().and_then(|url| url.split_once("://"));
    let public = public.and_then(|(_, rest)| rest.split('/').next()).map(str::to_owned);
    let mut hosts: Vec<String> = settings.serve.hosts.iter().cloned().chain(public).collect();
    if hosts.iter().any(|host| host == "*") || (!address.ip().is_loopback() && hosts.is_empty()) {
        access.hosts.clear();
        return access;
    }
    access.hosts.append(&mut hosts);
    access
}
