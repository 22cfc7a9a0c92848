//! `docent ingest`: reports, warnings and incremental updates.

use crate::support::Docent;

fn pages(docent: &Docent) {
    docent.write(
        "book/01-ros2/01-nodes.md",
        "# Nodes\n\nA node is a process.\n\n## Names\n\nEvery node has a name.\n",
    );
    docent.write("book/01-ros2/_category_.json", "{\"label\": \"ROS 2\"}");
    docent.write("book/intro.mdx", "---\ntitle: Start\n---\n\n## Why {#why}\n\nRobots move.\n");
}

#[test]
fn ingest_reports_what_it_did_and_links_point_to_the_published_pages() {
    let docent = Docent::new();
    pages(&docent);
    let run = docent.run(&["ingest", "book", "--base-url", "https://example.org/docs"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stderr.contains("pages    2 added, 0 changed, 0 removed, 0 unchanged"), "{}", run.stderr);
    assert!(run.stderr.contains("sections 3 added, 0 changed, 0 removed, 0 unchanged"), "{}", run.stderr);
    assert!(run.stderr.contains("passages 3: 3 embedded (31 tokens), 0 reused"), "{}", run.stderr);
    assert!(run.stderr.contains("skipped 1 file that is not a page: 1 .json"), "{}", run.stderr);
    let url = |query: &str| docent.json(&["search", query, "--top-k", "1"])["chunks"][0]["url"].clone();
    assert_eq!(url("names of nodes"), "https://example.org/docs/ros2/nodes#names");
    assert_eq!(url("a process"), "https://example.org/docs/ros2/nodes");
    assert_eq!(url("robots move"), "https://example.org/docs/intro#why");
}

#[test]
fn an_unchanged_book_publishes_nothing_and_only_changed_sections_are_embedded() {
    let docent = Docent::new();
    pages(&docent);
    docent.ok(&["ingest", "book"]);
    let again = docent.json(&["ingest"]);
    assert_eq!((again["published"].as_bool(), again["embedded"].as_u64()), (Some(false), Some(0)));
    assert_eq!(again["generation"], "g000001");

    docent.write(
        "book/01-ros2/01-nodes.md",
        "# Nodes\n\nA node is a process.\n\n## Names\n\nEvery node has a unique name.\n",
    );
    let changed = docent.json(&["ingest"]);
    assert_eq!(
        changed["sections"],
        serde_json::json!({"added": 0, "changed": 1, "removed": 0, "unchanged": 2})
    );
    assert_eq!(changed["pages"], serde_json::json!({"added": 0, "changed": 1, "removed": 0, "unchanged": 1}));
    assert_eq!((changed["embedded"].as_u64(), changed["reused"].as_u64()), (Some(1), Some(2)));

    std::fs::remove_file(docent.home.path().join("book/intro.mdx")).unwrap();
    let removed = docent.json(&["ingest"]);
    assert_eq!(removed["pages"]["removed"], 1);
    assert_eq!(removed["embedded"], 0);
    let left = docent.json(&["search", "robots move"]);
    assert!(left["chunks"].as_array().unwrap().iter().all(|chunk| chunk["document_id"] != "intro.mdx"));
}

#[test]
fn a_page_that_moved_keeps_its_vectors() {
    let docent = Docent::new();
    pages(&docent);
    docent.ok(&["ingest", "book"]);
    let book = docent.home.path().join("book");
    std::fs::create_dir(book.join("robots")).unwrap();
    std::fs::rename(book.join("01-ros2/01-nodes.md"), book.join("robots/about-nodes.md")).unwrap();
    let moved = docent.json(&["ingest"]);
    assert_eq!((&moved["pages"]["added"], &moved["pages"]["removed"]), (&1.into(), &1.into()));
    assert_eq!((&moved["embedded"], &moved["reused"]), (&0.into(), &3.into()));
    let found = docent.json(&["search", "names of nodes", "--top-k", "1"]);
    assert_eq!(found["chunks"][0]["document_id"], "robots/about-nodes.md");
}

#[test]
fn unreadable_pages_give_a_warning_with_their_name() {
    let docent = Docent::without_vectors();
    docent.write("book/good.md", "# Good\n\nText.\n");
    docent.write("book/empty.md", "");
    docent.write("book/binary.md", "\0\0\0");
    docent.write("book/front.md", "---\ntitle: [\n---\nText.\n");
    let run = docent.run(&["ingest", "book"]);
    assert_eq!(run.status, 0);
    for warning in [
        "warning: binary.md: not a text file",
        "warning: empty.md: no text found in the page",
        "warning: front.md: front matter is not valid YAML",
    ] {
        assert!(run.stderr.contains(warning), "{}", run.stderr);
    }
}

#[cfg(unix)]
#[test]
fn an_unreadable_file_gives_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let docent = Docent::without_vectors();
    docent.write("book/good.md", "# Good\n\nText.\n");
    // Nobody can read a dangling link, not even root.
    std::os::unix::fs::symlink("nowhere", docent.home.path().join("book/gone.md")).unwrap();
    let closed = docent.write("book/closed.md", "# Closed\n\nText.\n");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let run = docent.run(&["ingest", "book"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stderr.contains("gone.md: cannot be read"), "{}", run.stderr);
    if std::fs::read(&closed).is_err() {
        assert!(run.stderr.contains("closed.md: cannot be read"), "{}", run.stderr);
    }
}

#[test]
fn several_sources_form_one_book() {
    let docent = Docent::without_vectors();
    docent.write("a/index.md", "# A\n\nApples.\n");
    docent.write("b/index.md", "# B\n\nBananas.\n");
    let report = docent.json(&["ingest", "a", "b"]);
    assert_eq!(report["pages"]["added"], 2);
    assert_eq!(docent.json(&["search", "bananas"])["chunks"][0]["page_title"], "B");
}

#[test]
fn a_corpus_can_be_ingested() {
    let docent = Docent::without_vectors();
    docent.write(
        "corpus.jsonl",
        "{\"_id\":\"1\",\"title\":\"T\",\"text\":\"Cats purr.\",\"url\":\"https://x.org/1\"}\n",
    );
    docent.ok(&["ingest", "corpus.jsonl"]);
    let found = docent.json(&["search", "cats"]);
    assert_eq!(found["chunks"][0]["url"], "https://x.org/1");
}

#[test]
fn searches_never_fail_while_another_process_ingests() {
    use docent_backends::index::embedded::EmbeddedIndex;
    use docent_core::index::{Filter, Index, IndexQuery};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# A\n\nnode number 0\n");
    docent.ok(&["ingest", "book"]);
    let index = EmbeddedIndex::open(&docent.index()).unwrap();
    let (done, searches) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
            while !done.load(Ordering::Relaxed) {
                let query = IndexQuery {
                    text: "node",
                    vector: None,
                    filter: &Filter::default(),
                    depth: 5,
                    analyzed: false,
                };
                let found = runtime.block_on(index.search(&query)).unwrap();
                assert_eq!(found.lexical.len(), 1);
                // A newly opened index must always be a complete generation too.
                EmbeddedIndex::open(&docent.index()).unwrap();
                searches.fetch_add(1, Ordering::Relaxed);
            }
        });
        for number in 1..=20 {
            docent.write("book/a.md", &format!("# A\n\nnode number {number}\n"));
            docent.ok(&["ingest", "book"]);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(searches.load(Ordering::Relaxed) > 20);
    let last = index.generation().unwrap();
    assert_eq!(last.name, "g000021", "the open index follows new generations");
}

#[test]
fn one_book_can_mix_all_formats() {
    let docent = Docent::without_vectors();
    docent.write("book/nodes.adoc", "= Nodes\n\n== Names\n\nEvery node has a name like zebra.\n");
    docent.write(
        "book/plot.ipynb",
        r###"{"cells": [{"cell_type": "markdown", "source": ["## Draw a Plot\n", "\n", "A giraffe is drawn."]}], "metadata": {}, "nbformat": 4}"###,
    );
    docent.write("book/notes.txt", "A lion sleeps.\n");
    let pdf = include_bytes!("../../../docent-parse/tests/fixtures/outline.pdf");
    std::fs::write(docent.home.path().join("book/pumps.pdf"), pdf).unwrap();
    let run = docent.run(&["ingest", "book", "--base-url", "https://example.org"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let url = |query: &str| docent.json(&["search", query, "--top-k", "1"])["chunks"][0]["url"].clone();
    assert_eq!(url("zebra"), "https://example.org/nodes.html#_names");
    assert_eq!(url("giraffe"), "https://example.org/plot.ipynb#Draw-a-Plot");
    assert_eq!(url("lion"), "https://example.org/notes.txt");
    assert_eq!(url("relief valve"), "https://example.org/pumps.pdf#page=2");
}

#[test]
fn an_archive_is_ingested_like_a_folder() {
    let docent = Docent::without_vectors();
    docent.write("pack/book/a.md", "# A\n\nApples.\n");
    let packed = std::process::Command::new("tar")
        .args(["czf", "book.tar.gz", "-C", "pack", "book"])
        .current_dir(docent.home.path())
        .status();
    if !packed.is_ok_and(|status| status.success()) {
        eprintln!("skipped: tar is not installed");
        return;
    }
    docent.ok(&["ingest", "book.tar.gz", "--base-url", "https://example.org"]);
    assert_eq!(docent.json(&["search", "apples"])["chunks"][0]["url"], "https://example.org/a.md#a");
}
