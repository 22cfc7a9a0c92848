//! `docent ingest`: read a book into the index.

use std::sync::Mutex;
use std::time::Instant;

use docent_backends::index::parts::SourceRecord;
use docent_backends::index::shelf::Shelf;
use docent_backends::ingest::{Changes, IngestError, Plan, Progress, Report, ingest};
use docent_backends::source::SourceError;
use docent_core::embed::EmbedderId;
use docent_core::language::Language;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::Ingest;
use crate::compose;
use crate::exit::{Exit, Failure};
use crate::output::{FAINT, Output, STRONG};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Ingest, output: &Output) -> Result<(), Failure> {
    let folder = settings.index_folder()?;
    let shelf = compose::shelf(settings)?;
    let sources = sources(settings, &arguments, shelf.as_ref()).await?;
    let plan = Plan { sources, language: language(settings, &arguments)? };
    let embedder = compose::embedder(settings).await?;
    let start = Instant::now();
    let ingested = ingest(&folder, shelf.as_ref(), embedder.as_deref(), &plan, &Bars::new(output)).await;
    let report = ingested.map_err(explain)?;
    let seconds = (Instant::now() - start).as_secs_f64();
    if output.json {
        return output.object(&report);
    }
    for warning in &report.warnings {
        output.warn(format!("{}: {}", warning.path, warning.message));
    }
    summary(&report, seconds, output);
    Ok(())
}

/// What was named now, or what the index remembers.
async fn sources(
    settings: &Settings,
    arguments: &Ingest,
    shelf: &dyn Shelf,
) -> Result<Vec<SourceRecord>, Failure> {
    let base_url = arguments.base_url.clone().or_else(|| settings.book.base_url.clone());
    if let Some(url) =
        base_url.as_deref().filter(|url| !url.starts_with("http://") && !url.starts_with("https://"))
    {
        return Err(Failure::usage(format!("--base-url must start with http:// or https://, got {url}")));
    }
    let layout = arguments.layout.clone().or_else(|| settings.book.layout.clone());
    if !arguments.sources.is_empty() {
        let record = |location: &String| SourceRecord {
            // Remembered in full, so that the next ingest finds it from any folder.
            location: std::path::absolute(location)
                .map_or_else(|_| location.clone(), |path| path.to_string_lossy().into_owned()),
            base_url: base_url.clone(),
            layout: layout.clone(),
        };
        let is_address = |location: &&String| location.contains("://");
        if let Some(address) = arguments.sources.iter().find(is_address) {
            return Err(explain(SourceError::Address(address.clone()).into()));
        }
        return Ok(arguments.sources.iter().map(record).collect());
    }
    let remembered = shelf.sources().await.map_err(compose::index_failure)?;
    match remembered.is_empty() {
        false => Ok(remembered),
        true => Err(Failure::usage("no source given")
            .hint("name a folder: docent ingest ./docs --base-url https://example.org/docs")),
    }
}

fn language(settings: &Settings, arguments: &Ingest) -> Result<Option<Language>, Failure> {
    let code = arguments.language.as_ref().or(settings.book.language.as_ref());
    code.map(|code| code.parse().map_err(Failure::usage)).transpose()
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
        other => Failure::new(Exit::Failed, other),
    }
}

fn summary(report: &Report, seconds: f64, output: &Output) {
    let changes = |name: &str, changes: &Changes| {
        format!(
            "{name:<9}{STRONG}{}{STRONG:#} added, {STRONG}{}{STRONG:#} changed, {STRONG}{}{STRONG:#} removed, {} unchanged",
            changes.added, changes.changed, changes.removed, changes.unchanged
        )
    };
    output.note(changes("pages", &report.pages));
    output.note(changes("sections", &report.sections));
    output.note(passages(report));
    if !report.other_files.is_empty() {
        let total: usize = report.other_files.values().sum();
        let kinds: Vec<_> =
            report.other_files.iter().map(|(extension, count)| format!("{count} .{extension}")).collect();
        output.note(format!("{FAINT}{total} other files are no pages: {}{FAINT:#}", kinds.join(", ")));
    }
    let kinds = report.kinds.join(", ");
    let outcome = if report.published { "published" } else { "nothing changed since" };
    output.note(format!(
        "{FAINT}{outcome} {} in {seconds:.1} s · {kinds} · language {} · {}{FAINT:#}",
        report.generation, report.language, report.embedder
    ));
}

fn passages(report: &Report) -> String {
    let start = format!("passages {STRONG}{}{STRONG:#}", report.chunks);
    if report.embedder == EmbedderId::none().to_string() {
        return format!("{start}, without vectors: search is by keywords only");
    }
    let resumed = match report.resumed {
        0 => String::new(),
        resumed => format!(" ({resumed} from an interrupted run)"),
    };
    format!("{start}: {} embedded, {} reused{resumed}", report.embedded, report.reused)
}

/// Progress on a terminal; silence elsewhere.
pub struct Bars {
    visible: bool,
    step: Mutex<String>,
    bar: Mutex<Option<ProgressBar>>,
}

impl Bars {
    /// Nothing to see yet.
    pub fn new(output: &Output) -> Self {
        Self { visible: output.watched() && !output.json, step: Mutex::default(), bar: Mutex::new(None) }
    }

    fn replace(&self, bar: Option<ProgressBar>) {
        let mut slot = self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(old) = slot.take() {
            old.finish_and_clear();
        }
        *slot = bar;
    }
}

impl Progress for Bars {
    fn step(&self, name: &str) {
        *self.step.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = name.to_owned();
        if self.visible {
            let bar = ProgressBar::new_spinner().with_message(name.to_owned());
            bar.enable_steady_tick(std::time::Duration::from_millis(100));
            self.replace(Some(bar));
        }
    }

    fn passages(&self, done: usize, total: usize) {
        if !self.visible || total == 0 {
            return;
        }
        let begun = self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_some();
        if done == 0 || !begun {
            let bar = ProgressBar::new(total as u64);
            let step = self.step.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
            bar.set_message(step);
            let template = "{msg} {wide_bar} {pos}/{len} passages · {per_sec} · {eta} left";
            bar.set_style(
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            self.replace(Some(bar));
        }
        if let Some(bar) = &*self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
            bar.set_position(done as u64);
        }
        if done == total {
            self.replace(None);
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.replace(None);
    }
}
