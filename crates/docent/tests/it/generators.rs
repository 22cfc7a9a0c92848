//! URLs and anchors, compared with the output of real site generators.
//!
//! The same handbook is read twice: from its sources, and as published. Either way every URL must be a
//! rendered page, and every anchor an id on that page, at the right heading.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use docent_core::chunk::chunk;
use docent_parse::document::Document;
use percent_encoding::percent_decode_str;

use crate::rendered::{self, Book, books, file, ids, pages_in, publish, read_site, read_source};
use crate::support::shared_data;

/// The result of comparing with the rendered pages.
#[derive(Debug)]
struct Figures {
    pages: usize,
    anchors: usize,
    wrong: Vec<String>,
}

#[test]
fn urls_derived_from_sources_match_the_rendered_book() {
    let mut results = Vec::new();
    for book in books() {
        let base = format!("https://mill.example{}", book.below);
        let read = read_source(&book.source, &base);
        let figures = compare(&book.rendered, "https://mill.example", &read.documents);
        results.push((format!("{} from its sources", book.name), figures));
    }
    check_results(&results);
}

#[tokio::test]
async fn urls_of_a_published_book_exist_on_its_pages() {
    let mut results = Vec::new();
    for book in books() {
        let site = publish(&book.rendered, |page| page);
        let read = read_site(&format!("{}{}/", site.url(), book.below)).await;
        let figures = compare(&book.rendered, &site.url(), &read.documents);
        results.push((format!("{} as it is published", book.name), figures));
    }
    check_results(&results);
}

#[tokio::test]
async fn a_freshly_built_book_matches_too() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let sources = rendered::generators();
    let (sphinx, mkdocs) = (sources.join("sphinx/source"), sources.join("mkdocs/source"));
    let config = mkdocs.join("mkdocs.yml");
    let built = |name: &str| folder.path().join(name);
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let builds = [
        (
            "Sphinx",
            &sphinx,
            vec!["-m", "sphinx", "-q", "-b", "html"],
            vec![path(&sphinx), path(&built("Sphinx"))],
        ),
        (
            "MkDocs",
            &mkdocs,
            vec!["-m", "mkdocs", "build", "-q"],
            vec!["-f".into(), path(&config), "-d".into(), path(&built("MkDocs"))],
        ),
    ];
    let mut results = Vec::new();
    for (name, source, module, arguments) in builds {
        let mut command = Command::new(&python);
        // Leave no files behind in the checkout.
        command.args(module).args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let book = Book { name, source: source.clone(), rendered: built(name), below: "" };
        // Generated pages that no author wrote.
        for made in ["404.html", "genindex.html", "search.html", "py-modindex.html"] {
            let _ = std::fs::remove_file(book.rendered.join(made));
        }
        let read = read_source(&book.source, "https://mill.example");
        let figures = compare(&book.rendered, "https://mill.example", &read.documents);
        results.push((format!("{name} built now, from its sources"), figures));
        let site = publish(&book.rendered, |page| page);
        let read = read_site(&format!("{}/", site.url())).await;
        let figures = compare(&book.rendered, &site.url(), &read.documents);
        results.push((format!("{name} built now, as it is published"), figures));
    }
    check_results(&results);
}

#[tokio::test]
async fn anchors_of_a_large_published_book_exist_on_its_pages() {
    let Some(shared) = shared_data() else { return };
    let rendered = shared.join("books/python-html");
    let read = read_source(&rendered, "https://mill.example");
    let from_folder = compare(&rendered, "https://mill.example", &read.documents);
    let site = publish(&rendered, |page| page);
    let mut documents = Vec::new();
    for part in ["tutorial", "howto", "faq"] {
        documents.extend(read_site(&format!("{}/{part}/", site.url())).await.documents);
    }
    let mut from_site = compare(&rendered, &site.url(), &documents);
    // A page with only a table of contents is not indexed when a site is crawled.
    from_site.wrong.retain(|what| !what.ends_with("faq/index.html is not in the book"));
    check_results(&[
        ("Python from its folder".to_owned(), from_folder),
        ("Python as it is published".to_owned(), from_site),
    ]);
}

/// Compares any book with its own rendering, run by hand: `DOCENT_TEST_SOURCE` and `DOCENT_TEST_RENDERED` are
/// the folders.
#[test]
#[ignore = "needs a book and its rendering"]
fn a_given_book_matches_its_rendering() {
    let folder =
        |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set")));
    let read = read_source(&folder("DOCENT_TEST_SOURCE"), "https://mill.example");
    let figures = compare(&folder("DOCENT_TEST_RENDERED"), "https://mill.example", &read.documents);
    check_results(&[("The book".to_owned(), figures)]);
}

/// Checks that nothing is wrong and that enough was compared to prove something.
fn check_results(results: &[(String, Figures)]) {
    let mut wrong = String::new();
    for (name, figures) in results {
        eprintln!(
            "{name}: {} pages, {} anchors, {} wrong",
            figures.pages,
            figures.anchors,
            figures.wrong.len()
        );
        wrong.extend(figures.wrong.iter().map(|what| format!("{name}: {what}\n")));
        let pages = if name.starts_with("Asciidoctor") { 3 } else { 6 };
        assert!(figures.pages >= pages && figures.anchors >= pages * 6, "{name}: {figures:?}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Compares pages with the rendered ones; neither side may lack any.
fn compare(folder: &Path, base: &str, documents: &[Document]) -> Figures {
    let mut wrong: Vec<String> = Vec::new();
    let mut unread = pages_in(folder);
    let mut addresses = BTreeSet::new();
    for document in documents {
        let path =
            document.url.strip_prefix(base).unwrap_or_else(|| panic!("{} is not below {base}", document.url));
        let Some(file) = file(folder, &percent_decode_str(path).decode_utf8_lossy()) else {
            wrong.push(format!("{} is not a rendered page", document.url));
            continue;
        };
        unread.remove(&file);
        let ids = ids(&std::fs::read_to_string(&file).unwrap());
        for heading in document.sections.iter().filter_map(|section| section.heading.as_ref()) {
            let words: String = heading.text.chars().filter(|c| c.is_alphanumeric()).collect();
            match &heading.anchor {
                // The title of a page is at the top of the page and needs no anchor.
                None if heading.level > 1 => wrong.push(format!("{path}: {} has no anchor", heading.text)),
                None => {}
                Some(anchor) if ids.get(anchor).is_some_and(|text| text.starts_with(&words)) => {}
                Some(anchor) => {
                    let there = ids.get(anchor).map(|text| text.chars().take(40).collect::<String>());
                    wrong.push(format!("{path}#{anchor} should be {:?} and is {there:?}", heading.text));
                }
            }
        }
        for chunk in chunk(document, 256, &|text| text.len().div_ceil(4)) {
            let Some((_, fragment)) = chunk.url.split_once('#') else { continue };
            let anchor = percent_decode_str(fragment).decode_utf8_lossy().into_owned();
            if !ids.contains_key(&anchor) {
                wrong.push(format!("{} is not an id on the page", chunk.url));
            }
            addresses.insert(chunk.url);
        }
    }
    wrong.extend(unread.iter().map(|page| format!("{} is not in the book", page.display())));
    Figures { pages: documents.len(), anchors: addresses.len(), wrong }
}

/// The Python that `cargo xtask check` installs, with the site generators in it.
fn python() -> Option<PathBuf> {
    let prepared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-tools/venv/bin/python");
    let python = std::env::var_os("DOCENT_TEST_PYTHON").map_or(prepared, PathBuf::from);
    let has_them = Command::new(&python).args(["-c", "import sphinx, mkdocs, pymdownx"]).output();
    if !has_them.is_ok_and(|output| output.status.success()) {
        let missing =
            format!("{} has no Sphinx and MkDocs; `cargo xtask check` prepares them", python.display());
        assert!(std::env::var_os("DOCENT_TEST_REQUIRE_CLIENTS").is_none(), "{missing}");
        docent_testkit::skipped(&missing);
        return None;
    }
    Some(python)
}
