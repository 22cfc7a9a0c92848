//! Pages of PDFs: drawn from the book's own copy, with the places of words.

use reqwest::Method;
use serde_json::Value;

use super::Site;
use crate::pdfs::bomb;
use crate::support::Docent;

const PDF: &[u8] = include_bytes!("../../../../docent-parse/tests/fixtures/outline.pdf");

fn book() -> Docent {
    let docent = Docent::without_vectors();
    docent.write("book/valves.md", "# Valves\n\nA valve opens at three bar.\n");
    let file = docent.write("book/pumps.pdf", "");
    std::fs::write(file, PDF).unwrap();
    docent.ok(&["ingest", "book", "--quiet"]);
    docent
}

/// Where the pages of the PDF are.
fn drawn_pages(site: &Site) -> String {
    let (_, page) = site.get("/api/v1/page?id=pumps.pdf");
    page["drawn_pages"].as_str().unwrap_or_else(|| panic!("{page}")).to_owned()
}

fn words(site: &Site, page: u32, words: &str) -> (u16, Value) {
    let words = words.replace(' ', "+");
    site.get(&format!("/api/v1/page/words?id=pumps.pdf&page={page}&words={words}"))
}

#[test]
fn drawn_pages_of_a_pdf_contain_nothing_active() {
    let site = Site::of(book());
    let address = drawn_pages(&site);
    let get = |path: &str| site.send(Method::GET, path, None, &[]);
    let mut drawings = Vec::new();
    for number in 1..=3 {
        let response = get(&format!("{address}{number}.svg"));
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "image/svg+xml");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        let policy = response.headers()["content-security-policy"].to_str().unwrap();
        assert_eq!(policy, "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox");
        drawings.push(site.runtime.block_on(response.text()).unwrap());
    }
    assert!(drawings[0].starts_with("<svg") && drawings[0] != drawings[1], "{}", drawings[0]);
    let own = address.trim_start_matches("/read/.pdf/").trim_end_matches('/');
    for path in [
        format!("{address}4.svg"),
        format!("{address}0.svg"),
        format!("{address}99999999999.svg"),
        format!("{address}1"),
        format!("/read/.pdf/{}.pdf/1.svg", "0".repeat(32)),
        "/read/.pdf/..%2f..%2fCURRENT/1.svg".to_owned(),
        // The file itself is not sent.
        format!("/read/.figure/{own}"),
    ] {
        site.fails(get(&path), 404, "not_found", "no such");
    }
    assert!(site.get("/api/v1/page?id=valves.md").1.get("drawn_pages").is_none());
}

#[test]
fn words_have_boxes_on_their_page() {
    let site = Site::of(book());
    let (status, found) = words(&site, 2, "A relief valve opens at 3 bar.");
    assert_eq!(status, 200, "{found}");
    let [one] = &found["boxes"].as_array().unwrap()[..] else { panic!("{found}") };
    let side = |name: &str| one[name].as_f64().unwrap();
    assert!(side("left") > 0.0 && side("left") + side("width") < 1.0, "{one}");
    assert!(side("top") > 0.0 && side("height") > 0.005 && side("height") < 0.05, "{one}");
    assert!(found["height"].as_f64().unwrap() > found["width"].as_f64().unwrap(), "{found}");
    assert_eq!(words(&site, 1, "A relief valve opens at 3 bar.").1["boxes"], serde_json::json!([]));
    assert_eq!(words(&site, 4, "pump").0, 404);
    let get = |path: &str| site.send(Method::GET, path, None, &[]);
    site.fails(get("/api/v1/page/words?id=valves.md&page=1&words=x"), 404, "not_found", "no PDF valves.md");
    site.fails(get("/api/v1/page/words?id=pumps.pdf&page=one&words=x"), 400, "validation_error", "Invalid");
}

#[cfg(target_os = "linux")]
#[test]
fn a_page_that_needs_gigabytes_is_not_drawn_and_the_server_goes_on() {
    let docent = book();
    let copies = docent.index().join("figures");
    let copy = std::fs::read_dir(copies).unwrap().next().unwrap().unwrap().path();
    std::fs::write(copy, bomb(2048)).unwrap();
    let site = Site::of(docent);
    let address = drawn_pages(&site);
    for _ in 0..2 {
        let response = site.send(Method::GET, &format!("{address}1.svg"), None, &[]);
        site.fails(response, 404, "not_found", "cannot be drawn");
    }
    assert_eq!(words(&site, 1, "A pump").0, 404);
    let (status, page) = site.get("/api/v1/page?id=pumps.pdf");
    assert!(status == 200 && page["html"].as_str().unwrap().contains("A relief valve"), "{page}");
}

#[test]
fn a_pdf_that_is_gone_from_the_book_is_gone_from_the_index() {
    let docent = book();
    let copies = || std::fs::read_dir(docent.index().join("figures")).unwrap().count();
    assert_eq!(copies(), 1);
    std::fs::remove_file(docent.home.path().join("book/pumps.pdf")).unwrap();
    docent.ok(&["ingest", "book", "--quiet"]);
    assert_eq!(copies(), 0);
}

#[test]
fn drawn_pages_need_the_key_like_pages() {
    let docent = book();
    let key = docent.json(&["key", "reader"]);
    let hash = key["sha256"].as_str().unwrap();
    docent.write("docent.toml", &format!("[[serve.keys]]\nname = \"reader\"\nsha256 = \"{hash}\"\n"));
    let site = Site::of(docent);
    for path in [
        format!("/read/.pdf/{}.pdf/1.svg", "0".repeat(32)),
        "/api/v1/page/words?id=pumps.pdf&page=1&words=x".to_owned(),
    ] {
        site.fails(site.send(Method::GET, &path, None, &[]), 401, "unauthorized", "API key");
    }
}
