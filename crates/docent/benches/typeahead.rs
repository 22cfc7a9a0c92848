//! Benchmark of search as you type: `cargo bench -p docent --bench typeahead`.
//!
//! Users type the headings of a book letter by letter, every fourth one with a typing error, 20 keystrokes per second
//! each, against the real binary. One user, then 50, each with an address of its own. The server and the users share
//! the machine; the server's CPU time does not depend on what else runs there.
//!
//! The book has 10,000 generated passages; `DOCENT_BENCH_BOOK=FOLDER` uses another one. `DOCENT_BENCH_SECONDS` sets the
//! duration of each round (20), `DOCENT_BENCH_KEYS` the keystrokes per second.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

const PAGES: usize = 500;
const SECTIONS: usize = 20;
/// Few enough that each section is one passage.
const WORDS_OF_SECTION: usize = 50;
const VOCABULARY: usize = 20_000;

/// A sequence of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    /// A frequent word far more often than a rare one, as in a text.
    fn word(&mut self) -> String {
        let share = self.below(1 << 20) as f64 / f64::from(1 << 20);
        spelled((VOCABULARY as f64).powf(share) as usize)
    }
}

/// The word with a number.
fn spelled(mut number: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ta", "ren", "mo", "sil", "ver", "ku", "pan", "dor", "fi", "lex", "gra", "bon", "che", "wi", "tor",
        "nal",
    ];
    let mut word = String::new();
    loop {
        word.push_str(SYLLABLES[number % SYLLABLES.len()]);
        number /= SYLLABLES.len();
        if number == 0 {
            return word + "en";
        }
    }
}

fn write_book(folder: &Path) {
    let mut numbers = Numbers(7);
    for page in 0..PAGES {
        let mut text = format!("# {} {}\n", numbers.word(), numbers.word());
        for _ in 0..SECTIONS {
            write!(text, "\n## {} {} {}\n\n", numbers.word(), numbers.word(), numbers.word()).unwrap();
            for place in 1..=WORDS_OF_SECTION {
                let end = if place % 14 == 0 { ". " } else { " " };
                write!(text, "{}{end}", numbers.word()).unwrap();
            }
            text.push_str(".\n");
        }
        std::fs::write(folder.join(format!("page-{page}.md")), text).unwrap();
    }
}

/// The headings of Markdown files, in a fixed order.
fn headings(folder: &Path) -> Vec<String> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let lines = text.lines().filter(|line| line.starts_with('#'));
                found.extend(lines.map(|line| line.trim_matches(['#', ' ']).to_lowercase()));
            }
        }
    }
    found
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn docent(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).current_dir(home).env_clear().env("DOCENT_DATA_DIR", home);
    command.env("DOCENT_EMBEDDER__KIND", "none").env("RUST_LOG", "error");
    command.env("DOCENT_SERVE__REQUESTS_PER_MINUTE", "0").env("DOCENT_SERVE__CONNECTIONS_PER_ADDRESS", "0");
    command.env("DOCENT_SERVE__TRUST_PROXY", "true");
    command
}

fn serve(home: &Path) -> (Server, String) {
    let mut command = docent(home, &["serve", "--listen", "127.0.0.1:0"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("serving on ")).unwrap();
    std::thread::spawn(move || lines.for_each(drop));
    let url = line.trim_start_matches("serving on ").split('/').take(3).collect::<Vec<_>>().join("/");
    (Server(child), url)
}

/// What is in the box after each keystroke.
fn keystrokes(headings: &[String], numbers: &mut Numbers) -> Vec<String> {
    let mut letters: Vec<char> = headings[numbers.below(headings.len())].chars().collect();
    if letters.len() > 5 && numbers.below(4) == 0 {
        let at = 1 + numbers.below(letters.len() - 2);
        letters.swap(at, at + 1);
    }
    (1..=letters.len().min(40)).map(|end| letters[..end].iter().collect()).collect()
}

/// What users waited for.
#[derive(Default)]
struct Typed {
    /// Milliseconds of each keystroke that was answered.
    times: Vec<f64>,
    /// Number of keystrokes with a result.
    results: usize,
    /// Number of keystrokes that the server refused because it was overloaded.
    refused: usize,
}

/// Lets `users` type at the same time.
async fn type_for(
    url: &str,
    users: usize,
    time: Duration,
    pause: Duration,
    headings: Arc<Vec<String>>,
) -> Typed {
    let client = reqwest::Client::builder().pool_max_idle_per_host(users).build().unwrap();
    let end = Instant::now() + time;
    let typing: Vec<_> = (0..users as u64)
        .map(|user| {
            let (client, url, headings) = (client.clone(), format!("{url}/api/v1/suggest"), headings.clone());
            tokio::spawn(async move {
                let (mut numbers, mut all) = (Numbers(user + 1), Typed::default());
                let address = format!("10.{}.{}.1", user / 250, user % 250);
                tokio::time::sleep(pause.mul_f64(user as f64 / users as f64)).await;
                let mut ticks = tokio::time::interval(pause);
                ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
                while Instant::now() < end {
                    for typed in keystrokes(&headings, &mut numbers) {
                        ticks.tick().await;
                        let begun = Instant::now();
                        let asked = reqwest::Url::parse_with_params(&url, [("q", &typed)]).unwrap();
                        let sent = client.get(asked).header("x-forwarded-for", &address).send();
                        let response = sent.await.unwrap();
                        if response.status() == 503 {
                            all.refused += 1;
                            continue;
                        }
                        assert_eq!(response.status(), 200);
                        let found: Value = response.json().await.unwrap();
                        all.times.push(begun.elapsed().as_secs_f64() * 1000.0);
                        all.results +=
                            usize::from(found["pages"].as_array().is_some_and(|pages| !pages.is_empty()));
                    }
                }
                all
            })
        })
        .collect();
    let mut all = Typed::default();
    for user in typing {
        let its = user.await.unwrap();
        all.times.extend(its.times);
        all.results += its.results;
        all.refused += its.refused;
    }
    all.times.sort_by(f64::total_cmp);
    all
}

/// CPU time that a process has used, in milliseconds; only Linux tells.
fn cpu_time(process: u32) -> Option<f64> {
    const MILLISECONDS_PER_TICK: f64 = 10.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let after_name: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = after_name.get(11..13)?.iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Some(ticks * MILLISECONDS_PER_TICK)
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[tokio::main]
async fn main() {
    let home = tempfile::tempdir().unwrap();
    let book = std::env::var_os("DOCENT_BENCH_BOOK").map(PathBuf::from);
    let book = book.unwrap_or_else(|| {
        let book = home.path().join("book");
        std::fs::create_dir(&book).unwrap();
        write_book(&book);
        book
    });
    let ingest = ["ingest", book.to_str().unwrap(), "--base-url", "https://book.example", "--quiet"];
    assert!(docent(home.path(), &ingest).status().unwrap().success());
    let headings = Arc::new(headings(&book));
    let (server, url) = serve(home.path());
    let status: Value = reqwest::get(format!("{url}/api/v1/status")).await.unwrap().json().await.unwrap();
    let begun = Instant::now();
    reqwest::get(format!("{url}/api/v1/suggest?q=first")).await.unwrap().error_for_status().unwrap();
    println!(
        "{} passages; first keystroke {:.0} ms",
        status["chunks"],
        begun.elapsed().as_secs_f64() * 1000.0
    );
    let time = Duration::from_secs(setting("DOCENT_BENCH_SECONDS", 20));
    let pause = Duration::from_secs(1) / setting("DOCENT_BENCH_KEYS", 20) as u32;
    for users in [1, 50] {
        let (begun, used) = (Instant::now(), cpu_time(server.0.id()));
        let typed = type_for(&url, users, time, pause, headings.clone()).await;
        let (count, times) = (typed.times.len() as f64, &typed.times);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        println!(
            "{users:>3} users: {:.0} keystrokes/s, p50 {:.1} ms, p95 {:.1} ms, slowest {:.1} ms; {:.0} % have results, {} refused",
            count / begun.elapsed().as_secs_f64(),
            at(0.5),
            at(0.95),
            at(1.0),
            typed.results as f64 / count * 100.0,
            typed.refused
        );
        if let (Some(before), Some(after)) = (used, cpu_time(server.0.id())) {
            println!("            {:.2} ms of the server's CPU time per keystroke", (after - before) / count);
        }
    }
}

/// The program to measure: `DOCENT_BENCH_PROGRAM`, such as one built from an earlier commit, or this one.
fn program() -> std::ffi::OsString {
    std::env::var_os("DOCENT_BENCH_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_docent").into())
}
