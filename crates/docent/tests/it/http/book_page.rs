//! `GET /api/v1/page`: the pages of the book for the reading pane.

use reqwest::Method;
use serde_json::json;

use super::Site;
use crate::support::Docent;

fn book() -> Docent {
    let docent = Docent::without_vectors();
    docent.write("book/a-pumps.md", "# Pumps\n\nA pump moves oil.\n\n## Gear pumps\n\nTwo `gears` turn.\n\n### Noise\n\nGears are loud.\n");
    docent.write(
        "book/b-valves.md",
        "# Valves\n\nA relief valve opens at 3 bar. ![A valve](https://evil.example/x.png)\n",
    );
    docent.write("book/c-filters.md", "# Filters\n\n<script>alert(1)</script> A filter cleans oil.\n");
    docent.ok(&["ingest", "book", "--base-url", "https://book.example", "--quiet"]);
    docent
}

#[test]
fn a_page_has_its_text_headings_and_neighbors() {
    let site = Site::of(book());
    let (status, page) = site.get("/api/v1/page?id=a-pumps.md");
    assert_eq!(status, 200, "{page}");
    assert_eq!(page["title"], "Pumps");
    assert!(page["url"].as_str().unwrap().starts_with("https://book.example/"), "{page}");
    assert_eq!(
        page["sections"],
        json!([
            { "heading": "Gear pumps", "level": 2, "anchor": "gear-pumps" },
            { "heading": "Noise", "level": 3, "anchor": "noise" }
        ])
    );
    let html = page["html"].as_str().unwrap();
    assert!(html.contains("Two <code>gears</code> turn."), "{html}");
    assert!(page.get("previous").is_none());
    assert_eq!(page["next"], json!({ "document_id": "b-valves.md", "title": "Valves" }));
    let (_, last) = site.get("/api/v1/page?id=c-filters.md");
    assert_eq!(last["previous"]["title"], "Valves");
    assert!(last.get("next").is_none());

    // The passages of an answer are on its page.
    let (_, answer) =
        site.post("/api/v1/ask", json!({ "query": "At which pressure does a relief valve open?" }));
    let source = &answer["sources"][0];
    let (_, page) = site.get(&format!("/api/v1/page?id={}", source["document_id"].as_str().unwrap()));
    let passage = format!("<div data-chunk=\"{}\">", source["chunk_id"].as_str().unwrap());
    assert!(page["html"].as_str().unwrap().contains(&passage), "{page}");
}

#[test]
fn a_page_has_no_scripts_and_no_images() {
    let site = Site::of(book());
    for id in ["b-valves.md", "c-filters.md"] {
        let (_, page) = site.get(&format!("/api/v1/page?id={id}"));
        let html = page["html"].as_str().unwrap();
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
    }
}

#[test]
fn an_unknown_page_is_not_found() {
    let site = Site::of(book());
    let get = |path: &str| site.send(Method::GET, path, None, &[]);
    site.fails(get("/api/v1/page?id=nowhere.md"), 404, "not_found", "no page nowhere.md");
    site.fails(get("/api/v1/page"), 400, "validation_error", "Invalid");
}
