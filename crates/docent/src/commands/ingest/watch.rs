//! `docent ingest --watch`: ingests again whenever files change.
//!
//! Invariant: no change is lost; a change during an ingest starts another one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use docent_backends::index::contents::SourceRecord;
use docent_backends::source::site::is_address;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use super::refresh::Refresh;
use crate::exit::{Exit, Failure};
use crate::output::{FAINT, Output, report};
use crate::settings::Settings;

/// Files that are saved together are ingested together: an ingest starts after this long without changes.
const QUIET: Duration = Duration::from_millis(300);

/// Watches the files of the sources.
pub struct Watch {
    /// Reports changes until it is dropped.
    _watcher: RecommendedWatcher,
    changes: UnboundedReceiver<()>,
    folders: usize,
}

impl Watch {
    /// Starts watching.
    pub fn start(sources: &[SourceRecord], settings: &Settings) -> Result<Self, Failure> {
        let paths: Vec<PathBuf> = sources
            .iter()
            .filter(|source| !is_address(&source.location))
            .map(|source| PathBuf::from(&source.location))
            .collect();
        if paths.is_empty() {
            return Err(Failure::usage(
                "--watch only works for folders and files, but all sources are sites",
            )
            .hint("use `docent serve --every 6h` to ingest sites again regularly"));
        }
        // The data folder may be inside a watched folder.
        let own = spellings(&settings.data_dir()?);
        let (sender, changes) = unbounded_channel();
        let failed = |error: notify::Error| {
            Failure::new(Exit::Failed, format!("cannot watch the files: {error}"))
                .hint("run `docent ingest` by hand or from a timer instead")
        };
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let noticed = match event {
                Ok(event) => !matches!(event.kind, EventKind::Access(_)) && concerns(&event.paths, &own),
                // An event may have been lost, so ingest to be safe.
                Err(_) => true,
            };
            if noticed {
                // The receiver is only dropped when the program ends.
                let _ = sender.send(());
            }
        })
        .map_err(failed)?;
        for path in &paths {
            // Editors may replace a file, which would end a watch on the file itself.
            let (watched, mode) = match path.is_file() {
                true => (path.parent().unwrap_or(path), RecursiveMode::NonRecursive),
                false => (path.as_path(), RecursiveMode::Recursive),
            };
            watcher.watch(watched, mode).map_err(failed)?;
        }
        Ok(Self { _watcher: watcher, changes, folders: paths.len() })
    }

    /// Ingests again after every change, until Ctrl-C.
    pub async fn follow(mut self, refresh: &Arc<Refresh>, output: &Output) -> Result<(), Failure> {
        let what =
            if self.folders == 1 { "the source".to_owned() } else { format!("{} sources", self.folders) };
        output.note(format!("{FAINT}watching {what} for changes · Ctrl-C stops{FAINT:#}"));
        loop {
            tokio::select! {
                change = self.changes.recv() => if change.is_none() { return Ok(()) },
                () = refresh.stop().requested() => {
                    output.note("stopped");
                    return Ok(());
                }
            }
            while let Ok(Some(())) = timeout(QUIET, self.changes.recv()).await {}
            match refresh.run_watched(output).await {
                Ok(outcome) if outcome.report.published => super::show(&outcome, output)?,
                // No page changed, as when an editor wrote a temporary file.
                Ok(_) => {}
                Err(failure) if failure.exit == Exit::Stopped => {
                    output.note("stopped");
                    return Ok(());
                }
                // A file may be half written; the next change starts another ingest.
                Err(failure) => report(&failure),
            }
        }
    }
}

/// All paths under which changes in a folder may be reported; the folder may not exist yet.
fn spellings(folder: &Path) -> Vec<PathBuf> {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.canonicalize().into_iter().chain([absolute]).collect()
}

/// Whether a change affects files of the book: neither files in our data folder nor hidden ones.
fn concerns(paths: &[PathBuf], own: &[PathBuf]) -> bool {
    let hidden = |path: &Path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with('.'))
    };
    let ours = |path: &Path| own.iter().any(|own| path.starts_with(own));
    paths.is_empty() || paths.iter().any(|path| !ours(path) && !hidden(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_in_the_data_folder_are_ignored_even_before_it_exists() {
        let own = spellings(Path::new("not-there-yet/data"));
        let here = std::path::absolute(".").unwrap();
        assert!(!concerns(&[here.join("not-there-yet/data/index/ingest.lock")], &own));
        assert!(!concerns(&[here.join("book/.a.md.swp")], &own));
        assert!(concerns(&[here.join("book/a.md")], &own));
        assert!(concerns(&[], &own));
    }
}
