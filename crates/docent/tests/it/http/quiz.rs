//! `GET /api/v1/quiz`: questions about a page or the book, and flashcards.

use reqwest::Method;

use super::Site;
use crate::support::Docent;

#[test]
fn a_page_has_questions_with_hints_answers_and_quotes() {
    let site = Site::of(Docent::without_vectors());
    let (status, quiz) = site.get("/api/v1/quiz?page=ros2/01-nodes.md");
    assert_eq!(status, 200, "{quiz}");
    assert_eq!(quiz["index_version"], site.get("/api/v1/status").1["index_version"]);
    let questions = quiz["questions"].as_array().unwrap();
    assert!(questions.len() > 4, "{quiz}");
    let (_, page) = site.get("/api/v1/page?id=ros2/01-nodes.md");
    for question in questions {
        assert_eq!(question["hints"].as_array().unwrap().len(), 2);
        for field in ["question_html", "answer_html", "quote_html"] {
            assert!(question[field].as_str().unwrap().starts_with('<'), "{question}");
        }
        let passage = format!("data-chunk=\"{}\"", question["chunk_id"].as_str().unwrap());
        assert!(page["html"].as_str().unwrap().contains(&passage), "{question}");
    }
    let (_, one) = site.get("/api/v1/quiz?page=ros2/01-nodes.md&limit=1");
    assert_eq!(one["questions"].as_array().unwrap()[..], questions[..1]);
}

#[test]
fn questions_about_the_book_come_from_different_pages() {
    let site = Site::of(Docent::without_vectors());
    let (_, quiz) = site.get("/api/v1/quiz?module=simulation&limit=5");
    let mut pages: Vec<&str> = quiz["questions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|question| question["document_id"].as_str().unwrap())
        .collect();
    pages.dedup();
    assert_eq!(pages.len(), 5, "{pages:?}");
    assert!(pages.iter().all(|page| page.starts_with("simulation/")));
    assert_eq!(site.get("/api/v1/quiz").1["questions"].as_array().unwrap().len(), 20);
}

#[test]
fn flashcards_are_a_file() {
    let site = Site::of(Docent::without_vectors());
    let response = site.send(Method::GET, "/api/v1/quiz?page=ros2/01-nodes.md&format=anki", None, &[]);
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(response.headers()["content-disposition"], "attachment; filename=\"flashcards.txt\"");
    let (_, text) = site.read(response);
    let text = text.as_str().unwrap();
    assert!(text.starts_with("#separator:tab\n#html:true\n"), "{text}");
    let (_, quiz) = site.get("/api/v1/quiz?page=ros2/01-nodes.md");
    let count = quiz["questions"].as_array().unwrap().len();
    assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), count);
}

#[test]
fn what_a_book_contains_cannot_become_markup() {
    let docent = Docent::without_vectors();
    docent.write(
        "book/a.md",
        "# Pumps\n\nA pump is a machine that moves `<script>alert(1)</script>` water & oil \"safely\".\n",
    );
    docent.ok(&["ingest", "book", "--base-url", "https://book.example"]);
    let site = Site::of(docent);
    let (_, quiz) = site.get("/api/v1/quiz?page=a.md");
    assert_eq!(quiz["questions"].as_array().unwrap().len(), 1, "{quiz}");
    let html = quiz["questions"][0]["answer_html"].as_str().unwrap();
    assert!(!html.contains("<script") && html.contains("&lt;script"), "{html}");
    let (_, cards) = site.get("/api/v1/quiz?page=a.md&format=anki");
    let cards = cards.as_str().unwrap();
    assert!(!cards.contains("<script") && cards.contains("&lt;script"), "{cards}");
    assert!(cards.contains("water &amp; oil &quot;safely&quot;"), "{cards}");
}

#[test]
fn invalid_requests_are_refused() {
    let site = Site::of(Docent::without_vectors());
    let get = |query: &str| site.send(Method::GET, &format!("/api/v1/quiz?{query}"), None, &[]);
    site.fails(get("page=nowhere.md"), 404, "not_found", "no page nowhere.md");
    site.fails(get("page=ros2/01-nodes.md&module=vla"), 404, "not_found", "no page ros2/01-nodes.md");
    site.fails(get("limit=0"), 400, "validation_error", "limit must be between 1 and 1000");
    site.fails(get("limit=1001"), 400, "validation_error", "limit must be between 1 and 1000");
    site.fails(get("format=word"), 400, "validation_error", "Invalid");
    site.fails(get("module=kitchen"), 400, "validation_error", "no module `kitchen`");
}

#[test]
fn a_quiz_counts_as_a_lookup() {
    let site = Site::of(Docent::without_vectors().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "1"));
    assert_eq!(site.get("/api/v1/quiz?limit=1").0, 200);
    assert_eq!(site.get("/api/v1/quiz?limit=1").0, 429);
}
