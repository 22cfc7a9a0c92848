//! Search as you type: on the chat page, in the widget, and on a page written for DocSearch.

use serde_json::json;
use thirtyfour::prelude::*;

use crate::book::{Book, DEFINITION};
use crate::browser::{Browser, browse};
use crate::panel::{Panel, SHADOW};

/// Presses Ctrl-K.
async fn control_k(browser: &Browser) {
    let chain = browser.driver.action_chain();
    chain.key_down(Key::Control).send_keys("k").key_up(Key::Control).perform().await.unwrap();
}

/// The rows in the dialog below `root`, an expression on the page, and which of them is active.
async fn rows(browser: &Browser, root: &str) -> Vec<(String, bool)> {
    let found = format!(
        "[...{root}.querySelectorAll('[role=option]')]
           .map((row) => [row.innerText.replaceAll('\\n', ' | '), row.getAttribute('aria-selected') === 'true'])"
    );
    serde_json::from_value(browser.value(&found).await).unwrap()
}

async fn until_listed(browser: &Browser, root: &str, words: &str) {
    browser
        .until(&format!("{root}.querySelector('[data-testid=search-rows]').innerText.includes('{words}')"))
        .await;
}

#[tokio::test]
async fn a_misspelled_and_an_unfinished_word_find_their_section() {
    let library = Book::new().serve();
    browse("search", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.until("document.activeElement.id === 'question'").await;
        control_k(browser).await;
        browser.find("search").await;
        assert_eq!(browser.text("search-status").await, "Type to find pages and sections.");
        browser.press("exceutor").await;
        until_listed(browser, "document", "Executors").await;
        let found = rows(browser, "document").await;
        assert!(found[0].0.starts_with("Nodes") && found[0].1, "{found:?}");
        assert!(found[1].0.starts_with("Executors | An executor calls"), "{found:?}");
        assert_eq!(found.last().unwrap().0, "Ask: “exceutor”");
        let marked =
            browser.value("[...document.querySelectorAll('mark')].map((one) => one.textContent)").await;
        assert_eq!(marked[0], "Executors");
        browser.is_accessible("search").await;
        browser.picture("search").await;
        browser.prefers("dark").await;
        browser.is_accessible("search-dark").await;
        browser.picture("search-dark").await;

        // The arrows go round; Enter opens the active section.
        browser.press(Key::Up).await;
        assert!(rows(browser, "document").await.last().unwrap().1);
        browser.press(Key::Down).await;
        browser.press(Key::Down).await;
        assert!(rows(browser, "document").await[1].1);
        browser.press(Key::Enter).await;
        browser.gone("search").await;
        assert!(browser.text("reading-body").await.contains("An executor calls the callbacks"));
        let link = browser.find("reading-site").await.attr("href").await.unwrap();
        assert_eq!(link, Some(library.site.page("ros2/nodes.html#executors")));
    })
    .await;
}

#[tokio::test]
async fn the_rows_belong_to_the_text_and_the_last_row_asks_it_as_a_question() {
    let library = Book::new().serve();
    browse("search-ask", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.until("document.activeElement.id === 'question'").await;
        // In a text box, a slash is a character; elsewhere it opens the search.
        browser.press("/").await;
        assert_eq!(browser.value("document.getElementById('question').value").await, "/");
        browser.press(Key::Backspace).await;
        browser.value("document.activeElement.blur()").await;
        browser.press("/").await;
        browser.find("search").await;
        browser.press("What is a nod").await;
        until_listed(browser, "document", "What a node is").await;
        browser.press("e?").await;
        until_listed(browser, "document", "Ask: “What is a node?”").await;
        assert!(rows(browser, "document").await.last().unwrap().1, "a question is asked");
        browser.press(Key::Enter).await;
        browser.gone("search").await;
        let turn = browser.turn(0).await;
        turn.is("complete").await;
        assert!(turn.text("sentence").await.starts_with(DEFINITION));

        // What led somewhere is offered again, until it is cleared.
        control_k(browser).await;
        browser.find("search").await;
        browser.press(Key::Backspace).await;
        until_listed(browser, "document", "What is a node?").await;
        assert_eq!(rows(browser, "document").await, [("What is a node?".to_owned(), true)]);
        browser.picture("search-recent").await;
        browser.click("search-forget").await;
        browser.until("document.querySelectorAll('[role=option]').length === 0").await;
        browser.press("zzzzqqqq").await;
        until_listed(browser, "document", "Ask: “zzzzqqqq”").await;
        assert_eq!(browser.text("search-status").await, "No page matches “zzzzqqqq”.");
        browser.press(Key::Escape).await;
        browser.gone("search").await;
        assert_eq!(browser.value("localStorage.getItem('docent.searches')").await, "[]");
    })
    .await;
}

#[tokio::test]
async fn on_a_phone_the_search_fills_the_screen() {
    let library = Book::new().serve();
    browse("search-phone", async |browser| {
        browser.emulate_phone().await;
        browser.open_chat(&library.served.url).await;
        browser.tap(&browser.find("search-open").await).await;
        browser.find("search-input").await.send_keys("gravi").await.unwrap();
        until_listed(browser, "document", "Gravity").await;
        browser.picture("search-phone").await;
        assert_eq!(browser.value("document.querySelector('.search').getBoundingClientRect().width").await, 360);
        assert_eq!(browser.value("document.documentElement.scrollWidth").await, 360);
        browser.is_accessible("search-phone").await;
        let small = "[...document.querySelectorAll('.search button:not([hidden]), .search a')]
            .map((one) => one.getBoundingClientRect()).filter(({ width, height }) => width < 24 || height < 24).length";
        assert_eq!(browser.value(small).await, 0);
        browser.tap(&browser.find("search-close").await).await;
        browser.gone("search").await;
    })
    .await;
}

#[tokio::test]
async fn if_the_search_fails_the_question_can_still_be_asked() {
    let mut library = Book::new().serve();
    browse("search-unreachable", async |browser| {
        browser.open_chat(&library.served.url).await;
        control_k(browser).await;
        browser.find("search").await;
        browser.press("node").await;
        until_listed(browser, "document", "Nodes").await;
        library.served.stop();
        browser.expect_in_console("net::ERR_CONNECTION_REFUSED");
        browser.press("s").await;
        browser.until("document.querySelector('[data-testid=search-status]').innerText.includes('cannot be reached')").await;
        let found = rows(browser, "document").await;
        assert_eq!(found, [("Ask: “nodes”".to_owned(), true)]);
    })
    .await;
}

#[tokio::test]
async fn the_widget_searches_the_site() {
    let library = Book::new().with_widget().serve();
    browse("search-widget", async |browser| {
        browser.open(&library.site.page("index.html")).await;
        let panel = Panel { browser };
        panel.find("button").await;
        control_k(browser).await;
        panel.find("search").await;
        browser.press("simlated").await;
        until_listed(browser, SHADOW, "The simulated clock").await;
        browser.picture("search-widget").await;
        browser.press(Key::Down).await;
        browser.press(Key::Enter).await;
        // A link within the site stays in the tab.
        browser
            .until("location.pathname === '/simulation/gazebo.html' && document.readyState === 'complete'")
            .await;
        assert_eq!(browser.value("location.hash").await, "#clock");

        // In the panel, a slash opens the search; on the author's page, it is the author's.
        browser.press("/").await;
        panel.gone("search").await;
        panel.click("button").await;
        panel.find("panel").await;
        panel.click("search-open").await;
        panel.find("search").await;
        browser.press("What is a node in the ROS 2 graph?").await;
        until_listed(browser, SHADOW, "Ask: “What is a node").await;
        browser.press(Key::Enter).await;
        panel.gone("search").await;
        assert!(panel.text("sentence").await.starts_with(DEFINITION));
    })
    .await;
}

#[tokio::test]
async fn ctrl_k_stays_with_a_page_that_uses_it() {
    let library = Book::new().with_widget().serve();
    browse("search-ctrl-k", async |browser| {
        browser.open(&library.site.page("index.html")).await;
        Panel { browser }.find("button").await;
        browser.value("document.addEventListener('keydown', (event) => { if (event.key === 'k') event.preventDefault(); })").await;
        control_k(browser).await;
        assert_eq!(Panel { browser }.count("search").await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_page_for_docsearch_needs_only_another_script() {
    let body = "<header><div id=\"docsearch\"></div></header><p>The handbook of walking machines.</p>";
    let library = Book::new().page("start.html", "Start", body).with_docsearch().serve();
    browse("docsearch", async |browser| {
        browser.open(&library.site.page("start.html")).await;
        let root = "document.querySelector('docent-search').shadowRoot";
        let button =
            browser.until_element(&format!("{root}.querySelector('[data-testid=open-search]')")).await;
        assert_eq!(button.text().await.unwrap(), "Search\nCtrl K");
        browser.picture("docsearch-button").await;
        browser.is_accessible("docsearch-button").await;
        button.click().await.unwrap();
        browser.press("best efort").await;
        until_listed(browser, root, "Quality of service").await;
        browser.picture("docsearch").await;
        browser.is_accessible("docsearch").await;
        let first = rows(browser, root).await;
        assert!(first[0].0.starts_with("Topics"), "{first:?}");
        browser.press(Key::Down).await;
        browser.press(Key::Enter).await;
        browser.until("location.hash === '#quality' && document.readyState === 'complete'").await;

        // Without the widget, a question opens the chat page.
        browser.open(&library.site.page("start.html")).await;
        browser.until_element(&format!("{root}.querySelector('[data-testid=open-search]')")).await;
        browser.press("/").await;
        browser.press("What is a twin?").await;
        until_listed(browser, root, "Ask: “What is a twin?”").await;
        browser.press(Key::Enter).await;
        browser.follow_to_new_tab().await;
        assert_eq!(browser.value("location.origin").await, json!(library.served.url));
        browser.turn(0).await.is("complete").await;
    })
    .await;
}
