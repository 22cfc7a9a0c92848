//! Measures Docent's overhead per turn: `cargo bench -p docent-backends --bench turn`.
//!
//! Uses the sample book and covers everything except the model: reading the history, embedding, searching,
//! checking each sentence, citing, storing. The model answers instantly.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use docent_backends::clock::SystemClock;
use docent_backends::embed::local::LocalEmbedder;
use docent_backends::index::contents::SourceRecord;
use docent_backends::index::embedded::{EmbeddedIndex, FolderTarget};
use docent_backends::ingest::{Plan, ingest};
use docent_backends::session::sql::SqlSessions;
use docent_core::agent::{Agent, Ask, Settings};
use docent_core::embed::Embedder;
use docent_core::generate::{EventStream, GenerateError, GenerateEvent, GenerateRequest, Generator, Usage};
use docent_core::index::Index;
use docent_core::retrieve::{self, Retriever};
use docent_core::session::SessionStore;

/// A model that answers instantly with the first sentences of the given passages.
struct Instantly;

#[async_trait]
impl Generator for Instantly {
    fn model(&self) -> &str {
        "instantly"
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<EventStream, GenerateError> {
        let prompt = &request.messages.last().unwrap().content;
        let passages = prompt.split("<passage number=").skip(1).take(3);
        let sentences = passages.zip(1..).map(|(passage, number)| {
            let text = passage.split_once('\n').map_or("", |(_, text)| text);
            let sentence: String = text.chars().take_while(|c| !matches!(c, '.' | '\n')).collect();
            // Not verbatim, so that verification has work to do.
            format!("The book says that {} [{number}].", sentence.to_lowercase())
        });
        let text = sentences.collect::<Vec<_>>().join(" ");
        let events = [
            Ok(GenerateEvent::Text(text)),
            Ok(GenerateEvent::Done(Usage { input_tokens: 900, output_tokens: 60 })),
        ];
        Ok(Box::pin(futures_util::stream::iter(events)))
    }
}

const QUESTIONS: [&str; 6] = [
    "What is a ROS 2 node?",
    "How do I use it to publish messages?",
    "What is Isaac Sim?",
    "Which sensors does a humanoid robot need?",
    "How does it keep its balance?",
    "What is a digital twin?",
];

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-book");
    let embedder: Arc<dyn Embedder> = Arc::new(LocalEmbedder::bundled().unwrap());
    let source = SourceRecord::new(book.to_string_lossy());
    let index = folder.path().join("index");
    let target = FolderTarget { folder: index.clone() };
    ingest(&index, &target, Some(embedder.as_ref()), &Plan::new(vec![source]), &()).await.unwrap();
    let index: Arc<dyn Index> = Arc::new(EmbeddedIndex::open(&index).unwrap());
    let language = index.describe().await.unwrap().language;
    for (name, generator) in
        [("instant model", Some(Arc::new(Instantly) as Arc<dyn Generator>)), ("extractive", None)]
    {
        let file = folder.path().join(format!("{}.sqlite", name.len()));
        let sessions: Arc<dyn SessionStore> = Arc::new(SqlSessions::open(&file).await.unwrap());
        let session = sessions.create().await.unwrap().session_id;
        let retriever = Retriever::new(
            index.clone(),
            Some(embedder.clone()),
            language,
            retrieve::Settings::default(),
            Arc::new(SystemClock),
        );
        let mut settings = Settings::default();
        settings.cached_answers = 0;
        let agent = Agent::builder(retriever, Arc::new(SystemClock))
            .generator(generator)
            .sessions(Some(sessions))
            .meaning(Some(embedder.clone()))
            .settings(settings)
            .build();
        println!("{name}");
        let mut turns = 0;
        for until in [100, 200, 500, 1000] {
            let mut times = Vec::new();
            while turns < until {
                // A repeated question would be answered from the cache.
                let query = format!("{} ({turns})", QUESTIONS[turns % QUESTIONS.len()]);
                let ask = Ask::new(query).with_session(session);
                let start = Instant::now();
                agent.ask(&ask, &|_| {}).await.unwrap();
                times.push(start.elapsed().as_secs_f64() * 1000.0);
                turns += 1;
            }
            times.sort_by(f64::total_cmp);
            println!(
                "  up to turn {until:>4}: p50 {:.1} ms, p95 {:.1} ms",
                times[times.len() / 2],
                times[times.len() * 95 / 100]
            );
        }
    }
}
