//! The index and the agent that question sets are measured with.
//!
//! Invariant: the users' book stays untouched: a question set has an index of its own.

use std::path::Path;
use std::sync::Arc;

use docent_backends::clock::SystemClock;
use docent_backends::index::embedded::{EmbeddedIndex, FolderTarget};
use docent_backends::index::qdrant::QdrantIndex;
use docent_backends::index::target::IndexTarget;
use docent_core::agent::Agent;
use docent_core::embed::Embedder;
use docent_core::index::Index;
use docent_core::retrieve::Retriever;

use super::{generator, index_failure};
use crate::exit::Failure;
use crate::settings::{IndexKind, Settings};

/// The index that a question set is ingested into: files in `folder`, or a collection of its own.
pub fn eval_target(settings: &Settings, folder: &Path) -> Result<Box<dyn IndexTarget>, Failure> {
    Ok(match settings.index_kind() {
        IndexKind::Embedded => Box::new(FolderTarget { folder: folder.to_owned() }),
        IndexKind::Qdrant => Box::new(on_server(settings)?),
    })
}

/// The same index, to search it.
pub fn eval_index(settings: &Settings, folder: &Path) -> Result<Arc<dyn Index>, Failure> {
    Ok(match settings.index_kind() {
        IndexKind::Embedded => Arc::new(EmbeddedIndex::open(folder).map_err(index_failure)?),
        IndexKind::Qdrant => Arc::new(on_server(settings)?),
    })
}

fn on_server(settings: &Settings) -> Result<QdrantIndex, Failure> {
    let mut server = settings.qdrant()?;
    server.collection.push_str("-eval");
    QdrantIndex::new(server).map_err(index_failure)
}

/// An agent as configured, but without conversations, and without cached answers, which would distort the measured
/// times. `meaning` compares meanings when answers are verified.
pub fn eval_agent(
    settings: &Settings,
    retriever: Retriever,
    meaning: Option<Arc<dyn Embedder>>,
) -> Result<Agent, Failure> {
    let mut uncached = settings.agent.settings();
    uncached.cached_answers = 0;
    Ok(Agent::builder(retriever, Arc::new(SystemClock))
        .generator(generator(settings)?)
        .meaning(meaning)
        .settings(uncached)
        .build())
}
