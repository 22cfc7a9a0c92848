//! Question sets in the BEIR layout, and books made from their corpus.
//!
//! A set is a folder with `corpus.jsonl[.gz]` (`_id`, `title`, `text`, `url`), `queries.jsonl`
//! (`_id`, `text`) and `qrels.tsv` (`query-id`, `corpus-id`, `score`).

pub mod answers;
pub mod curve;
pub mod fit;
pub mod metrics;
pub mod reading;
pub mod report;
pub mod support;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use docent_backends::index::contents::SourceRecord;
use docent_backends::ingest::{Plan, ingest};
use docent_backends::progress::Progress;
use docent_core::embed::Embedder;
use docent_core::followup::rewrite;
use docent_core::index::{Description, Filter};
use docent_core::library::Assemble;
use docent_core::query::{LONGEST_QUESTION, Question};
use docent_core::retrieve::Retriever;
use docent_core::terms::Analyzer;
use serde::Deserialize;

use crate::compose::{self, Assembly};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::Settings;

/// The number of documents per question in a run.
const RUN_DEPTH: usize = 100;

/// The relevant documents of each question, with their grades.
pub type Judgements = BTreeMap<String, BTreeMap<String, f64>>;

/// A corpus with questions.
pub struct QuestionSet {
    /// Its folder.
    pub folder: PathBuf,
    /// The file with the documents.
    pub corpus: PathBuf,
    /// Ids and texts of the questions, in order.
    pub queries: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Query {
    _id: String,
    text: String,
}

impl QuestionSet {
    /// Reads the questions of a folder.
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        if !folder.is_dir() {
            return Err(Failure::new(Exit::Failed, format!("{} is not a folder", folder.display())));
        }
        let corpus = ["corpus.jsonl", "corpus.jsonl.gz"]
            .iter()
            .map(|name| folder.join(name))
            .find(|path| path.is_file());
        let corpus = corpus.ok_or_else(|| {
            Failure::new(Exit::Failed, format!("{} has no corpus.jsonl or corpus.jsonl.gz", folder.display()))
                .hint("a question set has corpus.jsonl[.gz], queries.jsonl and qrels.tsv")
        })?;
        let path = folder.join("queries.jsonl");
        let only_answers = !path.is_file() && folder.join("qa.jsonl").is_file();
        let queries = if only_answers { Vec::new() } else { read_queries(&path)? };
        Ok(Self { folder: folder.to_owned(), corpus, queries })
    }

    /// The questions of whole conversations, one per line, with the same ids; `None` if the set has no conversations.
    pub fn conversations(&self) -> Result<Option<Vec<(String, String)>>, Failure> {
        let path = self.folder.join("queries_questions.jsonl");
        if path.is_file() { read_queries(&path).map(Some) } else { Ok(None) }
    }

    /// Reads `qrels.tsv`; skips questions without a relevant document.
    pub fn judgements(&self) -> Result<Judgements, Failure> {
        let path = self.folder.join("qrels.tsv");
        let mut judged = Judgements::new();
        for line in read_text(&path)?.lines() {
            let mut fields = line.split('\t');
            let (Some(query), Some(document), Some(grade)) = (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            if let Ok(grade) = grade.trim().parse::<f64>()
                && grade > 0.0
            {
                judged.entry(query.to_owned()).or_default().insert(document.to_owned(), grade);
            }
        }
        Ok(judged)
    }

    /// The name of the set: the name of its folder.
    pub fn name(&self) -> String {
        self.folder
            .canonicalize()
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .unwrap_or_default()
    }
}

fn read_queries(path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let parse = |(line, number): (&str, usize)| {
        let query: Query = serde_json::from_str(line).map_err(|error| {
            Failure::new(Exit::Failed, format!("{}, line {number}: {error}", path.display()))
        })?;
        Ok((query._id, query.text))
    };
    read_text(path)?.lines().zip(1..).map(parse).collect()
}

pub fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot read {}: {error}", path.display())))
}

/// An ingested corpus. A temporary index is deleted when this is dropped.
pub struct EvalBook {
    /// Its contents.
    pub description: Description,
    /// Searches it.
    pub retriever: Retriever,
    /// The embedder that compares meanings when answers are verified.
    pub meaning: Option<Arc<dyn Embedder>>,
    _temporary: Option<tempfile::TempDir>,
}

/// Ingests `location` into `kept`, or into a temporary folder that is deleted with the result.
pub async fn open_index(
    settings: &Settings,
    location: &Path,
    kept: Option<&Path>,
    output: &Output,
) -> Result<EvalBook, Failure> {
    let (folder, temporary) = match kept {
        Some(folder) => (folder.to_owned(), None),
        None => {
            let folder = tempfile::tempdir().map_err(anyhow::Error::from)?;
            (folder.path().to_owned(), Some(folder))
        }
    };
    let embedder = compose::embedder(settings).await?;
    let plan = Plan::new(vec![SourceRecord::new(location.to_string_lossy())]);
    let target = compose::eval_target(settings, &folder)?;
    ingest(&folder, target.as_ref(), embedder.as_deref(), &plan, &Lines { output })
        .await
        .map_err(|error| Failure::new(Exit::Failed, error))?;
    let index = compose::eval_index(settings, &folder)?;
    let description = index.describe().await.map_err(compose::index_failure)?;
    let meaning = compose::meaning(settings, embedder.clone());
    let embedder = compose::matching(embedder, &description.embedder)?;
    let retriever = Assembly::load(settings).await?.retriever(index, embedder, description.language);
    Ok(EvalBook { description, retriever, meaning, _temporary: temporary })
}

impl EvalBook {
    /// The documents for a question, best first. The score of a document is that of its best chunk.
    pub async fn documents(&self, text: &str) -> Result<Vec<(String, f32)>, Failure> {
        let ranking =
            self.retriever.ranking(&question(text, RUN_DEPTH)?).await.map_err(compose::retrieve_failure)?;
        let mut best: HashMap<&str, f32> = HashMap::new();
        let mut order = Vec::new();
        for hit in &ranking {
            // The ranking is sorted, so the first chunk of a document is its best.
            if best.insert(&hit.chunk.document_id, hit.score).is_none() {
                order.push((hit.chunk.document_id.clone(), hit.score));
            }
        }
        order.truncate(RUN_DEPTH);
        Ok(order)
    }
}

/// The query that the agent searches for, without a model, after the last question of a conversation.
pub fn last_question(conversation: &str, analyzer: &Analyzer) -> String {
    let mut searched: Option<String> = None;
    for line in conversation.lines().filter(|line| !line.trim().is_empty()) {
        searched = Some(rewrite(line, searched.as_deref(), analyzer).unwrap_or_else(|| line.to_owned()));
    }
    searched.unwrap_or_default()
}

/// A question of a set, cut to the length that users may ask.
pub fn question(text: &str, top_k: usize) -> Result<Question, Failure> {
    let text: String = text.trim().chars().take(LONGEST_QUESTION).collect();
    Question::new(&text, top_k, 0.0, Filter::default()).map_err(Failure::usage)
}

/// The documents found for a question.
pub struct Ranking {
    /// The question's id.
    pub query: String,
    /// Document ids and scores, best first.
    pub documents: Vec<(String, f32)>,
}

impl Ranking {
    /// The ranking as lines of a TREC run.
    pub fn trec(&self) -> String {
        let line = |(rank, (document, score)): (usize, &(String, f32))| {
            format!("{} Q0 {document} {} {score:.6} docent\n", self.query, rank + 1)
        };
        self.documents.iter().enumerate().map(line).collect()
    }
}

/// Progress for a command that may run without a terminal.
struct Lines<'a> {
    output: &'a Output,
}

impl Progress for Lines<'_> {
    fn step(&self, _: &str) {}

    fn passages(&self, done: usize, total: usize) {
        if self.output.verbose && done > 0 {
            self.output.note(format!("embedded {done} of {total} passages"));
        }
    }
}
