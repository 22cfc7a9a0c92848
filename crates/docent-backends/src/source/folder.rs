//! Reads a folder of source files: Docusaurus, mdBook, Sphinx, Asciidoctor, rendered HTML, notebooks, e-books
//! and plain Markdown.
//!
//! Invariant: every file is a page, or named in a warning, or counted among the files that are not pages.

mod editions;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use docent_parse::document::{Document, Figure, Warning};
use docent_parse::front_matter::FrontMatter;
use docent_parse::layout::{Base, Layout, Site, category_label, encode_path, without_number};
use docent_parse::mdbook::{Chapter, parse_summary};
use docent_parse::{Format, epub, parse_page, pdf_page};
use globset::GlobSet;
use rayon::prelude::*;

use super::{
    Read, Reading, SourceError, cross_references, docusaurus, docusaurus_editions, generator, mike, toctree,
};
use crate::index::contents::SourceRecord;

/// Folders without pages written by the author.
const SKIPPED_FOLDERS: [&str; 3] = ["node_modules", "__pycache__", "target"];

/// Reads a folder or a single file.
pub fn read(path: &Path, source: &SourceRecord, reading: &Reading) -> Result<Read, SourceError> {
    let path = path
        .canonicalize()
        .map_err(|error| SourceError::Unreadable { path: path.to_owned(), source: error })?;
    read_shown_as(&path, &path, source, reading)
}

/// Reads `path`, which must be canonical, but shows it as `shown`: an archive is read from the folder it was
/// unpacked to. All versions and locales of a Docusaurus project are read, unless the source is one of them.
pub(super) fn read_shown_as(
    path: &Path,
    shown: &Path,
    source: &SourceRecord,
    reading: &Reading,
) -> Result<Read, SourceError> {
    if source.version.is_none()
        && source.locale.is_none()
        && let Some(editions) = docusaurus_editions::editions(path)
    {
        let read_part = |folder: &Path, part: &SourceRecord| {
            read_folder(&path.join(folder), &shown.join(folder), part, reading)
        };
        let mut read = editions::read(&editions, path, &shown.to_string_lossy(), source, read_part)?;
        read.warnings.splice(0..0, unread(path, shown, &path.join("docs")));
        return Ok(read);
    }
    read_folder(path, shown, source, reading)
}

/// Reads the pages in one folder, or a single file.
fn read_folder(
    path: &Path,
    shown: &Path,
    source: &SourceRecord,
    reading: &Reading,
) -> Result<Read, SourceError> {
    let mut read = Read::default();
    let (root, files) = if path.is_file() {
        let root = path.parent().unwrap_or(Path::new("/")).to_owned();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        (root, vec![name])
    } else {
        let root = pages_folder(path);
        read.warnings.extend(unread(path, shown, &root));
        let files = list(&root, &project(path, &root), &mut read.warnings)?;
        (root, files)
    };
    let layout = match source.layout.as_deref().and_then(|name| name.parse().ok()) {
        Some(layout) => layout,
        None => detect(&root, &files),
    };
    let layout = generator::as_configured(layout, &root);
    read.kind = layout.name().to_owned();
    let shown = match root.strip_prefix(path) {
        Ok(below) if below.as_os_str().is_empty() => shown.to_owned(),
        Ok(below) => shown.join(below),
        Err(_) => shown.parent().unwrap_or(shown).to_owned(),
    };
    let part = editions::own_part(&root).filter(|_| layout == Layout::Docusaurus);
    let of_part = || part.as_ref().and_then(|(_, _, address)| address.clone());
    let base = match source.base_url.clone().or_else(of_part).or_else(|| generator::base_url(layout, &root)) {
        Some(url) => Base::Published(url),
        None => Base::Local(format!("file://{}", encode_path(&shown.to_string_lossy().replace('\\', "/")))),
    };
    let site = Site::new(layout, base).with_root_module(module_name(&shown));
    let project = project(path, &root);
    let (site, pages) = choose(site, &root, &project, files, &mut read);
    let parse = |page: &String| {
        let go_on = !reading.stop.is_cancelled();
        go_on.then(|| parse_file(&root, &project, page, &site, reading)).ok_or(SourceError::Stopped)
    };
    let parsed: Result<Vec<_>, _> = pages.par_iter().map(parse).collect();
    let parsed = parsed?;
    // PDFs are skipped after a cancellation, so the result would be incomplete.
    if reading.stop.is_cancelled() {
        return Err(SourceError::Stopped);
    }
    for parsed in parsed {
        let module = parsed.documents.first().map(|document| document.module.clone());
        read.labels.extend(module.zip(parsed.title));
        read.documents.extend(parsed.documents);
        read.warnings.extend(parsed.warnings);
    }
    if let Some((part, released, _)) = part {
        for document in &mut read.documents {
            document.version.clone_from(&part.version);
            document.locale.clone_from(&part.locale);
            document.work.clone_from(&released.work);
        }
        read.released.push(released);
    } else if layout == Layout::Plain {
        mike::assign(&root, &mut read);
    }
    Ok(read)
}

/// The name of the folder, or of the archive without its extension.
fn module_name(shown: &Path) -> String {
    let name =
        shown.file_name().map_or_else(|| "book".to_owned(), |name| name.to_string_lossy().into_owned());
    let stem = [".zip", ".tar.gz", ".tgz", ".tar"].iter().find_map(|ending| name.strip_suffix(ending));
    stem.unwrap_or(&name).to_owned()
}

/// The folder that files included by pages must be in: the source, or the whole project if the source is its
/// folder of pages.
fn project(path: &Path, root: &Path) -> PathBuf {
    let folder = if path.is_file() { root } else { path };
    if let Some(project) = docusaurus_editions::project_of(root) {
        return project;
    }
    match folder.parent() {
        Some(above) if is_site(above) => above.to_owned(),
        _ => folder.to_owned(),
    }
}

/// Whether the folder contains the configuration of a site generator.
fn is_site(folder: &Path) -> bool {
    docusaurus::is_project(folder)
        || ["book.toml", "conf.py", "antora.yml", "mkdocs.yml"].iter().any(|name| folder.join(name).is_file())
}

/// Whether a file can contain pages, judging by its name.
pub(super) fn has_pages(file: &str) -> bool {
    Format::of(file).is_some() || epub::is_epub(file)
}

/// The folder with the pages, if `path` is the folder of a whole project.
pub(super) fn pages_folder(path: &Path) -> PathBuf {
    if path.join("book.toml").is_file() && path.join("src/SUMMARY.md").is_file() {
        return path.join("src");
    }
    if docusaurus::is_project(path) && path.join("docs").is_dir() {
        return path.join("docs");
    }
    generator::mkdocs_pages(path).unwrap_or_else(|| path.to_owned())
}

/// Whether there are pages in the folder or below it.
pub(super) fn contains_pages(folder: &Path) -> bool {
    folder.is_dir()
        && walk(folder, folder, true, &mut Vec::new())
            .is_ok_and(|files| files.iter().any(|file| has_pages(file)))
}

/// Warnings about parts of the project at `path` that are not read; its pages are in `root`.
fn unread(path: &Path, shown: &Path, root: &Path) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = generator::mkdocs_problem(path).into_iter().collect();
    if root != path && docusaurus::is_project(path) {
        let has_pages = |folder: &Path| {
            let files = walk(folder, path, false, &mut Vec::new()).unwrap_or_default();
            files.iter().any(|file| has_pages(file))
        };
        let has_editions = docusaurus_editions::editions(path).is_some();
        warnings.extend(docusaurus::unread(path, shown, has_editions, has_pages));
    }
    warnings
}

/// All files below `root`, relative to it, sorted by name. `.gitignore` is respected, unless it excludes the
/// whole folder: an author who names an ignored folder wants it to be read.
///
/// Symbolic links are followed only if they point inside `project`.
fn list(root: &Path, project: &Path, warnings: &mut Vec<Warning>) -> Result<Vec<String>, SourceError> {
    let mut found = Vec::new();
    let mut files = walk(root, project, true, &mut found)?;
    if files.is_empty() {
        found.clear();
        files = walk(root, project, false, &mut found)?;
    }
    warnings.append(&mut found);
    Ok(files)
}

fn walk(
    root: &Path,
    project: &Path,
    respect_git: bool,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<String>, SourceError> {
    let leads_out = Arc::new(Mutex::new(Vec::new()));
    let (inside, out) = (project.to_owned(), leads_out.clone());
    let walk = ignore::WalkBuilder::new(root)
        .standard_filters(false)
        .git_ignore(respect_git)
        .git_exclude(respect_git)
        .parents(respect_git)
        .follow_links(true)
        .sort_by_file_name(|left, right| left.cmp(right))
        .filter_entry(move |entry| is_read(entry, &inside, &out))
        .build();
    let mut files = Vec::new();
    for entry in walk {
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
                files.push(relative.to_string_lossy().replace('\\', "/"));
            }
            Ok(_) => {}
            Err(error) if error.depth() == Some(0) => {
                let source =
                    error.into_io_error().unwrap_or_else(|| std::io::Error::other("cannot be listed"));
                return Err(SourceError::Unreadable { path: root.to_owned(), source });
            }
            Err(error) => {
                let path = path_of(&error).unwrap_or(root);
                let path = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
                warnings.push(Warning::new(path, format!("cannot be read: {error}")));
            }
        }
    }
    for path in leads_out.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let path = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
        warnings.push(Warning::new(path, "symbolic link that points outside the source; skipped"));
    }
    Ok(files)
}

/// Whether a file or folder is read. Links that lead out of `project` are not; they are added to `leads_out`.
fn is_read(entry: &ignore::DirEntry, project: &Path, leads_out: &Mutex<Vec<PathBuf>>) -> bool {
    let name = entry.file_name().to_string_lossy();
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    if entry.depth() == 0 {
        return true;
    }
    if name.starts_with('.') || (is_folder && SKIPPED_FOLDERS.contains(&&*name)) {
        return false;
    }
    let stays = !entry.path_is_symlink()
        || entry.path().canonicalize().is_ok_and(|target| target.starts_with(project));
    if !stays {
        leads_out.lock().unwrap_or_else(PoisonError::into_inner).push(entry.path().to_owned());
    }
    stays
}

/// The file that caused an error during the walk.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        ignore::Error::Loop { child, .. } => Some(child),
        _ => None,
    }
}

/// The site generator that the files were written for.
fn detect(root: &Path, files: &[String]) -> Layout {
    let any = |test: &dyn Fn(&str) -> bool| files.iter().any(|file| test(file));
    if files.iter().any(|file| file == "SUMMARY.md") {
        Layout::MdBook
    } else if let Some(layout) = generator::configured(root) {
        layout
    } else if docusaurus_editions::project_of(root).is_some() || docusaurus::is_written_for(root, files) {
        Layout::Docusaurus
    } else if any(&|file| file.ends_with(".rst")) {
        Layout::Sphinx
    } else if any(&|file| Format::of(file) == Some(Format::AsciiDoc)) {
        Layout::Asciidoctor
    } else {
        Layout::Plain
    }
}

/// The files that are pages, in reading order. The others are counted or cause a warning.
fn choose(
    mut site: Site,
    root: &Path,
    project: &Path,
    files: Vec<String>,
    read: &mut Read,
) -> (Site, Vec<String>) {
    let mut order: HashMap<String, usize> = HashMap::new();
    let is_book = site.layout == Layout::MdBook && files.iter().any(|file| file == "SUMMARY.md");
    if is_book {
        order = read_summary(&mut site, root, &files, read);
    }
    let mut excluded = GlobSet::empty();
    if site.layout == Layout::Sphinx {
        order = toctree::order(root, &files);
        excluded = generator::sphinx_excluded(root);
    }
    if matches!(site.layout, Layout::MkDocs { .. }) {
        order = generator::mkdocs_order(root);
    }
    let included = cross_references::included(root, &files, |page, name| load(root, project, page, name));
    site.titles = cross_references::titles(root, &files);
    let mut pages = Vec::new();
    for file in &files {
        if let Some(folder) =
            file.split_once("/_category_.").map(|(folder, _)| folder).filter(|folder| !folder.contains('/'))
        {
            let label = std::fs::read_to_string(root.join(file)).ok().and_then(|text| category_label(&text));
            read.labels.extend(label.map(|label| (without_number(folder).to_owned(), label)));
        }
        let is_out = excluded.is_match(file) && has_pages(file);
        let reason = left_out(file, &site, is_book)
            .or_else(|| second_index(file, root, site.layout))
            .or_else(|| is_out.then_some("excluded by conf.py, so not published"))
            .map(str::to_owned)
            .or_else(|| {
                included.get(file).map(|page| format!("included by {page}, so not a page of its own"))
            });
        match reason {
            Some(reason) => read.warnings.push(Warning::new(file, reason)),
            None if has_pages(file) => pages.push(file.clone()),
            None => count_other(file, &mut read.other_files),
        }
    }
    pages.sort_by_key(|page| order.get(page).copied().unwrap_or(usize::MAX));
    (site, pages)
}

/// Reads the chapters of an mdBook into `site`; returns their order.
fn read_summary(site: &mut Site, root: &Path, files: &[String], read: &mut Read) -> HashMap<String, usize> {
    let mut order = HashMap::new();
    let summary = std::fs::read_to_string(root.join("SUMMARY.md")).unwrap_or_default();
    for (number, chapter) in parse_summary(&summary).into_iter().enumerate() {
        if !files.contains(&chapter.path) {
            read.warnings.push(Warning::new(&chapter.path, "listed in SUMMARY.md but does not exist"));
        }
        order.entry(chapter.path.clone()).or_insert(number);
        site.chapters.entry(chapter.path.clone()).or_insert(chapter);
    }
    let tops = site.chapters.values().filter(|chapter| chapter.path == chapter.top);
    let label = |top: &Chapter| (site.module(&top.path, &FrontMatter::default()), top.title.clone());
    read.labels.extend(tops.map(label));
    order
}

/// Why a file that could be parsed is not a page of the site.
fn left_out(file: &str, site: &Site, is_book: bool) -> Option<&'static str> {
    if !has_pages(file) {
        return None;
    }
    let chapters: &HashMap<String, Chapter> = &site.chapters;
    if is_book && file == "SUMMARY.md" {
        return Some("table of contents: used for order and titles, not a page");
    }
    if is_book && !chapters.contains_key(file) {
        return Some("not in SUMMARY.md, so not published");
    }
    let has_partials = matches!(site.layout, Layout::Docusaurus | Layout::Asciidoctor);
    let partial = has_partials && file.split('/').any(|part| part.starts_with('_'));
    partial.then_some("partial (name starts with _): included where it is imported, not a page")
}

/// MkDocs publishes the `README.md` of a folder only if there is no `index.md`.
fn second_index(file: &str, root: &Path, layout: Layout) -> Option<&'static str> {
    let folder = file.strip_suffix("README.md").filter(|_| matches!(layout, Layout::MkDocs { .. }))?;
    let is_second = root.join(folder).join("index.md").is_file();
    is_second.then_some("not published, because the folder has an index.md")
}

fn count_other(file: &str, others: &mut BTreeMap<String, usize>) {
    let name = file.rsplit('/').next().unwrap_or(file);
    let extension = name.rsplit_once('.').map_or("no extension", |(_, extension)| extension);
    *others.entry(extension.to_lowercase()).or_default() += 1;
}

/// The pages of one file.
#[derive(Default)]
struct FilePages {
    documents: Vec<Document>,
    warnings: Vec<Warning>,
    /// The title of a file with many pages.
    title: Option<String>,
}

fn parse_file(root: &Path, project: &Path, page: &str, site: &Site, reading: &Reading) -> FilePages {
    let path = root.join(page);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let warnings = vec![Warning::new(page, format!("cannot be read: {error}"))];
            return FilePages { warnings, ..FilePages::default() };
        }
    };
    if epub::is_epub(page) {
        let book = epub::parse_epub(page, &bytes, site);
        return FilePages { documents: book.pages, warnings: book.warnings, title: book.title };
    }
    let (document, warnings) = match Format::of(page) {
        Some(Format::Pdf) => match reading.pdf.parse(bytes, &reading.stop) {
            Ok(parsed) => pdf_page(page, parsed, site),
            Err(reason) => (None, vec![Warning::new(page, reason)]),
        },
        _ => parse_page(page, &bytes, site, &mut |name| load(root, project, &path, name)),
    };
    let document = document.map(|mut document| {
        if Format::of(page) == Some(Format::Pdf) {
            document.pdf = reading.figures.as_ref().and_then(|figures| figures.keep_pdf(&path));
        }
        for section in &mut document.sections {
            section.figures.retain_mut(|figure| is_shown(figure, root, project, &path, reading));
        }
        document
    });
    FilePages { documents: document.into_iter().collect(), warnings, title: None }
}

/// Reads a file that a page includes. Only files of the same project are read.
fn load(root: &Path, project: &Path, page: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(file_of(root, project, page, name)?).ok()
}

/// The file that a page refers to, if it is in the same project.
fn file_of(root: &Path, project: &Path, page: &Path, name: &str) -> Option<PathBuf> {
    let path = match name.strip_prefix("@site/") {
        Some(inside) => {
            let site = docusaurus_editions::project_of(root);
            site.as_deref().or(root.parent()).unwrap_or(root).join(inside)
        }
        // A leading slash means the root of the documentation, as in Sphinx.
        None if name.starts_with('/') => root.join(name.trim_start_matches('/')),
        None => page.parent()?.join(name),
    };
    path.canonicalize().ok().filter(|path| path.starts_with(project))
}

/// Replaces the address of an image by that of its copy. Returns whether it can be shown.
fn is_shown(figure: &mut Figure, root: &Path, project: &Path, page: &Path, reading: &Reading) -> bool {
    if figure.image.starts_with("https://") || figure.image.starts_with("http://") {
        return true;
    }
    let Some(figures) = &reading.figures else { return false };
    let name = figure.image.split(['?', '#']).next().unwrap_or_default();
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    // Site generators publish what is in these folders at the root of the site.
    let published = name.strip_prefix('/').map(|name| {
        let folders =
            ["static", "public"].iter().flat_map(|folder| [root.join(folder), project.join(folder)]);
        folders.map(|folder| folder.join(name)).collect::<Vec<_>>()
    });
    let published = published.unwrap_or_default().into_iter().filter_map(|path| path.canonicalize().ok());
    let file = file_of(root, project, page, &name)
        .into_iter()
        .chain(published.filter(|path| path.starts_with(project)))
        .find(|path| path.is_file());
    match file.and_then(|file| figures.keep(&file)) {
        Some(copy) => figure.image = copy,
        None => return false,
    }
    true
}

#[cfg(test)]
mod tests;
