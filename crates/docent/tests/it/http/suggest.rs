//! `GET /api/v1/suggest`: search as you type.

use reqwest::Method;
use serde_json::{Value, json};

use super::Site;
use crate::support::{Docent, shared_data};

fn text(pieces: &Value) -> String {
    pieces.as_array().unwrap().iter().map(|piece| piece["text"].as_str().unwrap()).collect()
}

#[test]
fn pages_and_sections_are_found_while_a_user_is_typing() {
    let site = Site::of(Docent::without_vectors());
    for typed in ["com", "computation gra", "compuation%20grpah"] {
        let (status, found) = site.get(&format!("/api/v1/suggest?q={typed}"));
        assert_eq!(status, 200, "{found}");
        let titles: Vec<String> =
            found["pages"].as_array().unwrap().iter().map(|page| text(&page["title"])).collect();
        assert!(!titles.is_empty() && titles.len() <= 6, "{typed}: {titles:?}");
        assert_eq!(found["index_version"], site.get("/api/v1/status").1["index_version"]);
    }
    let (_, found) = site.get("/api/v1/suggest?q=compuation%20grpah&limit=1");
    let pages = found["pages"].as_array().unwrap();
    assert_eq!(pages.len(), 1);
    let shown = pages[0].to_string();
    assert!(shown.contains(r#"{"text":"computation","matched":true}"#), "{shown}");
    let section = &pages[0]["sections"][0];
    assert!(section["url"].as_str().unwrap().starts_with("http"), "{section}");
    assert_eq!(site.get("/api/v1/suggest?q=").1["pages"], json!([]));
    assert_eq!(site.get("/api/v1/suggest?q=zzqqzzqq").1["pages"], json!([]));
}

#[test]
fn invalid_parameters_are_refused() {
    let site = Site::of(Docent::without_vectors());
    let fails = |query: &str, message: &str| {
        let response = site.send(Method::GET, &format!("/api/v1/suggest{query}"), None, &[]);
        site.fails(response, 400, "validation_error", message);
    };
    fails("", "Invalid");
    fails("?q=x&limit=0", "limit must be between 1 and 20");
    fails("?q=x&limit=21", "limit must be between 1 and 20");
    fails(&format!("?q={}", "x".repeat(201)), "at most 200 characters");
    fails("?q=x&module=kitchen", "no module `kitchen`");
}

#[test]
fn keystrokes_have_a_limit_of_their_own() {
    let site = Site::of(Docent::without_vectors().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "1"));
    let statuses: Vec<u16> = (0..21).map(|_| site.get("/api/v1/suggest?q=no").0).collect();
    assert_eq!(statuses, [[200; 20].as_slice(), &[429]].concat());
    assert_eq!(
        site.post("/api/v1/search", json!({ "query": "node" })).0,
        200,
        "searches are counted separately"
    );
}

/// What users type before they have finished, and the pages that contain the answer. The second set was written when the
/// search was finished.
const TYPED: [&str; 2] = [
    include_str!("../../fixtures/typeahead/docusaurus.tsv"),
    include_str!("../../fixtures/typeahead/docusaurus-more.tsv"),
];

/// `cargo test -p docent --test it misspelled_and_unfinished -- --nocapture` prints the figures for docs/quality.md.
#[test]
#[allow(clippy::print_stdout)]
fn misspelled_and_unfinished_queries_find_their_page() {
    let Some(shared) = shared_data() else { return };
    let docent = Docent::without_vectors();
    let folder = shared.join("books/docusaurus-docs");
    docent.ok(&["ingest", folder.to_str().unwrap(), "--base-url", "https://example.org/docs", "--quiet"]);
    let site = Site::of(docent);
    for queries in TYPED {
        let (mut places, mut missed) = (Vec::new(), Vec::new());
        for line in queries.lines() {
            let (typed, wanted) = line.split_once('\t').unwrap();
            let (_, found) = site.get(&format!("/api/v1/suggest?q={}&limit=5", typed.replace(' ', "+")));
            let found: Vec<&str> = found["pages"]
                .as_array()
                .unwrap()
                .iter()
                .map(|page| page["document_id"].as_str().unwrap())
                .collect();
            let is_wanted = |page: &&str| wanted.split(' ').any(|name| format!("{name}.mdx") == **page);
            match found.iter().position(is_wanted) {
                Some(place) => places.push(place),
                None => missed.push((typed, found.join(", "))),
            }
        }
        let within = |most: usize| places.iter().filter(|place| **place < most).count();
        let count = queries.lines().count();
        println!("{count} queries: first {}, first three {}, first five {}", within(1), within(3), within(5));
        assert!(missed.len() <= 3, "{missed:#?}");
    }
}
