//! Sites on local servers, crawled by the real binary.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use docent_testkit::ScriptedSite;
use docent_testkit::scripted_site::{Answer, Pages, Visit};
use serde_json::{Value, json};

use crate::support::Docent;

mod hostile;

/// A user with short timeouts for crawls.
fn docent() -> Docent {
    quick(Docent::without_vectors())
}

fn quick(docent: Docent) -> Docent {
    docent.with("DOCENT_SITE__RETRY_DELAY", "0.001").with("DOCENT_SITE__TIMEOUT", "2")
}

fn page(title: &str, text: &str, links: &[&str]) -> Answer {
    let links: String = links.iter().map(|link| format!("<li><a href=\"{link}\">{link}</a></li>")).collect();
    Answer::html(format!(
        "<html><head><title>{title} | Manual</title></head><body><nav><ul>{links}</ul></nav>\
         <main><h1>{title}</h1>{text}</main><footer>All rights reserved</footer></body></html>"
    ))
}

fn pages(pages: &[(&str, Answer)]) -> Pages {
    let pages: BTreeMap<String, Answer> =
        pages.iter().map(|(path, answer)| ((*path).to_owned(), answer.clone())).collect();
    Arc::new(Mutex::new(pages))
}

fn sitemap(site: &str, paths: &[&str]) -> Answer {
    let urls: String = paths
        .iter()
        .map(|path| format!("<url><loc>{site}{path}</loc><lastmod>2024-05-01</lastmod></url>"))
        .collect();
    Answer::of("application/xml", format!("<?xml version=\"1.0\"?><urlset>{urls}</urlset>"))
}

fn urls(docent: &Docent, site: &str) -> Vec<String> {
    let pages = std::fs::read_to_string(docent.generation().join("pages.jsonl")).unwrap();
    let url = |line: &str| serde_json::from_str::<Value>(line).unwrap()["url"].as_str().unwrap().to_owned();
    pages.lines().map(|line| url(line).replace(site, "")).collect()
}

fn paths(visits: &[Visit]) -> Vec<&str> {
    visits.iter().map(|visit| visit.path.as_str()).collect()
}

fn skipped(report: &Value) -> BTreeMap<String, u64> {
    let skipped = report["sites"][0]["skipped"].as_object().unwrap();
    skipped.iter().map(|(reason, pages)| (reason.clone(), pages["count"].as_u64().unwrap())).collect()
}

/// Address, version and locale of each page.
fn editions(docent: &Docent, site: &str) -> Vec<String> {
    let pages = std::fs::read_to_string(docent.generation().join("pages.jsonl")).unwrap();
    let mut shown: Vec<String> = pages
        .lines()
        .map(|line| {
            let page: Value = serde_json::from_str(line).unwrap();
            let name = |key: &str| page["edition"][key].as_str().unwrap_or("-").to_owned();
            let url = page["url"].as_str().unwrap().replace(site, "");
            format!("{url} {} {}", name("version"), name("locale"))
        })
        .collect();
    shown.sort_unstable();
    shown
}

#[test]
fn versions_and_locales_of_a_site_are_found_in_its_addresses() {
    let wheel = |text: &str, canonical: &str| {
        Answer::html(format!(
            "<html lang=\"en\"><head><title>Wheel</title><link rel=\"canonical\" href=\"{canonical}\"></head>\
             <body><main><h1>Wheel</h1><p>{text}</p></main></body></html>"
        ))
    };
    let listed =
        ["/en/1.0/wheel.html", "/en/stable/wheel.html", "/en/stable/gate.html", "/de/stable/wheel.html"];
    // Read the Docs names the stable version as the canonical one, also on pages of old versions.
    let contents = pages(&[
        (listed[0], wheel("The wheel turns six times.", "/en/stable/wheel.html")),
        (listed[1], wheel("The wheel turns eight times.", "/en/stable/wheel.html")),
        (listed[2], wheel("The gate lets the water of the wheel in.", "/en/stable/gate.html")),
        (listed[3], wheel("Das Rad (wheel) dreht sich.", "/de/stable/wheel.html")),
    ]);
    let site = ScriptedSite::of_pages(contents.clone()).unwrap();
    contents.lock().unwrap().insert("/sitemap.xml".to_owned(), sitemap(&site.url(), &listed));
    let docent = docent();
    docent.ok(&["ingest", &format!("{}/", site.url()), "--allow-private"]);
    assert_eq!(
        editions(&docent, &site.url()),
        [
            "/de/stable/wheel.html stable de",
            "/en/1.0/wheel.html 1.0 en",
            "/en/stable/gate.html stable en",
            "/en/stable/wheel.html stable en",
        ]
    );
    let texts = |more: &[&str]| {
        let found = docent.json(&[&["search", "wheel", "-k", "20"], more].concat());
        let mut texts: Vec<_> = found["chunks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|chunk| chunk["content"].as_str().unwrap().to_owned())
            .collect();
        texts.sort_unstable();
        texts
    };
    // The locale of the first page is the default one.
    assert_eq!(texts(&[]), ["The gate lets the water of the wheel in.", "The wheel turns eight times."]);
    assert_eq!(texts(&["--doc-version", "1.0"]), ["The wheel turns six times."]);
    assert_eq!(texts(&["--locale", "de"]), ["Das Rad (wheel) dreht sich."]);
    // The folders are not modules.
    assert!(
        docent.json(&["modules"]).get("stable").is_none() && docent.json(&["modules"]).get("en").is_none()
    );

    // A single version is no version.
    docent.ok(&["ingest", &format!("{}/en/stable/", site.url()), "--allow-private"]);
    assert_eq!(editions(&docent, &site.url()), ["/en/stable/gate.html - -", "/en/stable/wheel.html - -"]);
}

#[test]
fn links_are_followed_within_the_start_path() {
    let site = ScriptedSite::of_pages(pages(&[
        (
            "/docs/",
            page(
                "Start",
                "<p>Welcome.</p>",
                &["guide/pumps", "/blog", "https://other.example/", "a.png", "/docs/?q=1"],
            ),
        ),
        (
            "/docs/guide/pumps",
            page(
                "Pumps",
                "<h2 id=\"gear\">Gear</h2><p>A gear pump moves oil.</p>",
                &["valves", "../", "missing"],
            ),
        ),
        ("/docs/guide/valves", page("Valves", "<p>A valve opens at 3 bar.</p>", &[])),
        ("/blog", page("Blog", "<p>News.</p>", &[])),
    ]))
    .unwrap();
    let docent = docent();
    let start = format!("{}/docs/", site.url());
    let report = docent.json(&["ingest", &start, "--allow-private"]);
    assert_eq!(report["sites"][0]["found_by"], "links");
    assert_eq!(urls(&docent, &site.url()), ["/docs/", "/docs/guide/pumps", "/docs/guide/valves"]);
    assert_eq!(skipped(&report), BTreeMap::from([("not found (404)".to_owned(), 1)]));
    let found = docent.json(&["search", "gear pump", "--top-k", "1"]);
    assert_eq!(found["chunks"][0]["url"], format!("{start}guide/pumps#gear"));
    assert_eq!(found["chunks"][0]["module_name"], "guide");
    assert!(!paths(&site.visits()).contains(&"/blog"));

    let run = docent.run(&["ingest", &start, "--allow-private", "--max-pages", "2"]);
    assert!(run.stderr.contains("has more pages than the limits allow"), "{}", run.stderr);
    assert_eq!(urls(&docent, &site.url()).len(), 2);
    docent.ok(&["ingest", &start, "--allow-private", "--max-depth", "0"]);
    assert_eq!(urls(&docent, &site.url()), ["/docs/"]);
    docent.ok(&["ingest", &start, "--allow-private", "--include", "guide/**", "--exclude", "**/valves"]);
    assert_eq!(urls(&docent, &site.url()), ["/docs/guide/pumps"]);
    // The limit is remembered for the next run.
    docent.ok(&["ingest"]);
    assert_eq!(urls(&docent, &site.url()), ["/docs/guide/pumps"]);
}

#[test]
fn a_second_crawl_makes_one_conditional_request_per_page_and_embeds_only_changes() {
    let shared = pages(&[]);
    let site = ScriptedSite::of_pages(shared.clone()).unwrap();
    let at = site.url();
    let put = |path: &str, answer: Answer| shared.lock().unwrap().insert(path.to_owned(), answer);
    put("/", page("Start", "<p>Welcome to the plant.</p>", &[]));
    put("/a", page("Pumps", "<p>A pump moves oil.</p><h2 id=\"b\">Gear</h2><p>It has teeth.</p>", &[]));
    put("/c", page("Valves", "<p>A valve opens at 3 bar.</p>", &[]));
    put("/sitemap.xml", sitemap(&at, &["/", "/a", "/c", "/gone"]));
    put("/gone", page("Gone", "<p>Soon to be removed.</p>", &[]));
    let docent = quick(Docent::new());
    let first = docent.json(&["ingest", &format!("{at}/"), "--allow-private"]);
    assert_eq!((first["sites"][0]["fetched"].as_u64(), first["embedded"].as_u64()), (Some(4), Some(5)));
    site.visits();

    let again = docent.json(&["ingest"]);
    assert_eq!(again["published"], false);
    assert_eq!(
        (again["sites"][0]["fetched"].as_u64(), again["sites"][0]["unchanged"].as_u64()),
        (Some(0), Some(4))
    );
    site.visits();

    // One paragraph changes, one page is deleted, one moves.
    put("/a", page("Pumps", "<p>A pump moves oil.</p><h2 id=\"b\">Gear</h2><p>It has many teeth.</p>", &[]));
    shared.lock().unwrap().remove("/gone");
    let moved = shared.lock().unwrap().remove("/c").unwrap();
    put("/d", moved);
    put("/sitemap.xml", sitemap(&at, &["/", "/a", "/d", "/gone"]));
    let changed = docent.json(&["ingest"]);
    assert_eq!((changed["embedded"].as_u64(), changed["reused"].as_u64()), (Some(1), Some(3)));
    assert_eq!(changed["pages"], json!({"added": 1, "changed": 1, "removed": 2, "unchanged": 1}));
    assert_eq!(changed["sections"]["changed"], 1);
    let visits = site.visits();
    for path in ["/", "/a", "/gone"] {
        let asked: Vec<_> = visits.iter().filter(|visit| visit.path == path).collect();
        assert_eq!(asked.len(), 1, "{path}: {:?}", paths(&visits));
        assert!(asked[0].headers.contains_key("if-none-match"), "{path}");
    }
    let run = docent.run(&["ingest"]);
    assert!(run.stderr.contains("site     0 fetched, 3 unchanged (304), 1 skipped"), "{}", run.stderr);
}

#[test]
fn pages_are_kept_when_the_server_fails() {
    let shared = pages(&[
        ("/", page("Start", "<p>Welcome.</p>", &["/a", "/b"])),
        ("/a", page("Pumps", "<p>A pump moves oil.</p>", &[])),
        ("/b", page("Valves", "<p>A valve opens.</p>", &[])),
    ]);
    let site = ScriptedSite::of_pages(shared.clone()).unwrap();
    let docent = docent();
    docent.ok(&["ingest", &site.url(), "--allow-private"]);
    shared.lock().unwrap().insert("/a".to_owned(), Answer::status(500));
    let report = docent.json(&["ingest"]);
    assert_eq!((report["sites"][0]["kept"].as_u64(), report["published"].as_bool()), (Some(1), Some(false)));
    shared.lock().unwrap().insert("/".to_owned(), Answer::status(503));
    // The start page is kept too, so the book is still complete.
    let report = docent.json(&["ingest"]);
    assert_eq!(report["sites"][0]["kept"], 2);
}

#[test]
fn sitemaps_may_be_compressed_nested_and_list_other_hosts() {
    use std::io::Write as _;
    let shared = pages(&[
        ("/docs/a", page("A", "<p>Apples.</p>", &[])),
        ("/docs/b", page("B", "<p>Bananas.</p>", &[])),
        ("/blog/c", page("C", "<p>Cherries.</p>", &[])),
    ]);
    let site = ScriptedSite::of_pages(shared.clone()).unwrap();
    let at = site.url();
    let Answer::Whole { body, .. } = sitemap(&at, &["/docs/b", "/blog/c"]) else { unreachable!() };
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(&body).unwrap();
    let packed = Answer::of("application/gzip", packer.finish().unwrap());
    let index = format!(
        "<sitemapindex><sitemap><loc>{at}/one.xml</loc></sitemap><sitemap><loc>{at}/sitemap-two.xml.gz</loc></sitemap>\
         <sitemap><loc>{at}/map.xml</loc></sitemap><sitemap><loc>https://other.example/x.xml</loc></sitemap></sitemapindex>"
    );
    for (path, answer) in [
        ("/robots.txt", Answer::of("text/plain", format!("Sitemap: {at}/map.xml\n"))),
        ("/map.xml", Answer::of("text/xml", index)),
        ("/one.xml", sitemap(&at, &["/docs/a", "/docs/a/", "/docs/a#x"])),
        ("/sitemap-two.xml.gz", packed),
    ] {
        shared.lock().unwrap().insert(path.to_owned(), answer);
    }
    let docent = docent();
    let report = docent.json(&["ingest", &format!("{at}/docs/"), "--allow-private"]);
    assert_eq!(report["sites"][0]["found_by"], "sitemap");
    assert_eq!(urls(&docent, &at), ["/docs/a", "/docs/b"]);
    // The URL of a sitemap can be a source too.
    docent.ok(&["ingest", &format!("{at}/sitemap-two.xml.gz"), "--allow-private"]);
    assert_eq!(urls(&docent, &at), ["/docs/b", "/blog/c"]);
}

#[test]
fn markdown_is_preferred_if_a_site_offers_it() {
    let shared = pages(&[]);
    let site = ScriptedSite::of_pages(shared.clone()).unwrap();
    let at = site.url();
    let rendered = "<html><head><link rel=\"alternate\" type=\"text/markdown\" href=\"/a.md\"></head><body><main><h1>Pumps</h1>\
                    <h2 id=\"the-gear\">Gear</h2><p>Rendered words.</p></main></body></html>";
    for (path, answer) in [
        (
            "/llms.txt",
            Answer::of(
                "text/plain",
                "# Manual\n\n- [Valves](/valves.md)\n- [Pumps](/a): all about pumps\n- [Seals](/seals.md)\n",
            ),
        ),
        ("/sitemap.xml", sitemap(&at, &["/a", "/valves"])),
        ("/a", Answer::html(rendered)),
        ("/a.md", Answer::of("text/markdown", "# Pumps\n\n## Gear\n\nWritten words about pumps.\n")),
        ("/valves", page("Valves", "<p>Rendered valves.</p>", &[])),
        (
            "/valves.md",
            Answer::of("text/markdown; charset=utf-8", "# Valves\n\nWritten words about valves.\n"),
        ),
        ("/seals.md", Answer::of("text/markdown", "# Seals\n\nWritten words about seals.\n")),
    ] {
        shared.lock().unwrap().insert(path.to_owned(), answer);
    }
    let docent = docent();
    let report = docent.json(&["ingest", &at, "--allow-private"]);
    assert_eq!(report["sites"][0]["found_by"], "sitemap and llms.txt");
    let found = |words: &str| docent.json(&["search", words, "--top-k", "1"])["chunks"][0].clone();
    assert_eq!(found("written pumps")["url"], format!("{at}/a#the-gear"));
    assert_eq!(found("written valves")["url"], format!("{at}/valves"));
    assert_eq!(found("written seals")["url"], format!("{at}/seals.md"));
    let all = docent.json(&["search", "rendered words pumps valves", "--top-k", "20"]).to_string();
    assert!(!all.contains("Rendered"), "{all}");
}

#[test]
fn pages_of_llms_full_txt_are_cited_by_their_published_urls() {
    let shared = pages(&[]);
    let site = ScriptedSite::of_pages(shared.clone()).unwrap();
    let full = "# Pumps\nSource: /guide/pumps\n\nA pump moves oil.\n\n# Valves\nSource: /guide/valves\n\nA valve opens.\n";
    shared.lock().unwrap().insert("/llms-full.txt".to_owned(), Answer::of("text/plain", full));
    let docent = docent();
    docent.ok(&["ingest", &format!("{}/llms-full.txt", site.url()), "--allow-private"]);
    assert_eq!(urls(&docent, &site.url()), ["/guide/pumps", "/guide/valves"]);
}

#[test]
fn canonical_duplicate_and_excluded_pages_are_indexed_correctly() {
    let canonical = |to: &str, text: &str| {
        Answer::html(format!(
            "<html><head><link rel=\"canonical\" href=\"{to}\"></head><body><main><h1>T</h1><p>{text}</p></main></body></html>"
        ))
    };
    let site = ScriptedSite::of_pages(pages(&[
        ("/robots.txt", Answer::of("text/plain", "User-agent: *\nDisallow: /closed\n")),
        ("/", page("Start", "<p>Welcome.</p>", &["/old", "/copy", "/copy2", "/slash/", "/quiet", "/header", "/closed", "/away", "/moved", "/empty"])),
        ("/old", canonical("/new", "Old words.")),
        ("/new", page("New", "<p>New words.</p>", &[])),
        ("/copy", page("Copy", "<p>The same words.</p>", &[])),
        ("/copy2", page("Copy", "<p>The same words.</p>", &[])),
        ("/slash/", canonical("/slash", "Slash words.")),
        ("/quiet", Answer::html("<html><head><meta name=\"robots\" content=\"noindex\"></head><body><main><p>Quiet.</p></main></body></html>")),
        ("/header", page("Header", "<p>Also quiet.</p>", &[]).with("x-robots-tag", "noindex")),
        ("/away", Answer::redirect("https://127.0.0.1:1/")),
        ("/moved", Answer::redirect("/new")),
        ("/empty", Answer::html("<html><body><div id=\"root\"></div><script>x()</script></body></html>")),
    ]))
    .unwrap();
    let docent = quick(docent());
    let report = docent.json(&["ingest", &site.url(), "--allow-private"]);
    assert_eq!(urls(&docent, &site.url()), ["/", "/copy", "/slash", "/new"]);
    let expected = [
        ("duplicates of another page", 3),
        ("forbidden by robots.txt", 1),
        ("marked noindex", 2),
        ("on another site", 1),
        ("without text", 1),
    ];
    let expected: BTreeMap<String, u64> = expected.map(|(reason, count)| (reason.to_owned(), count)).into();
    assert_eq!(skipped(&report), expected);
}

#[test]
fn private_addresses_need_the_flag_and_only_http_is_allowed() {
    let site = ScriptedSite::of_pages(pages(&[("/", page("Start", "<p>Secret.</p>", &[]))])).unwrap();
    let docent = docent();
    let by_name = format!("http://localhost:{}/", site.port());
    for address in [format!("{}/", site.url()), by_name] {
        let message = format!(
            "error: {address} leads to a private address\nhint: if the site is in your own network, add --allow-private"
        );
        docent.fails(&["ingest", &address], 1, &message);
    }
    assert!(site.visits().is_empty());
    for address in ["ftp://example.org/", "file:///etc/passwd"] {
        let message = format!(
            "error: unsupported address {address}: use http or https, without a user name or password"
        );
        docent.fails(&["ingest", address], 2, &message);
    }
    let run = docent.run(&["ingest", "https://user:hunter2@example.org/"]);
    assert!(run.status == 2 && !run.stderr.contains("hunter2"), "{}", run.stderr);
    let run = docent.run(&["ingest", &site.url(), "--allow-private", "--include", "["]);
    assert!(run.status == 2 && run.stderr.contains("invalid pattern `[`"), "{}", run.stderr);
}

#[test]
fn base_url_replaces_the_address_of_a_crawled_site() {
    let site = ScriptedSite::of_pages(pages(&[
        ("/docs/", page("Start", "<p>Welcome.</p>", &["a"])),
        ("/docs/a", page("Pumps", "<p>A pump moves oil.</p>", &[])),
    ]))
    .unwrap();
    let docent = docent();
    let start = format!("{}/docs/", site.url());
    docent.ok(&["ingest", &start, "--allow-private", "--base-url", "https://example.org/manual"]);
    assert_eq!(urls(&docent, "https://example.org"), ["/manual/", "/manual/a"]);
}

#[test]
fn encodings_are_detected_by_header_by_page_and_by_content() {
    let latin = |head: &str| [head.as_bytes(), b"<main><h1>T</h1><p>Gr\xfc\xdfe aus K\xf6ln "].concat();
    let body =
        |head: &str, end: &str| [latin(head), end.as_bytes().to_vec(), b"</p></main>".to_vec()].concat();
    let site = ScriptedSite::of_pages(pages(&[
        ("/", page("Start", "<p>Welcome.</p>", &["/a", "/b", "/c", "/d"])),
        ("/a", Answer::of("text/html; charset=iso-8859-1", body("", "one"))),
        ("/b", Answer::of("text/html", body("<meta charset=latin1>", "two"))),
        ("/c", Answer::of("text/html", body("", "three"))),
        ("/d", Answer::of("text/html; charset=utf-8", body("", "four"))),
    ]))
    .unwrap();
    let docent = docent();
    let run = docent.run(&["ingest", &site.url(), "--allow-private"]);
    assert!(run.stderr.contains("/d: some bytes are invalid in the page's encoding"), "{}", run.stderr);
    for word in ["one", "two", "three"] {
        let content = docent.json(&["search", word, "--top-k", "1"])["chunks"][0]["content"].to_string();
        assert!(content.contains("Grüße aus Köln"), "{content}");
    }
}
