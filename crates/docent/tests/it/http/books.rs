//! Several books behind one server.

use serde_json::json;

use super::Site;
use crate::several::two_books;

#[test]
fn questions_can_be_limited_to_one_of_several_books() {
    let docent = two_books();
    docent.ok(&["ingest", "--config", "manuals/docent.toml"]);
    let site = Site::of(docent);

    assert_eq!(site.get("/api/v1/status").1["title"], "ovens and pumps");
    let (_, modules) = site.get("/api/v1/modules");
    let named: Vec<_> = modules["modules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|module| (&module["book"], &module["name"]))
        .collect();
    let expected =
        [("ovens", "basics"), ("pumps", "basics"), ("pumps", "pumps")].map(|(a, b)| (json!(a), json!(b)));
    assert_eq!(named, expected.iter().map(|(book, name)| (book, name)).collect::<Vec<_>>());

    let (status, found) = site.post("/api/v1/search", json!({"query": "water or bread", "book": "ovens"}));
    let books: Vec<_> = found["chunks"].as_array().unwrap().iter().map(|chunk| &chunk["book_name"]).collect();
    assert_eq!((status, books), (200, vec![&json!("ovens")]), "{found}");

    let question = json!({"query": "How often is the bearing greased?", "book": "pumps"});
    let (status, answer) = site.post("/api/v1/ask", question);
    assert_eq!((status, &answer["citations"][0]["book_name"]), (200, &json!("pumps")), "{answer}");

    for path in ["/api/v1/ask", "/api/v1/search"] {
        let (status, error) = site.post(path, json!({"query": "x", "book": "cars"}));
        assert_eq!(
            (status, &error["message"]),
            (400, &json!("there is no book `cars` in this index")),
            "{error}"
        );
    }
}
