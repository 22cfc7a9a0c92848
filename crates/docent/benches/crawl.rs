//! Benchmark of ingesting a site: `cargo bench -p docent --bench crawl` (set `DOCENT_BENCH_PAGES=2000` for
//! the number of pages, `DOCENT_BENCH_EMBEDDERS=none,local` for the embedders).
//!
//! The real binary crawls a site of generated pages on this machine, and then again with nothing changed.
//! Unlike a real site, the server here uses part of the same processor.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// Number of links in the navigation of every page.
const LINKS: usize = 120;

#[derive(Default)]
struct Counts {
    requests: AtomicUsize,
    unchanged: AtomicUsize,
    bytes: AtomicUsize,
}

struct Site {
    pages: usize,
    address: String,
    counts: Counts,
}

#[tokio::main]
async fn main() {
    let pages = std::env::var("DOCENT_BENCH_PAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(2000);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let site = Arc::new(Site { pages, address: address.clone(), counts: Counts::default() });
    let router = Router::new().fallback(answer).with_state(site.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });

    let embedders = std::env::var("DOCENT_BENCH_EMBEDDERS").unwrap_or("none,local".to_owned());
    for embedder in embedders.split(',') {
        let folder = tempfile::tempdir().unwrap();
        for turn in ["first", "again"] {
            site.counts.requests.store(0, Ordering::Relaxed);
            site.counts.unchanged.store(0, Ordering::Relaxed);
            site.counts.bytes.store(0, Ordering::Relaxed);
            let (address, folder) = (address.clone(), folder.path().to_owned());
            let kind = embedder.to_owned();
            let run = tokio::task::spawn_blocking(move || ingest(&address, &folder, &kind)).await.unwrap();
            show(&format!("{pages} pages, embedder {embedder}, {turn}"), &run, &site.counts);
        }
    }
}

/// One ingest: its total time, the duration and peak anonymous memory of each step, its report, and the peak
/// resident memory, including mapped files of the index.
struct Run {
    total: Duration,
    steps: Vec<(String, Duration, f64)>,
    report: Value,
    peak: f64,
}

fn ingest(address: &str, folder: &std::path::Path, embedder: &str) -> Run {
    let begun = Instant::now();
    let mut command = Command::new(program());
    command.args(["ingest", &format!("{address}/"), "--allow-private", "--json"]);
    command.env_clear().current_dir(folder).env("DOCENT_DATA_DIR", folder);
    command.env("DOCENT_EMBEDDER__KIND", embedder);
    let mut child = command.stderr(Stdio::inherit()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let listening = std::thread::spawn(move || {
        let event = |line: String| (begun.elapsed(), serde_json::from_str::<Value>(&line).unwrap());
        lines.map(event).collect::<Vec<_>>()
    });
    let (peak, own) = watch(&mut child, begun);
    let total = begun.elapsed();
    let mut events = listening.join().unwrap();
    let (_, report) = events.pop().unwrap();
    let steps = events.iter().filter_map(|(at, event)| Some((event["step"].as_str()?, *at, &event["event"])));
    let marks: Vec<(String, Duration)> =
        steps.filter(|(_, _, event)| *event == "step").map(|(name, at, _)| (name.to_owned(), at)).collect();
    let ends = marks.iter().skip(1).map(|(_, at)| *at).chain([total]);
    let most = |from: Duration, to: Duration| {
        let during = own.iter().filter(|(at, _)| (from..to).contains(at));
        during.map(|(_, megabytes)| *megabytes).fold(0.0, f64::max)
    };
    let steps =
        marks.iter().zip(ends).map(|((name, at), end)| (name.clone(), end - *at, most(*at, end))).collect();
    Run { total, steps, report, peak }
}

/// Waits for the process. Returns the peak resident memory according to the kernel, and samples of its
/// anonymous memory.
fn watch(child: &mut Child, begun: Instant) -> (f64, Vec<(Duration, f64)>) {
    let status = format!("/proc/{}/status", child.id());
    let (mut peak, mut own) = (0.0, Vec::new());
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let megabytes = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
        };
        peak = megabytes("VmHWM:").unwrap_or(peak);
        own.extend(megabytes("RssAnon:").map(|megabytes| (begun.elapsed(), megabytes)));
        std::thread::sleep(Duration::from_millis(5));
    }
    (peak, own)
}

fn show(name: &str, run: &Run, counts: &Counts) {
    let reading = run.steps.first().map_or(run.total, |(_, time, _)| *time).as_secs_f64();
    let megabytes = counts.bytes.load(Ordering::Relaxed) as f64 / 1e6;
    let pages = run.report["pages"].as_object().into_iter().flat_map(|pages| pages.values());
    let pages: u64 = pages.filter_map(Value::as_u64).sum();
    println!("{name}: {:.1} s, {:.0} MB peak", run.total.as_secs_f64(), run.peak);
    println!(
        "  {} requests ({} × 304), {megabytes:.1} MB sent; reading {:.0} pages/s, {:.1} MB/s; {} passages, {} embedded",
        counts.requests.load(Ordering::Relaxed),
        counts.unchanged.load(Ordering::Relaxed),
        pages as f64 / reading,
        megabytes / reading,
        run.report["chunks"],
        run.report["embedded"],
    );
    let step = |(name, time, own): &(String, Duration, f64)| {
        format!("{name} {:.2} s, {own:.0} MB", time.as_secs_f64())
    };
    let steps: Vec<String> = run.steps.iter().map(step).collect();
    println!("  {}", steps.join("; "));
}

async fn answer(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Response {
    let counts = &site.counts;
    counts.requests.fetch_add(1, Ordering::Relaxed);
    let path = uri.path();
    let number = path.strip_prefix("/docs/part").and_then(|rest| rest.split_once("/page"));
    let number = number.and_then(|(_, number)| number.parse::<usize>().ok());
    let (kind, body) = match (path, number) {
        ("/sitemap.xml", _) => ("application/xml", sitemap(&site)),
        ("/", _) => ("text/html", page(0, site.pages)),
        (_, Some(number)) if number < site.pages => ("text/html", page(number, site.pages)),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let tag = format!("\"{path}\"");
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        counts.unchanged.fetch_add(1, Ordering::Relaxed);
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    counts.bytes.fetch_add(body.len(), Ordering::Relaxed);
    ([(header::CONTENT_TYPE, kind.to_owned()), (header::ETAG, tag)], body).into_response()
}

/// The first page is the start page.
fn path(number: usize) -> String {
    if number == 0 { "/".to_owned() } else { format!("/docs/part{}/page{number}", number / 100) }
}

fn sitemap(site: &Site) -> String {
    let mut text = "<?xml version=\"1.0\"?><urlset>".to_owned();
    for number in 0..site.pages {
        let _ = write!(text, "<url><loc>{}{}</loc></url>", site.address, path(number));
    }
    text + "</urlset>"
}

/// The vocabulary; every page uses it in different sentences.
const WORDS: [&str; 96] = [
    "pump",
    "valve",
    "pressure",
    "robot",
    "sensor",
    "signal",
    "motor",
    "gear",
    "oil",
    "filter",
    "arm",
    "joint",
    "camera",
    "frame",
    "message",
    "topic",
    "service",
    "action",
    "node",
    "graph",
    "clock",
    "buffer",
    "thread",
    "queue",
    "packet",
    "network",
    "server",
    "client",
    "driver",
    "kernel",
    "memory",
    "address",
    "table",
    "index",
    "query",
    "record",
    "field",
    "value",
    "type",
    "function",
    "module",
    "package",
    "version",
    "release",
    "test",
    "error",
    "warning",
    "limit",
    "range",
    "speed",
    "torque",
    "force",
    "angle",
    "position",
    "target",
    "path",
    "plan",
    "map",
    "grid",
    "cell",
    "layer",
    "weight",
    "model",
    "sample",
    "batch",
    "gradient",
    "loss",
    "policy",
    "reward",
    "state",
    "voltage",
    "current",
    "battery",
    "charge",
    "cable",
    "bus",
    "port",
    "pin",
    "board",
    "chip",
    "temperature",
    "noise",
    "offset",
    "scale",
    "unit",
    "matrix",
    "vector",
    "axis",
    "rotation",
    "transform",
    "calibration",
    "controller",
    "planner",
    "recorder",
    "monitor",
    "scheduler",
];

const VERBS: [&str; 24] = [
    "reads", "writes", "opens", "closes", "limits", "measures", "sends", "receives", "holds", "replaces",
    "follows", "starts", "stops", "checks", "raises", "lowers", "stores", "drops", "joins", "splits",
    "warns", "delays", "repeats", "returns",
];

/// Pseudo-random numbers, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }

    fn sentence(&mut self) -> String {
        let (first, verb) = (self.word(), VERBS[self.below(VERBS.len())]);
        let number = self.below(10_000);
        let mut text =
            format!("The {first} {verb} the {} of the {} after {number} ms", self.word(), self.word());
        for _ in 0..self.below(3) {
            let _ =
                write!(text, " and {} the {} {}", VERBS[self.below(VERBS.len())], self.word(), self.word());
        }
        text + ". "
    }
}

/// A page as Docusaurus renders it, with about 30 KB and 700 words.
fn page(number: usize, pages: usize) -> String {
    let mut chance = Chance((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let title = format!("{} {} {number}", chance.word(), chance.word());
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} | Manual</title>\
         <meta name=\"generator\" content=\"Docusaurus v3.5.2\"></head><body class=\"docs-wrapper\"><nav class=\"navbar\">\
         <a href=\"/\">Manual</a></nav><aside class=\"theme-doc-sidebar-container\"><ul class=\"menu__list\">"
    );
    for link in 0..LINKS.min(pages) {
        let to = (number + link * 7) % pages;
        let _ = write!(
            page,
            "<li class=\"theme-doc-sidebar-item-link theme-doc-sidebar-item-link-level-1 menu__list-item\">\
             <a class=\"menu__link\" href=\"{}\">Page {to}</a></li>",
            path(to)
        );
    }
    let _ = write!(
        page,
        "</ul></aside><main><article><div class=\"theme-doc-markdown markdown\"><header><h1>{title}</h1></header>"
    );
    for section in 0..6 {
        let heading = format!("The {} {}", chance.word(), chance.word());
        let _ = write!(
            page,
            "<h2 class=\"anchor anchorWithStickyNavbar_LWe7\" id=\"s{section}\">{heading}<a href=\"#s{section}\" \
             class=\"hash-link\" title=\"Direct link\">\u{200b}</a></h2>"
        );
        for _ in 0..2 {
            let _ = write!(
                page,
                "<p>{}<strong>{}</strong>{}</p>",
                chance.sentence(),
                chance.word(),
                chance.sentence()
            );
        }
        page.push_str(
            "<pre class=\"prism-code language-python codeBlock_bY9V\"><code class=\"codeBlockLines_e6Vv\">",
        );
        for _ in 0..4 {
            let _ = write!(
                page,
                "<span class=\"token-line\" style=\"color:#393A34\"><span class=\"token keyword\" \
                 style=\"color:#00009f\">def</span> <span class=\"token function\">{}_{}</span>(<span>{}</span>)<br></span>",
                chance.word(),
                chance.below(1000),
                chance.word()
            );
        }
        page.push_str("</code></pre><ul>");
        for _ in 0..3 {
            let _ = write!(page, "<li><code>{}</code>: {}</li>", chance.word(), chance.sentence());
        }
        page.push_str("</ul>");
    }
    page + "</div></article></main><footer class=\"footer\">All rights reserved</footer></body></html>"
}

/// The program to measure: `DOCENT_BENCH_PROGRAM`, such as one built from an earlier commit, or this one.
fn program() -> std::ffi::OsString {
    std::env::var_os("DOCENT_BENCH_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_docent").into())
}
