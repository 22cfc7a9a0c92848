//! Embeds Docent in an axum server: ingests a folder at start and answers `GET /ask?q=…` with citations.
//!
//! `cargo run -p docent-examples --bin axum_server -- FOLDER`, then
//! `curl 'http://127.0.0.1:PORT/ask?q=What+is+a+node'`

#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use docent_backends::clock::SystemClock;
use docent_backends::embed::local::LocalEmbedder;
use docent_backends::index::contents::SourceRecord;
use docent_backends::index::embedded::{EmbeddedIndex, FolderTarget};
use docent_backends::ingest::{Plan, ingest};
use docent_backends::reader::local::LocalReader;
use docent_core::agent::{Agent, Ask};
use docent_core::answer::AgentResponse;
use docent_core::embed::Embedder;
use docent_core::index::Index;
use docent_core::retrieve::{self, Retriever};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = std::env::args().nth(1).context("usage: axum_server FOLDER")?;
    let data = tempfile::tempdir()?;

    let embedder: Arc<dyn Embedder> = Arc::new(LocalEmbedder::bundled()?);
    let target = FolderTarget { folder: data.path().to_owned() };
    let plan = Plan::new(vec![SourceRecord::new(folder)]);
    let report = ingest(data.path(), &target, Some(&*embedder), &plan, &()).await?;
    println!("ingested {} passages", report.chunks);

    let index = EmbeddedIndex::open(data.path())?;
    let language = index.identity().await?.language;
    let clock = Arc::new(SystemClock);
    let settings = retrieve::Settings::default();
    let retriever = Retriever::new(Arc::new(index), Some(embedder), language, settings, clock.clone())
        .with_reader(Arc::new(LocalReader::bundled()?));
    let agent = Arc::new(Agent::builder(retriever, clock).build());

    let app = Router::new().route("/ask", get(ask)).with_state(agent);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}

async fn ask(
    State(agent): State<Arc<Agent>>,
    Query(parameters): Query<HashMap<String, String>>,
) -> Result<Json<AgentResponse>, (StatusCode, String)> {
    let query = parameters.get("q").cloned().unwrap_or_default();
    let answer = agent.ask(&Ask::new(query).with_sources(true), &|_| {}).await;
    answer.map(Json).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}
