//! Versions and locales over HTTP.

use serde_json::{Value, json};

use super::Site;
use crate::versions::versioned_docs;

#[test]
fn requests_can_name_a_version_and_a_locale() {
    let docent = versioned_docs();
    docent.ok(&["ingest", "site"]);
    let site = Site::of(docent);

    let (_, modules) = site.get("/api/v1/modules");
    let names = |variants: &Value| {
        variants.as_array().unwrap().iter().map(|variant| variant["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&modules["versions"]), ["2.0", "current", "1.0"]);
    assert_eq!(names(&modules["locales"]), ["en", "de"]);

    let question = json!({"query": "How many times a minute does the wheel turn?", "version": "1.0"});
    let (status, answer) = site.post("/api/v1/ask", question);
    assert_eq!((status, &answer["citations"][0]["version"]), (200, &json!("1.0")), "{answer}");
    let (_, found) = site.post("/api/v1/search", json!({"query": "Rad", "locale": "de"}));
    assert_eq!(found["chunks"][0]["locale"], "de", "{found}");
    let (_, found) = site.get("/api/v1/suggest?q=brake");
    assert_eq!(found["pages"], json!([]), "the released version has no brake");
    let (_, found) = site.get("/api/v1/suggest?q=brake&version=current");
    assert_eq!(found["pages"][0]["version"], "current", "{found}");
    let (status, found) = site.get("/api/v1/suggestions?version=current");
    assert_eq!(status, 200, "{found}");
    let (_, quiz) = site.get("/api/v1/quiz?version=1.0");
    assert!(quiz["questions"].as_array().unwrap().iter().all(|card| card["version"] == "1.0"), "{quiz}");

    for (path, query) in [
        ("/api/v1/ask", json!({"query": "x", "version": "9"})),
        ("/api/v1/search", json!({"query": "x", "version": "9"})),
    ] {
        let (status, error) = site.post(path, query);
        assert_eq!((status, &error["error"]), (400, &json!("validation_error")), "{error}");
        assert_eq!(error["message"], "there is no version `9` of this book");
        assert_eq!(error["detail"], "The book has the versions 2.0, current, 1.0");
    }
    for path in ["suggest?q=x&locale=fr", "quiz?locale=fr", "suggestions?locale=fr"] {
        assert_eq!(site.get(&format!("/api/v1/{path}")).0, 400, "{path}");
    }
}

#[test]
fn an_answer_over_all_versions_says_so_when_they_differ() {
    let docent = versioned_docs();
    docent.ok(&["ingest", "site"]);
    let site = Site::of(docent);
    let question = json!({"query": "How many turns does the wheel make a minute, and how does the brake stop it?", "version": "all"});
    let (_, answer) = site.post("/api/v1/ask", question);
    let mut versions: Vec<&str> = answer["citations"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|citation| citation["version"].as_str())
        .collect();
    versions.dedup();
    let text = answer["answer"].as_str().unwrap();
    assert_eq!(
        text.contains("The quoted passages are from different versions: "),
        versions.len() > 1,
        "{answer}"
    );
    assert!(versions.len() > 1, "{answer}");
}
