//! A folder of files as an author has it: Docusaurus, mdBook, Sphinx, rendered HTML or plain Markdown.
//!
//! Invariant: every file is a page, or named in a warning, or counted among the files
//! that are no pages.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use docent_core::document::Warning;
use docent_core::layout::{Base, Layout, Site, category_label, encode_path, without_number};
use docent_core::parse::mdbook::{Chapter, parse_summary};
use docent_core::parse::{Format, parse_page};
use rayon::prelude::*;

use super::{Read, SourceError};
use crate::index::parts::SourceRecord;

/// Folders that hold no pages of the author's.
const SKIPPED_FOLDERS: [&str; 3] = ["node_modules", "__pycache__", "target"];

/// Reads a folder, or the one file `path` names.
pub fn read(path: &Path, source: &SourceRecord) -> Result<Read, SourceError> {
    let path = path
        .canonicalize()
        .map_err(|error| SourceError::Unreadable { path: path.to_owned(), source: error })?;
    let mut read = Read::default();
    let (root, files) = if path.is_file() {
        let root = path.parent().unwrap_or(Path::new("/")).to_owned();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        (root, vec![name])
    } else {
        let root = pages_folder(&path);
        let files = list(&root, &mut read.warnings)?;
        (root, files)
    };
    let layout = match source.layout.as_deref().and_then(|name| name.parse().ok()) {
        Some(layout) => layout,
        None => detect(&root, &files),
    };
    read.kind = format!("{layout:?}");
    let site = Site {
        layout,
        base: match &source.base_url {
            Some(url) => Base::Published(url.clone()),
            None => {
                Base::Local(format!("file://{}", encode_path(&root.to_string_lossy().replace('\\', "/"))))
            }
        },
        root_module: root
            .file_name()
            .map_or_else(|| "book".to_owned(), |name| name.to_string_lossy().into_owned()),
        chapters: HashMap::new(),
    };
    let (site, pages) = choose(site, &root, files, &mut read);
    let parsed: Vec<_> = pages.par_iter().map(|page| parse_file(&root, page, &site)).collect();
    for (document, warnings) in parsed {
        read.documents.extend(document);
        read.warnings.extend(warnings);
    }
    Ok(read)
}

/// The folder with the pages, when the folder given is that of a whole site.
fn pages_folder(path: &Path) -> PathBuf {
    if path.join("book.toml").is_file() && path.join("src/SUMMARY.md").is_file() {
        return path.join("src");
    }
    if has_docusaurus_config(path) && path.join("docs").is_dir() {
        return path.join("docs");
    }
    path.to_owned()
}

fn has_docusaurus_config(folder: &Path) -> bool {
    ["js", "ts", "mjs", "cjs"]
        .iter()
        .any(|extension| folder.join(format!("docusaurus.config.{extension}")).is_file())
}

/// All files below `root`, relative to it, in name order.
fn list(root: &Path, warnings: &mut Vec<Warning>) -> Result<Vec<String>, SourceError> {
    let keep = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0
            || !(name.starts_with('.') || (entry.file_type().is_dir() && SKIPPED_FOLDERS.contains(&&*name)))
    };
    let mut files = Vec::new();
    for entry in
        walkdir::WalkDir::new(root).follow_links(true).sort_by_file_name().into_iter().filter_entry(keep)
    {
        match entry {
            Ok(entry) if entry.file_type().is_file() => {
                let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
                files.push(relative.to_string_lossy().replace('\\', "/"));
            }
            Ok(_) => {}
            Err(error) => {
                let path = error.path().unwrap_or(root).to_owned();
                if error.depth() == 0 {
                    let source =
                        error.into_io_error().unwrap_or_else(|| std::io::Error::other("cannot be listed"));
                    return Err(SourceError::Unreadable { path, source });
                }
                warnings.push(Warning::new(path.to_string_lossy(), format!("cannot be read: {error}")));
            }
        }
    }
    Ok(files)
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
    } else if any(&|file| file.ends_with(".rst")) {
        Layout::Sphinx
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
    }
    let mut pages = Vec::new();
    for file in files {
        if let Some(folder) =
            file.split_once("/_category_.").map(|(folder, _)| folder).filter(|folder| !folder.contains('/'))
        {
            let label = std::fs::read_to_string(root.join(&file)).ok().and_then(|text| category_label(&text));
            read.labels.extend(label.map(|label| (without_number(folder).to_owned(), label)));
        }
        match left_out(&file, &site, is_book) {
            Some(reason) => read.warnings.push(Warning::new(&file, reason)),
            None if Format::of(&file).is_some() => pages.push(file),
            None => count_other(&file, &mut read.other_files),
        }
    }
    pages.sort_by_key(|page| order.get(page).copied());
    (site, pages)
}

/// Why a file that could be read is no page of the site.
fn left_out(file: &str, site: &Site, is_book: bool) -> Option<&'static str> {
    Format::of(file)?;
    let chapters: &HashMap<String, Chapter> = &site.chapters;
    if is_book && file == "SUMMARY.md" {
        return Some("the table of contents: read for order and titles, not a page");
    }
    if is_book && !chapters.contains_key(file) {
        return Some("not in SUMMARY.md, so not published");
    }
    let partial = site.layout == Layout::Docusaurus && file.split('/').any(|part| part.starts_with('_'));
    partial.then_some("a partial (its name starts with _): shown where it is imported, not a page")
}

fn count_other(file: &str, others: &mut BTreeMap<String, usize>) {
    let name = file.rsplit('/').next().unwrap_or(file);
    let extension = name.rsplit_once('.').map_or("no extension", |(_, extension)| extension);
    *others.entry(extension.to_lowercase()).or_default() += 1;
}

fn parse_file(
    root: &Path,
    page: &str,
    site: &Site,
) -> (Option<docent_core::document::Document>, Vec<Warning>) {
    let path = root.join(page);
    match std::fs::read(&path) {
        Ok(bytes) => parse_page(page, &bytes, site, &mut |name| load(root, &path, name)),
        Err(error) => (None, vec![Warning::new(page, format!("cannot be read: {error}"))]),
    }
}

/// A file named inside a page. Only files of the same project are read, wherever a page points.
fn load(root: &Path, page: &Path, name: &str) -> Option<String> {
    let project = root.parent().unwrap_or(root);
    let path = match name.strip_prefix("@site/") {
        Some(inside) => project.join(inside),
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
