use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use super::*;
use crate::resilience::Transient;
use docent_testkit::scripted_site::{Answer, ScriptedSite, Visit};

fn small() -> Limits {
    Limits {
        page_bytes: 10_000,
        redirects: 3,
        request_time: Duration::from_secs(60),
        attempts: 2,
        retry_delay: Duration::from_millis(1),
        ..Limits::default()
    }
}

fn site(script: impl Fn(&Visit) -> Answer + Send + Sync + 'static) -> ScriptedSite {
    ScriptedSite::start(move |visit| match visit.path.as_str() {
        "/robots.txt" => Answer::status(404),
        _ => script(visit),
    })
    .unwrap()
}

fn wanted() -> Wanted<'static> {
    Wanted { most: 10_000, cut: false, only_text: true, inside: &|_| true, known: &|_| Validators::default() }
}

async fn get(reach: Reach, url: &str) -> Result<Fetched, FetchError> {
    Fetcher::new(reach, small()).unwrap().get(&Url::parse(url).unwrap(), &wanted()).await
}

fn packed(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn redirects_are_followed() {
    let site = site(|visit| match visit.path.as_str() {
        "/a" => Answer::redirect("b"),
        "/b" => Answer::redirect("/c?x=1"),
        _ => Answer::html("<p>here</p>").with("etag", "\"1\"").with("x-robots-tag", "noindex"),
    });
    let page = get(Reach::Everything, &format!("{}/a", site.url())).await.unwrap();
    assert_eq!(page.url.as_str(), format!("{}/c?x=1", site.url()));
    assert_eq!(page.body.as_deref(), Some(&b"<p>here</p>"[..]));
    assert_eq!(page.validators.etag.as_deref(), Some("\"1\""));
    assert_eq!(page.robots_tag, "noindex");
}

#[tokio::test]
async fn a_private_network_cannot_be_reached_by_name_by_address_or_by_redirect() {
    let inner = site(|_| Answer::html("secret"));
    let name = format!("http://localhost:{}/", inner.port());
    assert_eq!(get(Reach::Public, &name).await, Err(FetchError::Private));
    assert_eq!(get(Reach::Public, &inner.url()).await, Err(FetchError::Private));

    let there = inner.url();
    let outer = ScriptedSite::start_at("127.0.0.2:0", move |visit| match visit.path.as_str() {
        "/robots.txt" => Answer::status(404),
        "/name" => Answer::redirect(name.clone()),
        _ => Answer::redirect(there.clone()),
    })
    .unwrap();
    let public = Reach::Only("127.0.0.2".parse::<IpAddr>().unwrap());
    for path in ["/name", "/number"] {
        assert_eq!(get(public, &format!("{}{path}", outer.url())).await, Err(FetchError::Private), "{path}");
    }
    assert_eq!(inner.visits().len(), 0, "no request reached the private site");
}

#[tokio::test]
async fn other_schemes_and_addresses_with_passwords_are_rejected() {
    let site = site(|visit| match visit.path.as_str() {
        "/file" => Answer::redirect("file:///etc/passwd"),
        _ => Answer::redirect("http://user:word@127.0.0.1/"),
    });
    for path in ["/file", "/login"] {
        assert_eq!(
            get(Reach::Everything, &format!("{}{path}", site.url())).await,
            Err(FetchError::Scheme),
            "{path}"
        );
    }
}

#[tokio::test]
async fn endless_redirects_are_an_error() {
    let site = site(|visit| Answer::redirect(format!("{}x", visit.path)));
    assert_eq!(get(Reach::Everything, &site.url()).await, Err(FetchError::Redirects));
    assert_eq!(site.visits().len(), 1 + 4, "robots.txt, the page and three redirects");
}

#[tokio::test]
async fn the_size_limit_applies_to_compressed_and_uncompressed_bodies() {
    let bomb = packed(&vec![0; 100 << 20]);
    let site = site(move |visit| match visit.path.as_str() {
        "/announced" => Answer::html("x".repeat(10_001)),
        "/endless" => Answer::Repeat { piece: vec![b'x'; 1 << 16], times: usize::MAX, headers: Vec::new() },
        "/bomb" => Answer::of("text/html", bomb.clone()).with("content-encoding", "gzip"),
        "/packed" => Answer::of("text/html", packed(b"<p>small")).with("content-encoding", "gzip"),
        "/torn" => Answer::of("text/html", &packed(b"<p>small")[..12]).with("content-encoding", "gzip"),
        _ => Answer::of("text/html", "?").with("content-encoding", "br"),
    });
    let at = |path: &str| format!("{}{path}", site.url());
    for path in ["/announced", "/endless", "/bomb"] {
        assert_eq!(get(Reach::Everything, &at(path)).await, Err(FetchError::TooLarge), "{path}");
    }
    let small = get(Reach::Everything, &at("/packed")).await.unwrap();
    assert_eq!(small.body.as_deref(), Some(&b"<p>small"[..]));
    assert!(get(Reach::Everything, &at("/torn")).await.unwrap_err().is_transient());
    assert_eq!(
        get(Reach::Everything, &at("/br")).await,
        Err(FetchError::NotText("unsupported compression br".to_owned()))
    );
    let fetcher = Fetcher::new(Reach::Everything, super::tests::small()).unwrap();
    let cut = Wanted { cut: true, ..wanted() };
    let page = fetcher.get(&Url::parse(&at("/bomb")).unwrap(), &cut).await.unwrap();
    assert_eq!((page.body.unwrap().len(), page.cut), (10_000, true));
}

#[tokio::test]
async fn slow_responses_and_dropped_connections_are_retried() {
    let site = site(|visit| if visit.path == "/drip" { Answer::Drip } else { Answer::HangUp });
    let limits = Limits { request_time: Duration::from_millis(400), ..small() };
    let fetcher = Fetcher::new(Reach::Everything, limits).unwrap();
    for path in ["/drip", "/cut"] {
        let url = Url::parse(&format!("{}{path}", site.url())).unwrap();
        let error = fetcher.get(&url, &wanted()).await.unwrap_err();
        assert!(error.is_transient(), "{path}: {error}");
    }
    assert_eq!(site.visits().iter().filter(|visit| visit.path == "/drip").count(), 2);
}

#[tokio::test]
async fn pages_forbidden_by_robots_txt_are_not_requested() {
    let site = ScriptedSite::start(|visit| match visit.path.as_str() {
        "/robots.txt" => Answer::of("text/plain", "User-agent: *\nDisallow: /closed\n"),
        "/open" => Answer::redirect("/closed/door"),
        _ => Answer::html("secret"),
    })
    .unwrap();
    for path in ["/closed", "/open"] {
        assert_eq!(
            get(Reach::Everything, &format!("{}{path}", site.url())).await,
            Err(FetchError::Robots),
            "{path}"
        );
    }
    assert!(site.visits().iter().all(|visit| !visit.path.starts_with("/closed")));
}

#[tokio::test]
async fn a_host_whose_robots_txt_fails_is_not_crawled() {
    let site = ScriptedSite::start(|visit| match visit.path.as_str() {
        "/robots.txt" => Answer::status(503),
        _ => Answer::html("text"),
    })
    .unwrap();
    assert!(get(Reach::Everything, &site.url()).await.unwrap_err().is_transient());
    assert!(site.visits().iter().all(|visit| visit.path == "/robots.txt"));
}

#[tokio::test]
async fn images_and_missing_pages_are_errors() {
    let site = site(|visit| match visit.path.as_str() {
        "/image" => Answer::of("image/png", vec![0; 100]),
        "/gone" => Answer::status(410),
        _ => Answer::status(403),
    });
    let at = |path: &str| format!("{}{path}", site.url());
    assert_eq!(get(Reach::Everything, &at("/image")).await, Err(FetchError::NotText("image/png".to_owned())));
    assert_eq!(get(Reach::Everything, &at("/gone")).await, Err(FetchError::Missing(410)));
    assert_eq!(get(Reach::Everything, &at("/closed")).await, Err(FetchError::Refused(403)));
}
