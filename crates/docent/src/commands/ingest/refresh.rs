//! Ingests the same sources, once or repeatedly: on command, when files change, or at an interval.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use docent_backends::index::contents::SourceRecord;
use docent_backends::index::target::IndexTarget;
use docent_backends::ingest::{Plan, Report, ingest};
use docent_backends::progress::Progress;
use docent_backends::source::pdf::{PdfParser, this_program};
use docent_core::language::Language;
use tokio::runtime::Handle;

use super::progress::reporter;
use super::{explain, sources, stopped, summary};
use crate::compose;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;
use crate::stop::Stop;

/// Everything an ingest needs.
pub struct Refresh {
    folder: PathBuf,
    target: Box<dyn IndexTarget>,
    settings: Settings,
    plan: Plan,
    stop: Stop,
}

/// What an ingest did, and how long it took.
pub struct Outcome {
    /// What it did.
    pub report: Report,
    /// How long it took.
    pub seconds: f64,
}

impl Refresh {
    /// Prepares an ingest of `sources`, or, if there are none, of the sources stored in the index.
    pub async fn new(
        settings: &Settings,
        sources: Vec<SourceRecord>,
        language: Option<Language>,
        stop: Stop,
    ) -> Result<Self, Failure> {
        let target = compose::index_target(settings)?;
        let sources = match sources.is_empty() {
            true => sources::remembered(target.as_ref()).await?,
            false => sources,
        };
        let mut plan = Plan::new(sources);
        plan.language = language;
        plan.limits = settings.site.limits();
        plan.reading.stop = stop.token();
        Ok(Self { folder: settings.index_folder()?, plan, settings: settings.clone(), target, stop })
    }

    /// Whether a book was ever published.
    pub async fn has_book(&self) -> Result<bool, Failure> {
        Ok(self.target.published().await.map_err(compose::index_failure)?.is_some())
    }

    /// The sources to ingest.
    pub fn sources(&self) -> &[SourceRecord] {
        &self.plan.sources
    }

    /// The sources of the current book, if none of them is among the new ones.
    async fn replaces(&self) -> Option<String> {
        // If the old sources cannot be read, there is nothing to warn about.
        let before = self.target.sources().await.unwrap_or_default();
        let stays = |old: &SourceRecord| self.plan.sources.iter().any(|new| new.location == old.location);
        if before.is_empty() || before.iter().any(stays) {
            return None;
        }
        Some(before.iter().map(|source| source.location.as_str()).collect::<Vec<_>>().join(", "))
    }

    /// Tells when to stop.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Ingests once, on a separate thread, because parsing and building block it for seconds. When a stop is
    /// requested, it ends at the next file or batch; if that takes too long, the thread is abandoned and ends
    /// with the process.
    async fn run(self: &Arc<Self>, progress: Box<dyn Progress>) -> Result<Outcome, Failure> {
        let (refresh, runtime) = (self.clone(), Handle::current());
        let work = tokio::task::spawn_blocking(move || runtime.block_on(refresh.read(progress.as_ref())));
        tokio::select! {
            done = work => done.map_err(|error| Failure::new(Exit::Failed, error))?,
            () = self.stop.overdue() => Err(stopped()),
        }
    }

    async fn read(&self, progress: &dyn Progress) -> Result<Outcome, Failure> {
        let start = Instant::now();
        // Loaded for every run: between runs the model and the parsers would only take memory, and loading is fast.
        let embedder = tokio::select! {
            biased;
            () = self.stop.requested() => return Err(stopped()),
            embedder = compose::embedder(&self.settings) => embedder?,
        };
        let mut plan = self.plan.clone();
        plan.reading.pdf = pdf_parser();
        let report = ingest(&self.folder, self.target.as_ref(), embedder.as_deref(), &plan, progress)
            .await
            .map_err(explain)?;
        Ok(Outcome { report, seconds: start.elapsed().as_secs_f64() })
    }

    /// Ingests once with visible progress, and warns if this replaces another book.
    pub async fn run_watched(self: &Arc<Self>, output: &Output) -> Result<Outcome, Failure> {
        let warning = self.replaces().await.map(|replaced| {
            format!(
                "this replaces the book made from {replaced}; to keep both, list all sources in one command or \
                 use another --data-dir"
            )
        });
        // Dropping the reporter removes the progress bars before anything else is printed.
        self.run(reporter(output, warning)).await
    }

    /// Ingests after `wait` and then every `period`, until a stop is requested. A failed run is reported, leaves
    /// the current index untouched, and is retried after the next `period`.
    pub async fn every(self: Arc<Self>, mut wait: Duration, period: Duration, output: Output) {
        loop {
            tokio::select! {
                () = self.stop.requested() => return,
                () = tokio::time::sleep(std::mem::replace(&mut wait, period)) => {}
            }
            let outcome = match self.run(Box::new(())).await {
                Ok(Outcome { report, seconds }) => {
                    let line = summary::line(&report, seconds);
                    tracing::info!(generation = %report.generation, published = report.published, "refreshed: {line}");
                    if report.published {
                        output.note(format!("refreshed: {line}"));
                    }
                    if report.published { "published" } else { "unchanged" }
                }
                Err(failure) if failure.exit == Exit::Stopped => return,
                Err(failure) => {
                    output.warn(format!("the book could not be refreshed: {}", failure.message));
                    "failed"
                }
            };
            metrics::counter!("docent_refreshes_total", "outcome" => outcome).increment(1);
        }
    }
}

/// Parses PDFs in child processes that run this same program.
fn pdf_parser() -> PdfParser {
    match this_program() {
        Ok(program) => PdfParser::in_processes(program, vec!["parse-pdf".into()]),
        Err(error) => {
            tracing::warn!("PDFs are parsed without a memory limit: {error}");
            PdfParser::default()
        }
    }
}
