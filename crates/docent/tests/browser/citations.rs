//! From a sentence to the quote that supports it, and from there into the book.

use thirtyfour::prelude::*;

use crate::book::{Book, DEFINITION};
use crate::browser::{Browser, browse};

const QUESTION: &str = "What is a node in the ROS 2 graph?";

/// Checks that the card shows what the first sentence of the answer is based on.
async fn check_card(browser: &Browser) {
    let card = browser.find("citation-card").await;
    assert_eq!(browser.text("citation-quote").await, DEFINITION);
    let said = card.text().await.unwrap();
    for words in ["Nodes", "What a node is", "Open in the book", "ros2"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let link = card.find(By::Css("a.open-in-book")).await.unwrap().attr("href").await.unwrap().unwrap();
    assert!(link.contains("/ros2/nodes.html#what-a-node-is:~:text="), "{link}");
}

#[tokio::test]
async fn hovering_shows_a_citation_and_leaving_hides_it() {
    let library = Book::new().serve();
    browse("citation-hover", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask(QUESTION).await;
        browser.hover(&turn.find("citation").await).await;
        check_card(browser).await;
        browser.picture("citation").await;
        // The card stays while the pointer moves into it and closes when the pointer is elsewhere.
        browser.hover(&browser.find("citation-quote").await).await;
        check_card(browser).await;
        browser.hover(&browser.find("book-title").await).await;
        browser.gone("citation-card").await;
    })
    .await;
}

#[tokio::test]
async fn a_click_keeps_a_citation_open_until_escape() {
    let library = Book::new().serve();
    browse("citation-press", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask(QUESTION).await;
        turn.click("citation").await;
        browser.hover(&browser.find("book-title").await).await;
        check_card(browser).await;
        browser.press(Key::Escape).await;
        browser.gone("citation-card").await;
        turn.click("citation").await;
        check_card(browser).await;
        browser.find("book-title").await.click().await.unwrap();
        browser.gone("citation-card").await;
    })
    .await;
}

#[tokio::test]
async fn a_citation_links_to_the_quoted_words_on_the_published_page() {
    let library = Book::new().serve();
    browse("deep-link", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask("Which states does a managed node move through?").await;
        turn.click("citation").await;
        let quote = browser.text("citation-quote").await;
        browser.find("citation-card").await.find(By::Css("a")).await.unwrap().click().await.unwrap();
        browser.click("reading-site").await;
        browser.follow_to_new_tab().await;
        let address = browser.driver.current_url().await.unwrap();
        assert!(address.as_str().starts_with(&library.site.page("ros2/nodes.html#lifecycle")), "{address}");
        assert!(browser.value("document.body.innerText").await.as_str().unwrap().contains(&quote));
        // The section is further down, and the browser has scrolled there.
        browser
            .until(
                "scrollY > 0 && document.getElementById('lifecycle').getBoundingClientRect().bottom > 0 \
                    && document.getElementById('lifecycle').getBoundingClientRect().top < innerHeight",
            )
            .await;
        browser.picture("deep-link").await;
    })
    .await;
}

#[tokio::test]
async fn pages_of_an_unpublished_book_are_read_on_the_server() {
    let library = Book::new().unpublished().serve();
    browse("read", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask("Which states does a managed node move through?").await;
        turn.click("citation").await;
        let quote = browser.text("citation-quote").await;
        browser.find("citation-card").await.find(By::Css("a")).await.unwrap().click().await.unwrap();
        browser.click("reading-site").await;
        browser.follow_to_new_tab().await;
        let address = browser.driver.current_url().await.unwrap();
        let page = format!("{}/read/ros2/nodes.html#lifecycle", library.served.url);
        assert!(address.as_str().starts_with(&page), "{address}");
        assert!(browser.value("document.body.innerText").await.as_str().unwrap().contains(&quote));
        browser.until("document.getElementById('lifecycle').getBoundingClientRect().top < innerHeight").await;
        let width = browser.value("document.querySelector('main').offsetWidth").await;
        assert!(width.as_u64().unwrap() > 600, "{width}");
        browser.is_accessible("a page to read").await;
        browser.picture("read").await;
    })
    .await;
}
