//! Themes, small screens and accessibility.

use thirtyfour::prelude::*;

use crate::book::{Book, DEFINITION};
use crate::browser::{Browser, browse, workspace};
use crate::support::Docent;

const QUESTION: &str = "What is a node in the ROS 2 graph?";

#[tokio::test]
async fn the_selected_theme_survives_a_reload() {
    let library = Book::new().serve();
    browse("theme", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.until("document.documentElement.dataset.theme === 'light'").await;
        let paper = browser.value("getComputedStyle(document.body).backgroundColor").await;
        // From the system's preference to light to dark.
        browser.click("theme").await;
        browser.click("theme").await;
        browser.until("document.documentElement.dataset.theme === 'dark'").await;
        let night = browser.value("getComputedStyle(document.body).backgroundColor").await;
        assert_ne!(paper, night);
        browser.reload().await;
        assert_eq!(browser.value("document.documentElement.dataset.theme").await, "dark");
        assert_eq!(browser.value("getComputedStyle(document.body).backgroundColor").await, night);
        let label = browser.find("theme").await.attr("aria-label").await.unwrap();
        assert_eq!(label.as_deref(), Some("Theme: dark"));
        // And back to the system's preference.
        browser.click("theme").await;
        browser.until("document.documentElement.dataset.theme === 'light'").await;
        browser.prefers("dark").await;
        browser.until("document.documentElement.dataset.theme === 'dark'").await;
    })
    .await;
}

#[tokio::test]
async fn everything_can_be_reached_on_a_phone() {
    let library = Book::new().serve();
    browse("phone", async |browser| {
        browser.emulate_phone().await;
        browser.open_chat(&library.served.url).await;
        browser.text("suggestion").await;
        fits(browser, "phone-welcome").await;
        browser.find("question").await.send_keys(QUESTION).await.unwrap();
        browser.tap(&browser.find("send").await).await;
        let turn = browser.turn(0).await;
        turn.is("complete").await;
        fits(browser, "phone-answer").await;

        browser.tap(&turn.find("citation").await).await;
        let card = browser.find("citation-card").await;
        assert_eq!(browser.text("citation-quote").await, DEFINITION);
        let at = card.rect().await.unwrap();
        assert!(at.x >= 0.0 && at.x + at.width <= 360.0 && at.y + at.height <= 740.0, "{at:?}");
        fits(browser, "phone-citation").await;
        browser.tap(&card.find(By::Css("button[aria-label=Close]")).await.unwrap()).await;
        browser.gone("citation-card").await;

        browser.tap(&turn.find("feedback-down").await).await;
        turn.find("feedback-comment").await;
        fits(browser, "phone-feedback").await;

        browser.tap(&browser.find("open-sidebar").await).await;
        browser.tap(&browser.find("conversation-actions").await).await;
        browser.find("delete").await;
        fits(browser, "phone-conversations").await;
        browser.tap(&browser.find("rename").await).await;
        browser.find("rename-input").await.send_keys(Key::Escape).await.unwrap();
        browser.tap(&browser.find("new-conversation").await).await;
        browser.gone("turn").await;
        browser.tap(&browser.find("theme").await).await;
        browser.until("document.documentElement.dataset.themeChoice === 'light'").await;
    })
    .await;
}

/// Checks that the page does not scroll sideways and that no control is beyond its edges.
async fn fits(browser: &Browser, name: &str) {
    browser.picture(name).await;
    let width = browser.value("[document.documentElement.scrollWidth, innerWidth]").await;
    assert_eq!((&width[0], &width[1]), (&360.into(), &360.into()), "{name}");
    let beyond = browser
        .value(
            "[...document.querySelectorAll('button, a[href], textarea, select')]
               .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest('[inert], .skip-link'))
               .map((one) => [one.outerHTML.slice(0, 90), one.getBoundingClientRect()])
               .filter(([, at]) => at.width > 0 && (at.left < 0 || at.right > innerWidth))
               .map(([html]) => html)",
        )
        .await;
    assert_eq!(beyond, serde_json::json!([]), "{name}");
}

#[tokio::test]
async fn axe_finds_no_serious_problems_in_light_and_dark() {
    let library = Book::new().serve();
    browse("axe", async |browser| {
        for scheme in ["light", "dark"] {
            browser.prefers(scheme).await;
            browser.open_chat(&library.served.url).await;
            browser.click("new-conversation").await;
            browser.text("suggestion").await;
            browser.is_accessible(&format!("welcome, {scheme}")).await;
            browser.ask("Who won the football world cup in 1998?").await;
            let turn = browser.ask(QUESTION).await;
            turn.click("feedback-up").await;
            turn.find("feedback-note").await;
            turn.find("sources").await.click().await.unwrap();
            browser.is_accessible(&format!("answers, {scheme}")).await;
            turn.click("citation").await;
            browser.find("citation-card").await;
            browser.is_accessible(&format!("citation, {scheme}")).await;
            browser.picture(&format!("answers-{scheme}")).await;
            browser.press(Key::Escape).await;
            browser.click("conversation-actions").await;
            browser.find("conversation-menu").await;
            browser.is_accessible(&format!("menu, {scheme}")).await;
            browser.click("delete").await;
            browser.find("confirm").await;
            browser.is_accessible(&format!("confirmation, {scheme}")).await;
            browser.click("confirm-cancel").await;
        }
    })
    .await;
}

#[tokio::test]
async fn axe_finds_no_serious_problems_on_a_phone() {
    let code = format!(
        "<section><h2 id=\"run\">Run</h2><p>Run this:</p><pre><code>{}</code></pre><p>Then stop.</p></section>",
        "mill --turn ".repeat(20)
    );
    let library = Book::new().page("mill/run.html", "Run the mill", &code).serve();
    browse("axe-phone", async |browser| {
        for scheme in ["light", "dark"] {
            browser.emulate_phone().await;
            browser.prefers(scheme).await;
            browser.open_chat(&library.served.url).await;
            browser.text("suggestion").await;
            browser.is_accessible(&format!("phone's welcome, {scheme}")).await;
            browser.find("question").await.send_keys(QUESTION).await.unwrap();
            browser.tap(&browser.find("send").await).await;
            let turn = browser.turn(0).await;
            turn.is("complete").await;
            browser.is_accessible(&format!("phone's answer, {scheme}")).await;
            browser.tap(&turn.find("citation").await).await;
            browser.find("citation-card").await;
            browser.is_accessible(&format!("phone's citation, {scheme}")).await;
            browser.picture(&format!("phone-citation-{scheme}")).await;
            browser.press(Key::Escape).await;
            browser.gone("citation-card").await;
            browser.tap(&browser.find("open-sidebar").await).await;
            browser.tap(&browser.find("conversation-actions").await).await;
            browser.find("conversation-menu").await;
            browser.is_accessible(&format!("phone's conversations, {scheme}")).await;
            browser.open(&format!("{}/read/mill/run.html", library.served.url)).await;
            browser.is_accessible(&format!("phone's page to read, {scheme}")).await;
        }
    })
    .await;
}

/// Addresses that the page loaded something from, other than its own origin. What its policy forbids is in the console,
/// which fails the test as well.
const OTHER_SERVERS: &str = "performance.getEntriesByType('resource').map((one) => one.name)
    .filter((address) => new URL(address).origin !== location.origin && !address.startsWith('data:'))";

#[tokio::test]
async fn no_page_asks_another_server_for_anything() {
    let page = "<section><h2 id=\"valves\">Valves</h2><p>A valve plate is a plate that closes the pump of the mill.</p>\
                <figure><img src=\"https://images.example/plate.png\" alt=\"The valve plate\"><figcaption>The valve plate of the pump.</figcaption></figure>\
                <p><iframe src=\"https://videos.example/plate\"></iframe></p></section>";
    let library = Book::new().page("pumps/valves.html", "Pumps", page).serve();
    browse("servers", async |browser| {
        browser.sized(1400, 900).await;
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask("What is a valve plate?").await;
        turn.click("citation").await;
        browser.find("citation-card").await.find(By::Css("a")).await.unwrap().click().await.unwrap();
        browser.until("document.querySelector('.reading mark')").await;
        browser.click("reading-quiz").await;
        browser.find("quiz-question").await;
        browser.press(Key::Escape).await;
        browser.gone("quiz").await;
        browser.press(Key::Escape).await;
        browser.gone("reading").await;
        browser.click("search-open").await;
        browser.find("search-input").await.send_keys("valv").await.unwrap();
        browser.until("document.querySelectorAll('[role=option]').length > 1").await;
        assert!(browser.value("performance.getEntriesByType('resource').length > 20").await == true);
        assert_eq!(browser.value(OTHER_SERVERS).await, serde_json::json!([]));
        // The same page alone, and the description of the API.
        for path in ["/read/pumps/valves.html", "/docs"] {
            browser.open(&format!("{}{path}", library.served.url)).await;
            browser.until("document.readyState === 'complete'").await;
            assert_eq!(browser.value(OTHER_SERVERS).await, serde_json::json!([]), "{path}");
        }
    })
    .await;
}

/// `cargo test -p docent --test browser -- --ignored`
#[tokio::test]
#[ignore = "draws the screenshots for docs/website.md"]
async fn screenshots_of_reading_searching_and_a_phone() {
    let docent = Docent::new();
    let served = docent.serve();
    let save = |name: &str| workspace().join("docs").join(name);
    browse("screenshots", async |browser| {
        browser.sized(1280, 800).await;
        browser.open_chat(&served.url).await;
        let turn = browser.ask("How do I create a node in Python?").await;
        turn.find("next-question").await;
        turn.click("citation").await;
        browser.find("citation-card").await.find(By::Css("a")).await.unwrap().click().await.unwrap();
        browser.until("document.querySelector('.reading mark')").await;
        browser.driver.screenshot(&save("reading.png")).await.unwrap();
        browser.press(Key::Escape).await;
        browser.gone("reading").await;
        browser.click("search-open").await;
        browser.find("search-input").await.send_keys("publishr qos").await.unwrap();
        browser.until("document.querySelectorAll('[role=option]').length > 3").await;
        browser.driver.screenshot(&save("search.png")).await.unwrap();
        browser.press(Key::Escape).await;
        browser.emulate_phone().await;
        browser.prefers("dark").await;
        browser.open_chat(&served.url).await;
        browser.ask("What is a ROS 2 node?").await.find("next-question").await;
        browser.driver.screenshot(&save("phone.png")).await.unwrap();
    })
    .await;
}

/// `cargo test -p docent --test browser -- --ignored`
#[tokio::test]
#[ignore = "draws docs/chat.png for the README"]
async fn readme_screenshot() {
    let docent = Docent::new();
    let served = docent.serve();
    browse("readme", async |browser| {
        browser.open_chat(&served.url).await;
        let turn = browser.ask("What is a ROS 2 node?").await;
        turn.click("citation").await;
        browser.find("citation-card").await;
        browser.driver.screenshot(&workspace().join("docs/chat.png")).await.unwrap();
    })
    .await;
}
