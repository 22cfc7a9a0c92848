//! The reading pane: the book beside the answer.

use thirtyfour::prelude::*;

use crate::book::{Book, DEFINITION};
use crate::browser::{Browser, browse};

const QUESTION: &str = "Which states does a managed node move through?";

/// Asks, and opens the first citation of the answer in the pane.
async fn open_citation(browser: &Browser, question: &str) -> String {
    let turn = browser.ask(question).await;
    turn.click("citation").await;
    let quote = browser.text("citation-quote").await;
    browser.find("citation-card").await.find(By::Css("a")).await.unwrap().click().await.unwrap();
    browser.find("reading").await;
    browser.gone("citation-card").await;
    quote
}

/// The marked words, with single spaces.
async fn marked(browser: &Browser) -> String {
    let marks = "[...document.querySelectorAll('.reading mark')].map((one) => one.textContent).join(' ')";
    let text = browser.value(marks).await;
    text.as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether the first mark is inside the visible part of the pane.
const IN_SIGHT: &str = "(() => { const [mark, body] = ['.reading mark', '.reading-body']
    .map((one) => document.querySelector(one).getBoundingClientRect());
    return mark.top >= body.top && mark.bottom <= body.bottom; })()";

#[tokio::test]
async fn a_citation_opens_the_page_beside_the_answer_at_the_quoted_words() {
    let library = Book::new().serve();
    browse("reading", async |browser| {
        browser.sized(1400, 900).await;
        browser.open_chat(&library.served.url).await;
        let quote = open_citation(browser, QUESTION).await;
        browser.until(IN_SIGHT).await;
        assert_eq!(marked(browser).await.trim_end_matches('.'), quote.trim_end_matches('.'));
        assert_eq!(browser.value("document.activeElement.id").await, "reading-title");
        browser.is_accessible("reading").await;
        browser.picture("reading").await;

        // The conversation stays usable beside it.
        let turn = browser.ask("What is a node?").await;
        turn.is("complete").await;
        browser.find("reading").await;

        // Read on: the headings, the next page, and back. In a low window, the page is longer than the pane.
        browser.sized(1400, 480).await;
        browser
            .find("reading-headings")
            .await
            .find(By::XPath("option[contains(., 'Executors')]"))
            .await
            .unwrap()
            .click()
            .await
            .unwrap();
        let top = "document.querySelector('.reading [data-anchor=executors]').getBoundingClientRect().top
            - document.querySelector('.reading-body').getBoundingClientRect().top";
        browser
            .until(&format!("Math.abs({top}) < 60 || document.querySelector('.reading-body').scrollTop > 0"))
            .await;
        browser.sized(1400, 900).await;
        browser.click("reading-next").await;
        browser.until("document.getElementById('reading-title').textContent === 'Topics'").await;
        browser.click("reading-previous").await;
        browser.until("document.getElementById('reading-title').textContent === 'Nodes'").await;
        assert!(browser.text("reading-body").await.contains(DEFINITION));

        // Escape closes it; the keyboard is where it was.
        browser.press(Key::Escape).await;
        browser.gone("reading").await;
        assert_eq!(browser.value("document.body.classList.contains('is-reading')").await, false);
    })
    .await;
}

#[tokio::test]
async fn the_keyboard_opens_and_leaves_the_page() {
    let library = Book::new().serve();
    browse("reading-keyboard", async |browser| {
        browser.sized(1400, 900).await;
        browser.open_chat(&library.served.url).await;
        browser.ask(QUESTION).await.find("citation").await;
        browser.value("document.querySelector('[data-testid=citation]').focus()").await;
        browser.press(Key::Enter).await;
        browser.until("document.activeElement.dataset.testid === 'citation-card'").await;
        browser.press(Key::Tab).await;
        browser.press(Key::Tab).await;
        browser.press(Key::Enter).await;
        browser.until("document.activeElement.id === 'reading-title'").await;
        browser.press(Key::Escape).await;
        browser.gone("reading").await;
        browser.until("document.activeElement.dataset.testid === 'citation'").await;
    })
    .await;
}

#[tokio::test]
async fn text_selected_in_the_page_can_be_asked_about() {
    let library = Book::new().serve();
    browse("reading-selection", async |browser| {
        browser.sized(1400, 900).await;
        browser.open_chat(&library.served.url).await;
        open_citation(browser, QUESTION).await;
        browser.value("getSelection().selectAllChildren(document.querySelector('.reading [data-anchor=executors] ~ div'))").await;
        browser.click("ask-selection").await;
        browser.until("document.activeElement.id === 'question'").await;
        assert!(browser.text("selection").await.contains("An executor calls the callbacks"));
        browser.picture("reading-selection").await;
        browser.press("What happens if it never spins?").await;
        browser.press(Key::Enter).await;
        let turn = browser.turn(1).await;
        turn.is("complete").await;
        assert!(turn.text("badge").await.contains("selection") || turn.text("sentence").await.contains("never spins"));
        browser.gone("selection").await;
    })
    .await;
}

#[tokio::test]
async fn on_a_phone_the_page_is_a_sheet_above_the_conversation() {
    let library = Book::new().serve();
    browse("reading-phone", async |browser| {
        browser.emulate_phone().await;
        browser.open_chat(&library.served.url).await;
        browser.find("question").await.send_keys(QUESTION).await.unwrap();
        browser.tap(&browser.find("send").await).await;
        let turn = browser.turn(0).await;
        turn.is("complete").await;
        browser.tap(&turn.find("citation").await).await;
        let card = browser.find("citation-card").await;
        browser.tap(&card.find(By::Css("a")).await.unwrap()).await;
        browser.find("reading").await;
        browser.until(IN_SIGHT).await;
        browser.until("document.querySelector('.reading').matches(':modal')").await;
        assert_eq!(browser.value("document.documentElement.scrollWidth").await, 360);
        browser.picture("reading-phone").await;
        browser.is_accessible("reading-phone").await;
        // On a wider screen, it becomes a column.
        browser.sized(1400, 900).await;
        browser.until("!document.querySelector('.reading').matches(':modal') && document.body.classList.contains('is-reading')").await;
        browser.click("reading-close").await;
        browser.gone("reading").await;
    })
    .await;
}

#[tokio::test]
async fn lists_code_and_tables_are_marked_word_by_word() {
    let page = "<section><h2 id=\"valves\">Valves</h2><p>A valve plate needs three steps with the <code>torque --set 5</code> tool:</p>\
                <ol><li>Clean the <a href=\"https://example.org/plate\">plate</a>.</li><li>Grease the <b>seal</b>.</li><li>Tighten the screws.</li></ol></section>\
                <section><h2 id=\"pressures\">Pressures</h2><table><tr><th>Valve</th><th>Pressure</th></tr><tr><td>relief</td><td>3 bar</td></tr></table></section>";
    let library = Book::new().page("pumps/valves.html", "Pumps", page).serve();
    browse("reading-marks", async |browser| {
        browser.sized(1400, 900).await;
        browser.open_chat(&library.served.url).await;
        open_citation(browser, "Which steps does a valve plate need?").await;
        browser.until("document.querySelectorAll('.reading mark').length > 0").await;
        let words = marked(browser).await;
        for expected in ["three steps", "plate", "seal", "Tighten the screws"] {
            assert!(words.contains(expected), "{expected}: {words}");
        }
        assert!(!words.contains("3 bar"), "{words}");
        browser.picture("reading-marks").await;
    })
    .await;
}

const PDF: &[u8] = include_bytes!("../../../docent-parse/tests/fixtures/outline.pdf");

/// Opens the citation of an answer from a PDF.
async fn open_pdf(browser: &Browser, library: &crate::book::Library) {
    browser.open_chat(&library.served.url).await;
    open_citation(browser, "At which pressure does a relief valve open?").await;
}

#[tokio::test]
async fn a_pdf_is_shown_as_it_is_printed_with_boxes_around_the_quoted_words() {
    let library = Book::new().file("pumps.pdf", PDF).serve();
    browse("reading-pdf", async |browser| {
        for (scheme, width) in [("light", 1400), ("dark", 1400), ("light", 390)] {
            browser.prefers(scheme).await;
            browser.sized(width, 900).await;
            open_pdf(browser, &library).await;
            let drawn = "(() => { const image = document.querySelector('.sheet[data-page=\"2\"] img');
                return image.complete && image.naturalWidth > 0 && image.alt; })()";
            let described = browser.until(drawn).await;
            let described = described.as_str().unwrap();
            assert!(described.starts_with("Page 2 of The Pump Book. Marked: A relief valve opens"), "{described}");
            // The box is on the drawn page, and in sight.
            let boxed = "(() => { const [box, page, body] = ['.sheet[data-page=\"2\"] .word-box', '.sheet[data-page=\"2\"] img', '.reading-body']
                .map((one) => document.querySelector(one).getBoundingClientRect());
                return box.top >= body.top && box.bottom <= body.bottom && box.left > page.left && box.right < page.right
                  && box.width > 4 * box.height; })()";
            browser.until(boxed).await;
            browser.is_accessible(&format!("reading-pdf, {scheme}, {width}")).await;
            browser.picture(&format!("reading-pdf-{scheme}-{width}")).await;
        }
        assert_eq!(browser.count("drawn-page").await, 3);
        let text = browser.value("document.querySelector('.sheet-text').checkVisibility()").await;
        assert_eq!(text, false);
    })
    .await;
}

#[tokio::test]
async fn a_pdf_is_read_as_text_by_page() {
    let library = Book::new().file("pumps.pdf", PDF).serve();
    browse("reading-pdf-text", async |browser| {
        browser.sized(1400, 900).await;
        open_pdf(browser, &library).await;
        browser.find("word-box").await;
        browser.value("document.querySelector('[data-testid=pdf-text]').focus()").await;
        browser.press(Key::Enter).await;
        browser.until("document.querySelector('[data-testid=pdf-text]').ariaPressed === 'true'").await;
        browser.until(IN_SIGHT).await;
        assert!(marked(browser).await.contains("A relief valve opens at 3 bar"));
        let text = browser.text("reading-body").await;
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
        assert!(at("Page 1") < at("A gear pump") && at("A gear pump") < at("Page 2"));
        assert!(at("Page 2") < at("A relief valve opens") && at("A relief valve opens") < at("Page 3"));
        assert_eq!(text.matches("Gear pumps\n").count(), 1, "a section that goes on has one heading: {text}");
        let site = browser.find("reading-site").await;
        assert_eq!(site.text().await.unwrap(), "Open page 2 of the PDF");
        let address = site.attr("href").await.unwrap().unwrap();
        assert!(address.starts_with(&library.site.page("pumps.pdf#page=2")), "{address}");
        browser.is_accessible("reading-pdf-text").await;
        browser.picture("reading-pdf-text").await;
        // The view is remembered; the drawn pages are one press away.
        browser.reload().await;
        open_pdf(browser, &library).await;
        browser.until(IN_SIGHT).await;
        browser.click("pdf-pages").await;
        browser.find("word-box").await;
    })
    .await;
}

#[tokio::test]
async fn a_pdf_that_cannot_be_drawn_is_shown_as_text() {
    let library = Book::new().file("pumps.pdf", PDF).serve();
    for copy in std::fs::read_dir(library.docent.index().join("figures")).unwrap() {
        std::fs::write(copy.unwrap().path(), "%PDF-1.7 nothing").unwrap();
    }
    browse("reading-pdf-damaged", async |browser| {
        browser.expect_in_console("status of 404");
        browser.sized(1400, 900).await;
        open_pdf(browser, &library).await;
        browser.until(IN_SIGHT).await;
        assert!(marked(browser).await.contains("A relief valve opens at 3 bar"));
        assert_eq!(browser.count("word-box").await, 0);
    })
    .await;
}
