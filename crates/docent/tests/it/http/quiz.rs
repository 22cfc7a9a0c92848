//! `GET /api/v1/quiz`: questions about a page or the book, and flashcards.

use docent_testkit::scripted_model::Reply;
use reqwest::Method;
use serde_json::Value;

use super::Site;
use crate::model::Model;
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

const VALVE: &str = "Which term is missing? “A(n) ____ is a flap that opens in one direction.”";

/// A book with two questions, and a model that phrases them.
fn phrased_by(model: &Model) -> Docent {
    let docent = model.serve(Docent::without_vectors());
    docent.write(
        "book/a.md",
        "# Pumps\n\nA pump is a machine that moves water.\n\n## Valves\n\nA valve is a flap that opens in one direction.\n",
    );
    docent.ok(&["ingest", "book", "--base-url", "https://book.example"]);
    docent
}

fn asked(quiz: &Value) -> Vec<(&str, Option<&str>)> {
    let questions = quiz["questions"].as_array().unwrap().iter();
    questions
        .map(|question| (question["question"].as_str().unwrap(), question["phrased_by"].as_str()))
        .collect()
}

#[test]
fn a_model_phrases_the_questions_once_and_only_if_they_ask_for_the_same() {
    let model = Model::start(vec![Reply::text(
        "1. How would you define a pump?\n2. Is a valve a flap that opens in one direction?",
    )]);
    let docent = phrased_by(&model);
    let site = Site::of(docent);
    let (_, quiz) = site.get("/api/v1/quiz?page=a.md");
    let expected = [("How would you define a pump?", Some("gpt-4o-mini")), (VALVE, None)];
    assert_eq!(asked(&quiz), expected);
    assert_eq!(quiz["questions"][0]["answer"], "a machine that moves water");
    assert!(quiz["questions"][0]["question_html"].as_str().unwrap().contains("define a pump"));
    let prompt = model.requests()[0].body["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(prompt.contains("1. What is a pump?\nAnswer: a machine that moves water\n<passage>"), "{prompt}");
    // The wordings are kept: also those that were not used are not asked for again.
    assert_eq!(asked(&site.get("/api/v1/quiz?page=a.md").1), expected);
    let (_, cards) = site.get("/api/v1/quiz?format=anki");
    assert!(cards.as_str().unwrap().contains("How would you define a pump?\t"), "{cards}");
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn without_the_model_the_questions_stay_as_they_are() {
    let model = Model::start(vec![Reply::status(401)]);
    let site = Site::of(phrased_by(&model));
    let plain = [("What is a pump?", None), (VALVE, None)];
    assert_eq!(asked(&site.get("/api/v1/quiz").1), plain);
    assert_eq!(model.requests().len(), 1);
    // A budget that is spent.
    let model = Model::start(vec![Reply::text("1. How would you define a pump?")]);
    let site = Site::of(phrased_by(&model).with("DOCENT_SERVE__DAILY_TOKENS", "1"));
    assert_eq!(
        asked(&site.get("/api/v1/quiz?limit=1").1),
        [("How would you define a pump?", Some("gpt-4o-mini"))]
    );
    let rest = site.get("/api/v1/quiz").1;
    assert_eq!(asked(&rest)[1], (VALVE, None));
    assert_eq!(model.requests().len(), 1);
}
