//! Stopping an answer, and what users see when something fails.

use docent_testkit::scripted_model::{Reply, ScriptedModel};

use crate::book::{Book, Library};
use crate::browser::browse;
use crate::support::Docent;

const QUESTION: &str = "What is a node in the ROS 2 graph?";

/// A model that starts normally and never finishes.
async fn endless() -> ScriptedModel {
    let said = "A node is a participant in the ROS 2 graph [1]. It does one job [1]. It has a na";
    ScriptedModel::start(vec![Reply::Stall { after: said.to_owned() }]).await.unwrap()
}

#[tokio::test]
async fn stopping_keeps_the_text_so_far_and_disconnects_from_the_model() {
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
        // It is stored in the conversation and shown after a reload.
        library.until_stored(1).await;
        assert_eq!(browser.text("conversation-open").await, QUESTION);
        browser.reload().await;
        let turn = browser.turn(0).await;
        turn.is("stopped").await;
        assert_eq!(turn.text("asked").await, QUESTION);
        assert!(turn.sentences().await[0].starts_with("A node is a participant"));
        browser.picture("stopped").await;
        turn.click("retry").await;
        turn.is("answering").await;
        browser.click("stop").await;
        turn.is("stopped").await;
    })
    .await;
}

#[tokio::test]
async fn an_unreachable_server_is_reported_and_the_question_can_be_retried() {
    let mut library = Book::new().serve();
    browse("unreachable", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.ask(QUESTION).await;
        assert!(library.served.stop(), "{}", library.served.said());
        browser.expect_in_console("net::ERR_CONNECTION_REFUSED");
        let turn = browser.ask("What is a topic?").await;
        turn.is("failed").await;
        assert!(turn.text("error").await.contains("Docent cannot be reached right now."));
        browser.picture("unreachable").await;
        turn.click("retry").await;
        turn.is("failed").await;
        // Earlier answers can still be read.
        assert!(!browser.turn(0).await.sentences().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_server_that_dies_during_an_answer_is_reported() {
    let model = endless().await;
    let library = Book::new().written_by(&model).serve();
    browse("interrupted", async |browser| {
        let Library { served, site: _site, docent: _docent } = library;
        browser.open_chat(&served.url).await;
        // Otherwise the server may die before it has sent them.
        browser.text("suggestion").await;
        let turn = browser.begin(QUESTION).await;
        turn.find("sentence").await;
        browser.expect_in_console("net::ERR_INCOMPLETE_CHUNKED_ENCODING");
        drop(served);
        turn.is("failed").await;
        assert!(turn.text("error").await.contains("The connection ended before the answer was complete."));
    })
    .await;
}

#[tokio::test]
async fn a_rate_limited_user_sees_when_to_try_again() {
    let library = Book::new().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "3").serve();
    browse("limit", async |browser| {
        browser.open_chat(&library.served.url).await;
        // Suggestions, a conversation and a question: three requests.
        browser.ask(QUESTION).await.is("complete").await;
        browser.expect_in_console("429 (Too Many Requests)");
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
async fn a_question_that_is_too_long_stays_in_the_input() {
    let library = Book::new().serve();
    browse("long", async |browser| {
        browser.open_chat(&library.served.url).await;
        let question = browser.find("question").await;
        question.send_keys("why ".repeat(2001)).await.unwrap();
        assert_eq!(browser.text("count").await, "8003 of 8000, too long");
        browser.click("send").await;
        assert_eq!(browser.count("turn").await, 0);
        assert_eq!(question.prop("value").await.unwrap().unwrap().len(), 8004);
    })
    .await;
}

#[tokio::test]
async fn a_server_with_keys_asks_for_one() {
    // As an operator does it: create a key and copy the printed settings into docent.toml.
    let made = Docent::new().run(&["key", "site"]);
    let (_, settings) = made.stderr.split_once("[[").unwrap();
    let library = Book::new().unpublished().configured(&format!("[[{settings}")).serve();
    browse("key", async |browser| {
        browser.expect_in_console("401 (Unauthorized)");
        browser.open(&library.served.url).await;
        browser.find("key-value").await.send_keys("docent-wrong").await.unwrap();
        browser.click("key-confirm").await;
        assert!(browser.text("key-problem").await.starts_with("That key was not accepted."));
        browser.picture("key").await;
        browser.is_accessible("key").await;
        browser.find("key-value").await.send_keys(made.stdout.trim()).await.unwrap();
        browser.click("key-confirm").await;
        browser.until("document.title.includes('·')").await;
        let turn = browser.ask(QUESTION).await;
        turn.is("complete").await;
        // The book is not published, so its pages are read on the server, where a link cannot contain a key.
        turn.click("citation").await;
        let link = "document.querySelector('[data-testid=citation-card] a[href*=\"/read/\"]')";
        browser.until_element(link).await.click().await.unwrap();
        assert!(browser.text("reading-body").await.contains("A node is a participant in the ROS 2 graph"));
        browser.click("reading-site").await;
        browser.follow_to_new_tab().await;
        let page = browser.value("document.body.innerText").await;
        assert!(page.as_str().unwrap().contains("A node is a participant in the ROS 2 graph"), "{page}");
    })
    .await;
}
