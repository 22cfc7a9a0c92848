//! Real books, when they are there: nothing crashes, no file is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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

/// Looks at every passage, not at some: what stands around a page shows up sooner or later.
#[test]
fn no_passage_of_a_rendered_book_is_navigation_or_a_footer() {
    use docent_backends::index::parts::SourceRecord;
    use docent_core::chunk::chunk;

    let Some(shared) = shared_data() else { return };
    let location = shared.join("books/python-html").to_string_lossy().into_owned();
    let read = docent_backends::source::read(&SourceRecord { location, ..SourceRecord::default() }).unwrap();
    let mut pages_with: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut passages = 0;
    for document in &read.documents {
        for chunk in chunk(document, 256, &|text| text.len().div_ceil(4)) {
            passages += 1;
            for word in [
                "Previous topic",
                "Next topic",
                "This Page",
                "Show Source",
                "Report a Bug",
                "Edit this page",
                "Edit on GitHub",
                "View page source",
                "Skip to content",
                "Quick search",
                "Theme Auto",
                "© Copyright",
                "Last updated on",
                "Created using Sphinx",
                "Table of Contents\n",
            ] {
                assert!(!chunk.content.contains(word), "{}: {word}: {}", document.id, chunk.content);
            }
            for line in chunk.content.lines().filter(|line| line.len() > 40 && !line.starts_with("```")) {
                pages_with.entry(line.trim().to_owned()).or_default().insert(&document.id);
            }
        }
    }
    assert!(passages > 500, "{passages}");
    let most = read.documents.len() / 4;
    let repeated: Vec<_> = pages_with.iter().filter(|(_, pages)| pages.len() > most).collect();
    assert!(repeated.is_empty(), "{repeated:?}");
}
