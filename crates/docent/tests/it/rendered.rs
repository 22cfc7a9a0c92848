//! Books that real generators rendered, and servers that publish them on this machine.
//!
//! Invariant: what is served is the rendered copy, but for the name of its host and for what a
//! test adds by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use docent_backends::index::parts::{SiteOptions, SourceRecord};
use docent_backends::ingest::Progress;
use docent_backends::source::{Read, site};
use docent_backends::testing::ScriptedSite;
use docent_backends::testing::scripted_site::Answer;
use scraper::{Html, Selector};

/// Where the rendered copies believe to be published.
const PUBLISHED: &str = "https://mill.example";

/// A book in both forms.
pub struct Book {
    pub name: &'static str,
    /// The folder an author has.
    pub source: PathBuf,
    /// The folder that is published.
    pub rendered: PathBuf,
    /// Where the pages lie below the address of the site.
    pub below: &'static str,
}

/// All books that are kept rendered.
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

/// Publishes a folder on a port of this machine; every page goes through `change`.
pub fn publish(folder: &Path, change: impl Fn(String) -> String + Send + Sync + 'static) -> ScriptedSite {
    let folder = folder.to_owned();
    let script = move |visit: &docent_backends::testing::scripted_site::Visit| {
        let host = visit.headers.get("host").cloned().unwrap_or_default();
        let Some(file) = file(&folder, &visit.path) else {
            // Styles, scripts and pictures are not kept; a browser would complain about each.
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

/// The file a server of static pages sends for a path.
pub fn file(folder: &Path, path: &str) -> Option<PathBuf> {
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
    if path.contains("..") {
        return None;
    }
    let candidates =
        [folder.join(path), folder.join(path).join("index.html"), folder.join(format!("{path}.html"))];
    candidates.into_iter().find(|file| file.is_file())
}

/// Reads the site that is published at an address of this machine.
pub async fn read_site(address: &str) -> Read {
    let source = SourceRecord {
        location: address.to_owned(),
        site: Some(SiteOptions { allow_private: true, ..SiteOptions::default() }),
        ..SourceRecord::default()
    };
    let cache = tempfile::tempdir().unwrap();
    site::read(&source, &site::Limits::default(), cache.path(), &Silent).await.unwrap()
}

/// Reads the folder of an author whose pages are published at `base`.
pub fn read_source(folder: &Path, base: &str) -> Read {
    let source = SourceRecord {
        location: folder.to_string_lossy().into_owned(),
        base_url: Some(base.to_owned()),
        ..SourceRecord::default()
    };
    docent_backends::source::read(&source).unwrap()
}

struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str) {}

    fn passages(&self, _: usize, _: usize) {}
}

/// What stands at each id of a rendered page: the first of its words, letters and digits only.
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
