//! Tests of the Qdrant index, against the test double and, if one is configured, a real server.

#![allow(clippy::print_stderr)]

use docent_core::embed::Vector;
use docent_core::index::Filter as Restriction;
use docent_core::testing::{LetterEmbedder, chunk, index_contract, load};
use qdrant_client::Qdrant;
use qdrant_client::qdrant::{
    CreateCollectionBuilder, Distance, NamedVectors, PointStruct, UpsertPointsBuilder, VectorParamsBuilder,
    VectorsConfigBuilder,
};
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::index::contents::made::with_contents;
use crate::index::embedded::EmbeddedIndex;
use crate::index::embedded::build::build_in_memory;
use crate::index::target::IndexTarget;
use docent_testkit::scripted_qdrant::{Fault, ScriptedQdrant, When};

fn with_vectors(chunks: Vec<Chunk>) -> Vec<(Chunk, Vector)> {
    let vector = |chunk: Chunk| {
        let vector = LetterEmbedder::vector(&chunk.embedded_text());
        (chunk, vector)
    };
    chunks.into_iter().map(vector).collect()
}

async fn publish(index: &QdrantIndex, chunks: &[(Chunk, Vector)]) -> Result<String, IndexError> {
    // The contents are only borrowed inside the closure, so the future has to run inside it.
    let handle = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        with_contents(chunks, |contents| handle.block_on(index.publish(contents, &|_, _| ())))
    })
}

/// Settings for the test double, with short timeouts.
fn settings(server: &ScriptedQdrant, collection: &str) -> Settings {
    let mut address = Server::new(server.url(), None);
    address.write_timeout = Duration::from_millis(500);
    address.timeout = Duration::from_secs(2);
    Settings::new(address, collection)
}

fn index(server: &ScriptedQdrant) -> QdrantIndex {
    QdrantIndex::new(settings(server, "book")).unwrap()
}

async fn lexical(index: &dyn Index, text: &str) -> Result<Vec<String>, IndexError> {
    let query = IndexQuery { text, vector: None, filter: &Restriction::default(), depth: 5, analyzed: false };
    let found = index.search(&query).await?;
    Ok(load(index, &found.lexical).await?.iter().map(|chunk| chunk.content.clone()).collect())
}

/// Checks for the test double and a real server: the contract of an index, several generations, and reading
/// a book back unchanged.
async fn suite(server: Server) {
    let alias = format!("docent-test-{}", Uuid::new_v4().simple());
    let settings = Settings::new(server, alias.as_str());
    index_contract(async |chunks| {
        let index = QdrantIndex::new(settings.clone()).unwrap();
        publish(&index, &chunks).await.unwrap();
        Arc::new(index) as Arc<dyn Index>
    })
    .await;

    let index = QdrantIndex::new(settings).unwrap();
    let mut titled = chunk("b", 0, "A topic carries messages.");
    titled.heading = Some("Topics".to_owned());
    titled.heading_hierarchy = vec!["Parts".to_owned(), "Topics".to_owned()];
    titled.edition.version = Some("2.0".to_owned());
    titled.edition.locale = Some("de".to_owned());
    let chunks = with_vectors(vec![chunk("a", 0, "A node."), titled]);
    let name = publish(&index, &chunks).await.unwrap();
    assert_eq!(index.identity().await.unwrap().version, name);
    assert_eq!(lexical(&index, "topic").await.unwrap(), ["A topic carries messages."]);
    let taken = index.take().await.unwrap();
    with_contents(&chunks, |contents| {
        assert_eq!((&taken.chunks[..], &taken.pages[..]), (contents.chunks, contents.pages));
        assert!(taken.vectors.iter().zip(contents.vectors).all(|(a, b)| (a - b).abs() < 1e-5));
    });
    assert_eq!(index.vectors().await.unwrap().len(), 2);

    let names = index.collections().await.unwrap();
    let own: Vec<&String> = names.iter().filter(|name| name.starts_with(&alias)).collect();
    assert_eq!(own.len(), 2, "this generation and the previous one");
    for name in own {
        index.connection.write(|client| client.delete_collection(name.as_str())).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_test_double_keeps_the_contract() {
    let double = ScriptedQdrant::start().await.unwrap();
    eprintln!("running the Qdrant suite against the test double");
    suite(Server::new(double.url(), None)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_keeps_the_contract() {
    let Ok(url) = std::env::var("DOCENT_TEST_QDRANT_URL") else {
        docent_testkit::skipped("no real Qdrant server; set DOCENT_TEST_QDRANT_URL to use one");
        return;
    };
    eprintln!("running the Qdrant suite against the real server at {url}");
    let key = std::env::var("DOCENT_TEST_QDRANT_API_KEY").ok().map(Into::into);
    suite(Server::new(url, key)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_one_round_trip_and_so_is_reading_what_it_found() {
    let server = ScriptedQdrant::start().await.unwrap();
    let index = index(&server);
    publish(&index, &with_vectors(vec![chunk("a", 0, "A node."), chunk("b", 0, "A topic.")])).await.unwrap();
    index.describe().await.unwrap();
    server.forget_calls();
    let vector = LetterEmbedder::vector("node");
    let query = IndexQuery {
        text: "node zebra",
        vector: Some(&vector),
        filter: &Restriction::default(),
        depth: 5,
        analyzed: false,
    };
    let found = index.search(&query).await.unwrap();
    let calls = || server.calls().iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!(calls(), ["Points/QueryBatch"]);
    assert_eq!(load(&index, &found.dense).await.unwrap().len(), 2);
    assert_eq!(calls(), ["Points/QueryBatch", "Points/Get"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_returns_no_texts() {
    let server = ScriptedQdrant::start().await.unwrap();
    let index = index(&server);
    publish(&index, &with_vectors(vec![chunk("a", 0, "A node.")])).await.unwrap();
    let collection = index.collection().await.unwrap();
    let vector = LetterEmbedder::vector("node");
    let query = IndexQuery {
        text: "node",
        vector: Some(&vector),
        filter: &Restriction::default(),
        depth: 5,
        analyzed: false,
    };
    let request = QueryBatchPoints {
        collection_name: collection.name.clone(),
        query_points: Asked::new(&collection, &query).unwrap().queries,
        ..Default::default()
    };
    let answer = index.connection.read(|client| client.query_batch(request.clone())).await.unwrap();
    // The last query asks for the weight of the term.
    for batch in &answer.result[..2] {
        let mut fields: Vec<&String> = batch.result[0].payload.keys().collect();
        fields.sort();
        assert_eq!(fields, ["document_id", "row"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_search_and_the_chunks_it_found_are_of_the_same_generation() {
    let server = ScriptedQdrant::start().await.unwrap();
    let index = Arc::new(index(&server));
    let page = |text: &str| with_vectors(vec![chunk("page", 0, text)]);
    publish(&index, &page("old node")).await.unwrap();
    let pinned = index.clone().pinned().await.unwrap();
    let query =
        IndexQuery { text: "node", vector: None, filter: &Restriction::default(), depth: 5, analyzed: false };
    let found = pinned.search(&query).await.unwrap();
    publish(&index, &page("new node")).await.unwrap();
    assert_eq!(load(&*pinned, &found.lexical).await.unwrap()[0].content, "old node");
    assert_eq!(lexical(&*index, "node").await.unwrap(), ["new node"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn keywords_score_as_in_the_embedded_index() {
    let text = [
        "node graph topic",
        "A node is a node.",
        "The graph of nodes and topics, at length: it is long.",
        "pasta",
    ];
    let chunks = (0..40)
        .map(|number| {
            chunk(&format!("p{number}"), 0, &format!("{} {number}", text[number % 4].repeat(1 + number / 9)))
        })
        .collect();
    let chunks = with_vectors(chunks);
    let server = ScriptedQdrant::start().await.unwrap();
    let here = index(&server);
    publish(&here, &chunks).await.unwrap();
    let there = EmbeddedIndex::in_memory(
        with_contents(&chunks, |contents| build_in_memory("memory", contents)).unwrap(),
    );
    for question in ["What is a node?", "the graph of topics", "pasta 7", "zebra node", ""] {
        for module in [None, Some("m".to_owned())] {
            let filter = Restriction::of_module(module);
            let query =
                IndexQuery { text: question, vector: None, filter: &filter, depth: 20, analyzed: false };
            let (a, b) = (here.search(&query).await.unwrap(), there.search(&query).await.unwrap());
            let scores = async |index: &dyn Index, found: &Candidates| -> Vec<(String, i32)> {
                let chunks = load(index, &found.lexical).await.unwrap();
                let scored = found.lexical.iter().zip(chunks);
                scored.map(|(hit, chunk)| (chunk.document_id.clone(), (hit.score * 1e3) as i32)).collect()
            };
            let (a_scores, b_scores) = (scores(&here, &a).await, scores(&there, &b).await);
            // The server decides which of equally scored passages are returned last.
            let last = b_scores.last().map_or(0, |(_, score)| *score);
            let above = |scores: &[(String, i32)]| -> Vec<(String, i32)> {
                scores.iter().filter(|(_, score)| *score > last).cloned().collect()
            };
            assert_eq!(above(&a_scores), above(&b_scores), "{question}");
            assert_eq!(a_scores.len(), b_scores.len(), "{question}");
            assert_eq!(a.absent, b.absent);
            assert_eq!(a.terms.len(), b.terms.len());
            for ((term, weight), (other, expected)) in a.terms.iter().zip(&b.terms) {
                assert_eq!(term, other);
                assert!((weight - expected).abs() < 1e-3, "{term}: {weight} {expected}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_switch_to_a_new_generation_and_old_generations_are_removed() {
    let server = ScriptedQdrant::start().await.unwrap();
    let (writer, reader) = (index(&server), index(&server));
    assert!(matches!(reader.describe().await, Err(IndexError::Empty)));
    let mut names = Vec::new();
    for word in ["old", "new", "newest"] {
        names.push(
            publish(&writer, &with_vectors(vec![chunk("page", 0, &format!("{word} node"))])).await.unwrap(),
        );
        reader.forget();
        assert_eq!(lexical(&reader, "node").await.unwrap(), [format!("{word} node")]);
    }
    let mut expected = names[1..].to_vec();
    expected.sort();
    assert_eq!(
        writer.collections().await.unwrap(),
        expected,
        "the previous one is kept for running searches"
    );
    // Publishing the same book again gives the same generation.
    let same = publish(&writer, &with_vectors(vec![chunk("page", 0, "newest node")])).await.unwrap();
    assert_eq!(same, names[2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_whose_generation_was_removed_uses_the_new_one() {
    let server = ScriptedQdrant::start().await.unwrap();
    let (writer, reader) = (index(&server), index(&server));
    publish(&writer, &with_vectors(vec![chunk("page", 0, "first node")])).await.unwrap();
    lexical(&reader, "node").await.unwrap();
    for word in ["second", "third"] {
        publish(&writer, &with_vectors(vec![chunk("page", 0, &format!("{word} node"))])).await.unwrap();
    }
    assert_eq!(lexical(&reader, "node").await.unwrap(), ["third node"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_book_is_read_back_unchanged() {
    let server = ScriptedQdrant::start().await.unwrap();
    let index = index(&server);
    let mut twice = chunk("a", 0, "The same passage twice.");
    twice.id = Uuid::nil();
    let mut again = twice.clone();
    again.index = 1;
    let mut titled = chunk("b", 0, "A topic.");
    titled.heading = Some("Topics".to_owned());
    titled.heading_hierarchy = vec!["Parts".to_owned(), "Topics".to_owned()];
    let chunks = with_vectors(vec![twice, again, titled]);
    publish(&index, &chunks).await.unwrap();
    let taken = index.take().await.unwrap();
    with_contents(&chunks, |contents| {
        assert_eq!(taken.chunks, contents.chunks);
        assert_eq!(taken.pages, contents.pages);
        assert_eq!(taken.keys, contents.keys);
        assert_eq!(taken.labels[&(String::new(), "m".to_owned())], "Module M");
        assert_eq!(taken.embedder, contents.embedder);
        for (a, b) in taken.vectors.iter().zip(contents.vectors) {
            assert!((a - b).abs() < 1e-6);
        }
    });
    let published = index.published().await.unwrap().unwrap();
    assert_eq!(published.pages, taken.pages);
    assert_eq!(index.vectors().await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_failures_are_retried() {
    let server = ScriptedQdrant::start().await.unwrap();
    let index = index(&server);
    for fault in [Fault::Unavailable, Fault::CutAfter, Fault::CutBefore, Fault::Deadline, Fault::Internal] {
        server.fault("Upsert", When::Every(3), fault);
        let chunks = (0..300).map(|number| chunk(&format!("p{number}"), 0, "node")).collect();
        publish(&index, &with_vectors(chunks)).await.unwrap();
        server.heal();
        server.fault("QueryBatch", When::Next(1), Fault::Unavailable);
        assert_eq!(lexical(&index, "node").await.unwrap().len(), 5);
        server.heal();
    }
    assert_eq!(index.describe().await.unwrap().chunks, 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_respected() {
    let server = ScriptedQdrant::start().await.unwrap();
    let mut settings = settings(&server, "book");
    settings.server.write_timeout = Duration::from_secs(10);
    let index = QdrantIndex::new(settings).unwrap();
    server.fault("Upsert", When::Next(1), Fault::RateLimited { retry_after: 1 });
    let begun = Instant::now();
    publish(&index, &with_vectors(vec![chunk("a", 0, "node")])).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_is_reported_and_the_index_recovers() {
    let server = ScriptedQdrant::start().await.unwrap();
    let index = index(&server);
    publish(&index, &with_vectors(vec![chunk("a", 0, "node")])).await.unwrap();
    lexical(&index, "node").await.unwrap();
    server.stop();
    let error = lexical(&index, "node").await.unwrap_err();
    assert!(matches!(error, IndexError::Unavailable(_)), "{error}");
    assert!(error.to_string().contains(&server.url()), "{error}");
    server.restart().await.unwrap();
    assert_eq!(lexical(&index, "node").await.unwrap(), ["node"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_causes_a_timeout() {
    let server = ScriptedQdrant::start().await.unwrap();
    let mut settings = settings(&server, "book");
    settings.server.timeout = Duration::from_millis(200);
    let index = QdrantIndex::new(settings).unwrap();
    publish(&index, &with_vectors(vec![chunk("a", 0, "node")])).await.unwrap();
    server.fault("QueryBatch", When::From(1), Fault::Slow(Duration::from_secs(30)));
    let error = lexical(&index, "node").await.unwrap_err();
    assert!(matches!(error, IndexError::Unavailable(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_publish_is_resumed() {
    let server = ScriptedQdrant::start().await.unwrap();
    let index = index(&server);
    publish(&index, &with_vectors(vec![chunk("old", 0, "old node")])).await.unwrap();
    let chunks = with_vectors((0..1000).map(|number| chunk(&format!("p{number}"), 0, "new node")).collect());
    server.fault("Upsert", When::From(5), Fault::Unavailable);
    let error = publish(&index, &chunks).await.unwrap_err();
    assert!(matches!(error, IndexError::Unavailable(_)), "{error}");
    server.heal();
    assert_eq!(lexical(&index, "node").await.unwrap(), ["old node"], "searches still use the old book");
    server.forget_calls();
    publish(&index, &chunks).await.unwrap();
    // Three of eight batches were already written; the pages and the manifest are added to the rest.
    let upserts = server.count("Upsert");
    assert!((5 + 8..=5 + 8 + 3).contains(&upserts), "{upserts}");
    index.forget();
    assert_eq!(index.describe().await.unwrap().chunks, 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_key_is_sent_but_never_appears_in_errors() {
    let server = ScriptedQdrant::start_with_key("key-that-is-secret").await.unwrap();
    let mut settings = settings(&server, "book");
    settings.server.api_key = Some("key-that-is-secret".into());
    publish(&QdrantIndex::new(settings.clone()).unwrap(), &with_vectors(vec![chunk("a", 0, "node")]))
        .await
        .unwrap();
    settings.server.api_key = Some("key-that-is-wrong".into());
    let error = QdrantIndex::new(settings).unwrap().describe().await.unwrap_err();
    assert!(matches!(error, IndexError::Unusable(_)));
    let told = format!("{error} {error:?}");
    assert!(told.contains("QDRANT_API_KEY") && !told.contains("key-that"), "{told}");
}

/// A collection as another system would make it.
async fn foreign(server: &ScriptedQdrant, name: &str, payloads: &[Value]) -> Qdrant {
    let client = Qdrant::from_url(&server.url()).skip_compatibility_check().build().unwrap();
    let request =
        CreateCollectionBuilder::new(name).vectors_config(VectorParamsBuilder::new(26, Distance::Cosine));
    client.create_collection(request).await.unwrap();
    let points: Vec<PointStruct> = payloads
        .iter()
        .enumerate()
        .map(|(number, payload)| {
            let text = payload.to_string();
            let fields = payload.as_object().cloned().unwrap_or_default();
            PointStruct::new(number as u64, LetterEmbedder::vector(&text), payload::payload(fields))
        })
        .collect();
    if !points.is_empty() {
        client.upsert_points(UpsertPointsBuilder::new(name, points).wait(true)).await.unwrap();
    }
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn similarity_tells_whether_an_embedder_made_the_vectors() {
    let server = ScriptedQdrant::start().await.unwrap();
    let client = Qdrant::from_url(&server.url()).skip_compatibility_check().build().unwrap();
    let texts = ["A node is a participant.", "Boil the pasta.", "Topics carry messages."];
    for (name, is_own) in [("own", true), ("strange", false)] {
        let request =
            CreateCollectionBuilder::new(name).vectors_config(VectorParamsBuilder::new(26, Distance::Cosine));
        client.create_collection(request).await.unwrap();
        let points: Vec<PointStruct> = texts
            .iter()
            .zip(0..)
            .map(|(text, number)| {
                let mut vector = LetterEmbedder::vector(text);
                if !is_own {
                    vector.reverse();
                }
                let fields = json!({"text": text, "url": "https://x.org/a", "title": "A"});
                PointStruct::new(number, vector, payload::payload(fields.as_object().cloned().unwrap()))
            })
            .collect();
        client.upsert_points(UpsertPointsBuilder::new(name, points).wait(true)).await.unwrap();
        let index = QdrantIndex::new(settings(&server, name)).unwrap();
        let similarity = index.similarity(&LetterEmbedder::default()).await.unwrap().unwrap();
        assert_eq!(similarity > 0.99, is_own, "{name}: {similarity}");
    }
}

/// The same passage in the five payload formats of the specifications.
fn shapes() -> [Value; 5] {
    let (text, url) = ("A node is a participant in the graph.", "https://x.org/docs/module-1/nodes");
    [
        json!({"url": url, "title": "Nodes", "heading": "What is a node?", "text": text, "chunk_index": 0}),
        json!({"chunk_text": text, "source_url": url, "chapter_id": "module-1/nodes", "module_name": "Module 1",
               "heading_hierarchy": ["Nodes", "What is a node?"], "token_count": 9, "chunk_index": 0}),
        json!({"content": text, "url": url, "chunk_id": "nodes-0", "document_id": "nodes", "title": "Nodes",
               "chunk_index": 0, "created_at": "2026-01-01T00:00:00Z"}),
        json!({"chunk_text": text, "source_url": url, "page_title": "Nodes", "section_heading": "What is a node?",
               "breadcrumb": "Nodes > What is a node?", "chunk_index": 0}),
        json!({"text": text, "page_title": "Nodes", "page_url": url, "module_name": "module-1", "chunk_index": 0}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_payload_format_of_the_specifications_is_recognized() {
    let server = ScriptedQdrant::start().await.unwrap();
    for (number, shape) in shapes().into_iter().enumerate() {
        let name = format!("textbook-{number}");
        let other = shape.to_string().replace("A node is a participant in the graph.", "Boil the pasta.");
        let other = serde_json::from_str(
            &other.replace("module-1/nodes", "module-2/pasta").replace("\"nodes\"", "\"pasta\""),
        )
        .unwrap();
        foreign(&server, &name, &[shape, other]).await;
        let index = QdrantIndex::new(settings(&server, &name)).unwrap();
        let description = index.describe().await.unwrap();
        assert!(description.embedder.is_unknown() && description.embedder.width == 26);
        assert_eq!(description.chunks, 2, "shape {number}");
        let vector = LetterEmbedder::vector("A node is a participant in the graph.");
        let query = IndexQuery {
            text: "What is a participant?",
            vector: Some(&vector),
            filter: &Restriction::default(),
            depth: 5,
            analyzed: false,
        };
        let found = index.search(&query).await.unwrap();
        let hit = &load(&index, &found.lexical).await.unwrap()[0];
        assert_eq!(hit.content, "A node is a participant in the graph.", "shape {number}");
        assert_eq!(hit.url, "https://x.org/docs/module-1/nodes", "shape {number}");
        assert_eq!(hit.page_title, "Nodes", "shape {number}");
        if ![2, 4].contains(&number) {
            assert_eq!(hit.heading.as_deref(), Some("What is a node?"), "shape {number}");
        }
        let module = ["", "Module 1", "", "", "module-1"][number];
        assert_eq!(hit.module_name, module, "shape {number}");
        let page = index.page(&hit.document_id).await.unwrap();
        assert_eq!(page.len(), 1, "shape {number}");
        assert!(index.explain().await.unwrap().contains("only read"));
    }
    // Docent itself wrote nothing.
    let writes = ["SetPayload", "Delete", "UpdateAliases", "CreateFieldIndex"];
    assert!(writes.iter().all(|rpc| server.count(rpc) == 0));
    assert_eq!((server.count("Upsert"), server.count("Create")), (5, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_can_be_configured_and_nested() {
    let server = ScriptedQdrant::start().await.unwrap();
    let payload = json!({"body": {"words": "A node."}, "text": "wrong", "where": "https://x.org/a#b"});
    foreign(&server, "odd", &[payload]).await;
    let mut settings = settings(&server, "odd");
    settings.fields.text = Some("body.words".to_owned());
    settings.fields.url = Some("where".to_owned());
    let index = QdrantIndex::new(settings).unwrap();
    let outline = index.outline().await.unwrap();
    assert_eq!(outline[0].url, "https://x.org/a");
    assert_eq!(index.page("https://x.org/a").await.unwrap()[0].content, "A node.");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_for_an_unusable_collection_lists_its_fields_and_vectors() {
    let server = ScriptedQdrant::start().await.unwrap();
    foreign(&server, "odd", &[json!({"colour": "red", "size": 3})]).await;
    let error = QdrantIndex::new(settings(&server, "odd")).unwrap().describe().await.unwrap_err().to_string();
    assert!(error.contains("colour, size") && error.contains("qdrant.fields.text"), "{error}");
    let client = foreign(&server, "many", &[]).await;
    client.delete_collection("many").await.unwrap();
    let mut vectors = VectorsConfigBuilder::default();
    vectors.add_named_vector_params("small", VectorParamsBuilder::new(26, Distance::Euclid));
    vectors.add_named_vector_params("large", VectorParamsBuilder::new(64, Distance::Cosine));
    client.create_collection(CreateCollectionBuilder::new("many").vectors_config(vectors)).await.unwrap();
    let named = NamedVectors::default().add_vector("small", LetterEmbedder::vector("a node"));
    let point =
        PointStruct::new(1, named, payload::payload(json!({"text": "a node"}).as_object().cloned().unwrap()));
    client.upsert_points(UpsertPointsBuilder::new("many", vec![point]).wait(true)).await.unwrap();
    let mut settings = settings(&server, "many");
    let error = QdrantIndex::new(settings.clone()).unwrap().describe().await.unwrap_err().to_string();
    assert!(error.contains("large, small") && error.contains("qdrant.vector"), "{error}");
    // Euclidean distances of unit vectors are converted to cosines.
    settings.vector = Some("small".to_owned());
    let index = QdrantIndex::new(settings).unwrap();
    let vector = LetterEmbedder::vector("a node");
    let query = IndexQuery {
        text: "",
        vector: Some(&vector),
        filter: &Restriction::default(),
        depth: 5,
        analyzed: false,
    };
    assert!((index.search(&query).await.unwrap().dense[0].score - 1.0).abs() < 1e-3);
    // Without a query vector, such a collection cannot be searched.
    let error = lexical(&index, "node").await.unwrap_err().to_string();
    assert!(error.contains("only be searched by vectors"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_of_other_systems_are_never_changed() {
    let server = ScriptedQdrant::start().await.unwrap();
    foreign(&server, "book", &[shapes()[0].clone()]).await;
    // Its name looks like a generation, but Docent did not create it.
    foreign(&server, "mine-0123456789abcdef", &[shapes()[0].clone()]).await;
    let chunks = with_vectors(vec![chunk("a", 0, "node")]);
    let error = publish(&index(&server), &chunks).await.unwrap_err();
    assert!(matches!(&error, IndexError::Unusable(_)));
    assert!(error.to_string().contains("will not be changed"), "{error}");
    let mine = QdrantIndex::new(settings(&server, "mine")).unwrap();
    publish(&mine, &chunks).await.unwrap();
    publish(&mine, &with_vectors(vec![chunk("b", 0, "node")])).await.unwrap();
    publish(&mine, &with_vectors(vec![chunk("c", 0, "node")])).await.unwrap();
    assert!(mine.collections().await.unwrap().contains(&"mine-0123456789abcdef".to_owned()));
    assert_eq!(server.count("Points/Delete"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_has_the_configured_layout() {
    let server = ScriptedQdrant::start().await.unwrap();
    let mut settings = settings(&server, "book");
    settings.layout =
        Layout { shards: Some(6), replicas: Some(2), quantization: Quantization::Scalar, on_disk: true };
    let index = QdrantIndex::new(settings).unwrap();
    publish(&index, &with_vectors(vec![chunk("a", 0, "node")])).await.unwrap();
    let info = collection::info(&index.connection, "book").await.unwrap();
    let config = info.config.unwrap();
    let params = config.params.unwrap();
    assert_eq!((params.shard_number, params.replication_factor), (6, Some(2)));
    assert!(config.quantization_config.is_some());
    assert!(params.sparse_vectors_config.unwrap().map.contains_key("keywords"));
    let mut indexed: Vec<&String> = info.payload_schema.keys().collect();
    indexed.sort();
    assert_eq!(indexed, ["book_name", "docent", "document_id", "module_name"]);
}
