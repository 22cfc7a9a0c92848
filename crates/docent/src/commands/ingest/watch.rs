//! `docent ingest --watch`: reads the book again whenever its files change.
//!
//! Invariant: a change that happens while the book is read is not lost; it is read afterwards.

use std::path::{Path, PathBuf};
use std::time::Duration;

use docent_backends::index::parts::SourceRecord;
use docent_backends::source::site::is_address;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use super::refresh::Refresh;
use crate::exit::{Exit, Failure};
use crate::output::{FAINT, Output, report};
use crate::settings::Settings;

/// Files that are saved together are read together: this long nothing more must happen.
const QUIET: Duration = Duration::from_millis(300);

/// Files under watch.
pub struct Watch {
    /// Tells of changes as long as it lives.
    _watcher: RecommendedWatcher,
    changes: UnboundedReceiver<()>,
    folders: usize,
}

impl Watch {
    /// From now on changes are noticed.
    pub fn start(sources: &[SourceRecord], settings: &Settings) -> Result<Self, Failure> {
        let paths: Vec<PathBuf> = sources
            .iter()
            .filter(|source| !is_address(&source.location))
            .map(|source| PathBuf::from(&source.location))
            .collect();
        if paths.is_empty() {
            return Err(Failure::usage("--watch is for folders and files, but the sources are sites")
                .hint("`docent serve --every 6h` reads sites again by the clock"));
        }
        // Our own files may lie inside a folder that is watched.
        let own = settings.data_dir()?;
        let own = own.canonicalize().unwrap_or(own);
        let (sender, changes) = unbounded_channel();
        let failed = |error: notify::Error| {
            Failure::new(Exit::Failed, format!("the files cannot be watched: {error}"))
                .hint("run `docent ingest` by hand or from a timer instead")
        };
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let noticed = match event {
                Ok(event) => !matches!(event.kind, EventKind::Access(_)) && concerns(&event.paths, &own),
                // Something happened that could not be told: better look.
                Err(_) => true,
            };
            if noticed {
                // The other end is gone only when the program ends.
                let _ = sender.send(());
            }
        })
        .map_err(failed)?;
        for path in &paths {
            // An editor may replace a file, which a watch of the file itself would not survive.
            let (watched, mode) = match path.is_file() {
                true => (path.parent().unwrap_or(path), RecursiveMode::NonRecursive),
                false => (path.as_path(), RecursiveMode::Recursive),
            };
            watcher.watch(watched, mode).map_err(failed)?;
        }
        Ok(Self { _watcher: watcher, changes, folders: paths.len() })
    }

    /// Reads the book again after every change, until Ctrl-C.
    pub async fn follow(mut self, refresh: &Refresh, output: &Output) -> Result<(), Failure> {
        let what =
            if self.folders == 1 { "the source".to_owned() } else { format!("{} sources", self.folders) };
        output.note(format!("{FAINT}watching {what} for changes · Ctrl-C stops{FAINT:#}"));
        loop {
            tokio::select! {
                change = self.changes.recv() => if change.is_none() { return Ok(()) },
                _ = tokio::signal::ctrl_c() => {
                    output.note("stopped");
                    return Ok(());
                }
            }
            while let Ok(Some(())) = timeout(QUIET, self.changes.recv()).await {}
            match refresh.run_watched(output).await {
                Ok(outcome) if outcome.report.published => super::show(&outcome, output)?,
                // An editor's own file came and went.
                Ok(_) => {}
                // A file may be half written; the next change tells.
                Err(failure) => report(&failure),
            }
        }
    }
}

/// Whether a change is about files of the book: not ours, and not hidden.
fn concerns(paths: &[PathBuf], own: &Path) -> bool {
    let hidden = |path: &Path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with('.'))
    };
    paths.is_empty() || paths.iter().any(|path| !path.starts_with(own) && !hidden(path))
}
