//! Embedders behind an API, on the wire: formats, limits, and what servers do on bad days.

use std::time::{Duration, Instant};

use super::*;
use crate::resilience::Policy;
use crate::testing::{Act, ScriptedProvider};

const KEY: &str = "sk-secret";

/// A model at a scripted provider, asked with little patience.
fn settings(protocol: Protocol, model: &str, server: &ScriptedProvider) -> RemoteEmbedderSettings {
    let short = Duration::from_millis(5);
    let policy =
        Policy { attempts: 3, first_delay: short, max_delay: short, attempt_timeout: Duration::from_secs(5) };
    let patience = Patience { policy, together: None, when_busy: None };
    let mut settings = RemoteEmbedderSettings::new(protocol, model);
    settings.base_url = Some(server.url());
    settings.api_key = Some(KEY.into());
    settings.questions = patience;
    settings.passages = patience;
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

/// The error of one call that always goes like this.
async fn error(act: Act) -> (EmbedError, usize) {
    let (server, embedder) = cohere(1024, vec![], act).await;
    let error = embedder.embed(&["what is a node"], Purpose::Query).await.unwrap_err();
    let message = format!("{error} {error:?}");
    assert!(!message.contains("secret") && !message.contains("what is a node"), "{message}");
    assert!(message.contains("Cohere, `embed-multilingual-v3.0`: "), "{message}");
    (error, server.requests().len())
}

#[tokio::test]
async fn cohere_takes_96_passages_a_call_and_keeps_their_order() {
    let (server, embedder) = cohere(1024, vec![], Act::Answer).await;
    assert_eq!(
        (embedder.id().to_string(), embedder.batch_size()),
        ("cohere/embed-multilingual-v3.0 (1024 wide)".to_owned(), 96)
    );
    assert!(server.requests().is_empty(), "the width is known, so nothing is asked");
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
async fn cohere_is_told_questions_from_passages() {
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
async fn a_width_is_asked_for_where_the_model_offers_several() {
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
    // The model's own width is no wish.
    small.dimensions = Some(1536);
    let embedder = RemoteEmbedder::connect(small).await.unwrap();
    embedder.embed(&["a"], Purpose::Query).await.unwrap();
    assert!(server.requests()[2].body.get("dimensions").is_none());

    let mut fixed = settings(Protocol::Cohere, "embed-english-v3.0", &server);
    fixed.dimensions = Some(512);
    let refused = RemoteEmbedder::connect(fixed).await.unwrap_err().to_string();
    assert!(refused.contains("1024 wide and no others; remove embedder.dimensions"), "{refused}");
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
    // 300,000 tokens are the most of one call: eighty texts of 6,000 are more.
    let before = server.requests().len();
    let long = vec!["word ".repeat(4_800); 80];
    embed(&embedder, &long, Purpose::Passage).await.unwrap();
    assert!(server.requests().len() - before >= 3, "{}", server.requests().len() - before);
    assert!(server.violations().is_empty(), "{:?}", server.violations());
}

#[tokio::test]
async fn ollama_needs_no_key_and_is_given_the_models_prefixes() {
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
async fn prefixes_are_part_of_the_identity() {
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
async fn a_model_of_unknown_width_is_asked_once() {
    let server = ScriptedProvider::start(77, vec![], Act::Answer).await.unwrap();
    let embedder =
        RemoteEmbedder::connect(settings(Protocol::OpenAi, "my-own-model", &server)).await.unwrap();
    assert_eq!((embedder.id().width, server.requests().len()), (77, 1));
    assert_eq!(embedder.batch_size(), 32, "servers of one's own often take no more");
    embed(&embedder, &texts(40), Purpose::Passage).await.unwrap();
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
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
async fn a_provider_that_names_a_time_is_not_asked_before_it() {
    let (server, embedder) = cohere(1024, vec![Act::Busy(429, 1)], Act::Answer).await;
    let start = Instant::now();
    embed(&embedder, &texts(1), Purpose::Passage).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn what_will_not_pass_is_said_with_the_way_out() {
    let (refused, calls) = error(Act::Status(401)).await;
    assert!(matches!(&refused, EmbedError::Unusable(message) if message.ends_with("check COHERE_API_KEY")));
    assert_eq!(calls, 1, "a refusal is not repeated");
    let (refused, _) = error(Act::Status(404)).await;
    assert!(refused.to_string().contains("check embedder.model and embedder.base_url"), "{refused}");
    let (refused, calls) = error(Act::Wide(768)).await;
    assert!(matches!(refused, EmbedError::Unusable(_)));
    assert!(refused.to_string().contains("768 wide instead of 1024; check embedder.model"), "{refused}");
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn what_does_not_pass_is_unavailable_after_three_attempts() {
    for act in
        [Act::Status(503), Act::Truncated, Act::Closed, Act::HalfJson, Act::Null, Act::Zeros, Act::TooFew]
    {
        let (unavailable, calls) = error(act.clone()).await;
        assert!(matches!(unavailable, EmbedError::Unavailable(_)), "{act:?}: {unavailable}");
        assert_eq!(calls, 3, "{act:?}");
    }
}

#[tokio::test]
async fn a_storm_opens_the_circuit() {
    let (server, embedder) = cohere(1024, vec![], Act::Status(503)).await;
    for _ in 0..5 {
        embedder.embed(&["a"], Purpose::Query).await.unwrap_err();
    }
    assert_eq!(server.requests().len(), 5, "five failures are enough");
    let left_alone = embedder.embed(&["a"], Purpose::Query).await.unwrap_err().to_string();
    assert!(left_alone.contains("left alone for a while"), "{left_alone}");
}

#[tokio::test]
async fn a_reader_is_not_kept_waiting() {
    let server = ScriptedProvider::start(1024, vec![], Act::Late(60_000)).await.unwrap();
    let mut settings = settings(Protocol::Cohere, "embed-multilingual-v3.0", &server);
    settings.questions.together = Some(Duration::from_millis(200));
    let embedder = RemoteEmbedder::connect(settings).await.unwrap();
    let start = Instant::now();
    let error = embedder.embed(&["a"], Purpose::Query).await.unwrap_err().to_string();
    assert!(start.elapsed() < Duration::from_secs(3) && error.contains("it took too long"), "{error}");
}

#[tokio::test]
async fn no_server_and_no_key_are_said_plainly() {
    let mut settings = RemoteEmbedderSettings::new(Protocol::Ollama, "nomic-embed-text");
    settings.base_url = Some("http://127.0.0.1:1".to_owned());
    settings.questions.policy.attempts = 1;
    let embedder = RemoteEmbedder::connect(settings).await.unwrap();
    let error = embedder.embed(&["a"], Purpose::Query).await.unwrap_err().to_string();
    assert!(
        error.contains("connection refused; check embedder.base_url and whether the server runs"),
        "{error}"
    );
    for (protocol, model, variable) in [
        (Protocol::Cohere, "embed-english-v3.0", "COHERE_API_KEY"),
        (Protocol::OpenAi, "text-embedding-3-small", "OPENAI_API_KEY"),
    ] {
        let error = RemoteEmbedder::connect(RemoteEmbedderSettings::new(protocol, model)).await.unwrap_err();
        assert!(matches!(&error, EmbedError::Unusable(_)));
        assert!(
            error.to_string().ends_with(&format!("there is no API key for it; set {variable}")),
            "{error}"
        );
    }
}
