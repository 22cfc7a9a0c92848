//! Using the chat page with the keyboard alone.

use docent_testkit::scripted_model::{Reply, ScriptedModel};
use thirtyfour::prelude::*;

use crate::book::{Book, DEFINITION};
use crate::browser::{Browser, browse};

enum Direction {
    Forward,
    Back,
}

use Direction::{Back, Forward};

/// Presses Tab or Shift+Tab, at least once, until the focused element matches.
async fn tab(browser: &Browser, direction: Direction, selector: &str) {
    for _ in 0..60 {
        match direction {
            Forward => browser.press(Key::Tab).await,
            Back => browser.press_shift_tab().await,
        }
        if browser.value(&format!("document.activeElement.matches('{selector}')")).await == true {
            return;
        }
    }
    panic!("the keyboard does not reach {selector}");
}

#[tokio::test]
async fn asking_citations_and_rating_work_with_the_keyboard() {
    let library = Book::new().serve();
    browse("keyboard", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.until("document.activeElement.id === 'question'").await;
        browser.press("What is a node in the ROS 2 graph?").await;
        browser.press(Key::Enter).await;
        let turn = browser.turn(0).await;
        turn.is("complete").await;
        assert_eq!(browser.value("document.activeElement.id").await, "question", "the user can keep typing");

        // A focused citation mark shows its card.
        let marks = turn.all("citation").await.len();
        assert!(marks > 0);
        tab(browser, Back, "[data-testid=citation]").await;
        browser.find("citation-card").await;
        browser.picture("keyboard").await;
        browser.press(Key::Escape).await;
        browser.gone("citation-card").await;
        assert_eq!(browser.value("document.activeElement.dataset.testid").await, "citation");

        // Go to the first mark; Enter moves into the card, Tab walks through it, Escape moves back.
        for _ in 1..marks {
            tab(browser, Back, "[data-testid=citation]").await;
        }
        browser.press(Key::Enter).await;
        browser.until("document.activeElement.dataset.testid === 'citation-card'").await;
        assert_eq!(browser.text("citation-quote").await, DEFINITION);
        let mut walked = Vec::new();
        for _ in 0..2 {
            browser.press(Key::Tab).await;
            walked.push(browser.value("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent").await);
        }
        assert_eq!(walked, ["Close", "Open in the book"]);
        browser.press(Key::Escape).await;
        browser.gone("citation-card").await;
        assert_eq!(browser.value("document.activeElement.dataset.testid").await, "citation");

        tab(browser, Forward, "[data-testid=feedback-up]").await;
        browser.press(Key::Enter).await;
        turn.find("feedback-note").await.wait_until().has_text("Thank you.").await.unwrap();
        tab(browser, Forward, "[data-testid=send]").await;
    })
    .await;
}

#[tokio::test]
async fn the_up_arrow_recalls_the_last_question() {
    let library = Book::new().serve();
    browse("keyboard-question", async |browser| {
        let typed = async || browser.value("document.getElementById('question').value").await;
        browser.open_chat(&library.served.url).await;
        browser.until("document.activeElement.id === 'question'").await;
        browser.press(Key::Up).await;
        assert_eq!(typed().await, "", "nothing was asked yet");
        browser.press("What is a topic?").await;
        browser.press(Key::Enter).await;
        browser.turn(0).await.is("complete").await;
        browser.press(Key::Up).await;
        assert_eq!(typed().await, "What is a topic?");
        browser.press("!").await;
        browser.press(Key::Up).await;
        assert_eq!(typed().await, "What is a topic?!", "the arrow moves the cursor in a box with text");

        // After a reload, the question is that of the conversation.
        browser.reload().await;
        browser.turn(0).await;
        browser.until("document.activeElement.id === 'question'").await;
        browser.press(Key::Up).await;
        assert_eq!(typed().await, "What is a topic?");
    })
    .await;
}

#[tokio::test]
async fn every_citation_is_one_tab_stop() {
    let page = "<section><h2 id=\"gears\">Gears</h2><p>A gear pump moves oil with two gears.</p></section>";
    let said = "A gear pump moves oil [1]. It moves it with two gears [1].";
    let model = ScriptedModel::start(vec![Reply::text(said)]).await.unwrap();
    let library = Book::new().page("pumps/gears.html", "Pumps", page).written_by(&model).serve();
    browse("keyboard-citations", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask("How does a gear pump move oil?").await;
        let marks = turn.all("citation").await.len();
        assert!(marks > 1, "{marks}");
        tab(browser, Back, "[data-testid=citation]").await;
        for _ in 1..marks {
            tab(browser, Back, "[data-testid=citation]").await;
        }
        browser.find("citation-card").await;
        for _ in 1..marks {
            let before = browser.value("document.activeElement.closest('.sentence').textContent").await;
            browser.press(Key::Tab).await;
            assert_eq!(browser.value("document.activeElement.dataset.testid").await, "citation");
            let after = browser.value("document.activeElement.closest('.sentence').textContent").await;
            assert_ne!(before, after);
            browser.find("citation-card").await;
        }
        browser.press(Key::Tab).await;
        browser.gone("citation-card").await;
        assert_ne!(browser.value("document.activeElement.dataset.testid").await, "citation");
    })
    .await;
}

#[tokio::test]
async fn a_skip_link_passes_the_conversations_and_escape_closes_menus() {
    let library = Book::new().serve();
    browse("keyboard-menus", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.ask("What is a node in the ROS 2 graph?").await;
        tab(browser, Back, ".skip-link").await;
        browser.picture("skip-link").await;
        browser.press(Key::Enter).await;
        browser.until("document.activeElement.id === 'question'").await;

        tab(browser, Back, "[data-testid=conversation-actions]").await;
        browser.press(Key::Enter).await;
        browser.until("document.activeElement.dataset.testid === 'rename'").await;
        browser.press(Key::Escape).await;
        browser.gone("conversation-menu").await;
        assert_eq!(browser.value("document.activeElement.dataset.testid").await, "conversation-actions");

        browser.press(Key::Enter).await;
        browser.until("document.activeElement.dataset.testid === 'rename'").await;
        browser.press(Key::Enter).await;
        browser.until("document.activeElement.dataset.testid === 'rename-input'").await;
        browser.press("Nodes").await;
        browser.press(Key::Enter).await;
        browser.driver.query(By::Testid("conversation-open")).with_text("Nodes").first().await.unwrap();
        browser.until("document.activeElement.dataset.testid === 'conversation-actions'").await;

        browser.press(Key::Enter).await;
        tab(browser, Forward, "[data-testid=delete]").await;
        browser.press(Key::Enter).await;
        browser.find("confirm").await;
        browser.press(Key::Escape).await;
        browser.gone("confirm").await;
        assert_eq!(browser.count("conversation").await, 1);
    })
    .await;
}
