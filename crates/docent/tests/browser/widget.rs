//! The widget on pages of another origin.

use docent_testkit::scripted_model::{Reply, ScriptedModel};
use thirtyfour::prelude::*;

use crate::book::{Book, DEFINITION};
use crate::browser::browse;
use crate::panel::{Panel, SHADOW};

const QUESTION: &str = "What is a node in the ROS 2 graph?";

#[tokio::test]
async fn the_widget_answers_and_continues_the_conversation_on_the_next_page() {
    let library = Book::new().with_widget().serve();
    browse("widget", async |browser| {
        browser.open(&library.site.page("ros2/nodes.html")).await;
        let panel = Panel { browser };
        panel.click("button").await;
        panel.ask(QUESTION).await;
        assert!(panel.text("sentence").await.starts_with(DEFINITION));
        assert_eq!(panel.text("badge").await, "From the book");
        panel.click("citation").await;
        let card = panel.text("citation-card").await;
        assert!(card.contains("What a node is") && card.contains(DEFINITION), "{card}");
        browser.picture("widget").await;
        browser.press(Key::Escape).await;
        panel.gone("citation-card").await;
        panel.click("feedback-up").await;
        browser.until(&format!("{SHADOW}.textContent.includes('Thank you.')")).await;

        panel.ask("Who won the football world cup in 1998?").await;
        browser.until(&format!("{SHADOW}.textContent.includes('Not in the book')")).await;

        // The next page of the book shows the same conversation.
        browser.open(&library.site.page("ros2/topics.html")).await;
        panel.find("panel").await;
        browser.until(&format!("{SHADOW}.querySelectorAll('[data-testid=turn]').length === 2")).await;
        panel.click("new").await;
        panel.gone("turn").await;
        panel.click("close").await;
        panel.gone("panel").await;
        panel.find("button").await;
    })
    .await;
    assert_eq!(library.conversations()[0]["turn_count"], 2);
}

#[tokio::test]
async fn questions_and_searches_are_about_the_version_of_the_page() {
    let library = Book::new().with_versions().with_widget().serve();
    let question = "How many times a minute does the water wheel turn?";
    browse("widget-version", async |browser| {
        browser.open(&library.site.page("1.0/wheel.html")).await;
        let panel = Panel { browser };
        panel.click("button").await;
        panel.ask(question).await;
        assert!(panel.text("sentence").await.contains("turns six times a minute"));
        panel.click("citation").await;
        let card = panel.text("citation-card").await;
        assert!(card.contains("version 1.0"), "{card}");
        browser.press(Key::Escape).await;
        panel.click("new").await;

        // A page without a version: the released one.
        browser.open(&library.site.page("ros2/nodes.html")).await;
        panel.find("panel").await;
        panel.ask(question).await;
        assert!(panel.text("sentence").await.contains("turns eight times a minute"));

        // The tag can name another one; a name that the book does not have is ignored.
        for (name, turns) in [("1.0", "six"), ("9.9", "eight")] {
            browser
                .value(&format!(
                    "document.querySelector('script[src$=\"widget.js\"]').dataset.version = '{name}'"
                ))
                .await;
            panel.click("new").await;
            panel.gone("turn").await;
            panel.ask(question).await;
            assert!(
                panel.text("sentence").await.contains(&format!("turns {turns} times a minute")),
                "{name}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_question_can_be_about_the_selected_text() {
    let library = Book::new().with_widget().serve();
    browse("widget-selection", async |browser| {
        browser.open(&library.site.page("ros2/nodes.html#lifecycle")).await;
        let panel = Panel { browser };
        panel.find("button").await;
        let paragraph = browser.driver.find(By::Css("#lifecycle + p")).await.unwrap();
        let select = "getSelection().selectAllChildren(arguments[0])";
        browser.driver.execute(select, vec![paragraph.to_json().unwrap()]).await.unwrap();
        panel.find("ask-selection").await;
        browser.picture("widget-ask-about-this").await;
        panel.click("ask-selection").await;
        assert!(panel.text("selection").await.contains("A managed node moves through four states"));
        panel.ask("Which states are there?").await;
        assert_eq!(panel.texts("badge").await, ["From the book", "From your selection"]);
        assert!(panel.text("answer").await.contains("unconfigured, inactive, active and finalized"));
        browser.picture("widget-selection").await;
        panel.gone("selection").await;
    })
    .await;
}

#[tokio::test]
async fn an_answer_can_be_stopped_with_the_keyboard() {
    let said = "A node is a participant in the ROS 2 graph [1]. It does one job [1]. It has a na";
    let model = ScriptedModel::start(vec![Reply::Stall { after: said.to_owned() }]).await.unwrap();
    let library = Book::new().with_widget().written_by(&model).serve();
    browse("widget-stop", async |browser| {
        browser.open(&library.site.page("index.html")).await;
        let panel = Panel { browser };
        panel.find("button").await;
        browser.press(Key::Tab).await;
        browser.press(Key::Enter).await;
        panel.find("question").await;
        browser.press(QUESTION).await;
        browser.press(Key::Enter).await;
        panel.find("sentence").await;
        panel.click("stop").await;
        browser.until(&format!("{SHADOW}.textContent.includes('Stopped before the end.')")).await;
        model.hangup().await;
        browser.press(Key::Escape).await;
        panel.gone("panel").await;
        assert_eq!(browser.value(&format!("{SHADOW}.activeElement.dataset.testid")).await, "button");
    })
    .await;
}

#[tokio::test]
async fn the_question_box_has_the_keys_of_the_chat_page() {
    let library = Book::new().with_widget().serve();
    browse("widget-keys", async |browser| {
        let typed = async || browser.value(&format!("{SHADOW}.querySelector('#question').value")).await;
        browser.open(&library.site.page("ros2/nodes.html")).await;
        let panel = Panel { browser };
        browser
            .value("window.keys = 0; document.addEventListener('keydown', () => { window.keys += 1; })")
            .await;
        panel.click("button").await;
        panel.ask(QUESTION).await;
        browser.press(Key::Up).await;
        assert_eq!(typed().await, QUESTION);
        assert_eq!(
            browser.value("window.keys").await,
            0,
            "shortcuts of the page see nothing of what is typed"
        );

        // In the panel, a slash opens the search; on the author's page, it is the author's.
        browser.value(&format!("{SHADOW}.activeElement.blur()")).await;
        browser.press("/").await;
        assert_eq!(panel.count("search").await, 0);
        browser.value(&format!("{SHADOW}.querySelector('[data-testid=again]').focus()")).await;
        browser.press("/").await;
        panel.find("search").await;
        browser.press(Key::Escape).await;
        panel.gone("search").await;
        assert_eq!(typed().await, QUESTION);
    })
    .await;
}

#[tokio::test]
async fn an_origin_that_is_not_allowed_gets_no_answers() {
    let library =
        Book::new().with_widget().with("DOCENT_SERVE__CORS_ORIGINS", "[\"https://other.example\"]").serve();
    browse("widget-foreign", async |browser| {
        browser.open(&library.site.page("index.html")).await;
        let panel = Panel { browser };
        browser.expect_in_console("blocked by CORS policy");
        browser.expect_in_console("net::ERR_FAILED");
        panel.click("button").await;
        panel.ask(QUESTION).await;
        assert!(panel.text("error").await.contains("Docent cannot be reached right now."));
    })
    .await;
    assert!(library.conversations().is_empty());
}

#[tokio::test]
async fn a_page_may_allow_nothing_but_the_script_and_the_server() {
    let library = Book::new().with_widget().serve();
    let docent = &library.served.url;
    library.site.restrict(format!(
        "default-src 'none'; script-src {docent}/widget.js; connect-src {docent}/api/; \
         require-trusted-types-for 'script'; trusted-types docent-widget"
    ));
    browse("widget-policy", async |browser| {
        browser.open(&library.site.page("ros2/nodes.html")).await;
        // The page's own inline style.
        browser.expect_in_console("Content Security Policy directive");
        let panel = Panel { browser };
        panel.click("button").await;
        panel.ask(QUESTION).await;
        assert!(panel.text("sentence").await.starts_with(DEFINITION));
        panel.click("citation").await;
        panel.find("citation-card").await;
        let position = format!("getComputedStyle({SHADOW}.querySelector('.panel')).position");
        assert_eq!(browser.value(&position).await, "fixed", "the widget's styles are applied");
        browser.picture("widget-policy").await;
    })
    .await;
}

#[tokio::test]
async fn on_a_phone_the_panel_fills_the_page() {
    let library = Book::new().with_widget().serve();
    browse("widget-phone", async |browser| {
        browser.emulate_phone().await;
        browser.open(&library.site.page("ros2/nodes.html")).await;
        let panel = Panel { browser };
        browser.tap(&panel.find("button").await).await;
        panel.ask(QUESTION).await;
        browser.tap(&panel.find("citation").await).await;
        panel.find("citation-card").await;
        browser.picture("widget-phone").await;
        browser.is_accessible("widget's citation, phone").await;
        let at = panel.find("panel").await.rect().await.unwrap();
        assert_eq!((at.x, at.width, at.height), (0.0, 360.0, 740.0));
        assert_eq!(browser.value("document.documentElement.scrollWidth").await, 360);
    })
    .await;
}

#[tokio::test]
async fn axe_finds_no_serious_problems_in_the_widget() {
    let library = Book::new().with_widget().serve();
    browse("widget-axe", async |browser| {
        for scheme in ["light", "dark"] {
            browser.prefers(scheme).await;
            browser.open(&library.site.page("ros2/nodes.html")).await;
            let panel = Panel { browser };
            panel.find("button").await;
            browser.is_accessible(&format!("closed widget, {scheme}")).await;
            if browser.value(&format!("{SHADOW}.querySelector('.panel').hidden")).await == true {
                panel.click("button").await;
            }
            panel.ask(QUESTION).await;
            browser.is_accessible(&format!("widget, {scheme}")).await;
            panel.click("citation").await;
            panel.find("citation-card").await;
            browser.is_accessible(&format!("widget's citation, {scheme}")).await;
            browser.picture(&format!("widget-{scheme}")).await;
        }
    })
    .await;
}
