//! Asking questions on the chat page, and their answers.

use docent_testkit::scripted_model::{Reply, ScriptedModel};
use thirtyfour::components::SelectElement;
use thirtyfour::prelude::*;

use crate::book::{Book, DEFINITION};
use crate::browser::browse;
use crate::support::Docent;

const QUESTION: &str = "What is a node in the ROS 2 graph?";

/// From now on, records the number of sentences and the state of the answer.
const HISTORY: &str = "(() => {
  window.history_ = [];
  const look = () => {
    const state = document.querySelector('[data-testid=answer]')?.dataset.state;
    const now = `${document.querySelectorAll('[data-testid=sentence]').length} ${state}`;
    if (window.history_.at(-1) !== now) window.history_.push(now);
  };
  const watched = { subtree: true, childList: true, attributes: true, attributeFilter: ['data-state'] };
  new MutationObserver(look).observe(document.querySelector('[data-testid=thread]'), watched);
  return true;
})()";

#[tokio::test]
async fn an_answer_quotes_the_book() {
    let library = Book::new().serve();
    browse("answer", async |browser| {
        browser.open_chat(&library.served.url).await;
        assert_eq!(browser.text("book-title").await, "Walking machines");
        let turn = browser.ask(QUESTION).await;
        turn.is("complete").await;
        assert_eq!(turn.text("asked").await, QUESTION);
        assert_eq!(turn.sentences().await[0], DEFINITION);
        assert_eq!(turn.text("badge").await, "From the book");
        assert!(!turn.all("citation").await.is_empty());
        turn.find("sources").await.click().await.unwrap();
        assert!(turn.text("source").await.contains(DEFINITION));
        browser.picture("answer").await;
    })
    .await;
}

#[tokio::test]
async fn sentences_are_streamed_and_an_interrupted_draft_is_replaced() {
    let draft =
        "A node is a participant in the ROS 2 graph [1]. It was invented by cats in 1066 [1]. Its col";
    let model = ScriptedModel::start(vec![Reply::Stall { after: draft.to_owned() }]).await.unwrap();
    let library = Book::new().written_by(&model).with("DOCENT_AGENT__STREAM_DEADLINE_SECONDS", "10").serve();
    browse("streaming", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.until(HISTORY).await;
        let turn = browser.ask(QUESTION).await;
        turn.is("complete").await;
        assert_eq!(turn.sentences().await[0], DEFINITION);
        assert!(turn.texts("badge").await.contains(&"Answered without the model".to_owned()));
        let history = browser.value("window.history_").await;
        let history: Vec<&str> =
            history.as_array().unwrap().iter().map(|now| now.as_str().unwrap()).collect();
        assert!(history.contains(&"2 answering"), "two sentences before the end: {history:?}");
        assert!(history.last().unwrap().ends_with("complete"), "{history:?}");
    })
    .await;
}

#[tokio::test]
async fn unsupported_sentences_are_marked() {
    let prose = "A node is a participant in the ROS 2 graph [1]. It was invented by cats in 1066 [1].";
    let model = ScriptedModel::start(vec![Reply::text(prose)]).await.unwrap();
    let library = Book::new().written_by(&model).serve();
    browse("unsupported", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask(QUESTION).await;
        let supported: Vec<_> = {
            let mut all = Vec::new();
            for sentence in turn.all("sentence").await {
                all.push(sentence.attr("data-supported").await.unwrap().unwrap());
            }
            all
        };
        assert_eq!(supported, ["true", "false"]);
        assert_eq!(turn.texts("unsupported").await, ["not supported by the book"]);
        browser.picture("unsupported").await;
    })
    .await;
}

#[tokio::test]
async fn a_follow_up_uses_its_conversation() {
    let library = Book::new().serve();
    browse("follow-up", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.ask("What is a managed node?").await;
        let turn = browser.ask("Which states does it move through?").await;
        turn.is("complete").await;
        assert!(turn.sentences().await[0].contains("unconfigured, inactive, active and finalized"));
        assert_eq!(browser.count("turn").await, 2);
        assert_eq!(browser.count("conversation").await, 1);
        assert_eq!(library.conversations()[0]["turn_count"], 2);
    })
    .await;
}

#[tokio::test]
async fn an_uncovered_question_is_not_answered_and_the_contents_are_shown() {
    let library = Book::new().serve();
    browse("abstention", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask("Who won the football world cup in 1998?").await;
        turn.is("abstained").await;
        assert!(turn.text("abstention").await.starts_with("I don't have information about that"));
        assert_eq!(turn.texts("badge").await, ["Not in the book"]);
        assert_eq!(turn.sentences().await.len(), 0);
        // No section is relevant, so none is offered.
        assert_eq!(turn.all("nearest-section").await.len(), 0);
        assert!(turn.text("contents").await.starts_with("The book covers: "));
        browser.picture("abstention").await;
    })
    .await;
}

#[tokio::test]
async fn a_question_can_be_limited_to_one_module() {
    let library = Book::new().serve();
    browse("modules", async |browser| {
        browser.open_chat(&library.served.url).await;
        let module = browser.find("module").await;
        let choices = SelectElement::new(&module).await.unwrap();
        let anywhere = browser.ask("What is a node?").await;
        assert!(anywhere.texts("badge").await.iter().all(|badge| badge.starts_with("From the book")));
        choices.select_by_value("simulation").await.unwrap();
        let turn = browser.ask("What is a node?").await;
        turn.find("answer").await;
        let elsewhere = turn.element.find_all(By::Css("a[href*='/ros2/']")).await.unwrap();
        assert_eq!(elsewhere.len(), 0, "{:?}", turn.text("answer").await);
        let turn = browser.ask("What gravity does Gazebo apply?").await;
        assert!(turn.sentences().await[0].contains("9.81"));
    })
    .await;
}

#[tokio::test]
async fn a_version_can_be_chosen_if_the_book_has_several() {
    let library = Book::new().with_versions().serve();
    browse("versions", async |browser| {
        browser.open_chat(&library.served.url).await;
        let question = "How many times a minute does the water wheel turn?";
        let version = browser.find("version").await;
        let choices = SelectElement::new(&version).await.unwrap();
        let turn = browser.ask(question).await;
        assert!(turn.sentences().await[0].contains("turns eight times a minute"));
        choices.select_by_value("1.0").await.unwrap();
        let turn = browser.ask(question).await;
        assert!(turn.sentences().await[0].contains("turns six times a minute"));
        browser.gone("locale").await;
    })
    .await;
}

#[tokio::test]
async fn suggested_questions_are_answered() {
    let library = Book::new().serve();
    browse("suggestions", async |browser| {
        browser.open_chat(&library.served.url).await;
        let question = browser.text("suggestion").await;
        browser.picture("welcome").await;
        browser.click("suggestion").await;
        let turn = browser.turn(0).await;
        turn.is("complete").await;
        assert_eq!(turn.text("asked").await, question);
        browser.gone("suggestions").await;
    })
    .await;
}

#[tokio::test]
async fn ratings_and_comments_reach_the_operator() {
    let library = Book::new().serve();
    browse("feedback", async |browser| {
        browser.open_chat(&library.served.url).await;
        let good = browser.ask(QUESTION).await;
        good.click("feedback-up").await;
        good.find("feedback-note").await.wait_until().has_text("Thank you.").await.unwrap();
        let bad = browser.ask("What gravity does Gazebo apply?").await;
        bad.click("feedback-down").await;
        bad.find("feedback-comment")
            .await
            .send_keys("Say where the world file is <b>kept</b>")
            .await
            .unwrap();
        bad.click("feedback-send").await;
        let note = bad.find("feedback-note").await;
        note.wait_until().has_text("Thank you, your comment was sent.").await.unwrap();
        let pressed = bad.find("feedback-down").await.attr("aria-pressed").await.unwrap();
        assert_eq!(pressed.as_deref(), Some("true"));
    })
    .await;
    let report = library.report();
    assert!(report.contains("Say where the world file is &lt;b&gt;kept&lt;/b&gt;"), "{report}");
}

#[tokio::test]
async fn a_question_can_be_edited_and_an_answer_asked_for_again() {
    let library = Book::new().serve();
    browse("again", async |browser| {
        browser.open_chat(&library.served.url).await;
        let first = browser.ask(QUESTION).await;
        browser.hover(&first.element).await;
        first.click("edit").await;
        browser.until("document.activeElement.id === 'question'").await;
        browser.press(" Answer in one sentence.").await;
        browser.press(Key::Enter).await;
        let edited = browser.turn(1).await;
        edited.is("complete").await;
        assert_eq!(edited.text("asked").await, format!("{QUESTION} Answer in one sentence."));

        // A question that is being written is not lost.
        browser.find("question").await.send_keys("What is a").await.unwrap();
        // The driver would scroll the button under the page header.
        browser.value("window.scrollTo(0, 0)").await;
        first.click("again").await;
        let again = browser.turn(2).await;
        again.is("complete").await;
        assert_eq!(again.text("asked").await, QUESTION);
        assert_eq!(again.sentences().await, first.sentences().await);
        assert_eq!(browser.value("document.getElementById('question').value").await, "What is a");
        browser.picture("again").await;
    })
    .await;
    assert_eq!(library.conversations()[0]["turn_count"], 3);
}

#[tokio::test]
async fn a_question_can_be_limited_to_one_of_several_books() {
    let docent = Docent::new();
    docent.write("pumps/index.md", "# Pumps\n\nGrease the bearing of the pump every month.\n");
    docent.write("ovens/index.md", "# Ovens\n\nAn oven bakes bread at 220 degrees.\n");
    let source = |name: &str| {
        format!(
            "[[sources]]\nname = \"{name}\"\nlocation = \"{name}\"\nbase_url = \"https://{name}.example.org\"\n"
        )
    };
    docent.write("docent.toml", &["pumps", "ovens"].map(source).concat());
    docent.ok(&["ingest", "--quiet"]);
    let served = docent.serve();
    browse("books", async |browser| {
        browser.open_chat(&served.url).await;
        let module = browser.find("module").await;
        let choices = SelectElement::new(&module).await.unwrap();
        let offered =
            "[...document.querySelectorAll('#module option')].map(option => option.textContent).join('|')";
        assert_eq!(
            browser.value(offered).await.as_str(),
            Some("All books|All of ovens|ovens|All of pumps|pumps")
        );
        choices.select_by_value("ovens").await.unwrap();
        let turn = browser.ask("How often is the bearing greased?").await;
        assert!(
            turn.text("answer").await.contains("I don't have information"),
            "{}",
            turn.text("answer").await
        );
        choices.select_by_value("pumps").await.unwrap();
        let turn = browser.ask("How often is the bearing greased?").await;
        assert!(turn.sentences().await[0].contains("every month"));
    })
    .await;
}
