//! The real binary with its index on a Qdrant server, over real gRPC.

use std::time::Duration;

use docent_backends::embed::remote::{Protocol, RemoteEmbedder, RemoteEmbedderSettings};
use docent_backends::testing::postgres::Postgres;
use docent_backends::testing::scripted_provider::Act;
use docent_backends::testing::scripted_qdrant::{Fault, ScriptedQdrant, When};
use docent_core::embed::{Embedder, Purpose};
use qdrant_client::Qdrant;
use qdrant_client::qdrant::{
    CreateCollectionBuilder, Distance, PointStruct, UpsertPointsBuilder, VectorParamsBuilder,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::embedders::Provider;
use crate::support::Docent;

/// A server in a thread of its own.
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

    /// A user whose index is here.
    fn user(&self, docent: Docent) -> Docent {
        docent.with("QDRANT_URL", &self.qdrant.url())
    }

    fn restart(&self) {
        self.runtime.block_on(self.qdrant.restart()).unwrap();
    }

    /// A collection as another system makes it: Cohere's vectors, unnamed, 1024 wide.
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
        self.runtime.block_on(async {
            let embedder = RemoteEmbedder::connect(settings).await.unwrap();
            let vectors = embedder.embed(&texts, Purpose::Passage).await.unwrap();
            let client = Qdrant::from_url(&self.qdrant.url()).skip_compatibility_check().build().unwrap();
            let vector = VectorParamsBuilder::new(1024, Distance::Cosine);
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
fn a_book_is_ingested_searched_and_updated_there() {
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

    // Nothing changed: nothing is embedded and nothing published.
    let again = docent.json(&["ingest"]);
    assert_eq!((&again["published"], &again["embedded"]), (&json!(false), &json!(0)));

    // One section changed: its passage alone is embedded. A page that went is gone.
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
fn a_book_moves_there_and_back_without_being_embedded() {
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
fn collections_of_the_specifications_answer_as_they_are() {
    let server = Server::start();
    let provider = Provider::start(1024, vec![], Act::Answer);
    for shape in ["a", "b", "c", "d", "e"] {
        let file = format!("{}/tests/fixtures/payloads/{shape}.json", env!("CARGO_MANIFEST_DIR"));
        let payloads: Vec<Map<String, Value>> =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let name = format!("robotics_textbook_{shape}");
        server.fill(&name, &provider, &payloads);
        // The variables the specifications name, and where their double is.
        let docent = server
            .user(Docent::new())
            .with("QDRANT_COLLECTION_NAME", &name)
            .with("COHERE_API_KEY", "cohere-key-0123456789")
            .with("DOCENT_COHERE__BASE_URL", &provider.url());
        let answer = docent.json(&["ask", "What is a node in the ROS 2 graph?"]);
        let citation = &answer["citations"][0];
        assert_eq!(citation["quote"], "A node is a participant in the ROS 2 graph.", "{shape}: {answer}");
        let url = citation["url"].as_str().unwrap();
        let page = "https://physical-ai-robotics-textbook-xi.vercel.app/docs/module-1-ros2/ch2-nodes";
        assert!(url.starts_with(page), "{shape}: {url}");
        let title = citation["page_title"].as_str().unwrap();
        assert!(title.starts_with("Chapter 2: Nodes"), "{shape}: {title}");
        let found = docent.run(&["doctor"]);
        assert!(
            found.stdout.contains("made by another system and is only read: 4 passages"),
            "{}",
            found.stdout
        );
        assert!(found.stdout.contains("cohere/embed-multilingual-v3.0"), "{}", found.stdout);

        // Only questions are embedded, and nothing there is changed.
        let run = docent.run(&["ingest", "book"]);
        assert_eq!(run.status, if docent.home.path().join("book").exists() { 3 } else { 1 });
        docent.write("book/page.md", NODES);
        let run = docent.run(&["ingest", "book"]);
        assert_eq!(run.status, 3, "{}", run.stderr);
        assert!(run.stderr.contains("was not made by Docent and is never changed"), "{}", run.stderr);
    }
    assert_eq!(server.qdrant.count("Points/Upsert"), 5, "the test's own");
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
fn a_collection_says_which_embedder_it_wants() {
    let server = Server::start();
    let provider = Provider::start(1024, vec![], Act::Answer);
    let payload = json!({"text": "A node.", "url": "https://x.org/a"}).as_object().cloned().unwrap();
    server.fill("textbook", &provider, &[payload]);
    let docent = server.user(Docent::new()).with("QDRANT_COLLECTION_NAME", "textbook");
    docent.fails(
        &["search", "node"],
        3,
        "error: the collection holds vectors of width 1024, as embed-multilingual-v3.0 makes them, but COHERE_API_KEY is not set\n\
         hint: set COHERE_API_KEY, or set embedder.kind to what made the vectors",
    );
    docent.with("DOCENT_EMBEDDER__KIND", "local").fails(
        &["search", "node"],
        3,
        "error: the index was made with unknown (1024 wide), but local/all-MiniLM-L6-v2-int8 (384 wide) is configured\n\
         hint: set embedder.kind and embedder.model to what made the vectors",
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
fn an_ingest_survives_a_server_that_is_killed() {
    let server = Server::start();
    let docent = server.user(Docent::without_vectors());
    for page in 0..400 {
        docent.write(&format!("book/p{page}.md"), &format!("# Page {page}\n\nAbout subject{page}.\n"));
    }
    // Every second write goes wrong in the worst way: it is done, and nobody hears of it.
    server.qdrant.fault("Upsert", When::Every(2), Fault::CutAfter);
    docent.ok(&["ingest", "book"]);
    server.qdrant.heal();
    assert_eq!(docent.json(&["status"])["chunks"], 400);
    assert!(docent.ok(&["search", "subject321"]).contains("About subject321."));

    // A server that is gone for good stops the ingest; the old book answers when it is back.
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
fn an_ingest_waits_for_a_server_that_is_killed_in_the_middle() {
    let server = Server::start();
    let docent = server.user(Docent::without_vectors());
    for page in 0..1000 {
        docent.write(&format!("book/p{page}.md"), &format!("# Page {page}\n\nAbout subject{page}.\n"));
    }
    // Slow enough to be caught in the act.
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
fn a_conversation_outlives_its_index() {
    let server = Server::start();
    let docent = server.user(Docent::new());
    docent.write("book/nodes.md", NODES);
    docent.ok(&["ingest", "book", "--base-url", "https://book.example", "--quiet"]);
    let served = docent.serve();
    let client = reqwest::Client::new();
    let ask = |body: Value| {
        let response =
            server.runtime.block_on(client.post(format!("{}/api/v1/ask", served.url)).json(&body).send());
        let response = response.unwrap();
        let status = response.status().as_u16();
        (status, server.runtime.block_on(response.json::<Value>()).unwrap())
    };
    let ready = || {
        let response = server.runtime.block_on(client.get(format!("{}/readyz", served.url)).send()).unwrap();
        response.status().as_u16()
    };
    let post = client.post(format!("{}/api/v1/sessions", served.url)).send();
    let session = server.runtime.block_on(async { post.await.unwrap().json::<Value>().await.unwrap() });
    let id = &session["session_id"];
    let (status, first) = ask(json!({"query": "What is a ROS 2 node?", "session_id": id}));
    assert_eq!(status, 200, "{first}");
    assert_eq!(ready(), 200);

    server.qdrant.stop();
    let (status, error) = ask(json!({"query": "What does a topic carry?", "session_id": id}));
    assert_eq!((status, &error["error"]), (503, &json!("retrieval_unavailable")), "{error}");
    assert_eq!(error["message"], "Textbook search unavailable");
    assert_eq!(ready(), 503);

    // It comes back, and so does the conversation, with all that was acknowledged.
    server.restart();
    let (status, answer) = ask(json!({"query": "What does a topic carry?", "session_id": id}));
    assert_eq!(status, 200, "{answer}");
    let path = format!("{}/api/v1/sessions/{}", served.url, id.as_str().unwrap());
    let read = async { client.get(path).send().await.unwrap().json::<Value>().await.unwrap() };
    assert_eq!(server.runtime.block_on(read)["turns"].as_array().unwrap().len(), 2);
    assert_eq!(ready(), 200);
}

#[test]
fn a_conversation_continues_on_either_of_two_servers() {
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
    let post = |number: usize, path: &str, body: Value| {
        let request = client.post(format!("{}/api/v1/{path}", servers[number].url)).json(&body);
        server.runtime.block_on(async { request.send().await.unwrap().json::<Value>().await.unwrap() })
    };
    let id = post(0, "sessions", json!({}))["session_id"].clone();
    let first = post(0, "ask", json!({"query": "What is a topic?", "session_id": id}));
    assert_eq!(first["citations"][0]["heading"], "Topics", "{first}");
    // "it" is the topic of the turn the other server answered.
    let second = post(1, "ask", json!({"query": "What does it carry?", "session_id": id}));
    assert_eq!(second["citations"][0]["quote"], "A topic carries messages between nodes.", "{second}");
    let third = post(0, "ask", json!({"query": "Between what?", "session_id": id}));
    assert_eq!(third["session_id"], id, "{third}");

    // A book published through one is what both answer from, without a restart.
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
