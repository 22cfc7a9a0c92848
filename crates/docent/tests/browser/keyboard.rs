//! Everything without a pointer.

use thirtyfour::prelude::*;

use crate::book::{Book, DEFINITION};
use crate::browser::{Browser, browse};

/// Presses Tab, or Shift and Tab, until the focus is on such an element.
async fn tab_to(browser: &Browser, testid: &str, forward: bool) {
    for _ in 0..60 {
        let focused = browser.value("document.activeElement.dataset.testid ?? ''").await;
        if focused == testid {
            return;
        }
        if forward {
            browser.press(Key::Tab).await;
        } else {
            browser.press_shift_tab().await;
        }
    }
    panic!("the keyboard does not reach {testid}");
}

#[tokio::test]
async fn a_question_a_citation_and_a_thumb_need_no_pointer() {
    let library = Book::new().serve();
    browse("keyboard", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.until("document.activeElement.id === 'question'").await;
        browser.press("What is a node in the ROS 2 graph?").await;
        browser.press(Key::Enter).await;
        let turn = browser.turn(0).await;
        turn.is("complete").await;
        assert_eq!(browser.value("document.activeElement.id").await, "question", "one can type on");

        // A mark that has the focus shows its card.
        let marks = turn.all("citation").await.len();
        assert!(marks > 0);
        tab_to(browser, "citation", false).await;
        browser.find("citation-card").await;
        browser.picture("keyboard").await;
        browser.press(Key::Escape).await;
        browser.gone("citation-card").await;
        assert_eq!(browser.value("document.activeElement.dataset.testid").await, "citation");

        // To the first mark; Enter goes into the card, Tab walks through it, Escape leads back.
        for _ in 1..marks {
            browser.press_shift_tab().await;
            tab_to(browser, "citation", false).await;
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

        tab_to(browser, "feedback-up", true).await;
        browser.press(Key::Enter).await;
        turn.find("feedback-note").await.wait_until().has_text("Thank you.").await.unwrap();
        tab_to(browser, "send", true).await;
    })
    .await;
}

#[tokio::test]
async fn the_first_tab_leads_past_the_conversations_and_menus_close_with_escape() {
    let library = Book::new().serve();
    browse("keyboard-menus", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.ask("What is a node in the ROS 2 graph?").await;
        browser.value("document.activeElement.blur()").await;
        browser.press(Key::Tab).await;
        assert_eq!(browser.value("document.activeElement.textContent").await, "Skip to the question box");
        browser.picture("skip-link").await;
        browser.press(Key::Enter).await;
        browser.until("document.activeElement.id === 'question'").await;

        tab_to(browser, "conversation-actions", false).await;
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
        tab_to(browser, "delete", true).await;
        browser.press(Key::Enter).await;
        browser.find("confirm").await;
        browser.press(Key::Escape).await;
        browser.gone("confirm").await;
        assert_eq!(browser.count("conversation").await, 1);
    })
    .await;
}
