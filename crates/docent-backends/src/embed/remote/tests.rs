//! Tests of embedders behind an API: formats, limits and server failures.

use std::time::{Duration, Instant};

use super::*;
use crate::resilience::Policy;
use docent_testkit::{Act, ScriptedProvider};

const KEY: &str = "sk-secret";

/// A model at a scripted provider, with short timeouts.
fn settings(protocol: Protocol, model: &str, server: &ScriptedProvider) -> RemoteEmbedderSettings {
    let short = Duration::from_millis(5);
    let policy =
        Policy { attempts: 3, first_delay: short, max_delay: short, attempt_timeout: Duration::from_secs(5) };
    let call_policy = CallPolicy { policy, together: None, when_busy: None };
    let mut settings = RemoteEmbedderSettings::new(protocol, model);
    settings.base_url = Some(server.url());
    settings.api_key = Some(KEY.into());
    settings.questions = call_policy;
    settings.passages = call_policy;
    settings
}

async fn cohere(width: usize, script: Vec<Act>, then: Act) -> (ScriptedProvider, RemoteEmbedder) {
    let server = ScriptedProvider::start(width, script, then).await.unwrap();
    let settings = settings(Protocol::Cohere, "embed-multilingual-v3.0", &server);
    let embedder = RemoteEmbedder::connect(settings).await.unwrap();
    (server, embedder)
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("passage number {number} about nodes")).collect()
}

async fn embed(
    embedder: &RemoteEmbedder,
    texts: &[String],
    purpose: Purpose,
) -> Result<Vec<Vector>, EmbedError> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    embedder.embed(&texts, purpose).await
}

/// The error of a call for which every attempt ends like this, and the number of attempts.
async fn error(act: Act) -> (EmbedError, usize) {
    let (server, embedder) = cohere(1024, vec![], act).await;
    let error = embedder.embed(&["what is a node"], Purpose::Query).await.unwrap_err();
    let message = format!("{error} {error:?}");
    assert!(!message.contains("secret") && !message.contains("what is a node"), "{message}");
    assert!(message.contains("Cohere, `embed-multilingual-v3.0`: "), "{message}");
    (error, server.requests().len())
}

#[tokio::test]
async fn cohere_gets_96_passages_per_call_and_their_order_is_kept() {
    let (server, embedder) = cohere(1024, vec![], Act::Answer).await;
    assert_eq!(
        (embedder.id().to_string(), embedder.batch_size()),
        ("cohere/embed-multilingual-v3.0 (1024 wide)".to_owned(), 96)
    );
    assert!(server.requests().is_empty(), "the width is known, so no request is sent");
    let texts = texts(200);
    let vectors = embed(&embedder, &texts, Purpose::Passage).await.unwrap();
    let sizes: Vec<usize> =
        server.requests().iter().map(|request| request.body["texts"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [96, 96, 8]);
    for (text, vector) in texts.iter().zip(&vectors) {
        let alone = embed(&embedder, std::slice::from_ref(text), Purpose::Passage).await.unwrap();
        assert_eq!(alone[0], *vector);
        let length: f32 = vector.iter().map(|value| value * value).sum();
        assert!((length - 1.0).abs() < 1e-5, "{length}");
    }
    assert!(server.violations().is_empty());
}

#[tokio::test]
async fn cohere_requests_distinguish_questions_and_passages() {
    let (server, embedder) = cohere(1024, vec![], Act::Answer).await;
    embedder.embed(&["what is a node"], Purpose::Query).await.unwrap();
    embedder.embed(&["a node is"], Purpose::Passage).await.unwrap();
    let requests = server.requests();
    assert_eq!(server.paths(), ["/v2/embed", "/v2/embed"]);
    assert_eq!(
        requests[0].body,
        serde_json::json!({
            "model": "embed-multilingual-v3.0", "texts": ["what is a node"], "input_type": "search_query",
            "embedding_types": ["float"], "truncate": "END",
        })
    );
    assert_eq!(requests[1].body["input_type"], "search_document");
}

#[tokio::test]
async fn a_width_can_be_requested_from_models_that_offer_several() {
    let server = ScriptedProvider::start(1536, vec![], Act::Answer).await.unwrap();
    let mut v4 = settings(Protocol::Cohere, "embed-v4.0", &server);
    v4.dimensions = Some(512);
    let embedder = RemoteEmbedder::connect(v4).await.unwrap();
    assert_eq!(embedder.embed(&["a"], Purpose::Query).await.unwrap()[0].len(), 512);
    assert_eq!(server.requests()[0].body["output_dimension"], 512);

    let mut small = settings(Protocol::OpenAi, "text-embedding-3-small", &server);
    small.dimensions = Some(256);
    let embedder = RemoteEmbedder::connect(small.clone()).await.unwrap();
    assert_eq!(embedder.embed(&["a"], Purpose::Query).await.unwrap()[0].len(), 256);
    assert_eq!(embedder.id().to_string(), "openai/text-embedding-3-small (256 wide)");
    // The model's default width is not sent.
    small.dimensions = Some(1536);
    let embedder = RemoteEmbedder::connect(small).await.unwrap();
    embedder.embed(&["a"], Purpose::Query).await.unwrap();
    assert!(server.requests()[2].body.get("dimensions").is_none());

    let mut fixed = settings(Protocol::Cohere, "embed-english-v3.0", &server);
    fixed.dimensions = Some(512);
    let refused = RemoteEmbedder::connect(fixed).await.unwrap_err().to_string();
    assert!(refused.contains("only supports vectors of width 1024; remove embedder.dimensions"), "{refused}");
    assert!(server.violations().is_empty());
}

#[tokio::test]
async fn openai_answers_in_any_order_and_long_calls_are_split() {
    let server = ScriptedProvider::start(1536, vec![], Act::Answer).await.unwrap();
    let mut settings = settings(Protocol::OpenAi, "text-embedding-3-small", &server);
    settings.batch_size = Some(9999);
    let embedder = RemoteEmbedder::connect(settings).await.unwrap();
    assert_eq!(embedder.batch_size(), 2048);
    let few = texts(5);
    let vectors = embed(&embedder, &few, Purpose::Passage).await.unwrap();
    for (text, vector) in few.iter().zip(&vectors) {
        assert_eq!(embed(&embedder, std::slice::from_ref(text), Purpose::Passage).await.unwrap()[0], *vector);
    }
    assert_eq!(
        server.requests()[1].body,
        serde_json::json!({"model": "text-embedding-3-small", "input": [few[0]], "encoding_format": "float"})
    );
    // OpenAI's limit is 300,000 tokens per call; eighty texts of 6,000 tokens exceed it.
    let before = server.requests().len();
    let long = vec!["word ".repeat(4_800); 80];
    embed(&embedder, &long, Purpose::Passage).await.unwrap();
    assert!(server.requests().len() - before >= 3, "{}", server.requests().len() - before);
    assert!(server.violations().is_empty(), "{:?}", server.violations());
}

#[tokio::test]
async fn ollama_needs_no_key_and_prefixes_are_added() {
    let server = ScriptedProvider::start(768, vec![], Act::Answer).await.unwrap();
    let mut settings = settings(Protocol::Ollama, "nomic-embed-text", &server);
    settings.api_key = None;
    settings.base_url = Some(format!("{}/v1/", server.url()));
    let embedder = RemoteEmbedder::connect(settings).await.unwrap();
    embedder.embed(&["what is a node"], Purpose::Query).await.unwrap();
    embedder.embed(&["a node is"], Purpose::Passage).await.unwrap();
    assert_eq!(server.paths(), ["/api/embed", "/api/embed"]);
    assert_eq!(
        server.requests()[0].body,
        serde_json::json!({"model": "nomic-embed-text", "input": ["search_query: what is a node"], "truncate": true})
    );
    assert_eq!(server.requests()[1].body["input"][0], "search_document: a node is");
    assert!(embedder.id().name.starts_with("ollama/nomic-embed-text+"), "{}", embedder.id());
    assert!(server.violations().is_empty());
}

#[tokio::test]
async fn prefixes_are_part_of_the_name() {
    let server = ScriptedProvider::start(384, vec![], Act::Answer).await.unwrap();
    let name = async |query: Option<&str>| {
        let mut settings = settings(Protocol::Ollama, "all-minilm", &server);
        settings.query_prefix = query.map(str::to_owned);
        RemoteEmbedder::connect(settings).await.unwrap().id().name.clone()
    };
    assert_eq!(name(None).await, "ollama/all-minilm");
    assert_ne!(name(Some("q: ")).await, name(None).await);
    assert_ne!(name(Some("q: ")).await, name(Some("Q: ")).await);
}

#[tokio::test]
async fn the_width_of_an_unknown_model_is_requested_once() {
    let server = ScriptedProvider::start(77, vec![], Act::Answer).await.unwrap();
    let embedder =
        RemoteEmbedder::connect(settings(Protocol::OpenAi, "my-own-model", &server)).await.unwrap();
    assert_eq!((embedder.id().width, server.requests().len()), (77, 1));
    assert_eq!(embedder.batch_size(), 32, "compatible servers often accept no more");
    embed(&embedder, &texts(40), Purpose::Passage).await.unwrap();
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn transient_failures_are_retried() {
    let script = vec![
        Act::Busy(429, 0),
        Act::Status(500),
        Act::Answer,
        Act::Truncated,
        Act::Closed,
        Act::Answer,
        Act::HalfJson,
        Act::Null,
        Act::Answer,
        Act::TooFew,
        Act::Zeros,
        Act::Answer,
    ];
    let (server, embedder) = cohere(1024, script, Act::Answer).await;
    for call in 1..=4 {
        embed(&embedder, &texts(3), Purpose::Passage).await.unwrap();
        assert_eq!(server.requests().len(), call * 3);
    }
}

#[tokio::test]
async fn retry_after_is_respected() {
    let (server, embedder) = cohere(1024, vec![Act::Busy(429, 1)], Act::Answer).await;
    let start = Instant::now();
    embed(&embedder, &texts(1), Purpose::Passage).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn permanent_errors_name_the_setting_to_check() {
    let (refused, calls) = error(Act::Status(401)).await;
    assert!(matches!(&refused, EmbedError::Unusable(message) if message.ends_with("check COHERE_API_KEY")));
    assert_eq!(calls, 1, "a permanent error is not retried");
    let (refused, _) = error(Act::Status(404)).await;
    assert!(refused.to_string().contains("check embedder.model and embedder.base_url"), "{refused}");
    let (refused, calls) = error(Act::Wide(768)).await;
    assert!(matches!(refused, EmbedError::Unusable(_)));
    assert!(refused.to_string().contains("width 768 instead of 1024; check embedder.model"), "{refused}");
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn lasting_failures_are_reported_as_unavailable_after_three_attempts() {
    for act in
        [Act::Status(503), Act::Truncated, Act::Closed, Act::HalfJson, Act::Null, Act::Zeros, Act::TooFew]
    {
        let (unavailable, calls) = error(act.clone()).await;
        assert!(matches!(unavailable, EmbedError::Unavailable(_)), "{act:?}: {unavailable}");
        assert_eq!(calls, 3, "{act:?}");
    }
}

#[tokio::test]
async fn five_failures_open_the_circuit() {
    let (server, embedder) = cohere(1024, vec![], Act::Status(503)).await;
    for _ in 0..5 {
        embedder.embed(&["a"], Purpose::Query).await.unwrap_err();
    }
    assert_eq!(server.requests().len(), 5, "five failures are enough");
    let open = embedder.embed(&["a"], Purpose::Query).await.unwrap_err().to_string();
    assert!(open.contains("circuit breaker open"), "{open}");
}

#[tokio::test]
async fn a_question_fails_after_its_total_timeout() {
    let server = ScriptedProvider::start(1024, vec![], Act::Late(60_000)).await.unwrap();
    let mut settings = settings(Protocol::Cohere, "embed-multilingual-v3.0", &server);
    settings.questions.together = Some(Duration::from_millis(200));
    let embedder = RemoteEmbedder::connect(settings).await.unwrap();
    // The server would answer after a minute.
    let error = embedder.embed(&["a"], Purpose::Query).await.unwrap_err().to_string();
    assert!(error.contains("the request timed out"), "{error}");
}

#[tokio::test]
async fn an_unreachable_server_and_a_missing_key_are_reported() {
    let mut settings = RemoteEmbedderSettings::new(Protocol::Ollama, "nomic-embed-text");
    settings.base_url = Some("http://127.0.0.1:1".to_owned());
    settings.questions.policy.attempts = 1;
    let embedder = RemoteEmbedder::connect(settings).await.unwrap();
    let error = embedder.embed(&["a"], Purpose::Query).await.unwrap_err().to_string();
    assert!(
        error.contains("connection refused; check embedder.base_url and whether the server is running"),
        "{error}"
    );
    for (protocol, model, variable) in [
        (Protocol::Cohere, "embed-english-v3.0", "COHERE_API_KEY"),
        (Protocol::OpenAi, "text-embedding-3-small", "OPENAI_API_KEY"),
    ] {
        let error = RemoteEmbedder::connect(RemoteEmbedderSettings::new(protocol, model)).await.unwrap_err();
        assert!(matches!(&error, EmbedError::Unusable(_)));
        assert!(error.to_string().ends_with(&format!("the API key is missing; set {variable}")), "{error}");
    }
}
