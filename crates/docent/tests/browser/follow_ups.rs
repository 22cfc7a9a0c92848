//! Suggested questions after an answer, and about the page that the widget is on.

use crate::book::{Book, DEFINITION};
use crate::browser::browse;
use crate::panel::{Panel, SHADOW};

const QUESTION: &str = "What is a node in the ROS 2 graph?";

#[tokio::test]
async fn follow_up_questions_are_offered_and_answered() {
    let library = Book::new().serve();
    browse("follow-ups", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask(QUESTION).await;
        turn.find("next-question").await;
        let offered = turn.texts("next-question").await;
        assert!(offered.iter().any(|question| question.contains("xecutors")), "{offered:?}");
        browser.is_accessible("follow-ups").await;
        browser.picture("follow-ups").await;
        let chosen = turn.find("next-question").await;
        let question = chosen.text().await.unwrap();
        chosen.click().await.unwrap();
        let next = browser.turn(1).await;
        next.is("complete").await;
        assert_eq!(next.text("asked").await, question);
        // What was asked is not offered again, and only the last answer offers anything.
        browser.until("document.querySelectorAll('.turn')[1].querySelector('.provenance')").await;
        assert!(!next.texts("next-question").await.contains(&question));
        let above = "document.querySelector('.turn .ask-next').checkVisibility()";
        assert_eq!(browser.value(above).await, false);
    })
    .await;
}

#[tokio::test]
async fn the_widget_suggests_questions_about_the_page_it_is_on() {
    let library = Book::new().with_widget().serve();
    browse("widget-page", async |browser| {
        browser.open(&library.site.page("ros2/nodes.html#lifecycle")).await;
        let panel = Panel { browser };
        panel.click("button").await;
        panel.find("suggestion").await;
        let offered = panel.texts("suggestion").await;
        assert!(
            offered
                .iter()
                .all(|one| one.contains("odes") || one.contains("node") || one.contains("xecutors")),
            "{offered:?}"
        );
        browser.picture("widget-page").await;
        panel.ask(QUESTION).await;
        assert!(panel.text("sentence").await.starts_with(DEFINITION));
        panel.find("next-question").await;
        browser.picture("widget-follow-ups").await;
        panel.click("next-question").await;
        browser.until(&format!("{SHADOW}.querySelectorAll('[data-testid=turn]').length === 2")).await;
    })
    .await;
}
