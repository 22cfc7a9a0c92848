//! The process dies at every write, one after another: nothing acknowledged is lost, and the next start
//! works.
//!
//! Fail-points mark the writes. One run finds those that are reached; then, for each of them, a run ends
//! there as `kill -9` would end it.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use docent_testkit::ScriptedSite;
use docent_testkit::scripted_site::Answer;

use crate::support::Docent;

/// Bytes of a journal record: a key, 384 numbers, a checksum.
const RECORD: u64 = 16 + 384 * 4 + 8;

/// The fail-points that a command reaches, one entry per time: `NAME=abort@N`.
fn aborts(docent: &Docent, mut command: Command) -> Vec<String> {
    let visits = docent.home.path().join("visits");
    command.env("DOCENT_TEST_FAILPOINT_VISITS", &visits).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut counts: HashMap<String, usize> = HashMap::new();
    let visited = std::fs::read_to_string(&visits).unwrap();
    let mut nth = |name: &str| {
        let count = counts.entry(name.to_owned()).or_default();
        *count += 1;
        format!("{name}=abort@{count}")
    };
    visited.lines().map(&mut nth).collect()
}

/// Runs a command that must end at a fail-point.
fn abort_at(point: &str, mut command: Command) {
    let output = command.env("DOCENT_TEST_FAILPOINT", point).output().unwrap();
    assert!(output.status.code().is_none(), "{point}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Copies a folder recursively.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    let _ = std::fs::remove_dir_all(to);
    let copied = Command::new("cp").arg("-R").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

#[test]
fn an_ingest_can_die_at_every_write() {
    let docent = Docent::new();
    docent.write("book/a.md", "# Old\n\nThe old words about nodes.\n");
    docent.ok(&["ingest", "book"]);
    for page in 0..4 {
        let sections: String = (0..12)
            .map(|section| {
                format!(
                    "## Part {section}\n\n{}\n\n",
                    format!("Page {page} says {section} about nodes. ").repeat(8)
                )
            })
            .collect();
        docent.write(&format!("book/p{page}.md"), &format!("# Page {page}\n\n{sections}"));
    }
    let (data, before) = (docent.home.path().join("data"), docent.home.path().join("before"));
    copy(&data, &before);
    let points = aborts(&docent, docent.command(&["ingest"]));
    for name in
        ["ingest.lock", "journal.write", "journal.sync", "journal.synced", "build.lexical", "build.file"]
            .into_iter()
            .chain(["publish.manifest", "publish.rename", "publish.current.new", "publish.current"])
            .chain(["build.prune", "journal.remove"])
    {
        assert!(points.contains(&format!("{name}=abort@1")), "{name} was not reached: {points:?}");
    }
    let mut resumed = 0;
    for point in points {
        copy(&before, &data);
        abort_at(&point, docent.command(&["ingest"]));
        let published = std::fs::read_to_string(docent.index().join("CURRENT")).unwrap();
        let is_new = ["build.prune=abort@1", "journal.remove=abort@1"].contains(&point.as_str());
        assert_eq!(published, if is_new { "g000002\n" } else { "g000001\n" }, "{point}");
        let found = docent.json(&["search", "old words about nodes", "--top-k", "1"]);
        assert_eq!(found["chunks"][0]["document_id"], "a.md", "{point}");
        // A record that was written but not acknowledged may or may not be there.
        let journaled =
            std::fs::metadata(docent.index().join("journal")).map_or(0, |file| file.len() / RECORD);
        let report = docent.json(&["ingest"]);
        assert_eq!(report["published"], !is_new, "{point}");
        if !is_new {
            assert_eq!(report["resumed"], journaled, "{point}: the journal is reused");
            assert_eq!(report["embedded"].as_u64().unwrap() + journaled, 48, "{point}: the rest is embedded");
            resumed += journaled;
        }
        assert_eq!(docent.json(&["status"])["pages"], 5, "{point}");
        assert!(is_new || !docent.index().join("journal").exists(), "{point}");
        assert!(!docent.index().join("building").exists(), "{point}");
    }
    assert!(resumed > 0, "no run had anything to resume");
}

#[test]
fn crawling_a_site_can_die_at_every_write() {
    let docent = Docent::without_vectors();
    let page = |title: &str, link: &str| {
        Answer::html(format!(
            "<html><body><main><h1>{title}</h1><p>A page.</p><a href=\"{link}\">on</a></main></body></html>"
        ))
    };
    let pages = [("/docs/", page("Start", "pumps")), ("/docs/pumps", page("Pumps", "."))];
    let pages = pages.into_iter().map(|(path, answer)| (path.to_owned(), answer)).collect();
    let site = ScriptedSite::of_pages(Arc::new(Mutex::new(pages))).unwrap();
    let url = format!("{}/docs/", site.url());
    let ingest = || docent.command(&["ingest", &url, "--allow-private"]);
    let points = aborts(&docent, ingest());
    let points: Vec<_> = points.into_iter().filter(|point| point.starts_with("site.cache")).collect();
    assert!(points.len() >= 4, "{points:?}");
    for point in points {
        std::fs::remove_dir_all(docent.home.path().join("data")).unwrap();
        abort_at(&point, ingest());
        let report = docent.json(&["ingest", &url, "--allow-private"]);
        assert_eq!(report["published"], true, "{point}");
    }
}

#[test]
fn a_turn_can_die_at_every_write() {
    let docent = Docent::new();
    let first = docent.json(&["ask", "What is a ROS 2 node?", "--session", "new"]);
    let id = first["session_id"].as_str().unwrap();
    let (data, before) = (docent.home.path().join("data"), docent.home.path().join("before"));
    copy(&data, &before);
    let ask = || docent.command(&["ask", "What is a topic?", "--session", id]);
    let points = aborts(&docent, ask());
    assert!(points.iter().any(|point| point.starts_with("store.execute")), "{points:?}");
    assert!(points.iter().any(|point| point.starts_with("store.committed")), "{points:?}");
    let last = points.last().cloned();
    for point in points {
        copy(&before, &data);
        abort_at(&point, ask());
        let turns = docent.json(&["sessions", "show", id])["turn_count"].as_u64().unwrap();
        assert_eq!(turns, if Some(&point) == last.as_ref() { 2 } else { 1 }, "{point}");
        docent.json(&["ask", "And what is a service?", "--session", id]);
        assert_eq!(docent.json(&["sessions", "show", id])["turn_count"], turns + 1, "{point}");
    }
}

#[test]
fn a_crash_between_building_and_publishing_is_cleaned_up() {
    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# A\n\nA node.\n");
    docent.ok(&["ingest", "book"]);
    // The leftovers of a process that dies while building, or after the rename but before CURRENT changes.
    std::fs::create_dir_all(docent.index().join("building/lexical")).unwrap();
    std::fs::write(docent.index().join("building/vectors.f32"), "half").unwrap();
    std::fs::create_dir_all(docent.index().join("g000002")).unwrap();
    assert_eq!(docent.json(&["search", "node"])["index_version"], "g000001");
    docent.write("book/a.md", "# A\n\nAnother node.\n");
    docent.ok(&["ingest"]);
    assert_eq!(docent.json(&["search", "node"])["index_version"], "g000003");
    assert!(!docent.index().join("building").exists());
}
