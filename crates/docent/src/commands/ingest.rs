//! `docent ingest`: read the sources of a book and build its index, once or whenever files change.

pub mod progress;
pub mod refresh;
pub mod sources;
mod summary;
mod watch;

use std::sync::Arc;

use docent_backends::ingest::{IngestError, Report};
use docent_backends::source::SourceError;
use serde::Serialize;

use self::refresh::{Outcome, Refresh};
use crate::cli::Ingest;
use crate::compose;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;
use crate::stop::Stop;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Ingest, output: &Output) -> Result<(), Failure> {
    let stop = Stop::on_signals();
    let sources = sources::named(settings, &arguments)?;
    let language = sources::language(settings, arguments.language.as_deref())?;
    let refresh = Arc::new(Refresh::new(settings, sources, language, stop).await?);
    let watched =
        if arguments.watch { Some(watch::Watch::start(refresh.sources(), settings)?) } else { None };
    show(&refresh.run_watched(output).await?, output)?;
    match watched {
        Some(watched) => watched.follow(&refresh, output).await,
        None => Ok(()),
    }
}

/// The last line of `--json`.
#[derive(Serialize)]
struct Done<'a> {
    event: &'static str,
    seconds: f64,
    #[serde(flatten)]
    report: &'a Report,
}

/// Prints what an ingest did, as text or JSON.
pub fn show(outcome: &Outcome, output: &Output) -> Result<(), Failure> {
    if output.json {
        return output.json_line(&Done { event: "done", seconds: outcome.seconds, report: &outcome.report });
    }
    summary::show(&outcome.report, outcome.seconds, output);
    Ok(())
}

/// An ingest error as the user sees it.
pub fn explain(error: IngestError) -> Failure {
    match error {
        IngestError::Index(error) => compose::index_failure(error),
        IngestError::Embed(error) => compose::embed_failure(error)
            .hint("what was embedded so far is kept; run the same command again to continue"),
        IngestError::Busy(_) => {
            Failure::new(Exit::Failed, error).hint("wait until it is done, or use another --data-dir")
        }
        IngestError::NoPages(_) => Failure::new(Exit::Failed, error).hint(
            "supported formats are Markdown, MDX, HTML, reStructuredText, AsciiDoc, Jupyter, PDF, EPUB and \
             plain text; the index is unchanged",
        ),
        IngestError::NoText(_) => Failure::new(Exit::Failed, error)
            .hint("add text to them, or leave this source out; the index is unchanged"),
        IngestError::Stopped => stopped(),
        IngestError::Source(SourceError::Missing(_)) => {
            Failure::new(Exit::Failed, error).hint("check the path; the index is unchanged")
        }
        IngestError::Source(error) => source_failure(&error),
        other => Failure::new(Exit::Failed, other),
    }
}

/// An ingest that was stopped by a signal.
fn stopped() -> Failure {
    Failure::new(Exit::Stopped, "stopped before the end; the index is unchanged")
        .hint("what was embedded so far is kept; run the same command again to continue")
}

/// A source error as the user sees it.
fn source_failure(error: &SourceError) -> Failure {
    let failure = Failure::new(Exit::Failed, error);
    match error {
        SourceError::Address(_) | SourceError::Pattern(_) => Failure::usage(error),
        SourceError::Private(_) => failure.hint("if the site is in your own network, add --allow-private"),
        SourceError::Forbidden(_) => {
            failure.hint(
                "ask the site's owner for permission, or ingest the source files of the site; the index is unchanged",
            )
        }
        SourceError::Unavailable { .. } => Failure { exit: Exit::Unavailable, ..failure }
            .hint("try again later; pages fetched so far are kept, and the index is unchanged"),
        SourceError::NoSite { .. } => failure.hint("check the URL; the index is unchanged"),
        _ => failure,
    }
}
