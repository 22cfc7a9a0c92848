//! A disk that fills up during turns and during an ingest, and is freed again.

use docent_testkit::SmallDisk;
use reqwest::Method;
use serde_json::json;

use crate::http::Site;
use crate::support::{Docent, wait_until};

/// A user whose data folder is on this disk.
fn on(disk: &SmallDisk, docent: Docent) -> Docent {
    docent.with("DOCENT_DATA_DIR", disk.path().to_str().unwrap())
}

#[test]
fn conversations_recover_when_a_full_disk_is_freed() {
    let Some(disk) = SmallDisk::mount(4) else { return };
    let docent = on(&disk, Docent::new());
    let site = Site::new(&docent);
    let (session, key) = site.begin();
    let ask = || {
        let body = json!({ "query": "What is a ROS 2 node?", "session_id": session });
        site.with_key(Method::POST, "/api/v1/ask", Some(body), &key).0
    };
    assert_eq!((site.get("/readyz").0, ask()), (200, 200));

    disk.fill();
    let mut failed = 0;
    // A turn or two may still fit into the free space of the store's own files.
    for _ in 0..5 {
        failed += u32::from(ask() >= 500);
    }
    assert!(failed >= 2, "{failed} turns failed");
    let (status, ready) = site.get("/readyz");
    assert_eq!((status, &ready["sessions"], &ready["index"]), (503, &json!("unavailable"), &json!("ok")));
    let asked_without_a_session = site.post("/api/v1/ask", json!({ "query": "What is a topic?" }));
    assert_eq!(asked_without_a_session.0, 200, "questions without a session still work");

    disk.free();
    wait_until(|| site.get("/readyz").0 == 200);
    assert_eq!(ask(), 200);
    let shown = site.with_key(Method::GET, &format!("/api/v1/sessions/{session}"), None, &key).1;
    let turns = shown["turn_count"].clone();
    assert_eq!(turns, json!(2 + 5 - failed), "answered turns are stored, failed ones are not");
}

#[test]
fn an_ingest_that_fills_the_disk_frees_its_space() {
    let Some(disk) = SmallDisk::mount(3) else { return };
    let docent = on(&disk, Docent::new());
    docent.write("book/a.md", "# A\n\nThe old words about nodes.\n");
    docent.ok(&["ingest", "book"]);
    let check_files = || {
        let entries = std::fs::read_dir(disk.path().join("index")).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, ["CURRENT", "g000001", "ingest.lock"]);
    };
    check_files();
    // Vectors alone take 1.5 kB per passage, twice.
    for page in 0..1200 {
        docent.write(&format!("book/p{page}.md"), &format!("# Page {page}\n\nIt is about subject{page}.\n"));
    }
    let run = docent.run(&["ingest"]);
    assert_ne!(run.status, 0, "the book should not fit");
    assert!(run.stderr.contains("space"), "{}", run.stderr);
    check_files();
    assert_eq!(docent.json(&["search", "old words"])["chunks"][0]["document_id"], "a.md");
    for page in 10..1200 {
        std::fs::remove_file(docent.home.path().join(format!("book/p{page}.md"))).unwrap();
    }
    assert_eq!(docent.json(&["ingest"])["pages"]["added"], 10);
}

#[test]
fn a_full_disk_at_any_write_of_an_ingest_keeps_the_old_index() {
    for point in [
        "journal.write",
        "build.start",
        "build.lexical",
        "build.file",
        "publish.manifest",
        "publish.current.new",
    ] {
        let docent = Docent::new();
        docent.write("book/a.md", "# A\n\nThe old words.\n");
        docent.ok(&["ingest", "book"]);
        docent.write("book/b.md", "# B\n\nThe new words.\n");
        let mut command = docent.command(&["ingest", "--quiet"]);
        let output = command.env("DOCENT_TEST_FAILPOINT", format!("{point}=full")).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("failpoint"), "{point}: {said}");
        assert_eq!(docent.json(&["search", "words"])["index_version"], "g000001", "{point}");
        for leftover in ["journal", "building", "g000002"] {
            assert!(!docent.index().join(leftover).exists(), "{point}: {leftover}");
        }
        assert_eq!(docent.json(&["ingest"])["published"], true, "{point}");
    }
}
