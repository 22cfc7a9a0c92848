//! Several servers with one PostgreSQL database, which is killed in between.

use std::collections::HashSet;

use docent_testkit::postgres::{PASSWORD, Postgres};

use super::*;

#[test]
fn two_servers_share_conversations_and_survive_a_database_crash() {
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
    let (id, key) = sites[0].begin();
    let ask = |site: &Site| {
        let body = json!({ "query": NODE, "session_id": id });
        site.with_key(Method::POST, "/api/v1/ask", Some(body), &key)
    };
    let turns = |site: &Site| -> Vec<String> {
        let (status, session) = site.with_key(Method::GET, &format!("/api/v1/sessions/{id}"), None, &key);
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
    // The other server may not have written the turn to the log yet.
    assert!([200, 204, 404].contains(&rated.0), "{rated:?}");

    // Without the database there are no conversations, but questions are still answered.
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

    // The database comes back, and so do the conversations.
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
