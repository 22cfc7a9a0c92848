//! Keeping a book up to date: by watching its files, and on a schedule.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Docent;

fn book() -> Docent {
    let docent = Docent::new();
    docent.write(
        "book/valves.md",
        "# Valves\n\nA valve opens at three bar.\n\n## Closing\n\nIt closes at two bar.\n",
    );
    docent.write("book/pumps.md", "# Pumps\n\nA pump moves water.\n");
    docent
}

/// A running `ingest --watch`; killed when dropped.
struct Watching {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Watching {
    fn start(docent: &Docent, arguments: &[&str]) -> Self {
        let mut command = docent.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The lines up to the end of a run.
    fn run(&mut self) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        while events.last().is_none_or(|event| event["event"] != "done") {
            let line = self.lines.next().expect("it ended").unwrap();
            events.push(serde_json::from_str(&line).unwrap());
        }
        events
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn json_output_reports_the_progress_of_an_ingest() {
    let docent = book();
    let stdout = docent.ok(&["ingest", "book", "--json"]);
    let events: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names =
        |name: &str| -> Vec<&Value> { events.iter().filter(|event| event["event"] == name).collect() };
    let steps: Vec<_> = names("step").iter().map(|event| event["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["reading", "chunking", "embedding", "building"]);
    let passages = names("passages");
    let last = passages.iter().rfind(|event| event["step"] == "embedding").unwrap();
    assert_eq!((&last["done"], &last["total"]), (&3.into(), &3.into()));
    let done = events.last().unwrap();
    assert_eq!(
        (&done["event"], &done["chunks"], &done["published"]),
        (&"done".into(), &3.into(), &true.into())
    );
    let cost = (done["seconds"].as_f64().unwrap(), done["embedded_tokens"].as_u64().unwrap());
    assert!(cost.0 > 0.0 && cost.1 > 10, "{done}");
    let timed: Vec<_> =
        done["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(timed, steps);
}

#[cfg(unix)]
#[test]
fn a_watched_folder_is_reingested_when_a_file_changes() {
    let docent = book();
    let mut watching = Watching::start(&docent, &["ingest", "book", "--watch", "--json"]);
    let first = watching.run();
    assert_eq!(first.last().unwrap()["pages"]["added"], 2);

    docent.write(
        "book/valves.md",
        "# Valves\n\nA valve opens at three bar.\n\n## Closing\n\nIt closes at one bar.\n",
    );
    let second = watching.run();
    let done = second.last().unwrap();
    assert_eq!((&done["generation"], &done["embedded"]), (&"g000002".into(), &1.into()));
    assert_eq!(done["changed"], serde_json::json!([{"page": "valves.md", "change": "changed"}]));

    // A new folder is watched too.
    docent.write("book/more/hoses.md", "# Hoses\n\nA hose bends.\n");
    let mut added = watching.run();
    while added.last().unwrap()["pages"]["added"] != 1 {
        added = watching.run();
    }
    assert_eq!(docent.json(&["search", "hose bends", "--top-k", "1"])["chunks"][0]["page_title"], "Hoses");

    Command::new("kill").args(["-INT", &watching.child.id().to_string()]).status().unwrap();
    assert!(watching.child.wait().unwrap().success());
}

#[test]
fn a_site_cannot_be_watched() {
    let docent = Docent::without_vectors();
    docent.fails(
        &["ingest", "https://example.org/docs/", "--watch"],
        2,
        "error: --watch only works for folders and files, but all sources are sites\n\
         hint: use `docent serve --every 6h` to ingest sites again regularly",
    );
}

/// Waits for a line of a server's output.
fn wait_for(said: impl Fn() -> String, line: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    while !said().contains(line) {
        assert!(Instant::now() < end, "{line} did not come: {}", said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_ingests_before_it_starts_and_then_on_schedule() {
    let docent = book();
    docent.write("docent.toml", "[[sources]]\nlocation = \"book\"\n\n[serve]\nevery = \"1s\"\n");
    let served = docent.serve();
    let said = served.said();
    assert!(said.contains("no index yet; ingesting before the server starts\n"), "{said}");
    assert!(said.contains("pages    2 added"), "{said}");
    assert!(!said.contains("sample book"), "{said}");

    docent.write("book/pumps.md", "# Pumps\n\nA pump moves water uphill.\n");
    wait_for(
        || served.said(),
        "refreshed: published g000002: 0 pages added, 1 changed, 0 removed; 1 passages embedded",
    );
    let found = docent.json(&["search", "uphill", "--top-k", "1"]);
    assert_eq!(found["chunks"][0]["content"], "A pump moves water uphill.");

    // A missing source leaves the current index unchanged and is reported.
    std::fs::rename(docent.home.path().join("book"), docent.home.path().join("away")).unwrap();
    wait_for(|| served.said(), "warning: the book could not be refreshed: ");
    std::fs::rename(docent.home.path().join("away"), docent.home.path().join("book")).unwrap();
    docent.write("book/pumps.md", "# Pumps\n\nA pump moves oil.\n");
    wait_for(|| served.said(), "refreshed: published g000003");
}

#[test]
fn invalid_intervals_are_rejected() {
    let docent = Docent::without_vectors();
    let run = docent.run(&["serve", "--every", "often"]);
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("invalid interval `often`; use a number and a unit"), "{}", run.stderr);
    docent.write("docent.toml", "[serve]\nevery = \"6\"\n");
    docent.fails(
        &["status"],
        3,
        "error: serve.every: invalid interval `6`; use a number and a unit, such as 90s, 30m, 6h or 1d",
    );
}
