//! The real binary with its index on a Qdrant server, over real gRPC.

use std::cell::RefCell;
use std::time::Duration;

use docent_backends::embed::local::LocalEmbedder;
use docent_backends::embed::remote::{Protocol, RemoteEmbedder, RemoteEmbedderSettings};
use docent_core::embed::{Embedder, Purpose};
use docent_testkit::postgres::Postgres;
use docent_testkit::scripted_provider::Act;
use docent_testkit::scripted_qdrant::{Fault, ScriptedQdrant, When};
use qdrant_client::Qdrant;
use qdrant_client::qdrant::{
    CreateCollectionBuilder, Distance, PointStruct, UpsertPointsBuilder, VectorParamsBuilder,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::embedders::Provider;
use crate::support::Docent;

/// A server in its own thread.
struct Server {
    runtime: Runtime,
    qdrant: ScriptedQdrant,
}

impl Server {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let qdrant = runtime.block_on(ScriptedQdrant::start()).unwrap();
        Self { runtime, qdrant }
    }

    /// A user whose index is on this server.
    fn user(&self, docent: Docent) -> Docent {
        docent.with("QDRANT_URL", &self.qdrant.url())
    }

    fn restart(&self) {
        self.runtime.block_on(self.qdrant.restart()).unwrap();
    }

    /// Creates a collection like another system would: unnamed Cohere vectors of width 1024.
    fn fill(&self, name: &str, provider: &Provider, payloads: &[Map<String, Value>]) {
        let mut settings = RemoteEmbedderSettings::new(Protocol::Cohere, "embed-multilingual-v3.0");
        settings.base_url = Some(provider.url());
        settings.api_key = Some("any-key".into());
        let text = |payload: &Map<String, Value>| {
            let field = ["text", "content", "chunk_text"].into_iter().find_map(|name| payload.get(name));
            field.and_then(Value::as_str).unwrap().to_owned()
        };
        let texts: Vec<String> = payloads.iter().map(text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = self.runtime.block_on(async {
            let embedder = RemoteEmbedder::connect(settings).await.unwrap();
            embedder.embed(&texts, Purpose::Passage).await.unwrap()
        });
        self.put(name, vectors, payloads);
    }

    /// Creates a collection with these vectors.
    fn put(&self, name: &str, vectors: Vec<Vec<f32>>, payloads: &[Map<String, Value>]) {
        self.runtime.block_on(async {
            let client = Qdrant::from_url(&self.qdrant.url()).skip_compatibility_check().build().unwrap();
            let vector = VectorParamsBuilder::new(vectors[0].len() as u64, Distance::Cosine);
            client
                .create_collection(CreateCollectionBuilder::new(name).vectors_config(vector))
                .await
                .unwrap();
            let points = payloads.iter().zip(vectors).enumerate();
            let points: Vec<PointStruct> = points
                .map(|(number, (payload, vector))| PointStruct::new(number as u64, vector, payload.clone()))
                .collect();
            client.upsert_points(UpsertPointsBuilder::new(name, points).wait(true)).await.unwrap();
        });
    }
}

const NODES: &str = "# Nodes\n\nA ROS 2 node is a participant in the graph.\n\n## Topics\n\nA topic carries messages between nodes.\n";

#[test]
fn a_book_can_be_ingested_searched_and_updated() {
    let server = Server::start();
    let docent = server.user(Docent::new());
    docent.write("book/nodes.md", NODES);
    docent.write("book/pasta.md", "# Pasta\n\nBoil the water and add salt.\n");
    docent.ok(&["ingest", "book", "--base-url", "https://book.example"]);
    let answer = docent.json(&["ask", "What is a ROS 2 node?"]);
    assert_eq!(answer["citations"][0]["quote"], "A ROS 2 node is a participant in the graph.", "{answer}");
    assert!(
        docent.json(&["search", "boil water"])["chunks"][0]["content"].as_str().unwrap().contains("salt")
    );

    // Without changes, nothing is embedded or published.
    let again = docent.json(&["ingest"]);
    assert_eq!((&again["published"], &again["embedded"]), (&json!(false), &json!(0)));

    // Only the passage of the changed section is embedded. A deleted page is removed.
    docent.write("book/nodes.md", &NODES.replace("carries messages", "carries typed messages"));
    std::fs::remove_file(docent.home.path().join("book/pasta.md")).unwrap();
    let changed = docent.json(&["ingest"]);
    assert_eq!((&changed["embedded"], &changed["pages"]["removed"]), (&json!(1), &json!(1)));
    let found = docent.json(&["search", "boil water and salt"]);
    let chunks = found["chunks"].as_array().unwrap();
    assert!(chunks.iter().all(|chunk| chunk["page_title"] == "Nodes"), "{found}");
    assert_eq!(docent.json(&["status"])["pages"], 1);
}

#[test]
fn a_book_can_be_exported_and_imported_without_embedding_again() {
    let server = Server::start();
    let here = Docent::new();
    here.write("book/nodes.md", NODES);
    here.ok(&["ingest", "book", "--base-url", "https://book.example"]);
    let question = ["search", "What is a node?"];
    let before = here.json(&question);
    let there = server.user(here);
    let exported = there.json(&["export", "--to", "qdrant"]);
    assert_eq!(exported["chunks"], 2);
    let on_server = there.json(&question);
    std::fs::remove_dir_all(there.index()).unwrap();
    there.ok(&["export", "--to", "embedded"]);
    let back = there.with("DOCENT_INDEX__KIND", "embedded").json(&question);
    let rounded = |mut found: Value| {
        for chunk in found["chunks"].as_array_mut().unwrap() {
            let score = chunk["similarity_score"].as_f64().unwrap();
            chunk["similarity_score"] = json!((score * 1e3).round());
        }
        found["chunks"].take()
    };
    let before = rounded(before);
    assert_eq!((rounded(on_server), rounded(back)), (before.clone(), before));
}

#[test]
fn the_sample_book_ranks_the_same_on_both_indexes() {
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample-book");
    let server = Server::start();
    let docent = server.user(Docent::without_vectors());
    docent.ok(&["ingest", book]);
    docent.ok(&["export", "--to", "embedded"]);
    let questions = [
        "What is a node?",
        "how does gazebo simulate physics",
        "publish cmd_vel",
        "isaac sim camera",
        "zebra",
    ];
    let there: Vec<Value> =
        questions.iter().map(|question| docent.json(&["search", question, "-k", "10"])).collect();
    let docent = docent.with("DOCENT_INDEX__KIND", "embedded");
    for (question, there) in questions.iter().zip(there) {
        let here = docent.json(&["search", question, "-k", "10"]);
        let places = |found: &Value| -> Vec<Value> {
            found["chunks"].as_array().unwrap().iter().map(|chunk| chunk["chunk_id"].clone()).collect()
        };
        assert_eq!(places(&here), places(&there), "{question}");
        let relevance = |found: &Value| found["chunks"][0]["similarity_score"].as_f64().unwrap_or(0.0);
        assert!((relevance(&here) - relevance(&there)).abs() < 1e-3, "{question}");
    }
}

#[test]
fn existing_collections_of_the_specifications_can_be_used_unchanged() {
    let server = Server::start();
    let provider = Provider::start(1024, vec![], Act::Answer);
    for shape in ["a", "b", "c", "d", "e"] {
        let file = format!("{}/tests/fixtures/payloads/{shape}.json", env!("CARGO_MANIFEST_DIR"));
        let payloads: Vec<Map<String, Value>> =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let name = format!("robotics_textbook_{shape}");
        server.fill(&name, &provider, &payloads);
        // The variables named in the specifications, and the address of the test double.
        let docent = server
            .user(Docent::new())
            .with("QDRANT_COLLECTION_NAME", &name)
            .with("COHERE_API_KEY", "cohere-key-0123456789")
            .with("DOCENT_COHERE__BASE_URL", &provider.url());
        let answer = docent.json(&["ask", "What is a node in the ROS 2 graph?"]);
        let citation = &answer["citations"][0];
        let quote = citation["quote"].as_str().unwrap();
        assert!(quote.starts_with("A node is a participant in the ROS 2 graph."), "{shape}: {answer}");
        let url = citation["url"].as_str().unwrap();
        let page = "https://physical-ai-robotics-textbook-xi.vercel.app/docs/module-1-ros2/ch2-nodes";
        assert!(url.starts_with(page), "{shape}: {url}");
        let title = citation["page_title"].as_str().unwrap();
        assert!(title.starts_with("Chapter 2: Nodes"), "{shape}: {title}");
        let found = docent.run(&["doctor"]);
        assert!(
            found.stdout.contains("created by another system, so Docent only reads it: 4 passages"),
            "{}",
            found.stdout
        );
        assert!(found.stdout.contains("cohere/embed-multilingual-v3.0"), "{}", found.stdout);

        // Only questions are embedded, and the collection is not changed.
        let run = docent.run(&["ingest", "book"]);
        assert_eq!(run.status, if docent.home.path().join("book").exists() { 3 } else { 1 });
        docent.write("book/page.md", NODES);
        let run = docent.run(&["ingest", "book"]);
        assert_eq!(run.status, 3, "{}", run.stderr);
        assert!(run.stderr.contains("was not created by Docent and will not be changed"), "{}", run.stderr);
    }
    assert_eq!(server.qdrant.count("Points/Upsert"), 5, "only the test itself wrote");
    let modules = server
        .user(Docent::new())
        .with("QDRANT_COLLECTION_NAME", "robotics_textbook_e")
        .with("COHERE_API_KEY", "cohere-key-0123456789")
        .with("DOCENT_COHERE__BASE_URL", &provider.url());
    let found = modules.json(&["search", "camera", "--module", "Module 2 Simulation"]);
    let chunks = found["chunks"].as_array().unwrap();
    assert!(!chunks.is_empty() && chunks.iter().all(|chunk| chunk["module_name"] == "Module 2 Simulation"));
}

#[test]
fn the_embedder_of_a_collection_is_detected() {
    let server = Server::start();
    let provider = Provider::start(1024, vec![], Act::Answer);
    let payload = json!({"text": "A node.", "url": "https://x.org/a"}).as_object().cloned().unwrap();
    server.fill("textbook", &provider, &[payload]);
    let docent = server.user(Docent::new()).with("QDRANT_COLLECTION_NAME", "textbook");
    docent.fails(
        &["search", "node"],
        3,
        "error: the collection contains vectors of width 1024, probably from embed-multilingual-v3.0, but COHERE_API_KEY is not set\n\
         hint: set COHERE_API_KEY, or set embedder.kind to the embedder that made the vectors",
    );
    docent.with("DOCENT_EMBEDDER__KIND", "local").fails(
        &["search", "node"],
        3,
        "error: the index was made with unknown (1024 wide), but local/granite-embedding-30m-english-int8 (384 wide) is configured\n\
         hint: set embedder.kind and embedder.model to the embedder that made the vectors",
    );
    let run = server.user(Docent::new()).with("QDRANT_COLLECTION_NAME", "nothing").run(&["search", "node"]);
    assert_eq!(run.status, 3);
    assert!(
        run.stderr.contains("no collection or alias `nothing`") && run.stderr.contains("textbook"),
        "{}",
        run.stderr
    );
}

#[test]
fn vectors_from_another_embedder_are_detected() {
    let server = Server::start();
    let text = "A node is a participant in the ROS 2 graph.";
    let payload = json!({"text": text, "url": "https://x.org/a"}).as_object().cloned().unwrap();
    let own = LocalEmbedder::bundled().unwrap().embed_now(&[text]).unwrap();
    let strange = vec![own[0].iter().rev().copied().collect()];
    server.put("own", own, std::slice::from_ref(&payload));
    server.put("strange", strange, &[payload]);
    let docent = |name| server.user(Docent::new()).with("QDRANT_COLLECTION_NAME", name);
    assert!(docent("own").ok(&["search", "node"]).contains(text));
    let run = docent("strange").run(&["search", "node"]);
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert!(
        run.stderr.contains("local/granite-embedding-30m-english-int8 did not make them")
            && run.stderr.contains("all-MiniLM-L6-v2"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_ingest_survives_lost_responses_and_a_dead_server() {
    let server = Server::start();
    let docent = server.user(Docent::without_vectors());
    for page in 0..400 {
        docent.write(&format!("book/p{page}.md"), &format!("# Page {page}\n\nAbout subject{page}.\n"));
    }
    // Every second write fails in the worst way: it is applied, but the response is lost.
    server.qdrant.fault("Upsert", When::Every(2), Fault::CutAfter);
    docent.ok(&["ingest", "book"]);
    server.qdrant.heal();
    assert_eq!(docent.json(&["status"])["chunks"], 400);
    assert!(docent.ok(&["search", "subject321"]).contains("About subject321."));

    // If the server stays down, the ingest fails; the old book is still there when the server is back.
    for page in 400..420 {
        docent.write(&format!("book/p{page}.md"), &format!("# Page {page}\n\nAbout subject{page}.\n"));
    }
    server.qdrant.stop();
    let run = docent.run(&["ingest"]);
    assert_eq!(run.status, 4, "{}", run.stderr);
    assert!(run.stderr.contains("cannot be reached"), "{}", run.stderr);
    server.restart();
    assert_eq!(docent.json(&["status"])["chunks"], 400);
    docent.ok(&["ingest"]);
    assert_eq!(docent.json(&["status"])["chunks"], 420);
}

#[test]
fn an_ingest_continues_when_a_killed_server_restarts() {
    let server = Server::start();
    let docent = server.user(Docent::without_vectors());
    for page in 0..1000 {
        docent.write(&format!("book/p{page}.md"), &format!("# Page {page}\n\nAbout subject{page}.\n"));
    }
    // Slow enough to be interrupted.
    server.qdrant.fault("Upsert", When::From(1), Fault::Slow(Duration::from_millis(50)));
    let mut ingest = docent.command(&["ingest", "book", "--quiet"]).spawn().unwrap();
    while server.qdrant.count("Upsert") < 4 {
        assert!(ingest.try_wait().unwrap().is_none(), "the ingest ended before it was disturbed");
        std::thread::sleep(Duration::from_millis(1));
    }
    server.qdrant.stop();
    server.restart();
    assert!(ingest.wait().unwrap().success());
    assert_eq!(docent.json(&["status"])["chunks"], 1000);
    assert!(docent.ok(&["search", "subject3"]).contains("About subject3."));
}

#[test]
fn a_conversation_survives_an_index_outage() {
    let server = Server::start();
    let docent = server.user(Docent::new());
    docent.write("book/nodes.md", NODES);
    docent.ok(&["ingest", "book", "--base-url", "https://book.example", "--quiet"]);
    let served = docent.serve();
    let client = reqwest::Client::new();
    let post = client.post(format!("{}/api/v1/sessions", served.url)).send();
    let session = server.runtime.block_on(async { post.await.unwrap().json::<Value>().await.unwrap() });
    let (id, key) = (&session["session_id"], session["session_key"].as_str().unwrap());
    let ask = |body: Value| {
        let request = client.post(format!("{}/api/v1/ask", served.url)).header("x-docent-session-key", key);
        let response = server.runtime.block_on(request.json(&body).send()).unwrap();
        let status = response.status().as_u16();
        (status, server.runtime.block_on(response.json::<Value>()).unwrap())
    };
    let ready = || {
        let response = server.runtime.block_on(client.get(format!("{}/readyz", served.url)).send()).unwrap();
        response.status().as_u16()
    };
    let (status, first) = ask(json!({"query": "What is a ROS 2 node?", "session_id": id}));
    assert_eq!(status, 200, "{first}");
    assert_eq!(ready(), 200);

    server.qdrant.stop();
    let (status, error) = ask(json!({"query": "What does a topic carry?", "session_id": id}));
    assert_eq!((status, &error["error"]), (503, &json!("retrieval_unavailable")), "{error}");
    assert_eq!(error["message"], "Textbook search unavailable");
    assert_eq!(ready(), 503);

    // The server comes back, and the conversation still has everything that was acknowledged.
    server.restart();
    let (status, answer) = ask(json!({"query": "What does a topic carry?", "session_id": id}));
    assert_eq!(status, 200, "{answer}");
    let path = format!("{}/api/v1/sessions/{}", served.url, id.as_str().unwrap());
    let read = async {
        client
            .get(path)
            .header("x-docent-session-key", key)
            .send()
            .await
            .unwrap()
            .json::<Value>()
            .await
            .unwrap()
    };
    assert_eq!(server.runtime.block_on(read)["turns"].as_array().unwrap().len(), 2);
    assert_eq!(ready(), 200);
}

#[test]
fn a_conversation_can_continue_on_another_server() {
    let Some(postgres) = Postgres::start() else { return };
    let database = postgres.database();
    let server = Server::start();
    let user = || {
        let docent = server.user(Docent::new());
        docent.with("DOCENT_SESSIONS__KIND", "postgres").with("DOCENT_SESSIONS__URL", &database)
    };
    let users = [user(), user()];
    users[0].write("book/nodes.md", NODES);
    users[0].ok(&["ingest", "book", "--base-url", "https://book.example", "--quiet"]);
    let servers = [users[0].serve(), users[1].serve()];
    let client = reqwest::Client::new();
    let key = RefCell::new(String::new());
    let post = |number: usize, path: &str, body: Value| {
        let request = client.post(format!("{}/api/v1/{path}", servers[number].url)).json(&body);
        let request = request.header("x-docent-session-key", key.borrow().as_str());
        server.runtime.block_on(async { request.send().await.unwrap().json::<Value>().await.unwrap() })
    };
    let session = post(0, "sessions", json!({}));
    let id = session["session_id"].clone();
    key.replace(session["session_key"].as_str().unwrap().to_owned());
    let first = post(0, "ask", json!({"query": "What is a topic?", "session_id": id}));
    assert_eq!(first["citations"][0]["heading"], "Topics", "{first}");
    // "it" refers to the topic of the turn that the other server answered.
    let second = post(1, "ask", json!({"query": "What does it carry?", "session_id": id}));
    assert_eq!(second["citations"][0]["quote"], "A topic carries messages between nodes.", "{second}");
    let third = post(0, "ask", json!({"query": "Between what?", "session_id": id}));
    assert_eq!(third["session_id"], id, "{third}");

    // A book published through one server is used by both, without a restart.
    users[0].write("book/nodes.md", &NODES.replace("carries messages", "carries typed messages"));
    users[0].ok(&["ingest", "--quiet"]);
    let until = std::time::Instant::now() + Duration::from_secs(20);
    for number in [0, 1] {
        loop {
            let answer = post(number, "ask", json!({"query": "What is a topic?"}));
            if answer["citations"][0]["quote"] == "A topic carries typed messages between nodes." {
                break;
            }
            assert!(std::time::Instant::now() < until, "{answer}");
        }
    }
}
