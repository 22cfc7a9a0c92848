//! Malicious sites: the crawl ends in bounded time and memory and reports why.

use docent_testkit::ScriptedSite;
use docent_testkit::scripted_site::{Answer, Visit};

use super::{docent, page, skipped, urls};
use crate::support::{Docent, Run, last_object};

/// A valid start page with one link, and a script for the rest.
fn site(script: impl Fn(&Visit) -> Answer + Send + Sync + 'static) -> ScriptedSite {
    ScriptedSite::start(move |visit| match visit.path.as_str() {
        "/" => page("Start", "<p>Welcome to the plant.</p>", &["/x"]),
        "/robots.txt" | "/llms.txt" | "/llms-full.txt" | "/sitemap.xml" | "/sitemap_index.xml" => {
            Answer::status(404)
        }
        _ => script(visit),
    })
    .unwrap()
}

/// Ingests and expects only the start page, and this reason for the other page.
fn check(docent: &Docent, site: &ScriptedSite, reason: &str) {
    let report = docent.json(&["ingest", &site.url(), "--allow-private"]);
    assert_eq!(urls(docent, &site.url()), ["/"]);
    assert_eq!(skipped(&report).keys().collect::<Vec<_>>(), [reason]);
}

fn fails(docent: &Docent, site: &ScriptedSite, status: i32) -> Run {
    let run = docent.run(&["ingest", &site.url(), "--allow-private"]);
    assert_eq!(run.status, status, "{}", run.stderr);
    run
}

/// Memory limit for a crawl of a few pages, whatever they send.
const MOST_MEGABYTES: u64 = 400;

/// The same, and checks that memory stays within the limit.
fn check_memory(docent: &Docent, site: &ScriptedSite, reason: &str) {
    let (run, peak) = docent.run_watched(&["ingest", &site.url(), "--allow-private", "--json"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let report = last_object(&run.stdout);
    assert_eq!(skipped(&report).keys().collect::<Vec<_>>(), [reason]);
    assert!((1..MOST_MEGABYTES).contains(&peak), "{peak} MB");
}

#[test]
fn endless_redirects_are_not_followed() {
    let longer = site(|visit| Answer::redirect(format!("{}x", visit.path)));
    check(&docent(), &longer, "too many redirects");
    let circle = site(|visit| Answer::redirect(if visit.path == "/x" { "/y" } else { "/x" }));
    check(&docent(), &circle, "too many redirects");
}

#[test]
fn endless_links_are_bounded() {
    let site = site(|visit| {
        page(
            "Deeper",
            &format!("<p>You are at {}.</p>", visit.path),
            &[&format!("{}y", visit.path), "again/again/again/again"],
        )
    });
    let docent = docent();
    let report = docent.json(&["ingest", &site.url(), "--allow-private", "--max-pages", "30"]);
    assert_eq!(report["sites"][0]["more"], true);
    assert_eq!(urls(&docent, &site.url()).len(), 30);
    docent.json(&["ingest", &site.url(), "--allow-private", "--max-depth", "5"]);
    assert!(urls(&docent, &site.url()).len() < 12);
}

#[test]
fn endless_bodies_and_compression_bombs_are_rejected() {
    use std::io::Write as _;
    let gigabyte = site(|_| Answer::Repeat {
        piece: vec![b'a'; 1 << 20],
        times: 1024,
        headers: vec![("content-type".into(), "text/html".into())],
    });
    check_memory(&docent(), &gigabyte, "too large");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![b' '; 1 << 20];
    (0..1024).for_each(|_| packer.write_all(&zeros).unwrap());
    let bomb = packer.finish().unwrap();
    let list = bomb.clone();
    let packed = site(move |_| Answer::of("text/html", bomb.clone()).with("content-encoding", "gzip"));
    check_memory(&docent(), &packed, "too large");

    let listed = ScriptedSite::start(move |visit| match visit.path.as_str() {
        "/" => page("Start", "<p>Welcome.</p>", &[]),
        "/robots.txt" => Answer::of("text/plain", "Sitemap: /sitemap.xml.gz"),
        "/sitemap.xml.gz" => Answer::of("application/gzip", list.clone()),
        _ => Answer::status(404),
    })
    .unwrap();
    let (run, peak) = docent().run_watched(&["ingest", &listed.url(), "--allow-private"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!((1..MOST_MEGABYTES).contains(&peak), "{peak} MB");
}

#[test]
fn pages_whose_markup_grows_without_limit_are_cut_off() {
    let bold: String = (0..1000).map(|number| format!("<b id={number}>")).collect();
    let bomb = format!("<article><p>First words.</p><p>{bold}</p>{}", "<p>x".repeat(500_000));
    let site = site(move |_| Answer::html(bomb.clone()));
    let docent = docent();
    let (run, peak) = docent.run_watched(&["ingest", &site.url(), "--allow-private"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stderr.contains("only the beginning was read"), "{}", run.stderr);
    assert!((1..1000).contains(&peak), "{peak} MB");
    assert_eq!(urls(&docent, &site.url()).len(), 2);
}

#[test]
fn many_links_on_many_pages_are_bounded() {
    // Each page links to two thousand others that no other page links to.
    let site = site(|visit| {
        let links: Vec<String> = (0..2000).map(|link| format!("{}-{link}", visit.path)).collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        page("Many", &format!("<p>You are at {}.</p>", visit.path), &links)
    });
    let docent = docent();
    let report = docent.json(&["ingest", &site.url(), "--allow-private", "--max-pages", "60"]);
    assert_eq!((&report["sites"][0]["more"], &report["pages"]["added"]), (&true.into(), &60.into()));
    let visits = site.visits();
    let asked = visits.iter().filter(|visit| visit.path.starts_with("/x")).count();
    assert_eq!(asked, 59, "{asked}");
}

#[test]
fn slow_and_interrupted_responses_are_skipped() {
    let drip = site(|_| Answer::Drip);
    let hasty = docent().with("DOCENT_SITE__TIMEOUT", "0.4").with("DOCENT_SITE__ATTEMPTS", "2");
    check(&hasty, &drip, "failed at the server");
    check(&docent(), &site(|_| Answer::HangUp), "failed at the server");
}

#[test]
fn deeply_nested_pages_and_invalid_bytes_are_read() {
    let deep = site(|_| Answer::html("<div>".repeat(100_000) + "deep words"));
    let docent = docent();
    docent.ok(&["ingest", &deep.url(), "--allow-private"]);
    assert_eq!(urls(&docent, &deep.url()).len(), 2);
    let noise: Vec<u8> =
        (0..200_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for charset in ["utf-8", "utf-16", "shift_jis", "iso-2022-jp", "gb18030", "nonsense"] {
        let noise = noise.clone();
        let broken = site(move |_| Answer::of(&format!("text/html; charset={charset}"), noise.clone()));
        docent.ok(&["ingest", &broken.url(), "--allow-private"]);
    }
}

#[test]
fn robots_txt_that_forbids_everything_is_an_error() {
    let site = ScriptedSite::start(|visit| match visit.path.as_str() {
        "/robots.txt" => Answer::of("text/plain", "User-agent: *\nDisallow: /\n"),
        _ => Answer::html("<p>secret</p>"),
    })
    .unwrap();
    let run = fails(&docent(), &site, 1);
    assert!(run.stderr.contains("robots.txt forbids reading"), "{}", run.stderr);
    assert_eq!(site.visits().len(), 1);
}

#[test]
fn repeated_failures_end_the_crawl_and_keep_the_index() {
    let links: Vec<String> = (0..100).map(|number| format!("/page{number}")).collect();
    let site = ScriptedSite::start(move |visit| match visit.path.as_str() {
        "/" => page("Start", "<p>Welcome.</p>", &links.iter().map(String::as_str).collect::<Vec<_>>()),
        path if path.starts_with("/page") => Answer::status(503),
        _ => Answer::status(404),
    })
    .unwrap();
    let docent = docent();
    docent.write("book/a.md", "# A\n\nApples.\n");
    docent.ok(&["ingest", "book"]);
    let run = fails(&docent, &site, 4);
    assert!(run.stderr.contains("10 pages in a row failed: the server returned HTTP 503"), "{}", run.stderr);
    assert!(site.visits().len() < 80, "the crawl did not stop early");
    assert_eq!(docent.json(&["search", "apples"])["chunks"][0]["page_title"], "A");
    let down = ScriptedSite::start(|_| Answer::status(500)).unwrap();
    fails(&docent, &down, 4);
}

#[test]
fn a_sitemap_with_a_million_urls_is_bounded() {
    let site = ScriptedSite::start(|visit| match visit.path.as_str() {
        "/sitemap.xml" => {
            let host = &visit.headers["host"];
            let urls = (0..1000).map(|number| format!("<url><loc>http://{host}/docs/p{number}</loc></url>"));
            let foreign = "<url><loc>https://other.example/a</loc></url>".repeat(1000);
            let piece = [foreign, urls.collect::<String>()].concat().into_bytes();
            Answer::Repeat { piece, times: 1000, headers: vec![("content-type".into(), "text/xml".into())] }
        }
        path if path.starts_with("/docs/p") => page(path, &format!("<p>Words of {path}.</p>"), &[]),
        _ => Answer::status(404),
    })
    .unwrap();
    let start = format!("{}/docs/", site.url());
    let (run, peak) =
        docent().run_watched(&["ingest", &start, "--allow-private", "--max-pages", "20", "--json"]);
    let report = last_object(&run.stdout);
    assert!((1..MOST_MEGABYTES).contains(&peak), "{peak} MB");
    assert_eq!(report["pages"]["added"], 19, "the missing start page counts as a request too");
    assert_eq!(report["sites"][0]["more"], true);
}

#[test]
fn the_total_size_of_a_site_is_bounded() {
    let site = site(|visit| {
        page(
            "Long",
            &format!("<p>{} {}</p>", visit.path, "word ".repeat(10_000)),
            &[&format!("{}x", visit.path)],
        )
    });
    let docent = docent().with("DOCENT_SITE__MAX_SITE_BYTES", "200000");
    let report = docent.json(&["ingest", &site.url(), "--allow-private"]);
    assert!(urls(&docent, &site.url()).len() < 8);
    assert_eq!(skipped(&report).keys().collect::<Vec<_>>(), ["over the size limit of a site"]);
}
