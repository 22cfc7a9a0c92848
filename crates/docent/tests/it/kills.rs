//! The process is killed (SIGKILL) at random moments, many times in a row, without cleaning up in between.
//!
//! `crash.rs` covers every fail-point once; this test looks for problems that nobody thought of. It takes
//! minutes, so it is not part of the usual run: `DOCENT_TEST_KILLS=1000 cargo nextest run --run-ignored only
//! -E 'test(kills::)' --no-capture`.
//!
//! Invariant: everything acknowledged is still there, and the next start works.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::http::Site;
use crate::support::Docent;

/// The number of processes to kill: `DOCENT_TEST_KILLS`, or 100.
fn kills() -> u64 {
    std::env::var("DOCENT_TEST_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(100)
}

/// A moment between zero and `most`, spread evenly by the golden ratio; the same in every run.
fn moment(kill: u64, most: Duration) -> Duration {
    most.mul_f64((kill as f64 * 0.618_033_988_75).fract())
}

/// Starts a command and kills it after a while. Returns its output and whether it was killed before it ended.
fn killed(mut command: Command, after: Duration) -> (String, bool) {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(after);
    let _ = Command::new("kill").args(["-KILL", &child.id().to_string()]).status();
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code().is_none())
}

fn time(mut command: Command) -> Duration {
    let begun = Instant::now();
    assert!(command.output().unwrap().status.success());
    begun.elapsed()
}

#[test]
#[ignore = "kills an ingest many times: minutes"]
fn an_ingest_can_be_killed_at_any_moment() {
    let docent = Docent::without_vectors();
    let page = |revision: u64, number: u64| {
        let text = format!("Revision {revision} of page {number} is about nodes and topics. ").repeat(20);
        docent.write(&format!("book/p{number}.md"), &format!("# Page {number}\n\n{text}\n"));
    };
    (0..40).for_each(|number| page(0, number));
    docent.ok(&["ingest", "book"]);
    (0..40).for_each(|number| page(1, number));
    let whole = time(docent.command(&["ingest"]));
    let (mut killed_in_time, count) = (0, kills());
    for kill in 0..count {
        (0..40).for_each(|number| page(kill + 2, number));
        let (_, was_killed) = killed(docent.command(&["ingest"]), moment(kill, whole));
        killed_in_time += u64::from(was_killed);
        let found = docent.json(&["search", "nodes and topics", "--top-k", "40"]);
        let texts: Vec<&str> = found["chunks"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|chunk| chunk["content"].as_str())
            .collect();
        assert!(!texts.is_empty(), "kill {kill}: nothing was found");
        let revision = |text: &str| text.split_whitespace().nth(1).map(str::to_owned);
        assert!(
            texts.iter().all(|text| revision(text) == revision(texts[0])),
            "kill {kill}: pages of two revisions are mixed: {texts:?}"
        );
    }
    docent.ok(&["ingest"]);
    assert_eq!(docent.json(&["status"])["pages"], 40);
    assert!(!docent.index().join("building").exists());
    eprintln!("{killed_in_time} of {count} ingests were killed before they ended");
    assert!(killed_in_time > count / 2, "only {killed_in_time} were killed in time");
}

#[test]
#[ignore = "kills a turn many times: minutes"]
fn a_turn_can_be_killed_at_any_moment() {
    let docent = Docent::without_vectors();
    docent.write("book/a.md", "# Nodes\n\nA node is a participant in the graph.\n");
    docent.ok(&["ingest", "book"]);
    let begun = docent.json(&["ask", "What is a node?", "--session", "new"]);
    let id = begun["session_id"].as_str().unwrap();
    let ask = || docent.command(&["ask", "What is a node?", "--session", id, "--json", "--no-stream"]);
    let whole = time(ask());
    let (mut stored, mut killed_in_time, count) = (2, 0, kills());
    for kill in 0..count {
        let (printed, was_killed) = killed(ask(), moment(kill, whole.mul_f64(1.1)));
        killed_in_time += u64::from(was_killed);
        let answered = serde_json::from_str::<serde_json::Value>(&printed).is_ok();
        let turns = docent.json(&["sessions", "show", id])["turn_count"].as_u64().unwrap();
        assert!(turns == stored || turns == stored + 1, "kill {kill}: {turns} turns after {stored}");
        assert!(!answered || turns == stored + 1, "kill {kill}: an answer was shown and not stored");
        stored = turns;
    }
    docent.json(&["ask", "What is a node?", "--session", id]);
    assert_eq!(docent.json(&["sessions", "show", id])["turn_count"], stored + 1);
    eprintln!("{killed_in_time} of {count} turns were killed before they ended");
    assert!(killed_in_time > count / 2, "only {killed_in_time} were killed in time");
}

#[test]
#[ignore = "kills a server many times: minutes"]
fn a_server_can_be_killed_at_any_moment() {
    let docent = Docent::without_vectors()
        .with("DOCENT_READER__KIND", "none")
        .with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "0");
    docent.write("book/a.md", "# Nodes\n\nA node is a participant in the graph.\n");
    docent.ok(&["ingest", "book"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut answered, count) = (Vec::new(), kills());
    for kill in 0..count {
        let served = docent.serve();
        let url = format!("{}/api/v1/ask", served.url);
        let asking: Vec<_> = (0..4)
            .map(|_| {
                let url = url.clone();
                runtime.spawn(async move {
                    let (client, mut answered) = (reqwest::Client::new(), Vec::new());
                    loop {
                        let asked =
                            client.post(&url).json(&json!({ "query": "What is a node?" })).send().await;
                        let Ok(response) = asked else { return answered };
                        let Ok(body) = response.json::<serde_json::Value>().await else { return answered };
                        answered.push(body["turn_id"].clone());
                    }
                })
            })
            .collect();
        std::thread::sleep(moment(kill, Duration::from_millis(400)));
        // Dropping the server kills it with SIGKILL.
        drop(served);
        answered.extend(asking.into_iter().flat_map(|asking| runtime.block_on(asking).unwrap()));
    }
    // Only a logged turn can be rated.
    let site = Site::new(&docent);
    for turn in &answered {
        let rated = site.post("/api/v1/feedback", json!({ "turn_id": turn, "rating": "up" }));
        assert_eq!(rated.0, 204, "{turn} was answered and not logged: {rated:?}");
    }
    eprintln!("{} turns were answered by {count} servers before they were killed", answered.len());
    assert!(!answered.is_empty());
}
