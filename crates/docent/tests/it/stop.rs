//! Ctrl-C and SIGTERM at every moment: the process ends, and no incomplete generation is published.
//!
//! No test relies on timing: an embedder or a model that never responds, or a fail-point, holds the process
//! in place.

use std::io::Write;
use std::process::Stdio;

use docent_testkit::scripted_model::Reply;
use docent_testkit::scripted_provider::Act;

use crate::embedders::{Provider, write_book};
use crate::model::Model;
use crate::support::{Docent, Running, wait_until};

/// Longer than any test: a response that never comes.
const NEVER: Act = Act::Late(3_600_000);

/// The exit code after Ctrl-C or SIGTERM.
const STOPPED: i32 = 130;

const PAUSED: &str = "failpoint: paused at ";

/// A published book whose next ingest waits for the embedder forever.
fn waiting_for_the_embedder() -> (Provider, Docent) {
    let provider = Provider::start(1024, vec![Act::Answer], NEVER);
    let docent = provider.cohere(Docent::new());
    write_book(&docent, 3);
    docent.ok(&["ingest", "book"]);
    write_book(&docent, 5);
    (provider, docent)
}

/// Checks that the old book is complete and that the next ingest works.
fn check_index(docent: &Docent, old_pages: usize) {
    let status = docent.json(&["status"]);
    assert_eq!((&status["version"], &status["pages"]), (&"g000001".into(), &old_pages.into()));
    let again = docent.json(&["ingest"]);
    assert_eq!(again["published"], true, "{again}");
}

#[test]
fn an_ingest_stops_while_it_waits_for_the_embedder() {
    for signal in ["INT", "TERM"] {
        let (provider, docent) = waiting_for_the_embedder();
        let mut ingest = Running::start(docent.command(&["ingest"]));
        wait_until(|| provider.requests().len() == 2);
        ingest.signal(signal);
        assert_eq!(ingest.wait(), STOPPED, "{}", ingest.said());
        assert!(ingest.said().contains("error: stopped before the end"), "{}", ingest.said());
        drop(provider);
        assert_eq!(std::fs::read_to_string(docent.index().join("CURRENT")).unwrap(), "g000001\n");
    }
}

#[test]
fn an_ingest_stops_at_every_fail_point() {
    for point in ["ingest.lock", "journal.sync", "build.lexical", "publish.rename", "publish.current"] {
        let docent = Docent::new();
        write_book(&docent, 3);
        docent.ok(&["ingest", "book"]);
        write_book(&docent, 5);
        let mut command = docent.command(&["ingest"]);
        command.env("DOCENT_TEST_FAILPOINT", format!("{point}=pause"));
        let mut ingest = Running::start(command);
        ingest.wait_for(&format!("{PAUSED}{point}"));
        ingest.signal("TERM");
        assert_eq!(ingest.wait(), STOPPED, "{point}: {}", ingest.said());
        check_index(&docent, 3);
    }
}

#[test]
fn a_second_signal_ends_an_ingest_at_once() {
    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# A\n\nA node.\n");
    let mut command = docent.command(&["ingest", "book"]);
    command.env("DOCENT_TEST_FAILPOINT", "build.lexical=pause");
    let mut ingest = Running::start(command);
    ingest.wait_for(PAUSED);
    ingest.signal("INT");
    // Two pending signals of the same kind count as one, so use another one.
    ingest.signal("TERM");
    assert!([STOPPED, 128 + 15].contains(&ingest.wait()), "{}", ingest.said());
    assert!(!docent.index().join("CURRENT").exists());
}

#[test]
fn watching_stops_during_an_ingest() {
    let provider = Provider::start(1024, vec![Act::Answer], NEVER);
    let docent = provider.cohere(Docent::new());
    write_book(&docent, 3);
    let mut watching = Running::start(docent.command(&["ingest", "book", "--watch"]));
    watching.wait_for("watching the source");
    write_book(&docent, 5);
    wait_until(|| provider.requests().len() == 2);
    watching.signal("INT");
    assert_eq!(watching.wait(), 0, "{}", watching.said());
    assert!(watching.said().ends_with("stopped\n"), "{}", watching.said());
}

#[test]
fn a_server_stops_during_a_refresh() {
    let (provider, docent) = waiting_for_the_embedder();
    docent.write("docent.toml", "[[sources]]\nlocation = \"book\"\n\n[serve]\nevery = \"1h\"\n");
    let mut served = docent.serve();
    wait_until(|| provider.requests().len() == 2);
    assert!(served.stop(), "{}", served.said());
    wait_until(|| served.said().ends_with("stopped\n"));
    assert!(!served.said().contains("panicked"), "{}", served.said());
    assert_eq!(std::fs::read_to_string(docent.index().join("CURRENT")).unwrap(), "g000001\n");
}

#[test]
fn a_server_stops_while_a_refresh_is_busy() {
    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# A\n\nA node.\n");
    docent.ok(&["ingest", "book"]);
    docent.write("book/a.md", "# A\n\nAnother node.\n");
    docent.write("docent.toml", "[[sources]]\nlocation = \"book\"\n\n[serve]\nevery = \"1h\"\n");
    let docent = docent.with("DOCENT_TEST_FAILPOINT", "build.lexical=pause");
    let mut served = docent.serve();
    wait_until(|| served.said().contains(PAUSED));
    assert!(served.stop(), "{}", served.said());
    assert_eq!(std::fs::read_to_string(docent.index().join("CURRENT")).unwrap(), "g000001\n");
}

#[test]
fn a_server_stops_during_its_first_ingest() {
    let provider = Provider::start(1024, vec![], NEVER);
    let docent = provider.cohere(Docent::new());
    write_book(&docent, 3);
    docent.write("docent.toml", "[[sources]]\nlocation = \"book\"\n\n[serve]\nevery = \"1h\"\n");
    let mut served = Running::start(docent.command(&["serve", "--listen", "127.0.0.1:0"]));
    wait_until(|| !provider.requests().is_empty());
    served.signal("TERM");
    assert_eq!(served.wait(), 0, "{}", served.said());
    assert!(!docent.index().join("CURRENT").exists());
}

#[test]
fn a_second_signal_ends_a_server_at_once() {
    let model = Model::start(vec![Reply::Stall { after: "A node".to_owned() }]);
    let docent = model.serve(Docent::new()).with("DOCENT_AGENT__DEADLINE_SECONDS", "600");
    let mut served = Running::start(docent.command(&["serve", "--listen", "127.0.0.1:0"]));
    let address = served.address();
    let mut connection = std::net::TcpStream::connect(&address).unwrap();
    let body = "{\"query\": \"What is a ROS 2 node?\"}";
    let length = body.len();
    write!(
        connection,
        "POST /api/v1/ask HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    wait_until(|| model.requests().len() == 1);
    served.signal("INT");
    // The server has received the first signal when it no longer accepts connections.
    wait_until(|| std::net::TcpStream::connect(&address).is_err());
    served.signal("INT");
    assert_eq!(served.wait(), STOPPED, "{}", served.said());
}

#[test]
fn ctrl_c_stops_an_answer_and_then_a_chat() {
    let model = Model::start(vec![
        Reply::Stall { after: "A node".to_owned() },
        Reply::text("A topic is a named channel [1]."),
    ]);
    let docent = model.serve(Docent::new()).with("DOCENT_AGENT__STREAM_DEADLINE_SECONDS", "600");
    let mut command = docent.command(&["chat"]);
    command.stdin(Stdio::piped());
    let mut chat = Running::start(command);
    writeln!(chat.input(), "What is a ROS 2 node?").unwrap();
    wait_until(|| model.requests().len() == 1);
    chat.signal("INT");
    chat.wait_for("stopped");
    writeln!(chat.input(), "What is a topic?").unwrap();
    wait_until(|| model.requests().len() == 2);
    // At the prompt, only the chat itself can be stopped. The first signal may still hit the answer.
    while chat.is_running() {
        chat.signal("INT");
        std::thread::yield_now();
    }
    assert_eq!(chat.wait(), STOPPED, "{}", chat.said());
}
