//! `docent serve`: the book for readers: chat page, widget, HTTP API, MCP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use docent_core::log::TurnLog;
use futures_util::FutureExt;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::net::TcpListener;

use crate::cli::Serve;
use crate::commands::ingest::refresh::Refresh;
use crate::commands::ingest::{self, sources};
use crate::compose::{self, Stores};
use crate::exit::{Exit, Failure};
use crate::http::{self, Parts, Server};
use crate::mcp::Access;
use crate::output::{FAINT, LINK, Output, STRONG};
use crate::settings::{Settings, period};

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Serve, output: &Output) -> Result<(), Failure> {
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
    let refreshing = refreshing(settings, arguments.every, output).await?;
    let book = compose::book_read_at(settings, Some(here.trim_end_matches('/').to_owned())).await?;
    let Stores { sessions, log } = compose::stores(settings).await?;
    let agent = compose::agent(&book, settings, Some(sessions.clone()))?;
    let spent_today = spent_today(log.as_ref()).await;
    let parts = Parts {
        title: book.title(settings),
        is_sample: book.is_sample,
        retriever: book.retriever.clone(),
        agent,
        sessions,
        log: log.clone(),
        prometheus: prometheus()?,
        spent_today,
    };
    let stop = stop().boxed().shared();
    let access = access(settings, address);
    let server = Arc::new(Server::new(parts, settings));
    let app = http::app(server.clone(), access, stop.clone());
    book.announce(output);
    output.note(format!(
        "{STRONG}serving on{STRONG:#} {LINK}http://{address}/{LINK:#} {FAINT}· API at /docs · Ctrl-C stops{FAINT:#}"
    ));
    if !address.ip().is_loopback() && settings.serve.keys.is_empty() {
        output
            .warn("everybody who reaches this address may ask; `docent key NAME` makes keys for serve.keys");
    }
    let refreshing = refreshing
        .map(|Refreshing { refresh, wait, period }| tokio::spawn(refresh.every(wait, period, *output)));
    let forgetting = tokio::spawn(forget(log, settings.serve.retention_days));
    http::serve(listener, app, stop).await.map_err(anyhow::Error::from)?;
    forgetting.abort();
    if let Some(refreshing) = refreshing {
        refreshing.abort();
    }
    server.close().await;
    output.note("stopped");
    Ok(())
}

/// How the book is kept fresh.
struct Refreshing {
    refresh: Arc<Refresh>,
    wait: Duration,
    period: Duration,
}

/// How the book is kept fresh, if it is to be. A book that was never read is read first.
async fn refreshing(
    settings: &Settings,
    every: Option<Duration>,
    output: &Output,
) -> Result<Option<Refreshing>, Failure> {
    let configured = settings.serve.every.as_deref().and_then(|text| period(text).ok());
    let Some(period) = every.or(configured) else { return Ok(None) };
    let language = sources::language(settings, None)?;
    let refresh = Refresh::new(settings, sources::configured(settings)?, language).await?;
    let has_book = refresh.has_book().await?;
    if !has_book {
        output.note("the book was never read: reading it first");
        ingest::show(&refresh.run_watched(output).await?, output)?;
    }
    let wait = if has_book { Duration::ZERO } else { period };
    Ok(Some(Refreshing { refresh: Arc::new(refresh), wait, period }))
}

async fn resolve(listen: &str) -> Result<SocketAddr, Failure> {
    let mut found = tokio::net::lookup_host(listen).await.map_err(|error| {
        Failure::new(Exit::NotConfigured, format!("`{listen}` is no address to listen on: {error}"))
            .hint("an address is host and port: 127.0.0.1:8080")
    })?;
    found
        .next()
        .ok_or_else(|| Failure::new(Exit::NotConfigured, format!("`{listen}` is no address to listen on")))
}

/// Collects figures for this process, once.
fn prometheus() -> Result<metrics_exporter_prometheus::PrometheusHandle, Failure> {
    let seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
    let builder = PrometheusBuilder::new().set_buckets(&seconds).map_err(anyhow::Error::from)?;
    Ok(builder.install_recorder().map_err(anyhow::Error::from)?)
}

/// Tokens used since midnight, UTC; a restart does not give them back.
async fn spent_today(log: &dyn TurnLog) -> u64 {
    let now = docent_backends::now_rfc3339();
    let midnight = now.split('T').next().unwrap_or_default();
    let turns = log.since(midnight).await.unwrap_or_default();
    turns.iter().map(|turn| u64::from(turn.tokens)).sum()
}

/// Forgets old turns, now and every hour.
async fn forget(log: Arc<dyn TurnLog>, days: u32) {
    loop {
        let moment = docent_backends::rfc3339_days_ago(days);
        match log.forget_before(&moment).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "turns older than {days} days forgotten"),
            Err(error) => tracing::warn!("old turns could not be forgotten: {error}"),
        }
        tokio::time::sleep(Duration::from_secs(3600)).await;
    }
}

/// Who may use MCP. On this machine only names of this machine count, so that a stranger's page
/// cannot reach the book through the reader's browser; elsewhere the names that are configured.
fn access(settings: &Settings, address: SocketAddr) -> Access {
    let mut access = Access { origins: settings.serve.cors_origins.clone(), ..Access::default() };
    if !address.ip().is_loopback() && settings.serve.hosts.is_empty() {
        access.hosts.clear();
    }
    access.hosts.extend(settings.serve.hosts.iter().cloned());
    access
}

/// Ctrl-C, or what a service manager sends.
async fn stop() {
    let interrupt = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    #[cfg(unix)]
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}
