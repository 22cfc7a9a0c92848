//! The chat page, in a reader's words.

use thirtyfour::prelude::*;

use crate::browser::Browser;

/// A question on the page, and what became of it.
pub struct Turn {
    pub element: WebElement,
}

impl Browser {
    /// Opens the chat page and waits until it knows its book.
    pub async fn open_chat(&self, url: &str) {
        self.open(url).await;
        self.until("document.title.includes('·')").await;
    }

    /// Asks, and waits for the end of the answer.
    pub async fn ask(&self, question: &str) -> Turn {
        let turn = self.begin(question).await;
        turn.has_ended().await;
        turn
    }

    /// Asks, and does not wait.
    pub async fn begin(&self, question: &str) -> Turn {
        let place = self.count("turn").await;
        let typed = self.find("question").await;
        typed.send_keys(question).await.unwrap();
        typed.send_keys(Key::Enter).await.unwrap();
        self.turn(place).await
    }

    /// A turn by its place, once it is there.
    pub async fn turn(&self, place: usize) -> Turn {
        let all = self.driver.query(By::Css(format!("[data-testid=turn]:nth-of-type({})", place + 1)));
        Turn { element: all.first().await.unwrap() }
    }

    /// Opens the menu of the first conversation and chooses from it.
    pub async fn choose(&self, action: &str) {
        self.click("conversation-actions").await;
        self.find("conversation-menu").await;
        self.click(action).await;
    }
}

impl Turn {
    /// A part of the turn by its test id, once a reader can see it.
    pub async fn find(&self, testid: &str) -> WebElement {
        self.element.query(By::Testid(testid)).and_displayed().first().await.unwrap()
    }

    /// All parts with this test id, now.
    pub async fn all(&self, testid: &str) -> Vec<WebElement> {
        self.element.find_all(By::Testid(testid)).await.unwrap()
    }

    /// What all parts with this test id say, now.
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

    /// Waits until the answer is neither awaited nor being written.
    pub async fn has_ended(&self) {
        let answer = self.element.query(By::Testid("answer")).first().await.unwrap();
        answer.wait_until().lacks_attribute("data-state", "answering").await.unwrap();
    }

    /// Waits for `answering`, `complete`, `abstained`, `stopped` or `failed`.
    pub async fn is(&self, state: &str) {
        let answer = self.element.query(By::Testid("answer")).first().await.unwrap();
        answer.wait_until().has_attribute("data-state", state.to_owned()).await.unwrap();
    }

    /// The words of the sentences, without marks and notes.
    pub async fn sentences(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for words in self.element.find_all(By::Css("[data-testid=sentence] > .words")).await.unwrap() {
            texts.push(words.text().await.unwrap());
        }
        texts
    }
}
