//! Conversations can be stored, renamed, exported, shared and deleted.

use serde_json::Value;
use thirtyfour::prelude::*;

use crate::book::{Book, DEFINITION};
use crate::browser::browse;

const QUESTION: &str = "What is a node in the ROS 2 graph?";

#[tokio::test]
async fn a_conversation_can_be_renamed_and_survives_a_reload() {
    let library = Book::new().serve();
    browse("rename", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.ask(QUESTION).await;
        assert_eq!(browser.text("conversation-open").await, QUESTION);
        browser.choose("rename").await;
        let name = browser.find("rename-input").await;
        name.send_keys("About nodes").await.unwrap();
        browser.picture("rename").await;
        name.send_keys(Key::Enter).await.unwrap();
        browser.driver.query(By::Testid("conversation-open")).with_text("About nodes").first().await.unwrap();
        assert_eq!(library.conversations()[0]["title"], "About nodes");
        browser.reload().await;
        let turn = browser.turn(0).await;
        assert_eq!((turn.text("asked").await.as_str(), &*turn.sentences().await[0]), (QUESTION, DEFINITION));
        assert_eq!(browser.text("conversation-open").await, "About nodes");
        // Citations work as before.
        turn.click("citation").await;
        assert_eq!(browser.text("citation-quote").await, DEFINITION);
    })
    .await;
}

#[tokio::test]
async fn the_address_bar_names_the_conversation_but_not_its_key() {
    let library = Book::new().serve();
    browse("address", async |browser| {
        let address = async || browser.driver.current_url().await.unwrap().to_string();
        browser.open_chat(&library.served.url).await;
        browser.ask(QUESTION).await;
        let first = address().await;
        let id = library.conversations()[0]["session_id"].as_str().unwrap().to_owned();
        assert_eq!(first, format!("{}/?session={id}", library.served.url));

        browser.click("new-conversation").await;
        browser.find("suggestions").await;
        assert_eq!(address().await, format!("{}/", library.served.url));
        browser.ask("What gravity does Gazebo apply?").await;
        let second = address().await;
        assert_ne!(second, first);

        browser.driver.back().await.unwrap();
        browser
            .until(&format!("document.querySelector('[data-testid=asked]')?.textContent === '{QUESTION}'"))
            .await;
        assert_eq!(address().await, first);
        browser.driver.forward().await.unwrap();
        browser
            .until("document.querySelector('[data-testid=asked]')?.textContent.startsWith('What gravity')")
            .await;

        // A bookmark opens it in this browser; elsewhere the address says how to share it.
        browser.open(&first).await;
        assert_eq!(browser.turn(0).await.text("asked").await, QUESTION);
        browser.find("question").await;
        browser.value("localStorage.clear()").await;
        browser.expect_in_console("404 (Not Found)");
        browser.reload().await;
        let notice = browser.text("notice").await;
        assert!(notice.starts_with("This address only works in the browser where"), "{notice}");
    })
    .await;
}

#[tokio::test]
async fn users_can_switch_between_conversations() {
    let library = Book::new().serve();
    browse("conversations", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.ask(QUESTION).await;
        browser.click("new-conversation").await;
        browser.find("suggestions").await;
        assert_eq!(browser.count("turn").await, 0);
        browser.ask("What gravity does Gazebo apply?").await;
        assert_eq!(browser.count("conversation").await, 2);
        let first = browser.driver.query(By::Testid("conversation-open")).with_text(QUESTION).first().await;
        first.unwrap().click().await.unwrap();
        let turn = browser.turn(0).await;
        assert_eq!(turn.text("asked").await, QUESTION);
        browser.picture("conversations").await;
    })
    .await;
}

#[tokio::test]
async fn a_deleted_conversation_is_removed_from_the_list_and_the_server() {
    let library = Book::new().serve();
    browse("delete", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.ask(QUESTION).await;
        browser.choose("delete").await;
        browser.click("confirm-cancel").await;
        browser.gone("confirm").await;
        assert_eq!(browser.count("conversation").await, 1);
        browser.choose("delete").await;
        browser.find("confirm").await;
        browser.picture("delete").await;
        browser.click("confirm-action").await;
        browser.gone("conversation").await;
        browser.gone("turn").await;
        assert_eq!(browser.text("notice").await, "Conversation deleted.");
        browser.find("suggestions").await;
    })
    .await;
    assert_eq!(library.conversations(), Vec::<Value>::new());
}

#[tokio::test]
async fn a_conversation_can_be_exported_and_shared() {
    let library = Book::new().serve();
    browse("export", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.ask(QUESTION).await;
        browser.choose("export-markdown").await;
        let markdown = browser.download(".md").await;
        assert!(markdown.contains(QUESTION) && markdown.contains(DEFINITION), "{markdown}");
        browser.choose("export-json").await;
        let json: Value = serde_json::from_str(&browser.download(".json").await).unwrap();
        assert_eq!(json["turns"][0]["query"], QUESTION);

        let origin = &library.served.url;
        let may = serde_json::json!({"origin": origin, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
        browser.devtools("Browser.grantPermissions", may).await;
        browser.choose("copy-link").await;
        assert!(browser.text("notice").await.starts_with("Link copied."));
        let read = "navigator.clipboard.readText().then(arguments[0])";
        let link = browser.driver.execute_async(read, vec![]).await.unwrap().json().as_str().unwrap().to_owned();
        assert!(link.starts_with(&format!("{origin}/?session=")) && link.contains("#key="), "{link}");
        let own = browser.value("localStorage.getItem('docent.conversations')").await;
        // Another user can read it but not change it.
        browser.value("(localStorage.clear(), sessionStorage.clear())").await;
        browser.open("about:blank").await;
        browser.open(&link).await;
        let turn = browser.turn(0).await;
        assert_eq!(turn.text("asked").await, QUESTION);
        let address = browser.driver.current_url().await.unwrap();
        assert!(!address.as_str().contains("key"), "{address}");
        assert!(browser.text("read-only").await.contains("shared with you"));
        browser.gone("question").await;
        browser.picture("shared").await;
        browser.is_accessible("shared").await;
        browser.click("conversation-actions").await;
        browser.find("conversation-menu").await;
        assert_eq!((browser.count("rename").await, browser.count("delete").await), (0, 0));
        browser.reload().await;
        assert_eq!(browser.turn(0).await.text("asked").await, QUESTION);
        browser.find("read-only").await;
        browser.click("new-conversation").await;
        browser.ask("What gravity does Gazebo apply?").await.is("complete").await;

        // The owner of the conversation stops sharing it.
        let own = own.as_str().unwrap().replace('\'', "\\'");
        browser.value(&format!("(sessionStorage.clear(), localStorage.setItem('docent.conversations', '{own}'))")).await;
        browser.open(origin).await;
        browser.click("conversation-open").await;
        // Opening a conversation redraws the list, which closes its menus.
        browser.turn(0).await;
        browser.find("question").await;
        browser.choose("stop-sharing").await;
        assert!(browser.text("notice").await.contains("no longer work"));
        browser.value("(localStorage.clear(), sessionStorage.clear())").await;
        browser.expect_in_console("404 (Not Found)");
        browser.open("about:blank").await;
        browser.open(&link).await;
        assert!(browser.text("notice").await.starts_with("That link no longer works"));
    })
    .await;
}

#[tokio::test]
async fn earlier_turns_are_loaded_on_demand() {
    let library = Book::new().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "0").serve();
    browse("earlier", async |browser| {
        browser.open_chat(&library.served.url).await;
        browser.ask(QUESTION).await;
        // The page itself sends these questions, because typing takes longer.
        let many = "(async (finished) => {
          const { id, key } = JSON.parse(localStorage.getItem('docent.conversations'))[0];
          const headers = { 'Content-Type': 'application/json', 'X-Docent-Session-Key': key };
          for (let number = 2; number <= 25; number++) {
            const body = JSON.stringify({ query: `What is a topic, ${number}?`, session_id: id });
            await fetch('/api/v1/ask', { method: 'POST', headers, body });
          }
          finished(true);
        })(arguments[0])";
        browser.driver.execute_async(many, vec![]).await.unwrap();
        browser.reload().await;
        let shown = "document.querySelectorAll('[data-testid=turn]').length";
        browser.until(&format!("{shown} === 20")).await;
        browser.picture("earlier").await;
        // The driver would scroll the button under the page header.
        browser.value("window.scrollTo(0, 0)").await;
        browser.click("earlier").await;
        browser.until(&format!("{shown} === 25")).await;
        assert_eq!(browser.turn(0).await.text("asked").await, QUESTION);
        browser.gone("earlier").await;
    })
    .await;
}
