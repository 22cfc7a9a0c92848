//! Conversations in a real PostgreSQL database, with the real binary. One server is used for all tests.

use docent_testkit::postgres::{PASSWORD, Postgres};
use serde_json::{Value, json};

use super::share_one_conversation;
use crate::support::{Docent, Run};

#[test]
fn conversations_are_stored_in_postgres_and_can_be_copied_both_ways() {
    let Some(mut postgres) = Postgres::start() else { return };
    let url = postgres.database();
    let docent =
        Docent::without_vectors().with("DOCENT_SESSIONS__KIND", "postgres").with("DATABASE_URL", &url);
    let id = share_one_conversation(&docent);
    copies(&postgres, &docent, &url, &id);
    the_doctor_looks(&docent, &url);
    nothing_shows_the_password(&url);

    postgres.kill();
    let run = docent.run(&["sessions", "list"]);
    assert_eq!(run.status, 4, "{}", run.stderr);
    assert!(run.stderr.contains("Connection refused"), "{}", run.stderr);
    keeps_the_password(&run);
}

fn copies(postgres: &Postgres, docent: &Docent, url: &str, id: &str) {
    // To a file: with the turns, their order, titles and times.
    let other = postgres.database();
    let local = Docent::without_vectors().with("DATABASE_URL", &other);
    let file = local.home.path().join("data/sessions.sqlite");
    let to_file = ["sessions", "copy", "--from", "postgres", "--to", file.to_str().unwrap()];
    assert_eq!(
        docent.ok(&to_file),
        "1 conversation copied, 0 updated, 0 unchanged\nwrote 5 turns and 0 turn log records\n"
    );
    assert_eq!(local.json(&["sessions", "export", id]), docent.json(&["sessions", "export", id]));

    // Again: only new turns are copied.
    docent.ok(&["ask", "What is a topic?", "--session", id]);
    docent.ok(&["ask", "What is a ROS 2 node?", "--session", "new"]);
    let again =
        json!({ "copied": 1, "updated": 1, "unchanged": 0, "conflicts": [], "turns": 2, "logged": 0 });
    assert_eq!(docent.json(&to_file), again);

    // From the file to another database.
    let copied = local.ok(&["sessions", "copy", "--from", "sqlite", "--to", "postgres"]);
    assert!(copied.starts_with("2 conversations copied"), "{copied}");
    let moved = Docent::without_vectors()
        .with("DOCENT_SESSIONS__KIND", "postgres")
        .with("DATABASE_URL", "mysql://not-this-one")
        .with("DOCENT_SESSIONS__URL", &other);
    assert_eq!(moved.json(&["sessions", "list"]), docent.json(&["sessions", "list"]));
    assert_eq!(moved.json(&["sessions", "export", id]), docent.json(&["sessions", "export", id]));

    // If a conversation continued in both stores, it is left unchanged in both and named.
    moved.ok(&["ask", "What is a digital twin?", "--session", id]);
    docent.ok(&["ask", "What is Isaac Sim?", "--session", id]);
    let run = docent.run(&["sessions", "copy", "--from", "postgres", "--to", &other]);
    assert_eq!(run.status, 0);
    assert!(run.stderr.contains(&format!("{id} was continued differently in both stores")), "{}", run.stderr);
    keeps_the_password(&run);
    docent.fails(
        &["sessions", "copy", "--from", "postgres", "--to", "postgres"],
        2,
        &format!("error: cannot copy {} to itself", shown(url)),
    );
}

fn the_doctor_looks(docent: &Docent, url: &str) {
    let run = docent.run(&["doctor", "--json", "--verbose"]);
    keeps_the_password(&run);
    let findings: Value = serde_json::from_str(&run.stdout).unwrap();
    let finding =
        findings.as_array().unwrap().iter().find(|finding| finding["check"] == "conversations").unwrap();
    assert_eq!(finding["health"], "good");
    let message = finding["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("2 in {}, PostgreSQL ", shown(url))), "{message}");
}

fn nothing_shows_the_password(url: &str) {
    let wrong = url.replace("docent:", "nobody:");
    let docent = Docent::without_vectors()
        .with("DOCENT_SESSIONS__KIND", "postgres")
        .with("DOCENT_SESSIONS__URL", &wrong)
        .with("RUST_LOG", "trace");
    for arguments in [&["sessions", "list"][..], &["ask", "What is a node?", "--session", "new"], &["doctor"]]
    {
        let run = docent.run(arguments);
        let expected = if arguments == ["doctor"] { 1 } else { 4 };
        assert_eq!(run.status, expected, "{arguments:?}: {}", run.stderr);
        let said = run.stdout.clone() + &run.stderr;
        assert!(said.contains("password authentication failed"), "{said}");
        keeps_the_password(&run);
    }
    let right = Docent::without_vectors()
        .with("DOCENT_SESSIONS__KIND", "postgres")
        .with("DOCENT_SESSIONS__URL", &format!("{url}?nonsense={PASSWORD}"))
        .with("RUST_LOG", "trace");
    keeps_the_password(&right.run(&["sessions", "list"]));
}

#[track_caller]
fn keeps_the_password(run: &Run) {
    for said in [&run.stdout, &run.stderr] {
        assert!(!said.contains(PASSWORD), "{said}");
    }
}

/// The address without credentials.
fn shown(url: &str) -> String {
    url.replace(&format!("docent:{PASSWORD}@"), "")
}

#[test]
fn invalid_stores_are_rejected() {
    let docent = Docent::without_vectors();
    let hint = "hint: a store is sqlite, postgres, a file, or postgres://…";
    let begins = "error: the URL of a PostgreSQL database must start with postgres://";
    for address in
        ["mysql://user:swordfish@host/db", "user:swordfish@host/db", "postgres:user:swordfish@host"]
    {
        docent.fails(
            &["sessions", "copy", "--from", address, "--to", "sqlite"],
            2,
            &format!("{begins}\n{hint}"),
        );
    }
    docent.fails(
        &["sessions", "copy", "--from", "memory", "--to", "sqlite"],
        2,
        "error: in-memory conversations cannot be copied: they are lost when the process exits",
    );
    docent.fails(
        &["sessions", "copy", "--from", "nowhere.sqlite", "--to", "sqlite"],
        1,
        "error: cannot copy from nowhere.sqlite: no such file",
    );
    docent.fails(
        &["sessions", "copy", "--from", "sqlite", "--to", "postgres"],
        3,
        "error: PostgreSQL is selected for conversations, but sessions.url is not set\n\
         hint: set DOCENT_SESSIONS__URL or DATABASE_URL to postgres://user:password@host/database",
    );

    // The setting is checked at startup, and an empty value counts as unset.
    let docent = docent.with("DOCENT_SESSIONS__KIND", "postgres").with("DATABASE_URL", "");
    docent.fails(
        &["search", "What is a node?"],
        3,
        "error: PostgreSQL is selected for conversations, but sessions.url is not set\n\
         hint: set DOCENT_SESSIONS__URL or DATABASE_URL to postgres://user:password@host/database",
    );
    docent.with("DOCENT_SESSIONS__URL", "postgres://user:sword/fish@host/db").fails(
        &["sessions", "list"],
        3,
        "error: sessions.url: in a password, write / as %2F, ? as %3F, # as %23 and @ as %40\n\
         hint: the URL must look like postgres://user:password@host/database",
    );
}
