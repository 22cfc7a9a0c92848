//! The server dies at every write, as after `kill -9`. What it acknowledged is there when it starts again.

use std::collections::HashMap;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{NODE, Site};
use crate::support::{Docent, Served};

/// What the server acknowledged before it died.
#[derive(Debug, Default)]
struct Acknowledged {
    /// The id and the key of the conversation.
    session: Option<(String, String)>,
    /// The ids of the turns in the conversation, and of one outside it.
    turns: Vec<Value>,
    alone: Option<Value>,
}

/// Begins a conversation, asks two questions in it and one outside it, until the server is gone.
fn use_server(served: &Served, runtime: &Runtime) -> Acknowledged {
    let client = Client::new();
    let post = |path: &str| client.post(format!("{}{path}", served.url));
    let send = |request: RequestBuilder| -> Option<Value> {
        runtime.block_on(async { request.send().await.ok()?.json().await.ok() })
    };
    let mut acknowledged = Acknowledged::default();
    let Some(begun) = send(post("/api/v1/sessions").json(&json!({}))) else { return acknowledged };
    let text = |name: &str| begun[name].as_str().unwrap().to_owned();
    let (id, key) = (text("session_id"), text("session_key"));
    acknowledged.session = Some((id.clone(), key.clone()));
    for _ in 0..2 {
        let ask = post("/api/v1/ask").header("x-docent-session-key", &key);
        let answer = send(ask.json(&json!({ "query": NODE, "session_id": id })));
        acknowledged.turns.extend(answer.map(|answer| answer["turn_id"].clone()));
    }
    acknowledged.alone =
        send(post("/api/v1/ask").json(&json!({ "query": NODE }))).map(|answer| answer["turn_id"].clone());
    acknowledged
}

#[test]
fn a_server_can_die_at_every_write() {
    let runtime = Runtime::new().unwrap();
    let docent = || {
        Docent::without_vectors()
            .with("DOCENT_READER__KIND", "none")
            .with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "0")
    };
    let visits = {
        let docent = docent();
        let visits = docent.home.path().join("visits");
        let mut served = docent.serve_as(|command| {
            command.env("DOCENT_TEST_FAILPOINT_VISITS", &visits);
        });
        let acknowledged = use_server(&served, &runtime);
        assert!(acknowledged.turns.len() == 2 && acknowledged.alone.is_some(), "{acknowledged:?}");
        assert!(served.stop());
        std::fs::read_to_string(&visits).unwrap()
    };
    let mut counts: HashMap<&str, usize> = HashMap::new();
    visits.lines().for_each(|name| *counts.entry(name).or_default() += 1);
    for name in ["store.execute", "store.commit", "store.committed", "turn_log.pending", "turn_log.write"] {
        assert!(counts.contains_key(name), "{name} was not reached: {counts:?}");
    }
    let points = counts.into_iter().flat_map(|(name, count)| (1..=count).map(move |number| (name, number)));
    for (name, number) in points {
        let point = format!("{name}=abort@{number}");
        let docent = docent();
        let served = docent.try_serve_as(|command| {
            command.env("DOCENT_TEST_FAILPOINT", &point);
        });
        let acknowledged = served.map(|served| use_server(&served, &runtime)).unwrap_or_default();

        let site = Site::new(&docent);
        for turn in acknowledged.turns.iter().chain(&acknowledged.alone) {
            // Only a logged turn can be rated.
            let rated = site.post("/api/v1/feedback", json!({ "turn_id": turn, "rating": "up" }));
            assert_eq!(rated.0, 204, "{point}: {turn} is not logged");
        }
        let (id, key) = acknowledged.session.clone().unwrap_or_else(|| site.begin());
        let shown = site.with_key(Method::GET, &format!("/api/v1/sessions/{id}"), None, &key).1;
        let stored = shown["turns"].as_array().unwrap_or_else(|| panic!("{point}: {shown}"));
        for turn in &acknowledged.turns {
            assert!(stored.iter().any(|stored| stored["turn_id"] == *turn), "{point}: {turn} is not stored");
        }
        assert_eq!(site.ask_in((&id, &key), NODE)["grounded"], true, "{point}");
    }
}
