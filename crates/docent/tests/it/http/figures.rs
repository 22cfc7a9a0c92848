//! Images of the book: copied at ingest, shown on the server's pages, and part of citations.

use reqwest::Method;
use serde_json::json;

use super::Site;
use crate::support::Docent;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";

const PAGE: &str = "# Pumps\n\nA gear pump moves oil with two gears.\n\n![The gear pump, cut open](img/gear%20pump.png)\n\n\
                    ## Wheels\n\nThe wheel has 12 paddles, as ![the drawing of the wheel](/img/wheel.svg) shows.\n\n\
                    ## Elsewhere\n\n![A pond far away](https://pond.example/pond.png)\n\n![Not there](img/nothing.png)\n\n\
                    ![A page](../secret.png)\n";

fn book() -> Docent {
    let docent = Docent::without_vectors();
    docent.write("book/pumps.md", PAGE);
    docent.write("book/static/img/wheel.svg", SVG);
    docent.write("secret.png", "x");
    std::fs::write(docent.home.path().join("secret.png"), PNG).unwrap();
    std::fs::create_dir_all(docent.home.path().join("book/img")).unwrap();
    std::fs::write(docent.home.path().join("book/img/gear pump.png"), PNG).unwrap();
    docent.ok(&["ingest", "book", "--quiet"]);
    docent
}

/// The addresses of the images in HTML.
fn images(html: &str) -> Vec<&str> {
    html.split("<img src=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn images_are_shown_with_their_captions_from_the_servers_own_copy() {
    let site = Site::of(book());
    let (_, page) = site.get("/api/v1/page?id=pumps.md");
    let html = page["html"].as_str().unwrap();
    let shown = images(html);
    assert_eq!(shown.len(), 2, "{html}");
    assert!(html.contains("<figcaption>The gear pump, cut open</figcaption></figure>"), "{html}");
    assert!(
        html.contains("<a href=\"https://pond.example/pond.png\""),
        "an image elsewhere is linked: {html}"
    );
    let get = |path: &str| site.send(Method::GET, path, None, &[]);
    for (path, kind) in shown.iter().zip(["image/png", "image/svg+xml"]) {
        let response = get(path);
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &kind.parse().unwrap())
        );
        let policy = response.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';") && policy.ends_with("sandbox"), "{policy}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    }
    let response = get(shown[0]);
    assert_eq!(site.runtime.block_on(response.bytes()).unwrap(), PNG);
    for name in ["nothing.png", "..%2f..%2fCURRENT", &format!("{}.png", "0".repeat(32))] {
        site.fails(get(&format!("/read/.figure/{name}")), 404, "not_found", "no such image");
    }
    // The page under `/read` has them, too.
    let (_, page) = site.get("/read/pumps.md");
    assert_eq!(images(page.as_str().unwrap()), shown);
}

#[test]
fn a_citation_has_the_figures_of_its_quote() {
    let site = Site::of(book());
    let (_, answer) =
        site.post("/api/v1/ask", json!({ "query": "What does the gear pump, cut open, move?" }));
    let figure = &answer["citations"][0]["figures"][0];
    assert_eq!(figure["caption"], "The gear pump, cut open", "{answer}");
    let image = figure["image"].as_str().unwrap();
    assert!(image.starts_with(&format!("{}/read/.figure/", site.served.url)), "{image}");
    let (_, answer) = site.post("/api/v1/ask", json!({ "query": "Where is the pond far away?" }));
    let figures = answer["citations"].as_array().unwrap().iter().filter_map(|one| one.get("figures"));
    assert!(figures.clone().count() <= 1, "{answer}");
}

#[test]
fn an_image_that_is_gone_from_the_book_is_gone_from_the_index() {
    let docent = book();
    let copies = || std::fs::read_dir(docent.index().join("figures")).unwrap().count();
    assert_eq!(copies(), 2);
    docent.write("book/pumps.md", "# Pumps\n\nA gear pump moves oil with two gears.\n");
    docent.ok(&["ingest", "book", "--quiet"]);
    assert_eq!(copies(), 0);
}

#[test]
fn images_need_the_key_like_pages() {
    let docent = book();
    let key = docent.json(&["key", "reader"]);
    let hash = key["sha256"].as_str().unwrap();
    docent.write("docent.toml", &format!("[[serve.keys]]\nname = \"reader\"\nsha256 = \"{hash}\"\n"));
    let site = Site::of(docent);
    let path = format!("/read/.figure/{}.png", "0".repeat(32));
    site.fails(site.send(Method::GET, &path, None, &[]), 401, "unauthorized", "API key");
}
