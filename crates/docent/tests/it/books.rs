//! Real books, when they are there: nothing crashes, no file is lost.

use std::collections::BTreeSet;
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
