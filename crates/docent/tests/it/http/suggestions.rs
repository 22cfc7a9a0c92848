//! `GET /api/v1/suggestions`: suggested questions for a new conversation, and after an answer.

use serde_json::Value;

use super::Site;
use crate::support::Docent;

fn questions(found: &Value) -> Vec<&str> {
    found["questions"].as_array().unwrap().iter().map(|question| question.as_str().unwrap()).collect()
}

#[test]
fn follow_up_questions_are_about_the_page_and_the_book_answers_them() {
    let site = Site::of(Docent::new());
    let (_, outline) = site.get("/api/v1/suggest?q=topic&limit=1");
    let id = outline["pages"][0]["document_id"].as_str().unwrap().to_owned();
    let (_, page) = site.get(&format!("/api/v1/page?id={id}"));
    let heading = page["sections"][0]["heading"].as_str().unwrap();
    let mut address = reqwest::Url::parse("http://x/api/v1/suggestions").unwrap();
    address
        .query_pairs_mut()
        .append_pair("page", &id)
        .append_pair("heading", heading)
        .append_pair("limit", "4");
    let path = address.as_str().strip_prefix("http://x").unwrap();
    let (status, found) = site.get(path);
    assert_eq!(status, 200, "{found}");
    let follow_ups = questions(&found);
    assert!(!follow_ups.is_empty(), "{id}, {heading}: {found}");
    for question in &follow_ups {
        let (_, answer) = site.post("/api/v1/ask", serde_json::json!({ "query": question }));
        assert_eq!(answer["grounded"], true, "{question}: {answer}");
        let pages = answer["sources"].as_array().unwrap().iter().map(|source| &source["document_id"]);
        assert!(pages.clone().any(|page| *page == id.as_str()), "{question}: {answer}");
    }
    assert_eq!(questions(&site.get(path).1), follow_ups, "the same every time");
}

#[test]
fn the_page_may_be_named_by_its_address() {
    let docent = Docent::without_vectors();
    docent.write(
        "book/pumps.md",
        "# Pumps\n\nWords.\n\n## Why do gears turn?\n\nGears turn because of the motor.\n",
    );
    docent.write("book/valves.md", "# Valves\n\nA valve is a thing that closes.\n");
    docent.ok(&["ingest", "book", "--base-url", "https://book.example/docs", "--quiet"]);
    let site = Site::of(docent);
    let (_, page) = site.get("/api/v1/page?id=pumps.md");
    let address = page["url"].as_str().unwrap();
    for spelling in [format!("{address}?x=1"), format!("{address}/"), address.replace("https", "http")] {
        let (_, found) = site.get(&format!("/api/v1/suggestions?page={spelling}"));
        assert_eq!(questions(&found), ["Why do gears turn?"], "{spelling}");
    }
    // A page that is not in the book gets questions about the whole book.
    let whole = site.get("/api/v1/suggestions").1;
    assert_eq!(site.get("/api/v1/suggestions?page=https://book.example/other").1, whole);
}
