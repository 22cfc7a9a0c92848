//! Helpers that use the widget's panel on a page of the book the way a user does.

use thirtyfour::prelude::*;

use crate::browser::Browser;

/// The widget is inside the shadow root of its element, where the page's queries do not reach.
pub struct Panel<'a> {
    pub browser: &'a Browser,
}

/// The shadow root, as an expression on the page.
pub const SHADOW: &str = "document.querySelector('docent-widget').shadowRoot";

impl Panel<'_> {
    /// A part by its test id, as soon as it is visible.
    pub async fn find(&self, part: &str) -> WebElement {
        let found = format!(
            "(() => {{ const one = {SHADOW}.querySelector('[data-testid=\"{part}\"]');
             return one?.checkVisibility() && one; }})()"
        );
        self.browser.until_element(&found).await
    }

    /// The current number of such parts.
    pub async fn count(&self, part: &str) -> u64 {
        let all = format!("{SHADOW}.querySelectorAll('[data-testid=\"{part}\"]').length");
        self.browser.value(&all).await.as_u64().unwrap()
    }

    pub async fn click(&self, part: &str) {
        self.find(part).await.click().await.unwrap();
    }

    pub async fn text(&self, part: &str) -> String {
        self.find(part).await.text().await.unwrap()
    }

    /// The texts of all such parts.
    pub async fn texts(&self, part: &str) -> Vec<String> {
        let all =
            format!("[...{SHADOW}.querySelectorAll('[data-testid=\"{part}\"]')].map((one) => one.innerText)");
        serde_json::from_value(self.browser.value(&all).await).unwrap()
    }

    /// Waits until no such part is visible.
    pub async fn gone(&self, part: &str) {
        let gone = format!(
            "![...{SHADOW}.querySelectorAll('[data-testid=\"{part}\"]')].some((one) => one.checkVisibility())"
        );
        self.browser.until(&gone).await;
    }

    /// Asks a question and waits for the end of the answer.
    pub async fn ask(&self, question: &str) {
        let before = self.count("turn").await;
        let typed = self.find("question").await;
        typed.send_keys(question).await.unwrap();
        typed.send_keys(Key::Enter).await.unwrap();
        let ended = format!(
            "{SHADOW}.querySelectorAll('[data-testid=turn]').length === {} &&
             {SHADOW}.querySelector('[data-testid=stop]').hidden",
            before + 1
        );
        self.browser.until(&ended).await;
    }
}
