//! The server while its embedder is unavailable.

use docent_testkit::scripted_provider::Act;
use reqwest::Method;
use serde_json::json;

use super::Site;
use crate::embedders::{Provider, write_book};
use crate::support::Docent;

#[test]
fn an_unavailable_embedder_gives_503_and_recovers() {
    // The ingest succeeds, then two questions fail.
    let provider = Provider::start(1024, vec![Act::Answer, Act::Status(503), Act::Closed], Act::Answer);
    let docent = provider.cohere(Docent::new());
    write_book(&docent, 3);
    docent.ok(&["ingest", "book"]);
    let site = Site::new(&docent);
    for path in ["/api/v1/search", "/api/v1/ask"] {
        let (status, body) =
            site.read(site.send(Method::POST, path, Some(json!({"query": "subject1"})), &[]));
        assert_eq!((status, &body["error"]), (503, &json!("retrieval_unavailable")), "{path}: {body}");
        let shown = body.to_string();
        assert!(!shown.contains("secret") && !shown.contains("Cohere"), "{shown}");
    }
    let (status, body) = site.post("/api/v1/search", json!({"query": "subject1"}));
    assert_eq!((status, &body["chunks"][0]["document_id"]), (200, &json!("p1.md")), "{body}");
    assert!(!site.served.said().contains("secret"));
}
