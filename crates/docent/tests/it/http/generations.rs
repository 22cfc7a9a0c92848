//! A server whose book is ingested again while it runs.

use serde_json::{Value, json};

use super::Site;
use crate::embedders::Provider;
use crate::support::Docent;
use docent_testkit::scripted_provider::Act;

const VALVE: &str = "At which pressure does the valve open?";

fn valve(docent: &Docent, bar: &str) {
    docent.write("book/valves.md", &format!("# Valves\n\nThe valve opens at a pressure of {bar} bar.\n"));
}

fn version(site: &Site) -> Value {
    let (status, answer) = site.post("/api/v1/ask", json!({ "query": VALVE }));
    assert_eq!(status, 200, "{answer}");
    answer["metadata"]["index_version"].clone()
}

#[test]
fn a_server_with_the_sample_book_switches_to_the_first_ingested_book() {
    let docent = Docent::new();
    let site = Site::new(&docent);
    let (_, status) = site.get("/api/v1/status");
    assert_eq!(
        (&status["is_sample"], &status["title"]),
        (&json!(true), &json!("Physical AI, the sample book"))
    );
    valve(&docent, "three");
    docent.ok(&["ingest", "book", "--quiet"]);
    assert_eq!(version(&site), "g000001");
    let (_, status) = site.get("/api/v1/status");
    assert_eq!((&status["is_sample"], &status["title"]), (&json!(false), &json!("book")));
    let (_, suggestions) = site.get("/api/v1/suggestions");
    let questions = suggestions["questions"].as_array().unwrap();
    assert!(questions.iter().all(|question| question == "What are valves?"), "{suggestions}");
}

#[test]
fn a_generation_from_another_embedder_is_rejected_and_the_old_one_stays() {
    let docent = Docent::new();
    valve(&docent, "three");
    docent.ok(&["ingest", "book", "--quiet"]);
    let site = Site::new(&docent);
    assert_eq!(version(&site), "g000001");

    // The same width as the server's own vectors, but from another embedder.
    let provider = Provider::start(384, vec![], Act::Answer);
    valve(&docent, "four");
    let ingested = docent
        .command(&["ingest", "--quiet"])
        .envs([
            ("DOCENT_EMBEDDER__KIND", "cohere"),
            ("DOCENT_EMBEDDER__MODEL", "embed-english-light-v3.0"),
            ("COHERE_API_KEY", "sk-secret-1234567890"),
        ])
        .env("DOCENT_EMBEDDER__BASE_URL", provider.url())
        .output()
        .unwrap();
    assert!(ingested.status.success(), "{}", String::from_utf8_lossy(&ingested.stderr));
    for _ in 0..3 {
        assert_eq!(version(&site), "g000001");
    }
    assert_eq!(site.get("/readyz").0, 200);
    let refusals = site.served.said().matches("does not fit this process's embedder").count();
    assert_eq!(refusals, 1, "{}", site.served.said());

    valve(&docent, "five");
    docent.ok(&["ingest", "--quiet"]);
    assert_eq!(version(&site), "g000003");
}

#[test]
fn a_first_generation_from_another_embedder_gives_503() {
    let docent = Docent::new();
    let site = Site::new(&docent);
    valve(&docent, "three");
    docent.ok(&["ingest", "book", "--quiet"]);
    let manifest = docent.generation().join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("local/granite", "local/other")).unwrap();
    std::fs::remove_file(docent.generation().join("manifest.sum")).unwrap();
    for _ in 0..2 {
        let (status, body) = site.post("/api/v1/ask", json!({ "query": VALVE }));
        assert_eq!((status, &body["error"]), (503, &json!("retrieval_unavailable")), "{body}");
        assert!(body["message"].as_str().unwrap().contains("another embedder"), "{body}");
    }
    assert_eq!(site.get("/readyz").0, 503);
}

#[test]
fn a_renamed_page_is_served_with_its_new_title() {
    let docent = Docent::without_vectors();
    let page = |title: &str| format!("---\ntitle: {title}\n---\n\nThe valve opens at three bar.\n");
    docent.write("book/valves.md", &page("Old"));
    docent.ok(&["ingest", "book", "--quiet"]);
    let site = Site::new(&docent);
    for title in ["Old", "New"] {
        docent.write("book/valves.md", &page(title));
        docent.ok(&["ingest", "--quiet"]);
        for _ in 0..2 {
            let (status, shown) = site.get("/read/valves.md");
            assert_eq!(status, 200);
            assert!(shown.as_str().unwrap().contains(&format!("<h1>{title}</h1>")), "{shown}");
        }
        let (_, found) = site.post("/api/v1/search", json!({ "query": "valve" }));
        assert_eq!(found["chunks"][0]["page_title"], title, "{found}");
    }
}

/// Run by another user, who may read the data but not write it.
#[cfg(unix)]
#[test]
fn a_read_only_data_folder_can_be_served() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    let docent = Docent::without_vectors();
    valve(&docent, "three");
    docent.ok(&["ingest", "book", "--quiet"]);
    let mode = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(docent.home.path(), 0o755);
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let folders = [docent.home.path().join("data"), docent.index(), docent.generation()];
    if !is_root {
        folders.iter().for_each(|folder| mode(folder, 0o555));
    }
    let other_user = |command: &mut std::process::Command| {
        if is_root {
            command.uid(65534).gid(65534);
        }
    };
    let mut search = docent.command(&["search", "valve", "--json"]);
    other_user(&mut search);
    let searched = search.output().unwrap();
    assert!(searched.status.success(), "{}", String::from_utf8_lossy(&searched.stderr));

    let site = Site::with(docent.serve_as(other_user));
    assert_eq!(version(&site), "g000001");
    assert!(site.served.said().contains("conversations are kept in memory"), "{}", site.served.said());
    if !is_root {
        folders.iter().for_each(|folder| mode(folder, 0o755));
    }
}
