//! "Quiz me on this page" in the reading pane.

use thirtyfour::prelude::*;

use crate::book::Book;
use crate::browser::{Browser, browse};

const QUESTION: &str = "What is a node?";

/// Asks, opens the citation in the pane, and starts the quiz.
async fn start(browser: &Browser) {
    let turn = browser.ask(QUESTION).await;
    turn.click("citation").await;
    browser.find("citation-card").await.find(By::Css("a")).await.unwrap().click().await.unwrap();
    browser.find("reading").await;
    browser.click("reading-quiz").await;
    browser.find("quiz-question").await;
}

/// The number of questions that are left.
async fn left(browser: &Browser) -> usize {
    browser.text("quiz-count").await.split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_page_is_asked_about_with_hints_and_missed_questions_come_back() {
    let library = Book::new().serve();
    browse("quiz", async |browser| {
        browser.sized(1400, 900).await;
        browser.open_chat(&library.served.url).await;
        start(browser).await;
        let count = left(browser).await;
        assert!(count >= 2, "{count}");
        assert_eq!(browser.text("quiz-question").await, "What is a node?");
        browser.until("document.activeElement.dataset.testid === 'quiz-question'").await;
        browser.is_accessible("quiz question").await;
        browser.picture("quiz").await;

        // Two hints, then the answer with its quote.
        browser.click("quiz-hint").await;
        browser.click("quiz-hint").await;
        browser.gone("quiz-hint").await;
        browser.until("document.querySelectorAll('.quiz-hints li').length === 2").await;
        browser.picture("quiz-hints").await;
        browser.click("quiz-reveal").await;
        assert!(browser.text("quiz-answer").await.contains("a participant in the ROS 2 graph"));
        assert!(browser.text("quiz-quote").await.starts_with("A node is a participant"));
        browser.is_accessible("quiz answer").await;
        browser.picture("quiz-answer").await;

        // Missed: the question comes back after the others.
        browser.click("quiz-missed").await;
        assert_eq!(left(browser).await, count);
        for _ in 1..count {
            browser.until("document.activeElement.dataset.testid === 'quiz-question'").await;
            browser.press(Key::Enter).await;
            browser.until("document.activeElement.dataset.testid === 'quiz-answer'").await;
            browser.press("1").await;
        }
        browser.until("document.querySelector('.quiz-count').textContent.includes('once more')").await;
        assert_eq!(browser.text("quiz-question").await, "What is a node?");
        browser.press(" ").await;
        browser.until("document.activeElement.dataset.testid === 'quiz-answer'").await;
        browser.press("1").await;

        // The result, flashcards, and the section to read again.
        let result = browser.text("quiz-result").await;
        assert_eq!(result, format!("You knew {} of {count} right away.", count - 1));
        browser.is_accessible("quiz result").await;
        browser.picture("quiz-result").await;
        browser.click("quiz-anki").await;
        let cards = browser.download(".txt").await;
        assert!(cards.starts_with("#separator:tab") && cards.contains("What is a node?\t"), "{cards}");
        browser.find("quiz-sections").await.find(By::Css("a, button")).await.unwrap().click().await.unwrap();
        browser.gone("quiz").await;
        browser.until("document.querySelector('.reading mark')?.textContent.startsWith('A node is')").await;
    })
    .await;
}

#[tokio::test]
async fn escape_closes_the_quiz_and_not_the_page() {
    let library = Book::new().serve();
    browse("quiz-escape", async |browser| {
        browser.sized(1400, 900).await;
        browser.prefers("dark").await;
        browser.open_chat(&library.served.url).await;
        start(browser).await;
        browser.press("h").await;
        browser.until("document.querySelectorAll('.quiz-hints li').length === 1").await;
        // The page's own shortcuts do nothing here.
        browser.press("/").await;
        browser.press(Key::Enter).await;
        browser.until("document.activeElement.dataset.testid === 'quiz-answer'").await;
        browser.press("2").await;
        browser.until("document.activeElement.dataset.testid === 'quiz-question'").await;
        browser.is_accessible("quiz, dark").await;
        browser.picture("quiz-dark").await;
        browser.press(Key::Escape).await;
        browser.gone("quiz").await;
        browser.find("reading").await;
        browser.until("document.activeElement.dataset.testid === 'reading-quiz'").await;
    })
    .await;
}

#[tokio::test]
async fn on_a_phone_the_quiz_is_a_sheet() {
    let library = Book::new().serve();
    browse("quiz-phone", async |browser| {
        browser.emulate_phone().await;
        browser.open_chat(&library.served.url).await;
        browser.find("question").await.send_keys(QUESTION).await.unwrap();
        browser.tap(&browser.find("send").await).await;
        let turn = browser.turn(0).await;
        turn.is("complete").await;
        browser.tap(&turn.find("citation").await).await;
        let card = browser.find("citation-card").await;
        browser.tap(&card.find(By::Css("a")).await.unwrap()).await;
        browser.tap(&browser.find("reading-quiz").await).await;
        browser.find("quiz-question").await;
        browser.tap(&browser.find("quiz-reveal").await).await;
        browser.find("quiz-answer").await;
        assert_eq!(browser.value("document.documentElement.scrollWidth").await, 360);
        let at = browser.find("quiz").await.rect().await.unwrap();
        assert!(at.x >= 0.0 && at.x + at.width <= 360.0 && at.y + at.height <= 740.5, "{at:?}");
        browser.is_accessible("quiz, phone").await;
        browser.picture("quiz-phone").await;
        browser.tap(&browser.find("quiz-close").await).await;
        browser.gone("quiz").await;
        browser.find("reading").await;
    })
    .await;
}

#[tokio::test]
async fn a_page_without_questions_says_so() {
    let page = "<section><h2 id=\"tea\">Tea</h2><p>Hot water and leaves, for four minutes.</p></section>";
    let library = Book::new().page("tea.html", "Tea", page).serve();
    browse("quiz-empty", async |browser| {
        browser.sized(1400, 900).await;
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask("How many minutes do the leaves of the tea need in hot water?").await;
        turn.click("citation").await;
        browser.find("citation-card").await.find(By::Css("a")).await.unwrap().click().await.unwrap();
        browser.click("reading-quiz").await;
        assert!(browser.text("quiz-note").await.contains("nothing to ask about"));
        browser.press(Key::Escape).await;
        browser.gone("quiz").await;
    })
    .await;
}
