//! Which sources to ingest: those on the command line, else those in `docent.toml`, else those of the previous ingest.

use docent_backends::index::contents::{SiteOptions, SourceRecord};
use docent_backends::index::target::IndexTarget;
use docent_backends::source::site::is_address;
use docent_core::language::Language;

use crate::cli::{Ingest, Site};
use crate::compose;
use crate::exit::Failure;
use crate::settings::{Settings, is_web};

/// The sources named on the command line or in the settings; may be empty.
pub fn named(settings: &Settings, arguments: &Ingest) -> Result<Vec<SourceRecord>, Failure> {
    if arguments.sources.is_empty() {
        return configured(settings);
    }
    let base_url = arguments.base_url.clone().or_else(|| settings.book.base_url.clone());
    if let Some(url) = base_url.as_deref().filter(|url| !is_web(url)) {
        return Err(Failure::usage(format!("--base-url must start with http:// or https://, got {url}")));
    }
    let layout = arguments.layout.clone().or_else(|| settings.book.layout.clone());
    let site = site_options(&arguments.site);
    if site.is_some() && !arguments.sources.iter().any(|location| is_address(location)) {
        return Err(Failure::usage(
            "--include, --exclude, --max-pages, --max-depth and --allow-private only apply to sites, but no source \
             is a site",
        ));
    }
    let record = |location: &String| {
        let mut record = SourceRecord::new(match is_address(location) {
            true => location.trim().to_owned(),
            // Stored as an absolute path, so that the next ingest finds it from any folder.
            false => std::path::absolute(location)
                .map_or_else(|_| location.clone(), |path| path.to_string_lossy().into_owned()),
        });
        record.base_url.clone_from(&base_url);
        record.layout.clone_from(&layout);
        record.version.clone_from(&arguments.doc_version);
        record.locale.clone_from(&arguments.locale);
        record.site = site.clone().filter(|_| is_address(location));
        record
    };
    Ok(arguments.sources.iter().map(record).collect())
}

/// The sources listed in `docent.toml`.
pub fn configured(settings: &Settings) -> Result<Vec<SourceRecord>, Failure> {
    settings.sources.iter().map(|source| source.record(&settings.book)).collect()
}

/// The sources of the previous ingest, as stored in the index.
pub async fn remembered(target: &dyn IndexTarget) -> Result<Vec<SourceRecord>, Failure> {
    let remembered = target.sources().await.map_err(compose::index_failure)?;
    match remembered.is_empty() {
        false => Ok(remembered),
        true => Err(Failure::usage("no source given").hint(
            "pass a folder, such as `docent ingest ./docs --base-url https://example.org/docs`, or list [[sources]] in docent.toml",
        )),
    }
}

/// The options for sites; `None` if none is set.
fn site_options(flags: &Site) -> Option<SiteOptions> {
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut options = SiteOptions::default();
    options.include.clone_from(&flags.include);
    options.exclude.clone_from(&flags.exclude);
    options.max_pages = flags.max_pages.map(number);
    options.max_depth = flags.max_depth.map(number);
    options.allow_private = flags.allow_private;
    (options != SiteOptions::default()).then_some(options)
}

/// The language of the book, if it is set.
pub fn language(settings: &Settings, flag: Option<&str>) -> Result<Option<Language>, Failure> {
    let code = flag.or(settings.book.language.as_deref());
    code.map(|code| code.parse().map_err(Failure::usage)).transpose()
}
