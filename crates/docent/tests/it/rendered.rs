//! Books rendered by real site generators, and local servers that publish them.
//!
//! Invariant: the rendered copy is served unchanged, except for its host name and what a test adds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use docent_backends::index::contents::SourceRecord;
use docent_backends::progress::Progress;
use docent_backends::source::{Read, site};
use docent_testkit::ScriptedSite;
use docent_testkit::scripted_site::Answer;
use scraper::{Html, Selector};

/// The address at which the rendered copies were published.
const PUBLISHED: &str = "https://mill.example";

/// A book in both forms.
pub struct Book {
    pub name: &'static str,
    /// The folder with the sources.
    pub source: PathBuf,
    /// The folder that is published.
    pub rendered: PathBuf,
    /// The path of the pages below the address of the site.
    pub below: &'static str,
}

/// All books with a rendered copy.
pub fn books() -> Vec<Book> {
    let kept = [
        ("Docusaurus", "docusaurus", "/docs"),
        ("mdBook", "mdbook", ""),
        ("Sphinx", "sphinx", ""),
        ("MkDocs Material", "mkdocs", ""),
        ("VitePress", "vitepress", ""),
        ("Asciidoctor", "asciidoctor", ""),
    ];
    kept.map(|(name, folder, below)| {
        let folder = generators().join(folder);
        Book { name, source: folder.join("source"), rendered: folder.join("rendered"), below }
    })
    .into()
}

pub fn generators() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/generators")
}

/// Publishes a folder on a local port; every page is passed through `change`.
pub fn publish(folder: &Path, change: impl Fn(String) -> String + Send + Sync + 'static) -> ScriptedSite {
    let folder = folder.to_owned();
    let script = move |visit: &docent_testkit::scripted_site::Visit| {
        let host = visit.headers.get("host").cloned().unwrap_or_default();
        let Some(file) = file(&folder, &visit.path) else {
            // Styles, scripts and images are not stored; a browser would report each of them.
            let is_page =
                !visit.path.contains('.') || visit.path.contains(".html") || visit.path.contains(".xml");
            return Answer::status(if is_page || visit.path.contains(".txt") { 404 } else { 204 });
        };
        let bytes = std::fs::read(&file).unwrap();
        let kind = match file.extension().and_then(|ending| ending.to_str()) {
            Some("html") => "text/html; charset=utf-8",
            Some("xml") => "application/xml",
            Some("css") => return Answer::of("text/css", bytes),
            _ => return Answer::of("application/octet-stream", bytes),
        };
        let text = String::from_utf8_lossy(&bytes).replace(PUBLISHED, &format!("http://{host}"));
        Answer::of(kind, if kind.starts_with("text/html") { change(text) } else { text })
    };
    ScriptedSite::start(script).unwrap()
}

/// The file that a static file server sends for a path.
pub fn file(folder: &Path, path: &str) -> Option<PathBuf> {
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
    if path.contains("..") {
        return None;
    }
    let candidates =
        [folder.join(path), folder.join(path).join("index.html"), folder.join(format!("{path}.html"))];
    candidates.into_iter().find(|file| file.is_file())
}

/// Crawls the site that is published at a local address.
pub async fn read_site(address: &str) -> Read {
    let mut source = SourceRecord::new(address);
    source.site.get_or_insert_default().allow_private = true;
    let cache = tempfile::tempdir().unwrap();
    site::read(&source, &site::Limits::default(), cache.path(), &Silent).await.unwrap()
}

/// Reads a folder of sources whose pages are published at `base`.
pub fn read_source(folder: &Path, base: &str) -> Read {
    let mut source = SourceRecord::new(folder.to_string_lossy());
    source.base_url = Some(base.to_owned());
    docent_backends::source::read(&source, &Default::default()).unwrap()
}

struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str) {}

    fn passages(&self, _: usize, _: usize) {}
}

/// The text at each id of a rendered page: its first words, letters and digits only.
pub fn ids(html: &str) -> BTreeMap<String, String> {
    let page = Html::parse_document(html);
    let with_id = Selector::parse("[id], a[name]").unwrap();
    let mut found = BTreeMap::new();
    for element in page.select(&with_id) {
        let text: String =
            element.text().flat_map(str::chars).filter(|c| c.is_alphanumeric()).take(200).collect();
        for id in ["id", "name"].iter().filter_map(|name| element.attr(name)) {
            found.entry(id.to_owned()).or_insert_with(|| text.clone());
        }
    }
    found
}

/// All pages below a folder.
pub fn pages_in(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut pages_in(&path));
        } else if path.extension().is_some_and(|ending| ending == "html") {
            found.insert(path);
        }
    }
    found
}
