//! `docent ingest`: read a book into the index, once or whenever it changes.

pub mod progress;
pub mod refresh;
pub mod sources;
mod summary;
mod watch;

use docent_backends::ingest::{IngestError, Report};
use docent_backends::source::SourceError;
use serde::Serialize;

use self::refresh::{Outcome, Refresh};
use crate::cli::Ingest;
use crate::compose;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Ingest, output: &Output) -> Result<(), Failure> {
    let sources = sources::named(settings, &arguments)?;
    let refresh =
        Refresh::new(settings, sources, sources::language(settings, arguments.language.as_deref())?).await?;
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

/// What an ingest did, for people or programs.
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
            .hint("what was embedded so far is kept; run the same command to go on"),
        IngestError::Busy(_) => {
            Failure::new(Exit::Failed, error).hint("wait until it is done, or use another --data-dir")
        }
        IngestError::NoPages(_) => Failure::new(Exit::Failed, error)
            .hint("pages are .md, .mdx, .html, .rst and .txt files; the index is as it was"),
        IngestError::Source(SourceError::Missing(_)) => {
            Failure::new(Exit::Failed, error).hint("check the path; the index is as it was")
        }
        IngestError::Source(error) => source_failure(&error),
        other => Failure::new(Exit::Failed, other),
    }
}

/// Why a site could not be read, and what to do.
fn source_failure(error: &SourceError) -> Failure {
    let failure = Failure::new(Exit::Failed, error);
    match error {
        SourceError::Address(_) | SourceError::Pattern(_) => Failure::usage(error),
        SourceError::Private(_) => failure.hint("if it is a site of your own network, add --allow-private"),
        SourceError::Forbidden(_) => {
            failure.hint("ask the site's owner, or ingest the sources of its pages; the index is as it was")
        }
        SourceError::Unavailable { .. } => Failure { exit: Exit::Unavailable, ..failure }
            .hint("try again later: what was read so far is kept, and the index is as it was"),
        SourceError::NoSite { .. } => failure.hint("check the address; the index is as it was"),
        _ => failure,
    }
}
