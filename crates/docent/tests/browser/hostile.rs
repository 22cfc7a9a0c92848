//! A book, a user and a model that try to run code on the page.

use docent_testkit::scripted_model::{Reply, ScriptedModel};
use serde_json::json;
use thirtyfour::prelude::*;

use crate::book::Book;
use crate::browser::{Browser, browse};
use crate::panel::{Panel, SHADOW};

/// Runs if it is ever parsed as HTML.
const ATTACK: &str = "<img src=x onerror=\"window.__xss = 1; alert(1)\"><script>window.__xss = 1</script>";

/// The same as literal text in HTML.
fn words(html: &str) -> String {
    html.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A book whose title, headings and text are attacks.
fn hostile_book() -> Book {
    let attack = words(ATTACK);
    let body = format!(
        "<section><h2 id=\"valves\">Valves {attack}</h2><p>A relief valve opens at 3 bar {attack}.</p>\
         <p>A gear pump <a href=\"javascript:window.__xss=1\">moves</a> 4 litres a minute.</p></section>"
    );
    Book::new()
        .page("pumps/valves.html", &format!("Pumps {attack}"), &body)
        .page(
            "<b onclick=alert(1)>x/oil.html",
            "Oil",
            "<section><h2 id=\"oil\">Oil</h2><p>Oil is changed once a year.</p></section>",
        )
        .with("DOCENT_SERVE__TITLE", &format!("Handbook {ATTACK}"))
}

/// Checks that nothing ran and no injected element exists below this expression.
async fn check_no_injection(browser: &Browser, root: &str) {
    let found = browser
        .value(&format!(
            "[...{root}.querySelectorAll(\"img, iframe, object, embed, form[action], script:not([src]), \
             [onerror], [onload], [onclick], [style*=fixed], a[href^='javascript'], a[href^='data']\")].map((one) => one.outerHTML)"
        ))
        .await;
    assert_eq!(found, json!([]));
    assert_eq!(browser.value("window.__xss ?? null").await, json!(null));
}

#[tokio::test]
async fn markup_in_the_book_the_title_and_the_question_is_shown_as_text() {
    let library = hostile_book().serve();
    browse("hostile-book", async |browser| {
        browser.open_chat(&library.served.url).await;
        assert!(browser.text("book-title").await.contains("<img src=x onerror="));
        let question = format!("At which pressure does a relief valve open? {ATTACK}");
        let turn = browser.ask(&question).await;
        assert_eq!(turn.text("asked").await, question);
        let turn = browser.ask("At which pressure does a relief valve open?").await;
        turn.is("complete").await;
        assert!(turn.text("prose").await.contains("3 bar"));
        turn.find("sources").await.click().await.unwrap();
        turn.click("citation").await;
        let card = browser.text("citation-card").await;
        assert!(card.contains("<img src=x onerror=") && card.contains("<script>"), "{card}");
        browser.picture("hostile-book").await;
        browser.press(Key::Escape).await;
        let pump = browser.ask("How much does a gear pump move?").await;
        assert!(pump.text("prose").await.contains("4 litres"));

        browser.choose("rename").await;
        let name = browser.find("rename-input").await;
        name.send_keys(ATTACK).await.unwrap();
        name.send_keys(Key::Enter).await.unwrap();
        browser.driver.query(By::Testid("conversation-open")).with_text(ATTACK).first().await.unwrap();
        check_no_injection(browser, "document").await;
        browser.reload().await;
        browser.turn(0).await;
        check_no_injection(browser, "document").await;
    })
    .await;
}

#[tokio::test]
async fn markup_in_pages_read_on_the_server_is_shown_as_text() {
    let library = hostile_book().unpublished().serve();
    browse("hostile-read", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask("At which pressure does a relief valve open?").await;
        turn.click("citation").await;
        browser.find("citation-card").await.find(By::Css("a")).await.unwrap().click().await.unwrap();
        assert!(browser.text("reading-body").await.contains("opens at 3 bar"));
        browser.picture("hostile-reading").await;
        check_no_injection(browser, "document").await;
        browser.click("reading-site").await;
        browser.follow_to_new_tab().await;
        assert!(browser.value("document.body.innerText").await.as_str().unwrap().contains("opens at 3 bar"));
        browser.picture("hostile-read").await;
        check_no_injection(browser, "document").await;
    })
    .await;
}

#[tokio::test]
async fn markup_from_the_model_never_runs() {
    let prose = format!(
        "A relief valve opens at 3 bar [1]. {ATTACK} A relief valve [opens](javascript:window.__xss=1) at 3 bar [1].\n\n\
         - A relief valve <svg onload=\"window.__xss=1\"></svg> opens [1].\n- <a href=\"javascript:window.__xss=1\">Three</a> bar [1].\n\n\
         <iframe srcdoc=\"<script>parent.__xss=1</script>\"></iframe>\n\n\
         ![x](https://evil.example/x.png) <div style=\"position:fixed\" onclick=\"window.__xss=1\">A valve opens at 3 bar</div> [1]."
    );
    let model = ScriptedModel::start(vec![Reply::text(prose)]).await.unwrap();
    let library = hostile_book().written_by(&model).serve();
    browse("hostile-model", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask("At which pressure does a relief valve open?").await;
        turn.is("complete").await;
        assert!(turn.sentences().await[0].starts_with("A relief valve opens at 3 bar"));
        browser.picture("hostile-model").await;
        check_no_injection(browser, "document").await;
        browser.reload().await;
        browser.turn(0).await;
        check_no_injection(browser, "document").await;
    })
    .await;
}

#[tokio::test]
async fn markup_never_runs_in_the_widget() {
    let prose = format!(
        "A relief valve opens at 3 bar [1]. {ATTACK} It [opens](javascript:window.__xss=1) at 3 bar [1]."
    );
    let model = ScriptedModel::start(vec![Reply::text(prose)]).await.unwrap();
    let library = hostile_book().with_widget().written_by(&model).serve();
    browse("hostile-widget", async |browser| {
        browser.open(&library.site.page("ros2/nodes.html")).await;
        let panel = Panel { browser };
        panel.click("button").await;
        panel.ask("At which pressure does a relief valve open?").await;
        assert!(panel.text("answer").await.contains("A relief valve opens at 3 bar"));
        panel.click("citation").await;
        assert!(panel.text("citation-card").await.contains("<img src=x onerror="));
        browser.picture("hostile-widget").await;
        check_no_injection(browser, SHADOW).await;
        panel.ask(ATTACK).await;
        check_no_injection(browser, SHADOW).await;
    })
    .await;
}
