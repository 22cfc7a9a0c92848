//! `kill -9` at any moment: the old generation answers, and nothing journaled is embedded again.

use std::process::Stdio;
use std::time::Duration;

use crate::support::Docent;

/// Bytes of a journal record: a key, 384 numbers, a checksum.
const RECORD: u64 = 16 + 384 * 4 + 8;

#[test]
fn killed_at_random_moments_an_ingest_goes_on_where_it_was() {
    let docent = Docent::new();
    docent.write("book/a.md", "# Old\n\nThe old words about nodes.\n");
    docent.ok(&["ingest", "book"]);
    for page in 0..30 {
        let sections: String = (0..4)
            .map(|section| {
                format!(
                    "## Part {section}\n\n{}\n\n",
                    format!("Page {page} says {section} about nodes. ").repeat(8)
                )
            })
            .collect();
        docent.write(&format!("book/p{page}.md"), &format!("# Page {page}\n\n{sections}"));
    }
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut journaled = 0;
    for _ in 0..12 {
        let mut child =
            docent.command(&["ingest"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::thread::sleep(Duration::from_millis(random % 900));
        child.kill().unwrap();
        child.wait().unwrap();

        let found = docent.json(&["search", "old words about nodes", "--top-k", "1"]);
        if found["index_version"] != "g000001" {
            break; // It finished before it was killed.
        }
        assert_eq!(found["chunks"][0]["document_id"], "a.md");
        let journal = std::fs::metadata(docent.index().join("journal")).map_or(0, |file| file.len() / RECORD);
        assert!(journal >= journaled, "the journal lost records: {journaled} → {journal}");
        journaled = journal;
    }
    let report = docent.json(&["ingest"]);
    if report["published"] == true {
        assert_eq!(report["resumed"], journaled, "what was journaled is used");
        assert_eq!(report["embedded"].as_u64().unwrap() + journaled, 120, "and only the rest is embedded");
    }
    assert_eq!(docent.json(&["status"])["pages"], 31);
    assert!(!docent.index().join("journal").exists());
}

#[test]
fn a_crash_between_building_and_publishing_is_cleaned_up() {
    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# A\n\nA node.\n");
    docent.ok(&["ingest", "book"]);
    // What a process leaves that dies while it builds, or after the rename but before CURRENT moves.
    std::fs::create_dir_all(docent.index().join("building/lexical")).unwrap();
    std::fs::write(docent.index().join("building/vectors.f32"), "half").unwrap();
    std::fs::create_dir_all(docent.index().join("g000002")).unwrap();
    assert_eq!(docent.json(&["search", "node"])["index_version"], "g000001");
    docent.write("book/a.md", "# A\n\nAnother node.\n");
    docent.ok(&["ingest"]);
    assert_eq!(docent.json(&["search", "node"])["index_version"], "g000003");
    assert!(!docent.index().join("building").exists());
}
