//! Real books and real rendered sites: nothing crashes, no file is lost, and no boilerplate becomes text.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use docent_core::chunk::chunk;
use docent_parse::document::{BlockKind, Document};
use scraper::{Html, Selector};

use crate::rendered::{books, publish, read_site, read_source};
use crate::support::{Docent, shared_data};

fn files(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, root, found);
        } else {
            found.insert(path.strip_prefix(root).unwrap().to_string_lossy().into_owned());
        }
    }
}

#[test]
fn every_file_of_every_book_is_indexed_or_named_in_a_warning() {
    let Some(shared) = shared_data() else { return };
    for book in ["physical-ai-textbook", "docusaurus-docs", "rust-book", "ros2-docs", "python-html"] {
        let folder = shared.join("books").join(book);
        let docent = Docent::without_vectors();
        let report =
            docent.json(&["ingest", folder.to_str().unwrap(), "--base-url", "https://example.org/docs"]);
        let mut known: BTreeSet<String> = report["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|warning| warning["path"].as_str().unwrap().to_owned())
            .collect();
        let pages = std::fs::read_to_string(docent.generation().join("pages.jsonl")).unwrap();
        for page in pages.lines() {
            let page: serde_json::Value = serde_json::from_str(page).unwrap();
            known.insert(page["id"].as_str().unwrap().to_owned());
        }
        let mut all = BTreeSet::new();
        files(&folder, &folder, &mut all);
        let lost: Vec<_> = all.difference(&known).collect();
        assert!(lost.is_empty(), "{book}: {lost:?}");
        assert!(report["chunks"].as_u64().unwrap() > 200, "{book}: {}", report["chunks"]);
    }
}

/// Text around a page that is never part of it.
const BOILERPLATE: [&str; 28] = [
    "Previous topic",
    "Next topic",
    "This Page",
    "Show Source",
    "Report a Bug",
    "Edit this page",
    "Edit on GitHub",
    "Suggest an edit",
    "View page source",
    "Skip to content",
    "Skip to main content",
    "Quick search",
    "Theme Auto",
    "© Copyright",
    "Copyright: the friends",
    "The friends of the tide mill",
    "Last updated",
    "Created using Sphinx",
    "Built with Sphinx",
    "Built with MkDocs",
    "Made with Material",
    "Table of Contents\n",
    "Table of contents\n",
    "On this page",
    "Return to top",
    "Direct link to",
    "Permalink",
    "Copy to clipboard",
];

/// Checks every passage, because boilerplate may appear in any of them.
fn check_no_boilerplate(book: &str, documents: &[Document]) -> usize {
    let mut pages_with: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut passages = 0;
    for document in documents {
        for chunk in chunk(document, 256, &|text| text.len().div_ceil(4)) {
            passages += 1;
            let prose = without_code(&chunk.content);
            for word in BOILERPLATE {
                // A book about making sites may mention these things.
                let is_its_subject = book == "docusaurus-docs" && !prose.trim().ends_with(word);
                assert!(
                    !prose.contains(word) || is_its_subject,
                    "{book}, {}: {word}: {}",
                    document.id,
                    chunk.content
                );
            }
            for line in chunk.content.lines().filter(|line| line.len() > 40 && !line.starts_with("```")) {
                pages_with.entry(line.trim().to_owned()).or_default().insert(&document.id);
            }
            is_readable(book, document, &chunk.content);
        }
    }
    // The authors of the textbook start every chapter with the same words.
    if book != "physical-ai-textbook" {
        let most = (documents.len() / 4).max(2);
        let repeated: Vec<_> = pages_with.iter().filter(|(_, pages)| pages.len() > most).collect();
        assert!(repeated.is_empty(), "{book}: {repeated:?}");
    }
    passages
}

/// The text without code.
fn without_code(content: &str) -> String {
    content.split("```").step_by(2).collect()
}

/// Checks that every fence is closed and that every table row has as many cells as the others.
fn is_readable(book: &str, document: &Document, content: &str) {
    let mut fence: Option<&str> = None;
    let mut head: Option<usize> = None;
    for line in content.lines() {
        let marker = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => continue,
            None if marker.len() >= 3 => fence = Some(marker),
            None => {}
        }
        let cells = (fence.is_none() && line.starts_with("| ")).then(|| line.matches(" | ").count());
        // A bar inside a cell is text, so a row may appear to have more cells than the header.
        let is_whole = cells.is_none_or(|cells| head.is_none_or(|head| cells >= head));
        assert!(is_whole, "{book}, {}: a row lost its cells: {content}", document.id);
        head = cells.and(head.or(cells));
    }
    assert!(fence.is_none(), "{book}, {}: unclosed fence: {content}", document.id);
}

#[test]
fn no_passage_of_a_book_is_navigation_or_a_footer() {
    let Some(shared) = shared_data() else { return };
    for book in ["physical-ai-textbook", "docusaurus-docs", "rust-book", "ros2-docs", "python-html"] {
        let read = read_source(&shared.join("books").join(book), "https://example.org/docs");
        let passages = check_no_boilerplate(book, &read.documents);
        eprintln!("{book}: {} pages, {passages} passages without boilerplate", read.documents.len());
        assert!(passages > 200, "{book}: {passages}");
    }
}

#[tokio::test]
async fn no_passage_of_a_rendered_site_is_navigation_or_a_footer() {
    for book in books() {
        let site = publish(&book.rendered, |page| page);
        let read = read_site(&format!("{}{}/", site.url(), book.below)).await;
        let passages = check_no_boilerplate(book.name, &read.documents);
        assert!(passages >= 20, "{}: {passages}", book.name);
        let blocks =
            read.documents.iter().flat_map(|page| &page.sections).flat_map(|section| &section.blocks);
        let text: Vec<&str> = blocks.map(|block| block.text.as_str()).collect();
        // Code keeps its lines and tables their rows, whatever the markup around them.
        let code = match book.name {
            "Asciidoctor" => "    head = pond - sea\n\n    return 0.0 if head < 1.2 else 0.4",
            _ => "    head = pond - sea\n    if head < 1.2:\n        return 0.0\n\n    # The flow grows",
        };
        let row = "| sea gate | the tide | 2.4 m |";
        for words in [code, row, "Grain runs from the hopper over a shaken shoe"] {
            assert!(text.iter().any(|block| block.contains(words)), "{}: {words}: {text:#?}", book.name);
        }
    }
}

/// Every line of code on a rendered page is a line of code in the parsed page.
#[tokio::test]
async fn code_of_a_rendered_page_keeps_its_lines() {
    let mut folders: Vec<(&str, PathBuf)> = books()
        .into_iter()
        // Docusaurus and mdBook render code with line breaks and hidden lines.
        .filter(|book| !matches!(book.name, "Docusaurus" | "mdBook"))
        .map(|book| (book.name, book.rendered))
        .collect();
    folders.extend(shared_data().map(|shared| ("python-html", shared.join("books/python-html"))));
    let (pre, number) = (Selector::parse("pre").unwrap(), Selector::parse(".linenos").unwrap());
    for (name, folder) in folders {
        let mut lines = 0;
        for document in read_source(&folder, "https://example.org").documents {
            let blocks = document.sections.iter().flat_map(|section| &section.blocks);
            let code: BTreeSet<&str> = blocks
                .filter(|block| block.kind == BlockKind::Code)
                .flat_map(|block| block.text.lines().map(str::trim_end))
                .collect();
            let html = std::fs::read_to_string(folder.join(&document.id)).unwrap();
            for element in Html::parse_document(&html).select(&pre) {
                // Line numbers are not part of the code.
                let numbers: HashSet<_> = element
                    .select(&number)
                    .flat_map(|number| number.descendants())
                    .map(|node| node.id())
                    .collect();
                let own = element.descendants().filter(|node| !numbers.contains(&node.id()));
                let text: String =
                    own.filter_map(|node| node.value().as_text()).map(|text| &**text).collect();
                for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
                    lines += 1;
                    assert!(code.contains(line), "{name}, {}: {line:?} is not among {code:#?}", document.id);
                }
            }
        }
        eprintln!("{name}: {lines} lines of code");
        assert!(lines > 2, "{name}: {lines}");
    }
}
