//! `docent ingest`: read a book into the index.

use std::sync::Mutex;
use std::time::Instant;

use docent_backends::index::parts::{SiteOptions, SourceRecord};
use docent_backends::index::shelf::Shelf;
use docent_backends::ingest::{Changes, IngestError, Plan, Progress, Report, ingest};
use docent_backends::source::SourceError;
use docent_backends::source::site::{SiteReport, is_address};
use docent_core::embed::EmbedderId;
use docent_core::language::Language;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::{Ingest, Site};
use crate::compose;
use crate::exit::{Exit, Failure};
use crate::output::{FAINT, Output, STRONG};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Ingest, output: &Output) -> Result<(), Failure> {
    let folder = settings.index_folder()?;
    let shelf = compose::shelf(settings)?;
    let sources = sources(settings, &arguments, shelf.as_ref()).await?;
    let plan = Plan { sources, language: language(settings, &arguments)?, limits: settings.site.limits() };
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
        let site = site_options(&arguments.site);
        let record = |location: &String| SourceRecord {
            location: match is_address(location) {
                true => location.trim().to_owned(),
                // Remembered in full, so that the next ingest finds it from any folder.
                false => std::path::absolute(location)
                    .map_or_else(|_| location.clone(), |path| path.to_string_lossy().into_owned()),
            },
            base_url: base_url.clone(),
            layout: layout.clone(),
            site: site.clone().filter(|_| is_address(location)),
        };
        if site.is_some() && !arguments.sources.iter().any(|location| is_address(location)) {
            return Err(Failure::usage(
                "--include, --exclude, --max-pages, --max-depth and --allow-private are for sites, but none is named",
            ));
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

/// What was asked for about sites; none when nothing was.
fn site_options(flags: &Site) -> Option<SiteOptions> {
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let options = SiteOptions {
        include: flags.include.clone(),
        exclude: flags.exclude.clone(),
        max_pages: flags.max_pages.map(number),
        max_depth: flags.max_depth.map(number),
        allow_private: flags.allow_private,
    };
    (options != SiteOptions::default()).then_some(options)
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
    for site in &report.sites {
        site_summary(site, output);
    }
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

fn site_summary(site: &SiteReport, output: &Output) {
    let kept = match site.kept {
        0 => String::new(),
        kept => format!(", {kept} kept as they were because the server failed"),
    };
    let skipped: usize = site.skipped.values().map(|skipped| skipped.count).sum();
    output.note(format!(
        "site     {STRONG}{}{STRONG:#} fetched, {STRONG}{}{STRONG:#} unchanged (304){kept}, {skipped} skipped, found by {}",
        site.fetched, site.unchanged, site.found_by
    ));
    for (reason, skipped) in &site.skipped {
        let examples = skipped.examples.join(", ");
        let dots = if skipped.count > skipped.examples.len() { ", …" } else { "" };
        output.note(format!("{FAINT}         {} {reason}: {examples}{dots}{FAINT:#}", skipped.count));
    }
    if site.more {
        output.warn(format!(
            "{} has more pages than were allowed; raise --max-pages or --max-depth to read them",
            site.address
        ));
    }
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
    fn pages(&self, done: usize, known: usize) {
        if let Some(bar) = &*self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
            bar.set_message(format!("reading: {done} of {known} pages found so far"));
        }
    }

    fn step(&self, name: &str) {
        tracing::debug!(step = name, "ingest");
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
