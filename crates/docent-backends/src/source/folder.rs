//! A folder of files as an author has it: Docusaurus, mdBook, Sphinx, Asciidoctor, rendered HTML,
//! notebooks, books and plain Markdown.
//!
//! Invariant: every file is a page, or named in a warning, or counted among the files
//! that are no pages.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use docent_core::document::{Document, Warning};
use docent_core::layout::{Base, Layout, Site, category_label, encode_path, without_number};
use docent_core::parse::front_matter::FrontMatter;
use docent_core::parse::mdbook::{Chapter, parse_summary};
use docent_core::parse::{Format, epub, parse_page};
use globset::GlobSet;
use rayon::prelude::*;

use super::{Read, SourceError, generator, patience, toctree};
use crate::index::parts::SourceRecord;

/// Folders that hold no pages of the author's.
const SKIPPED_FOLDERS: [&str; 3] = ["node_modules", "__pycache__", "target"];

/// Reads a folder, or the one file `path` names.
pub fn read(path: &Path, source: &SourceRecord) -> Result<Read, SourceError> {
    let path = path
        .canonicalize()
        .map_err(|error| SourceError::Unreadable { path: path.to_owned(), source: error })?;
    read_shown_as(&path, &path, source)
}

/// Reads what lies at `path` and stands for `shown`: an archive is read from the folder it was
/// unpacked to. `path` is canonical.
pub(super) fn read_shown_as(path: &Path, shown: &Path, source: &SourceRecord) -> Result<Read, SourceError> {
    let mut read = Read::default();
    let (root, files) = if path.is_file() {
        let root = path.parent().unwrap_or(Path::new("/")).to_owned();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        (root, vec![name])
    } else {
        let root = pages_folder(path);
        let files = list(&root, &mut read.warnings)?;
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
    let site = Site {
        layout,
        base: match &source.base_url {
            Some(url) => Base::Published(url.clone()),
            None => {
                Base::Local(format!("file://{}", encode_path(&shown.to_string_lossy().replace('\\', "/"))))
            }
        },
        root_module: module_name(&shown),
        chapters: HashMap::new(),
    };
    let (site, pages) = choose(site, &root, files, &mut read);
    let project = project(path, &root);
    let parsed: Vec<_> = pages.par_iter().map(|page| parse_file(&root, &project, page, &site)).collect();
    for parsed in parsed {
        let module = parsed.documents.first().map(|document| document.module.clone());
        read.labels.extend(module.zip(parsed.title));
        read.documents.extend(parsed.documents);
        read.warnings.extend(parsed.warnings);
    }
    Ok(read)
}

/// The name of the folder, or of the archive without its ending.
fn module_name(shown: &Path) -> String {
    let name =
        shown.file_name().map_or_else(|| "book".to_owned(), |name| name.to_string_lossy().into_owned());
    let stem = [".zip", ".tar.gz", ".tgz", ".tar"].iter().find_map(|ending| name.strip_suffix(ending));
    stem.unwrap_or(&name).to_owned()
}

/// Where files named inside pages may lie: the source, and all of a site whose pages are in a
/// folder of it.
fn project(path: &Path, root: &Path) -> PathBuf {
    let folder = if path.is_file() { root } else { path };
    match folder.parent() {
        Some(above) if is_site(above) => above.to_owned(),
        _ => folder.to_owned(),
    }
}

/// The folder has the configuration of a generator.
fn is_site(folder: &Path) -> bool {
    has_docusaurus_config(folder)
        || ["book.toml", "conf.py", "antora.yml", "mkdocs.yml"].iter().any(|name| folder.join(name).is_file())
}

/// Whether a file is read for pages, by its name.
pub(super) fn has_pages(file: &str) -> bool {
    Format::of(file).is_some() || epub::is_epub(file)
}

/// The folder with the pages, when the folder given is that of a whole site.
fn pages_folder(path: &Path) -> PathBuf {
    if path.join("book.toml").is_file() && path.join("src/SUMMARY.md").is_file() {
        return path.join("src");
    }
    if has_docusaurus_config(path) && path.join("docs").is_dir() {
        return path.join("docs");
    }
    generator::mkdocs_pages(path).unwrap_or_else(|| path.to_owned())
}

fn has_docusaurus_config(folder: &Path) -> bool {
    ["js", "ts", "mjs", "cjs"]
        .iter()
        .any(|extension| folder.join(format!("docusaurus.config.{extension}")).is_file())
}

/// All files below `root`, relative to it, in name order. What a git checkout ignores is left
/// out, unless the whole folder is ignored: an author who names it wants it read.
fn list(root: &Path, warnings: &mut Vec<Warning>) -> Result<Vec<String>, SourceError> {
    let files = walk(root, true, warnings)?;
    if files.is_empty() { walk(root, false, warnings) } else { Ok(files) }
}

fn walk(root: &Path, respect_git: bool, warnings: &mut Vec<Warning>) -> Result<Vec<String>, SourceError> {
    let keep = |entry: &ignore::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() == 0 || !(name.starts_with('.') || (is_folder && SKIPPED_FOLDERS.contains(&&*name)))
    };
    let walk = ignore::WalkBuilder::new(root)
        .standard_filters(false)
        .git_ignore(respect_git)
        .git_exclude(respect_git)
        .parents(respect_git)
        .follow_links(true)
        .sort_by_file_name(|left, right| left.cmp(right))
        .filter_entry(keep)
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
    Ok(files)
}

/// The file that an error of the walk is about.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        ignore::Error::Loop { child, .. } => Some(child),
        _ => None,
    }
}

/// Which generator the files were written for.
fn detect(root: &Path, files: &[String]) -> Layout {
    let any = |test: &dyn Fn(&str) -> bool| files.iter().any(|file| test(file));
    let docusaurus = || {
        any(&|file| {
            file.ends_with(".mdx") || file.ends_with("_category_.json") || file.ends_with("_category_.yml")
        }) || root.parent().is_some_and(has_docusaurus_config)
    };
    if files.iter().any(|file| file == "SUMMARY.md") {
        Layout::MdBook
    } else if docusaurus() {
        Layout::Docusaurus
    } else if let Some(layout) = generator::configured(root) {
        layout
    } else if any(&|file| file.ends_with(".rst")) {
        Layout::Sphinx
    } else if any(&|file| Format::of(file) == Some(Format::AsciiDoc)) {
        Layout::Asciidoctor
    } else {
        Layout::Plain
    }
}

/// The files that are pages, in reading order; the others are warned about or counted.
fn choose(mut site: Site, root: &Path, files: Vec<String>, read: &mut Read) -> (Site, Vec<String>) {
    let mut order: HashMap<String, usize> = HashMap::new();
    let is_book = site.layout == Layout::MdBook && files.iter().any(|file| file == "SUMMARY.md");
    if is_book {
        let summary = std::fs::read_to_string(root.join("SUMMARY.md")).unwrap_or_default();
        for (number, chapter) in parse_summary(&summary).into_iter().enumerate() {
            if !files.contains(&chapter.path) {
                read.warnings.push(Warning::new(&chapter.path, "named in SUMMARY.md but not there"));
            }
            order.entry(chapter.path.clone()).or_insert(number);
            site.chapters.entry(chapter.path.clone()).or_insert(chapter);
        }
        let tops = site.chapters.values().filter(|chapter| chapter.path == chapter.top);
        let label = |top: &Chapter| (site.module(&top.path, &FrontMatter::default()), top.title.clone());
        read.labels.extend(tops.map(label));
    }
    let mut excluded = GlobSet::empty();
    if site.layout == Layout::Sphinx {
        order = toctree::order(root, &files);
        excluded = generator::sphinx_excluded(root);
    }
    if matches!(site.layout, Layout::MkDocs { .. }) {
        order = generator::mkdocs_order(root);
    }
    let mut pages = Vec::new();
    for file in files {
        if let Some(folder) =
            file.split_once("/_category_.").map(|(folder, _)| folder).filter(|folder| !folder.contains('/'))
        {
            let label = std::fs::read_to_string(root.join(&file)).ok().and_then(|text| category_label(&text));
            read.labels.extend(label.map(|label| (without_number(folder).to_owned(), label)));
        }
        let is_out = excluded.is_match(&file) && has_pages(&file);
        let reason = left_out(&file, &site, is_book).or_else(|| second_index(&file, root, site.layout));
        match reason.or_else(|| is_out.then_some("excluded by conf.py, so not published")) {
            Some(reason) => read.warnings.push(Warning::new(&file, reason)),
            None if has_pages(&file) => pages.push(file),
            None => count_other(&file, &mut read.other_files),
        }
    }
    pages.sort_by_key(|page| order.get(page).copied().unwrap_or(usize::MAX));
    (site, pages)
}

/// Why a file that could be read is no page of the site.
fn left_out(file: &str, site: &Site, is_book: bool) -> Option<&'static str> {
    if !has_pages(file) {
        return None;
    }
    let chapters: &HashMap<String, Chapter> = &site.chapters;
    if is_book && file == "SUMMARY.md" {
        return Some("the table of contents: read for order and titles, not a page");
    }
    if is_book && !chapters.contains_key(file) {
        return Some("not in SUMMARY.md, so not published");
    }
    let has_partials = matches!(site.layout, Layout::Docusaurus | Layout::Asciidoctor);
    let partial = has_partials && file.split('/').any(|part| part.starts_with('_'));
    partial.then_some("a partial (its name starts with _): shown where it is imported, not a page")
}

/// MkDocs publishes the `README.md` of a folder only where there is no `index.md`.
fn second_index(file: &str, root: &Path, layout: Layout) -> Option<&'static str> {
    let folder = file.strip_suffix("README.md").filter(|_| matches!(layout, Layout::MkDocs { .. }))?;
    let is_second = root.join(folder).join("index.md").is_file();
    is_second.then_some("index.md is the page of this folder, so not published")
}

fn count_other(file: &str, others: &mut BTreeMap<String, usize>) {
    let name = file.rsplit('/').next().unwrap_or(file);
    let extension = name.rsplit_once('.').map_or("no extension", |(_, extension)| extension);
    *others.entry(extension.to_lowercase()).or_default() += 1;
}

/// What one file came to.
#[derive(Default)]
struct FilePages {
    documents: Vec<Document>,
    warnings: Vec<Warning>,
    /// What the author calls a file of many pages.
    title: Option<String>,
}

fn parse_file(root: &Path, project: &Path, page: &str, site: &Site) -> FilePages {
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
        Some(Format::Pdf) => patience::parse_pdf(page, bytes, site),
        _ => parse_page(page, &bytes, site, &mut |name| load(root, project, &path, name)),
    };
    FilePages { documents: document.into_iter().collect(), warnings, title: None }
}

/// A file named inside a page. Only files of the same project are read, wherever a page points.
fn load(root: &Path, project: &Path, page: &Path, name: &str) -> Option<String> {
    let path = match name.strip_prefix("@site/") {
        Some(inside) => root.parent().unwrap_or(root).join(inside),
        // A leading slash means the root of the documentation, as in Sphinx.
        None if name.starts_with('/') => root.join(name.trim_start_matches('/')),
        None => page.parent()?.join(name),
    };
    let path = path.canonicalize().ok()?;
    if !path.starts_with(project) {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    fn read_folder(files: &[(&str, &str)]) -> (Read, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), files);
        let source = SourceRecord {
            location: folder.path().to_string_lossy().into_owned(),
            base_url: Some("https://x.org/docs".into()),
            ..SourceRecord::default()
        };
        (read(folder.path(), &source).unwrap(), folder)
    }

    fn urls(read: &Read) -> Vec<&str> {
        read.documents.iter().map(|document| document.url.trim_start_matches("https://x.org/docs")).collect()
    }

    fn warnings(read: &Read) -> Vec<String> {
        read.warnings.iter().map(|warning| format!("{}: {}", warning.path, warning.message)).collect()
    }

    #[test]
    fn a_docusaurus_folder() {
        let (read, _folder) = read_folder(&[
            ("01-ros2/02-nodes.mdx", "---\ntitle: Nodes\n---\nimport P from './_p.mdx';\n\n<P />\n"),
            ("01-ros2/_p.mdx", "Shared words."),
            ("01-ros2/_category_.json", "{\"label\": \"ROS 2\", \"position\": 1}"),
            ("index.md", "# Hi\nText"),
            ("img/a.png", "x"),
        ]);
        assert_eq!(read.kind, "Docusaurus");
        assert_eq!(read.labels["ros2"], "ROS 2");
        assert_eq!(urls(&read), ["/ros2/nodes", "/"]);
        assert_eq!(read.documents[0].sections[0].blocks[0].text, "Shared words.");
        assert_eq!(
            warnings(&read),
            ["01-ros2/_p.mdx: a partial (its name starts with _): shown where it is imported, not a page"]
        );
        assert_eq!(
            read.other_files.into_iter().collect::<Vec<_>>(),
            [("json".to_owned(), 1), ("png".to_owned(), 1)]
        );
    }

    #[test]
    fn a_book_in_the_order_of_its_summary() {
        let (read, _folder) = read_folder(&[
            ("book.toml", ""),
            ("src/SUMMARY.md", "- [Two](b.md)\n  - [One](a.md)\n- [Gone](gone.md)\n"),
            ("src/a.md", "# A\n{{#include ../code/x.rs}}\n"),
            ("src/b.md", "# B\ntext"),
            ("src/c.md", "# C\n"),
            ("code/x.rs", "fn main() {}"),
        ]);
        assert_eq!(read.kind, "MdBook");
        assert_eq!(
            read.labels.iter().collect::<Vec<_>>(),
            [(&"b".to_owned(), &"Two".to_owned()), (&"gone".to_owned(), &"Gone".to_owned())]
        );
        assert_eq!(urls(&read), ["/b.html", "/a.html"]);
        assert_eq!(read.documents[1].title, "One");
        assert_eq!(read.documents[1].module, "b");
        assert_eq!(read.documents[1].sections[0].blocks[0].text, "fn main() {}");
        assert_eq!(
            warnings(&read),
            [
                "gone.md: named in SUMMARY.md but not there",
                "SUMMARY.md: the table of contents: read for order and titles, not a page",
                "c.md: not in SUMMARY.md, so not published",
            ]
        );
    }

    #[test]
    fn an_include_cannot_leave_the_project() {
        let (read, _folder) = read_folder(&[
            ("src/SUMMARY.md", "- [A](a.md)\n"),
            ("book.toml", ""),
            ("src/a.md", "x {{#include ../../../../../../../../etc/hostname}}\n"),
        ]);
        assert_eq!(read.documents[0].sections[0].blocks[0].text, "x");
        assert_eq!(warnings(&read).len(), 2);
    }

    #[test]
    fn an_include_cannot_leave_the_source() {
        let above = tempfile::tempdir().unwrap();
        write(
            above.path(),
            &[
                ("secret.txt", "secret"),
                ("book/a.adoc", "= A\n\ninclude::../secret.txt[]\n\ninclude::b/_part.adoc[]\n"),
                ("book/b/_part.adoc", "Part.\n\ninclude::../a.adoc[]\n"),
                ("book/c.rst", "C\n=\n\n.. include:: ../secret.txt\n\n.. include:: c.rst\n"),
            ],
        );
        let path = above.path().join("book");
        let source = SourceRecord {
            location: path.to_string_lossy().into_owned(),
            base_url: None,
            layout: Some("asciidoctor".into()),
            ..SourceRecord::default()
        };
        let read = read(&path, &source).unwrap();
        let text = format!("{:?}", read.documents);
        assert!(!text.contains("secret") && text.contains("Part."), "{text}");
        assert!(warnings(&read).contains(&"a.adoc: included file not found: ../secret.txt".to_owned()));
        assert!(warnings(&read).contains(&"c.rst: included file not found: ../secret.txt".to_owned()));
    }

    #[test]
    fn a_sphinx_folder_in_the_order_of_its_toctrees() {
        let (read, _folder) = read_folder(&[
            ("index.rst", "Book\n====\n\n.. toctree::\n\n   zeta\n   Alpha <guide/index>\n   rest/*\n"),
            ("guide/index.rst", "Guide\n=====\n\n.. toctree::\n\n   two\n   one\n   /index\n"),
            ("guide/one.rst", "One\n===\n\nText\n"),
            ("guide/two.rst", "Two\n===\n\nText\n"),
            ("orphan.rst", "O\n=\n\nText\n"),
            ("rest/b.rst", "B\n=\n\nText\n"),
            ("rest/a.rst", "A\n=\n\nText\n"),
            ("zeta.rst", "Z\n=\n\nText\n"),
        ]);
        assert_eq!(
            urls(&read),
            [
                "/index.html",
                "/zeta.html",
                "/guide/index.html",
                "/guide/two.html",
                "/guide/one.html",
                "/rest/a.html",
                "/rest/b.html",
                "/orphan.html"
            ]
        );
    }

    #[test]
    fn an_asciidoctor_folder() {
        let (read, _folder) = read_folder(&[
            ("guide/a.adoc", "= A\n\n== Setup\n\nText\n"),
            ("_part.adoc", "Part."),
            ("n.ipynb", "{\"cells\": []}"),
        ]);
        assert_eq!(read.kind, "Asciidoctor");
        assert_eq!(urls(&read), ["/guide/a.html", "/n.ipynb"]);
    }

    #[test]
    fn a_checkout_leaves_out_what_git_ignores() {
        let files = [
            (".gitignore", "drafts/\n*.tmp.md\n!keep.tmp.md\n"),
            ("a.md", "A."),
            ("b.tmp.md", "B."),
            ("keep.tmp.md", "K."),
            ("drafts/c.md", "C."),
            ("sub/.gitignore", "d.md\n"),
            ("sub/d.md", "D."),
            ("sub/e.md", "E."),
        ];
        let (plain, _folder) = read_folder(&files);
        assert_eq!(plain.documents.len(), 6, "no checkout, no rules");
        let (read, folder) = read_folder(&[&files[..], &[(".git/HEAD", "ref: refs/heads/main")]].concat());
        assert_eq!(urls(&read), ["/a.md", "/keep.tmp.md", "/sub/e.md"]);
        let drafts = folder.path().join("drafts");
        let source =
            SourceRecord { location: drafts.to_string_lossy().into_owned(), ..SourceRecord::default() };
        assert_eq!(
            super::read(&drafts, &source).unwrap().documents.len(),
            1,
            "an ignored folder can be named"
        );
    }

    #[test]
    fn without_a_base_url_a_page_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("my book/a.md", "# A\ntext")]);
        let path = folder.path().join("my book/a.md");
        let source =
            SourceRecord { location: path.to_string_lossy().into_owned(), ..SourceRecord::default() };
        let read = read(&path, &source).unwrap();
        let expected =
            format!("file://{}", path.canonicalize().unwrap().display()).replace("my book", "my%20book");
        assert_eq!(read.documents[0].url, expected);
    }
}
