//! Helpers that use the chat page the way a user does.

use thirtyfour::prelude::*;

use crate::browser::Browser;

/// A question on the page and its answer.
pub struct Turn {
    pub element: WebElement,
}

impl Browser {
    /// Opens the chat page and waits until the book is loaded.
    pub async fn open_chat(&self, url: &str) {
        self.open(url).await;
        self.until("document.title.includes('·')").await;
    }

    /// Asks a question and waits for the end of the answer.
    pub async fn ask(&self, question: &str) -> Turn {
        let turn = self.begin(question).await;
        turn.has_ended().await;
        turn
    }

    /// Asks a question without waiting.
    pub async fn begin(&self, question: &str) -> Turn {
        let place = self.count("turn").await;
        let typed = self.find("question").await;
        typed.send_keys(question).await.unwrap();
        typed.send_keys(Key::Enter).await.unwrap();
        self.turn(place).await
    }

    /// The turn at this position, as soon as it exists.
    pub async fn turn(&self, place: usize) -> Turn {
        let all = self.driver.query(By::Css(format!("[data-testid=turn]:nth-of-type({})", place + 1)));
        Turn { element: all.first().await.unwrap() }
    }

    /// Opens the menu of the first conversation and chooses an action.
    pub async fn choose(&self, action: &str) {
        self.click("conversation-actions").await;
        self.find("conversation-menu").await;
        self.click(action).await;
    }
}

impl Turn {
    /// A part of the turn by its test id, as soon as it is visible.
    pub async fn find(&self, testid: &str) -> WebElement {
        self.element.query(By::Testid(testid)).and_displayed().first().await.unwrap()
    }

    /// All parts that currently have this test id.
    pub async fn all(&self, testid: &str) -> Vec<WebElement> {
        self.element.find_all(By::Testid(testid)).await.unwrap()
    }

    /// The texts of all parts that currently have this test id.
    pub async fn texts(&self, testid: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for part in self.all(testid).await {
            texts.push(part.text().await.unwrap());
        }
        texts
    }

    pub async fn text(&self, testid: &str) -> String {
        self.find(testid).await.text().await.unwrap()
    }

    pub async fn click(&self, testid: &str) {
        self.find(testid).await.click().await.unwrap();
    }

    /// Waits until the answer is neither pending nor being written.
    pub async fn has_ended(&self) {
        let answer = self.element.query(By::Testid("answer")).first().await.unwrap();
        answer.wait_until().lacks_attribute("data-state", "answering").await.unwrap();
    }

    /// Waits for `answering`, `complete`, `abstained`, `stopped` or `failed`.
    pub async fn is(&self, state: &str) {
        let answer = self.element.query(By::Testid("answer")).first().await.unwrap();
        answer.wait_until().has_attribute("data-state", state.to_owned()).await.unwrap();
    }

    /// The text of the sentences, without citation marks and notes.
    pub async fn sentences(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for words in self.element.find_all(By::Css("[data-testid=sentence] > .words")).await.unwrap() {
            texts.push(words.text().await.unwrap());
        }
        texts
    }
}
