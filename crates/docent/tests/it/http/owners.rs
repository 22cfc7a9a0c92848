//! Who owns a conversation, which keys have admin rights, and which host names the server accepts.

use std::time::{Duration, Instant};

use docent_testkit::scripted_model::Reply;
use reqwest::Method;
use serde_json::{Value, json};

use super::{NODE, Site};
use crate::model::Model;
use crate::support::Docent;

const KEY: &str = "x-docent-session-key";

/// A key for users, one for the operator, and the settings with both.
pub fn keys(docent: &Docent) -> (String, String) {
    let make = |arguments: &[&str]| {
        let run = docent.run(arguments);
        (run.stdout.trim().to_owned(), run.stderr.split_once("[[serve.keys]]").unwrap().1.to_owned())
    };
    let (user, first) = make(&["key", "site"]);
    let (admin, second) = make(&["key", "operator", "--admin"]);
    docent.write("docent.toml", &format!("[[serve.keys]]{first}\n[[serve.keys]]{second}"));
    (format!("Bearer {user}"), format!("Bearer {admin}"))
}

#[test]
fn a_conversation_belongs_to_the_client_that_started_it() {
    let docent = Docent::without_vectors();
    let site = Site::new(&docent);
    let (id, key) = site.begin();
    let (_, other) = site.begin();
    assert_ne!(key, other);
    let path = format!("/api/v1/sessions/{id}");
    let asked = json!({ "query": NODE, "session_id": id });
    let title = json!({ "title": "Mine" });
    let uses = [
        (Method::POST, "/api/v1/ask".to_owned(), Some(asked.clone())),
        (
            Method::POST,
            "/api/v1/ask".to_owned(),
            Some(json!({ "query": NODE, "session_id": id, "stream": true })),
        ),
        (Method::GET, path.clone(), None),
        (Method::GET, format!("{path}/export"), None),
        (Method::PATCH, path.clone(), Some(title.clone())),
        (Method::POST, format!("{path}/reset"), None),
        (Method::POST, format!("{path}/share"), None),
        (Method::DELETE, format!("{path}/share"), None),
        (Method::DELETE, path.clone(), None),
    ];
    // The id alone, another conversation's key and random text do not open it; each looks like an unknown id.
    let long = "x".repeat(4000);
    let wrong: [&[(&str, &str)]; 6] =
        [&[], &[(KEY, "")], &[(KEY, &other)], &[(KEY, &id)], &[(KEY, &long)], &[(KEY, "Schlüssel-\u{7f}")]];
    for (method, path, body) in &uses {
        for headers in wrong {
            let mut request = site.client.request(method.clone(), format!("{}{path}", site.served.url));
            for (name, value) in headers {
                let Ok(value) =
                    reqwest::header::HeaderValue::from_bytes(value.replace('\u{7f}', "").as_bytes())
                else {
                    continue;
                };
                request = request.header(*name, value);
            }
            if let Some(body) = body {
                request = request.json(body);
            }
            let response = site.runtime.block_on(request.send()).unwrap();
            site.fails(response, 404, "not_found", &format!("no session {id}"));
        }
    }
    assert_eq!(site.ask_in((&id, &key), NODE)["session_id"], json!(id));
    assert_eq!(site.with_key(Method::GET, &path, None, &key).1["turn_count"], 1);

    // The command line has direct access to the store, and neither the store nor the log contains the secret.
    assert_eq!(docent.json(&["sessions", "show", &id])["turn_count"], 1);
    for file in std::fs::read_dir(docent.home.path().join("data")).unwrap().flatten() {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()), "{:?}", file.path());
    }
    assert!(!site.served.said().contains(&key));
}

#[test]
fn a_conversation_can_be_shared_read_only_and_unshared() {
    let site = Site::of(Docent::without_vectors());
    let (id, key) = site.begin();
    site.ask_in((&id, &key), NODE);
    let path = format!("/api/v1/sessions/{id}");
    let share = || {
        let (status, shared) = site.with_key(Method::POST, &format!("{path}/share"), None, &key);
        assert_eq!(status, 200, "{shared}");
        shared["share_key"].as_str().unwrap().to_owned()
    };
    let first = share();
    let (status, shown) = site.with_key(Method::GET, &path, None, &first);
    assert_eq!((status, &shown["read_only"], &shown["turn_count"]), (200, &json!(true), &json!(1)));
    assert_eq!(site.with_key(Method::GET, &format!("{path}/export"), None, &first).0, 200);
    for (method, path, body) in [
        (Method::POST, "/api/v1/ask".to_owned(), Some(json!({ "query": NODE, "session_id": id }))),
        (Method::PATCH, path.clone(), Some(json!({ "title": "Mine" }))),
        (Method::POST, format!("{path}/reset"), None),
        (Method::POST, format!("{path}/share"), None),
        (Method::DELETE, format!("{path}/share"), None),
        (Method::DELETE, path.clone(), None),
    ] {
        let response = site.send(method, &path, body, &[(KEY, &first)]);
        site.fails(response, 403, "forbidden", "read-only");
    }
    // A new sharing key replaces the first, and both end when sharing does.
    let second = share();
    let status = |key: &str| site.with_key(Method::GET, &path, None, key).0;
    assert_eq!((status(&first), status(&second), status(&key)), (404, 200, 200));
    assert_eq!(site.with_key(Method::DELETE, &format!("{path}/share"), None, &key).0, 204);
    assert_eq!((status(&second), status(&key)), (404, 200));
}

#[test]
fn command_line_conversations_are_not_available_over_http() {
    let docent = Docent::without_vectors();
    let typed = docent.json(&["ask", NODE, "--session", "new"]);
    let id = typed["session_id"].as_str().unwrap();
    let site = Site::new(&docent);
    for headers in [&[][..], &[(KEY, "")], &[(KEY, id)]] {
        let response = site.send(Method::GET, &format!("/api/v1/sessions/{id}"), None, headers);
        site.fails(response, 404, "not_found", "no session");
    }
}

#[test]
fn admin_routes_require_a_key() {
    let site = Site::of(Docent::without_vectors());
    for headers in [&[][..], &[("x-forwarded-for", "127.0.0.1")], &[("authorization", "Bearer x")]] {
        for path in ["/api/v1/sessions", "/metrics"] {
            let response = site.send(Method::GET, path, None, headers);
            site.fails(response, 401, "unauthorized", "admin rights");
        }
    }
}

#[test]
fn admin_routes_reject_user_keys_and_other_origins() {
    let docent =
        Docent::without_vectors().with("DOCENT_SERVE__CORS_ORIGINS", "[\"https://docs.example.org\"]");
    let (user, admin) = keys(&docent);
    let site = Site::new(&docent);
    let begun = site.read(site.send(Method::POST, "/api/v1/sessions", None, &[("authorization", &user)])).1;
    let path = format!("/api/v1/sessions/{}", begun["session_id"].as_str().unwrap());
    let get = |path: &str, headers: &[(&str, &str)]| site.send(Method::GET, path, None, headers);
    assert_eq!(get("/api/v1/sessions", &[("authorization", &admin)]).status(), 200);
    assert_eq!(get(&path, &[("authorization", &admin)]).status(), 200);
    // The key that all users share does not open anyone's conversation.
    site.fails(get(&path, &[("authorization", &user)]), 404, "not_found", "no session");
    let elsewhere = [("authorization", admin.as_str()), ("origin", "https://docs.example.org")];
    for admins in ["/api/v1/sessions", "/metrics"] {
        site.fails(get(admins, &elsewhere), 403, "forbidden", "other sites");
    }
    site.fails(get(&path, &elsewhere), 404, "not_found", "no session");
    assert_eq!(get("/api/v1/status", &[("authorization", &user), elsewhere[1]]).status(), 200);
}

#[test]
fn a_public_server_can_have_admin_keys() {
    let docent = Docent::without_vectors().with("DOCENT_SERVE__PUBLIC", "true");
    let (_, admin) = keys(&docent);
    let site = Site::new(&docent);
    let get = |path: &str, headers: &[(&str, &str)]| site.send(Method::GET, path, None, headers).status();
    assert_eq!(
        (get("/api/v1/status", &[]), get("/metrics", &[])),
        (200.try_into().unwrap(), 401.try_into().unwrap())
    );
    assert_eq!(get("/metrics", &[("authorization", &admin)]), 200);
    assert_eq!(get("/api/v1/status", &[("authorization", "Bearer wrong")]), 401, "a wrong key is rejected");
}

#[test]
fn unknown_host_names_are_rejected() {
    let docent = Docent::without_vectors()
        .with("DOCENT_SERVE__PUBLIC_URL", "https://docent.example.org/book")
        .with("DOCENT_SERVE__HOSTS", "[\"docent.internal\"]")
        .with("DOCENT_SERVE__CORS_ORIGINS", "[\"https://docs.example.org\"]");
    let site = Site::new(&docent);
    let get = |path: &str, headers: &[(&str, &str)]| site.send(Method::GET, path, None, headers);
    for path in ["/api/v1/status", "/api/v1/sessions", "/", "/read/x.md", "/openapi.json"] {
        site.fails(get(path, &[("host", "evil.example")]), 403, "forbidden", "Host not allowed");
    }
    assert_eq!(
        get("/v1/models", &[("host", "evil.example")]).status(),
        403,
        "in the shape of OpenAI's errors"
    );
    site.fails(
        site.send(Method::POST, "/api/v1/sessions", None, &[("host", "evil.example:8080")]),
        403,
        "forbidden",
        "Host not allowed",
    );
    for host in ["docent.example.org", "DOCENT.internal:8080", "localhost", "127.0.0.1", "[::1]:80"] {
        assert_eq!(get("/api/v1/status", &[("host", host)]).status(), 200, "{host}");
    }
    // Health probes may use any host name.
    for path in ["/healthz", "/readyz"] {
        assert_eq!(get(path, &[("host", "10-0-0-7.pods.example")]).status(), 200);
    }
    let post = |origin: &str| site.send(Method::POST, "/api/v1/sessions", None, &[("origin", origin)]);
    for origin in ["https://evil.example", "http://localhost:1", "null", "nonsense"] {
        site.fails(post(origin), 403, "forbidden", "Origin not allowed");
    }
    for origin in ["https://docs.example.org", "https://docent.example.org", site.served.url.as_str()] {
        assert_eq!(post(origin).status(), 201, "{origin}");
    }
}

#[test]
fn a_long_conversation_is_paginated() {
    let site = Site::of(Docent::without_vectors().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "0"));
    let (id, key) = site.begin();
    for _ in 0..7 {
        site.ask_in((&id, &key), "Zyxwv?");
    }
    let page = |rest: &str| site.with_key(Method::GET, &format!("/api/v1/sessions/{id}?{rest}"), None, &key);
    let ids = |shown: &Value| -> Vec<String> {
        let turns = shown["turns"].as_array().unwrap();
        turns.iter().map(|turn| turn["turn_id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids(&page("").1);
    assert_eq!(all.len(), 7);
    let (mut before, mut collected) = (String::new(), Vec::new());
    loop {
        let (status, shown) = page(&format!("limit=3{before}"));
        assert_eq!((status, &shown["turn_count"]), (200, &json!(7)));
        collected.splice(0..0, ids(&shown));
        let Some(earlier) = shown["earlier"].as_u64() else { break };
        before = format!("&before={earlier}");
    }
    assert_eq!(collected, all);
    assert_eq!(page("before=1").1["turns"], json!([]));
    assert_eq!(ids(&page("before=4294967295&limit=1").1), all[6..]);
    for wrong in ["limit=0", "limit=101", "before=0", "before=-1", "before=x", "limit=99999999999999999999"] {
        assert_eq!(page(wrong).0, 400, "{wrong}");
    }
}

#[test]
fn an_export_longer_than_a_page_is_complete() {
    let docent = Docent::without_vectors().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "0");
    let site = Site::new(&docent);
    let (id, key) = site.begin();
    for number in 0..103 {
        site.ask_in((&id, &key), &format!("Zyxwv {number}?"));
    }
    let path = format!("/api/v1/sessions/{id}/export");
    let (_, exported) = site.with_key(Method::GET, &format!("{path}?format=json"), None, &key);
    let shown = docent.json(&["sessions", "export", &id]);
    assert_eq!(shown["turns"].as_array().unwrap().len(), 103);
    assert_eq!(exported, shown);
    let (_, markdown) = site.with_key(Method::GET, &path, None, &key);
    assert_eq!(markdown.as_str().unwrap().trim_end(), docent.ok(&["sessions", "export", &id]).trim_end());
}

#[test]
fn a_key_can_be_exchanged_for_a_read_only_cookie() {
    let docent = Docent::new();
    let (user, _) = keys(&docent);
    let site = Site::new(&docent);
    let bearer = [("authorization", user.as_str())];
    let (_, answer) =
        site.read(site.send(Method::POST, "/api/v1/ask", Some(json!({ "query": NODE })), &bearer));
    let url = answer["citations"][0]["url"].as_str().unwrap();
    let page = url.strip_prefix(&site.served.url).unwrap().split('#').next().unwrap();
    assert!(page.starts_with("/read/"), "{page}");
    site.fails(site.send(Method::GET, page, None, &[]), 401, "unauthorized", "key is required");

    let refused = site.send(Method::POST, "/api/v1/pass", None, &[("authorization", "Bearer wrong")]);
    assert!(!refused.headers().contains_key("set-cookie"));
    site.fails(refused, 401, "unauthorized", "Invalid API key");
    let given = site.send(Method::POST, "/api/v1/pass", None, &bearer);
    assert_eq!(given.status(), 204);
    let cookie = given.headers()["set-cookie"].to_str().unwrap().to_owned();
    for part in ["; Path=/read;", "; HttpOnly", "; SameSite=Lax"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let pass = [("cookie", cookie.split(';').next().unwrap())];
    assert_eq!(site.send(Method::GET, page, None, &pass).status(), 200);
    // The cookie gives access to nothing else, and another server with the same keys accepts it.
    site.fails(site.send(Method::GET, "/api/v1/status", None, &pass), 401, "unauthorized", "key is required");
    assert_eq!(Site::new(&docent).send(Method::GET, page, None, &pass).status(), 200);
    for forged in ["docent_read=", "docent_read=9999999999.00", "docent_read=\"x\""] {
        let response = site.send(Method::GET, page, None, &[("cookie", forged)]);
        site.fails(response, 401, "unauthorized", "key is required");
    }
}

#[test]
fn a_stopped_turn_keeps_its_text_so_far() {
    let said = "A node is a participant in the ROS 2 graph [1]. And";
    let model = Model::start(vec![Reply::Stall { after: said.to_owned() }]);
    let site = Site::of(model.serve(Docent::new()));
    let (id, key) = site.begin();
    let body = json!({ "query": NODE, "session_id": id, "stream": true });
    let request = site.client.post(format!("{}/api/v1/ask", site.served.url)).header(KEY, &key).json(&body);
    site.runtime.block_on(async {
        let mut response = request.send().await.unwrap();
        let mut heard = String::new();
        while !heard.contains("event: sentence") {
            heard.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()));
        }
    });
    // Dropping the response closes the connection, which the server notices.
    let path = format!("/api/v1/sessions/{id}");
    let deadline = Instant::now() + Duration::from_secs(30);
    let turn = loop {
        let (_, shown) = site.with_key(Method::GET, &path, None, &key);
        if let Some(turn) = shown["turns"].as_array().and_then(|turns| turns.first()) {
            assert_eq!((shown["turn_count"].as_u64(), shown["title"].as_str()), (Some(1), Some(NODE)));
            break turn.clone();
        }
        assert!(Instant::now() < deadline, "the stopped turn was never stored");
    };
    let response = &turn["response"];
    assert_eq!((&turn["query"], &response["kind"]), (&json!(NODE), &json!("stopped")));
    assert_eq!(response["sentences"].as_array().unwrap().len(), 1, "{response}");
    assert!(response["answer"].as_str().unwrap().starts_with("A node is a participant"), "{response}");
    assert_eq!(response["grounded"], json!(!response["citations"].as_array().unwrap().is_empty()));
    let (_, markdown) = site.with_key(Method::GET, &format!("{path}/export"), None, &key);
    assert!(markdown.as_str().unwrap().contains("(stopped before the end)"), "{markdown}");
}
