//! The same sources, read again and again: by hand, when files change, or by the clock.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use docent_backends::index::parts::SourceRecord;
use docent_backends::index::shelf::Shelf;
use docent_backends::ingest::{IngestError, Plan, Progress, Report, ingest};
use docent_core::embed::Embedder;
use docent_core::language::Language;

use super::progress::reporter;
use super::{explain, sources, summary};
use crate::compose;
use crate::exit::Failure;
use crate::output::Output;
use crate::settings::Settings;

/// Everything an ingest needs.
pub struct Refresh {
    folder: PathBuf,
    shelf: Box<dyn Shelf>,
    embedder: Option<Arc<dyn Embedder>>,
    plan: Plan,
}

/// What an ingest did, and how long it took.
pub struct Outcome {
    /// What it did.
    pub report: Report,
    /// Start to end.
    pub seconds: f64,
}

impl Refresh {
    /// Reads `sources`, or, when there are none, those the index remembers.
    pub async fn new(
        settings: &Settings,
        sources: Vec<SourceRecord>,
        language: Option<Language>,
    ) -> Result<Self, Failure> {
        let shelf = compose::shelf(settings)?;
        let sources = match sources.is_empty() {
            true => sources::remembered(shelf.as_ref()).await?,
            false => sources,
        };
        Ok(Self {
            folder: settings.index_folder()?,
            embedder: compose::embedder(settings).await?,
            plan: Plan { sources, language, limits: settings.site.limits() },
            shelf,
        })
    }

    /// Whether something was ever read.
    pub async fn has_book(&self) -> Result<bool, Failure> {
        Ok(self.shelf.published().await.map_err(compose::index_failure)?.is_some())
    }

    /// What is read.
    pub fn sources(&self) -> &[SourceRecord] {
        &self.plan.sources
    }

    /// Reads everything once.
    pub async fn run(&self, progress: &dyn Progress) -> Result<Outcome, Failure> {
        let start = Instant::now();
        let report = self.ingest(progress).await.map_err(explain)?;
        Ok(Outcome { report, seconds: start.elapsed().as_secs_f64() })
    }

    /// The same before the eyes of whoever ran the command.
    pub async fn run_watched(&self, output: &Output) -> Result<Outcome, Failure> {
        let reporter = reporter(output);
        // The bars are gone before anything else is said.
        self.run(reporter.as_ref()).await
    }

    async fn ingest(&self, progress: &dyn Progress) -> Result<Report, IngestError> {
        ingest(&self.folder, self.shelf.as_ref(), self.embedder.as_deref(), &self.plan, progress).await
    }

    /// Reads everything after `wait` and then once a `period`, as long as the server runs. What
    /// goes wrong is said, and tried again next time; the book that is there answers meanwhile.
    pub async fn every(self: Arc<Self>, mut wait: Duration, period: Duration, output: Output) {
        loop {
            tokio::time::sleep(std::mem::replace(&mut wait, period)).await;
            let refresh = self.clone();
            let runtime = tokio::runtime::Handle::current();
            // Parsing and building keep a thread busy for seconds; readers need the others.
            let run = tokio::task::spawn_blocking(move || runtime.block_on(refresh.run(&Silence))).await;
            let outcome = match run {
                Ok(Ok(Outcome { report, seconds })) => {
                    let line = summary::line(&report, seconds);
                    tracing::info!(generation = %report.generation, published = report.published, "refreshed: {line}");
                    if report.published {
                        output.note(format!("refreshed: {line}"));
                    }
                    if report.published { "published" } else { "unchanged" }
                }
                Ok(Err(failure)) => {
                    output.warn(format!("the book could not be refreshed: {}", failure.message));
                    "failed"
                }
                Err(error) => {
                    output.warn(format!("the book could not be refreshed: {error}"));
                    "failed"
                }
            };
            metrics::counter!("docent_refreshes_total", "outcome" => outcome).increment(1);
        }
    }
}

/// Hears nothing.
struct Silence;

impl Progress for Silence {
    fn step(&self, _: &str) {}
    fn passages(&self, _: usize, _: usize) {}
}
