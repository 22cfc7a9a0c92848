//! Several books in one index, as listed in `docent.toml`.

use serde_json::Value;

use crate::support::Docent;

pub fn two_books() -> Docent {
    let docent = Docent::new();
    docent.write("manuals/pumps/basics/index.md", "# Pumps\n\nA pump moves water with an impeller.\n");
    docent.write("manuals/pumps/service.md", "# Service\n\nGrease the bearing of the pump every month.\n");
    docent.write("manuals/ovens/basics/index.md", "# Ovens\n\nAn oven bakes bread at 220 degrees.\n");
    docent.write(
        "manuals/docent.toml",
        r#"
        [[sources]]
        name = "pumps"
        location = "pumps"
        layout = "docusaurus"
        base_url = "https://pumps.example.org/manual"

        [[sources]]
        name = "ovens"
        location = "ovens"
        layout = "docusaurus"
        base_url = "https://ovens.example.org"
        "#,
    );
    docent
}

const CONFIG: [&str; 2] = ["--config", "manuals/docent.toml"];

fn with_config<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &CONFIG].concat()
}

fn urls(found: &Value) -> Vec<&str> {
    found["chunks"].as_array().unwrap().iter().map(|chunk| chunk["url"].as_str().unwrap()).collect()
}

#[test]
fn ingest_without_arguments_reads_the_listed_sources_and_each_book_has_its_base_url() {
    let docent = two_books();
    let report = docent.json(&with_config(&["ingest"]));
    assert_eq!(report["pages"]["added"], 3);
    let found = docent.json(&["search", "pump bread"]);
    let mut found = urls(&found);
    found.sort_unstable();
    let expected = [
        "https://ovens.example.org/basics/",
        "https://pumps.example.org/manual/basics/",
        "https://pumps.example.org/manual/service",
    ];
    assert_eq!(found, expected);

    // Two books may have pages of the same name; both are indexed, and one can change alone.
    docent.write("manuals/ovens/basics/index.md", "# Ovens\n\nAn oven bakes bread at 230 degrees.\n");
    let again = docent.json(&with_config(&["ingest"]));
    assert_eq!((&again["pages"]["changed"], &again["embedded"]), (&1.into(), &1.into()));
    assert_eq!(again["changed"][0]["page"], "ovens/basics/index.md");

    // A book that is no longer listed is removed.
    let one = "[[sources]]\nname = \"ovens\"\nlocation = \"ovens\"\nlayout = \"docusaurus\"\n";
    docent.write("manuals/docent.toml", one);
    assert_eq!(docent.json(&with_config(&["ingest"]))["pages"]["removed"], 2);
    assert_eq!(docent.json(&["search", "pump"])["chunks"].as_array().unwrap().len(), 1);
}

#[test]
fn a_book_whose_source_becomes_empty_stays_in_the_index() {
    let docent = two_books();
    docent.ok(&with_config(&["ingest"]));
    let page = docent.write("manuals/ovens/basics/index.md", "");
    for expected in ["error: the pages in", "error: no pages found in"] {
        let run = docent.run(&with_config(&["ingest", "--quiet"]));
        assert_eq!(run.status, 1, "{}", run.stderr);
        assert!(run.stderr.starts_with(expected), "{}", run.stderr);
        assert!(run.stderr.contains("manuals/ovens"), "{}", run.stderr);
        assert!(run.stderr.contains("the index is unchanged"), "{}", run.stderr);
        assert_eq!(docent.json(&["modules"])["ovens"]["basics"]["chunks"], 1);
        let _ = std::fs::remove_file(&page);
    }
}

#[test]
fn a_search_and_an_answer_can_be_limited_to_one_book() {
    let docent = two_books();
    docent.ok(&with_config(&["ingest"]));
    let found = docent.json(&["search", "what does it do with water or bread", "--book", "ovens"]);
    assert_eq!(urls(&found), ["https://ovens.example.org/basics/"]);
    assert_eq!(found["chunks"][0]["book_name"], "ovens");
    let both = ["search", "pump", "--book", "pumps", "--module", "basics"];
    assert_eq!(urls(&docent.json(&both)), ["https://pumps.example.org/manual/basics/"]);

    let answer = docent.json(&["ask", "How often is the bearing greased?", "--book", "pumps"]);
    assert_eq!(answer["citations"][0]["book_name"], "pumps", "{answer}");
    let answer = docent.json(&["ask", "How often is the bearing greased?", "--book", "ovens"]);
    assert_eq!(answer["grounded"], false, "{answer}");

    assert_eq!(docent.json(&["modules"])["pumps"]["basics"]["pages"], 1);
    let shown = docent.ok(&["modules"]);
    assert!(shown.starts_with("ovens\n  basics  1 page, 1 passage\npumps\n"), "{shown}");
    assert!(docent.ok(&["status"]).contains("books      ovens, pumps\n"));
    let missing = "error: there is no book `pump` in this index\nhint: did you mean `pumps`?";
    docent.fails(&["search", "x", "--book", "pump"], 2, missing);
    docent.fails(
        &["search", "x", "--book", "pumps", "--module", "kitchen"],
        2,
        "error: there is no module `kitchen` in the book `pumps`\nhint: available modules: basics, pumps",
    );
}

#[test]
fn a_chat_can_be_limited_to_one_book() {
    let docent = two_books();
    docent.ok(&with_config(&["ingest"]));
    let typed = "/book ovens\nWhat moves water?\n/book\n/book pump\n/quit\n";
    let run = docent.run_with_input(&["chat"], typed);
    assert!(run.stderr.contains("only ovens\n"), "{}", run.stderr);
    assert!(run.stderr.contains("the whole book\n"), "{}", run.stderr);
    assert!(run.stderr.contains("did you mean `pumps`?"), "{}", run.stderr);
    assert!(run.stdout.contains("I don't have information about that"), "{}", run.stdout);
}

#[test]
fn output_for_a_single_book_does_not_mention_books() {
    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# A\n\nText.\n");
    docent.ok(&["ingest", "book"]);
    let found = docent.json(&["search", "text"]);
    assert_eq!(found["chunks"][0].get("book_name"), None);
    assert!(!docent.ok(&["status"]).contains("books"));
    docent.fails(
        &["search", "x", "--book", "a"],
        2,
        "error: there is no book `a` in this index\nhint: the index contains one book without a name",
    );
}

#[test]
fn the_doctor_checks_that_sources_exist() {
    let docent = two_books();
    let found = docent.ok(&with_config(&["doctor"]));
    assert!(found.contains("sources        2 sources listed for `docent ingest`"), "{found}");
    std::fs::remove_dir_all(docent.home.path().join("manuals/ovens")).unwrap();
    let run = docent.run(&with_config(&["doctor"]));
    assert_eq!(run.status, 1);
    assert!(run.stdout.contains("manuals/ovens does not exist"), "{}", run.stdout);
}

#[test]
fn an_invalid_list_of_sources_is_reported() {
    let docent = Docent::without_vectors();
    let check = |sources: &str, expected: &str| {
        docent.write("docent.toml", sources);
        let run = docent.run(&["ingest"]);
        assert_eq!(run.status, 3, "{sources}: {}", run.stderr);
        assert!(run.stderr.contains(expected), "{sources}: {}", run.stderr);
    };
    check("[[sources]]\nname = \"a\"\n", "location");
    check("[[sources]]\nlocation = \"\"\n", "a source has an empty location");
    check(
        "[[sources]]\nname = \"a\"\nlocation = \"x\"\n[[sources]]\nname = \"a\"\nlocation = \"y\"\n",
        "two sources are named `a`",
    );
    check(
        "[[sources]]\nname = \"a\"\nlocation = \"x\"\n[[sources]]\nlocation = \"y\"\n",
        "it has no name, but other sources do",
    );
    check("[[sources]]\nlocation = \"x\"\nmax_pages = 3\n", "only apply to sites");
    check("[[sources]]\nlocation = \"x\"\nlayuot = \"mdbook\"\n", "did you mean `layout`?");
    check("[[sources]]\nlocation = \"x\"\nlayout = \"wiki\"\n", "unknown layout `wiki`");
    check(
        "[[sources]]\nlocation = \"x\"\nbase_url = \"docs\"\n",
        "base_url must start with http:// or https://",
    );
}
