//! Stopping an answer, and what readers see when something fails.

use docent_backends::testing::scripted_model::{Reply, ScriptedModel};

use crate::book::{Book, Library};
use crate::browser::browse;
use crate::support::Docent;

const QUESTION: &str = "What is a node in the ROS 2 graph?";

/// A model that begins well and never ends.
async fn endless() -> ScriptedModel {
    let said = "A node is a participant in the ROS 2 graph [1]. It does one job [1]. It has a na";
    ScriptedModel::start(vec![Reply::Stall { after: said.to_owned() }]).await.unwrap()
}

#[tokio::test]
async fn stopping_keeps_what_has_arrived_and_lets_go_of_the_model() {
    let model = endless().await;
    let library = Book::new().written_by(&model).serve();
    browse("stop", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.begin(QUESTION).await;
        turn.find("sentence").await;
        turn.is("answering").await;
        browser.picture("streaming").await;
        browser.click("stop").await;
        turn.is("stopped").await;
        assert!(turn.text("stopped").await.starts_with("Stopped before the end."));
        assert!(turn.sentences().await[0].starts_with("A node is a participant"));
        browser.find("send").await;
        model.hangup().await;
        turn.click("retry").await;
        turn.is("answering").await;
        browser.click("stop").await;
        turn.is("stopped").await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_gone_is_said_and_the_question_can_be_asked_again() {
    let mut library = Book::new().serve();
    browse("unreachable", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.ask(QUESTION).await;
        assert!(library.served.stop(), "{}", library.served.said());
        browser.foretell("net::ERR_CONNECTION_REFUSED");
        let turn = browser.ask("What is a topic?").await;
        turn.is("failed").await;
        assert!(turn.text("error").await.contains("Docent cannot be reached."));
        browser.picture("unreachable").await;
        turn.click("retry").await;
        turn.is("failed").await;
        // What was answered before is still there to be read.
        assert!(!browser.turn(0).await.sentences().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_is_said() {
    let model = endless().await;
    let library = Book::new().written_by(&model).serve();
    browse("interrupted", async |browser| {
        let Library { served, site: _site, docent: _docent } = library;
        browser.open_chat(&served.url).await;
        let turn = browser.begin(QUESTION).await;
        turn.find("sentence").await;
        browser.foretell("net::ERR_INCOMPLETE_CHUNKED_ENCODING");
        drop(served);
        turn.is("failed").await;
        assert!(turn.text("error").await.contains("The connection ended before the answer was complete."));
    })
    .await;
}

#[tokio::test]
async fn who_asks_too_much_is_told_when_to_try_again() {
    let library = Book::new().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "2").serve();
    browse("limit", async |browser| {
        browser.open_chat(&library.served.url).await;
        // A conversation and a question: that is two.
        browser.ask(QUESTION).await.is("complete").await;
        browser.foretell("429 (Too Many Requests)");
        let turn = browser.ask("What is a topic?").await;
        turn.is("failed").await;
        let said = turn.text("error").await;
        assert!(
            said.contains("Too many requests; please slow down") && said.contains("Try again in "),
            "{said}"
        );
        assert_eq!(turn.find("retry").await.attr("aria-disabled").await.unwrap().as_deref(), Some("true"));
        browser.picture("limit").await;
    })
    .await;
}

#[tokio::test]
async fn a_question_that_is_too_long_stays_in_the_box() {
    let library = Book::new().serve();
    browse("long", async |browser| {
        browser.open_chat(&library.served.url).await;
        let question = browser.find("question").await;
        question.send_keys("why ".repeat(251)).await.unwrap();
        assert_eq!(browser.text("count").await, "1003 of 1000, too long");
        browser.click("send").await;
        assert_eq!(browser.count("turn").await, 0);
        assert_eq!(question.prop("value").await.unwrap().unwrap().len(), 1004);
    })
    .await;
}

#[tokio::test]
async fn a_book_with_a_key_asks_for_it() {
    // As an owner does it: make a key, put what it says into docent.toml.
    let made = Docent::new().run(&["key", "reader"]);
    let (_, settings) = made.stderr.split_once("[[").unwrap();
    let library = Book::new().configured(&format!("[[{settings}")).serve();
    browse("key", async |browser| {
        browser.foretell("401 (Unauthorized)");
        browser.open(&library.served.url).await;
        browser.find("key-value").await.send_keys(made.stdout.trim()).await.unwrap();
        browser.picture("key").await;
        browser.click("key-confirm").await;
        browser.until("document.title.includes('·')").await;
        browser.ask(QUESTION).await.is("complete").await;
    })
    .await;
}
