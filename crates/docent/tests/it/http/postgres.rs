//! Several servers on one PostgreSQL database, which dies in between.

use std::collections::HashSet;

use docent_backends::testing::postgres::{PASSWORD, Postgres};

use super::*;

#[test]
fn two_servers_share_their_conversations_and_outlive_the_database() {
    let Some(mut postgres) = Postgres::start() else { return };
    let url = postgres.database();
    let server = || {
        let docent = Docent::without_vectors()
            .with("DOCENT_SESSIONS__KIND", "postgres")
            .with("DOCENT_SESSIONS__URL", &url)
            .with("RUST_LOG", "debug");
        Site::of(docent)
    };
    let sites = [server(), server()];
    let id = sites[0].post("/api/v1/sessions", json!({})).1["session_id"].as_str().unwrap().to_owned();
    let ask = |site: &Site| site.post("/api/v1/ask", json!({ "query": NODE, "session_id": id }));
    let turns = |site: &Site| -> Vec<String> {
        let (status, session) = site.get(&format!("/api/v1/sessions/{id}"));
        assert_eq!(status, 200, "{session}");
        let turns = session["turns"].as_array().unwrap();
        turns.iter().map(|turn| turn["turn_id"].as_str().unwrap().to_owned()).collect()
    };

    let answered: Vec<String> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..12)
            .map(|number| {
                let site = &sites[number % 2];
                scope.spawn(move || {
                    let (status, answer) = ask(site);
                    assert_eq!(status, 200, "{answer}");
                    answer["turn_id"].as_str().unwrap().to_owned()
                })
            })
            .collect();
        asking.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    let stored = turns(&sites[0]);
    assert_eq!(stored, turns(&sites[1]));
    assert_eq!(stored.iter().collect::<HashSet<_>>(), answered.iter().collect());
    let last = stored.last().unwrap();
    let rated =
        sites[1].post("/api/v1/feedback", json!({ "turn_id": last, "rating": "up", "comment": "a\u{0}b" }));
    // The other server may still have the turn on its way to the log.
    assert!([200, 204, 404].contains(&rated.0), "{rated:?}");

    // Without the database there are no conversations, but the book still answers.
    postgres.kill();
    let without = |site: &Site| {
        let (status, readiness) = site.get("/readyz");
        assert_eq!((status, &readiness["sessions"]), (503, &json!("unavailable")), "{readiness}");
        let (status, refused) = ask(site);
        assert!(status >= 500, "{refused}");
        assert!(!refused.to_string().contains(PASSWORD), "{refused}");
        assert_eq!(site.post("/api/v1/ask", json!({ "query": NODE })).0, 200);
    };
    std::thread::scope(|scope| sites.iter().for_each(|site| drop(scope.spawn(|| without(site)))));

    // It comes back, and so do they.
    postgres.restart();
    for site in &sites {
        assert_eq!(site.get("/readyz").0, 200);
        assert_eq!(ask(site).0, 200);
    }
    let after = turns(&sites[0]);
    assert_eq!(after[..12], stored);
    assert_eq!(after.len(), 14);
    for site in &sites {
        assert!(!site.served.said().contains(PASSWORD));
    }
}
