//! Figures, code and tables of the book, in answers and in the reading pane.

use thirtyfour::prelude::*;

use crate::book::Book;
use crate::browser::{Browser, browse};

const DRAWING: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"480\" height=\"200\" viewBox=\"0 0 480 200\"><script>\
    alert(1)</script><rect width=\"480\" height=\"200\" fill=\"#eef\"/><circle cx=\"160\" cy=\"100\" r=\"70\" fill=\"none\" \
    stroke=\"#335\" stroke-width=\"12\" stroke-dasharray=\"14 8\"/><circle cx=\"300\" cy=\"100\" r=\"70\" fill=\"none\" \
    stroke=\"#335\" stroke-width=\"12\" stroke-dasharray=\"14 8\"/></svg>";

const CODE: &str = "import pump\n\n# Opens the valve.\ndef main():\n    pump.open(\"relief\", pressure=3)\n";

/// A book with a page that has a figure, code with a title, a diagram and a large table.
fn library() -> crate::book::Library {
    let head: String = (1..=9).map(|number| format!("<th>Property number {number}</th>")).collect();
    let row = |row: usize| {
        let cells: String =
            (1..=9).map(|cell| format!("<td>value-{row}-{cell}-of-a-long-row</td>")).collect();
        format!("<tr>{cells}</tr>")
    };
    let rows: String = (1..=6).map(row).collect();
    let body = format!(
        "<section><h2 id=\"gears\">Gear pumps</h2><p>A gear pump moves oil between the teeth of two gears.</p>\
         <figure><img src=\"../img/gears.svg\" alt=\"drawing\"><figcaption>The two gears of a gear pump</figcaption></figure></section>\
         <section><h2 id=\"start\">Starting the pump</h2><p>This program starts the pump:</p>\
         <pre><code class=\"language-python\">{CODE}</code></pre></section>\
         <section><h2 id=\"properties\">Properties</h2><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></section>"
    );
    Book::new().file("img/gears.svg", DRAWING).page("pumps/gears.html", "Pumps", &body).serve()
}

const LOADED: &str = "(() => { const image = document.querySelector('ROOT img');
    return image && image.complete && image.naturalWidth > 0 && image.alt; })()";

async fn open_page(browser: &Browser) {
    let search = browser.driver.action_chain();
    search.key_down(Key::Control).send_keys("k").key_up(Key::Control).perform().await.unwrap();
    browser.find("search").await;
    browser.press("Gear pumps").await;
    browser
        .until("document.querySelector('[role=option][aria-selected=true]').innerText.startsWith('Pumps')")
        .await;
    browser.press(Key::Enter).await;
    browser.find("reading").await;
}

#[tokio::test]
async fn a_cited_figure_is_shown_with_its_caption() {
    let library = library();
    browse("figure", async |browser| {
        browser.open_chat(&library.served.url).await;
        let turn = browser.ask("How does a gear pump move oil between the two gears?").await;
        turn.is("complete").await;
        turn.find("figure").await;
        let described = browser.until(&LOADED.replace("ROOT", ".answer")).await;
        assert_eq!(described, "The two gears of a gear pump");
        assert!(turn.text("figure").await.contains("The two gears of a gear pump"));
        // The caption is not repeated.
        let said = turn.text("answer").await;
        assert_eq!(said.matches("The two gears of a gear pump").count(), 1, "{said}");
        turn.click("citation").await;
        browser.find("citation-card").await;
        browser.press(Key::Escape).await;
        browser.is_accessible("figure").await;
        browser.picture("figure").await;
        // After a reload, it is still there.
        browser.reload().await;
        browser.until(&LOADED.replace("ROOT", ".answer")).await;
    })
    .await;
}

#[tokio::test]
async fn the_pane_shows_figures_code_and_tables() {
    let library = library();
    browse("reading-figures", async |browser| {
        for (scheme, width) in [("light", 1400), ("dark", 1400), ("light", 390)] {
            browser.prefers(scheme).await;
            browser.sized(width, 900).await;
            browser.open_chat(&library.served.url).await;
            open_page(browser).await;
            browser.value("document.querySelector('.reading-body img').scrollIntoView()").await;
            browser.until(&LOADED.replace("ROOT", ".reading-body")).await;
            let code = browser.value("document.querySelector('.reading-body pre').textContent").await;
            assert_eq!(code.as_str().unwrap().trim_end(), CODE.trim_end());
            let color = |class: &str| {
                format!("getComputedStyle(document.querySelector('.reading-body .code-{class}')).color")
            };
            let (keyword, text) =
                (browser.value(&color("keyword")).await, browser.value(&color("text")).await);
            assert_ne!(keyword, text);
            // The table scrolls in its frame, and its header stays.
            let wide = "(() => { const frame = document.querySelector('.reading-body .table');
                return frame.scrollWidth > frame.clientWidth
                  && getComputedStyle(frame.querySelector('th')).position === 'sticky'; })()";
            assert_eq!(browser.value(wide).await, true);
            assert_eq!(browser.value("document.documentElement.scrollWidth").await, width);
            browser.is_accessible(&format!("reading-figures, {scheme}, {width}")).await;
            browser.picture(&format!("reading-figures-{scheme}-{width}")).await;
        }
    })
    .await;
}
