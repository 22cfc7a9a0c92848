//! Question sets in the BEIR layout, and a book made of their corpus.
//!
//! A set is a folder with `corpus.jsonl[.gz]` (`_id`, `title`, `text`, `url`), `queries.jsonl`
//! (`_id`, `text`) and `qrels.tsv` (`query-id`, `corpus-id`, `score`).

pub mod answers;
pub mod curve;
pub mod fit;
pub mod metrics;
pub mod report;
pub mod support;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use docent_backends::clock::SystemClock;
use docent_backends::index::embedded::{EmbeddedIndex, FolderShelf};
use docent_backends::index::parts::SourceRecord;
use docent_backends::index::qdrant::QdrantIndex;
use docent_backends::index::shelf::Shelf;
use docent_backends::ingest::{Plan, Progress, ingest};
use docent_core::embed::Embedder;
use docent_core::followup::rewrite;
use docent_core::index::{Description, Filter, Index};
use docent_core::query::{LONGEST_QUESTION, Question};
use docent_core::retrieve::Retriever;
use docent_core::terms::Analyzer;
use serde::Deserialize;

use crate::compose;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::{EmbedderKind, IndexKind, Settings};

/// How many documents a run names for each question.
const RUN_DEPTH: usize = 100;

/// The relevant documents of each question, with their grades.
pub type Judgements = BTreeMap<String, BTreeMap<String, f64>>;

/// A corpus with questions.
pub struct QuestionSet {
    /// Where it is.
    pub folder: PathBuf,
    corpus: PathBuf,
    /// Ids and texts, in order.
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

    /// The questions of whole conversations, one a line, by the same ids; none when the set has none.
    pub fn conversations(&self) -> Result<Option<Vec<(String, String)>>, Failure> {
        let path = self.folder.join("queries_questions.jsonl");
        if path.is_file() { read_queries(&path).map(Some) } else { Ok(None) }
    }

    /// Reads `qrels.tsv`; questions without a relevant document are left out.
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

    /// The folder's name, which names the set.
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

/// The corpus of a set as a book, kept while this lives.
pub struct EvalBook {
    /// What it holds.
    pub description: Description,
    /// Finds passages in it.
    pub retriever: Retriever,
    /// Compares meanings when answers are checked.
    pub meaning: Option<Arc<dyn Embedder>>,
    _temporary: Option<tempfile::TempDir>,
}

/// Ingests the corpus into `kept`, or into a folder that goes with the result.
pub async fn open_index(
    settings: &Settings,
    set: &QuestionSet,
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
    let source =
        SourceRecord { location: set.corpus.to_string_lossy().into_owned(), ..SourceRecord::default() };
    let plan = Plan { sources: vec![source], language: None, limits: Default::default() };
    let shelf: Box<dyn Shelf> = match settings.index_kind() {
        IndexKind::Embedded => Box::new(FolderShelf { folder: folder.clone() }),
        IndexKind::Qdrant => Box::new(on_server(settings)?),
    };
    ingest(&folder, shelf.as_ref(), embedder.as_deref(), &plan, &Lines { output })
        .await
        .map_err(|error| Failure::new(Exit::Failed, error))?;
    let index: Arc<dyn Index> = match settings.index_kind() {
        IndexKind::Embedded => Arc::new(EmbeddedIndex::open(&folder).map_err(compose::index_failure)?),
        IndexKind::Qdrant => Arc::new(on_server(settings)?),
    };
    let description = index.describe().await.map_err(compose::index_failure)?;
    let meaning = embedder.clone().filter(|_| settings.embedder.kind() == EmbedderKind::Local);
    let embedder = compose::matching(embedder, &description)?;
    let retriever = Retriever::new(
        index,
        embedder,
        description.language,
        settings.retrieval.settings(),
        Arc::new(SystemClock),
    );
    let retriever = compose::reranked(retriever, settings).await?;
    Ok(EvalBook { description, retriever, meaning, _temporary: temporary })
}

/// On a server the set has a collection of its own: readers' book is not for measuring.
fn on_server(settings: &Settings) -> Result<QdrantIndex, Failure> {
    let mut server = settings.qdrant()?;
    server.collection.push_str("-eval");
    QdrantIndex::new(server).map_err(compose::index_failure)
}

impl EvalBook {
    /// The documents for a question, best first: a document scores as its best chunk.
    pub async fn documents(&self, text: &str) -> Result<Vec<(String, f32)>, Failure> {
        let ranking =
            self.retriever.ranking(&question(text, RUN_DEPTH)?).await.map_err(compose::retrieve_failure)?;
        let mut best: HashMap<&str, f32> = HashMap::new();
        let mut order = Vec::new();
        for hit in &ranking {
            // The ranking descends, so the first chunk of a document is its best.
            if best.insert(&hit.chunk.document_id, hit.score).is_none() {
                order.push((hit.chunk.document_id.clone(), hit.score));
            }
        }
        order.truncate(RUN_DEPTH);
        Ok(order)
    }
}

/// The last question of a conversation as the agent searches for it, without a model.
pub fn last_question(conversation: &str, analyzer: &Analyzer) -> String {
    let mut searched: Option<String> = None;
    for line in conversation.lines().filter(|line| !line.trim().is_empty()) {
        searched = Some(rewrite(line, searched.as_deref(), analyzer).unwrap_or_else(|| line.to_owned()));
    }
    searched.unwrap_or_default()
}

/// A question of a set; longer ones than readers may ask are cut.
pub fn question(text: &str, top_k: usize) -> Result<Question, Failure> {
    let text: String = text.trim().chars().take(LONGEST_QUESTION).collect();
    Question::new(&text, top_k, 0.0, Filter::default()).map_err(Failure::usage)
}

/// What was found for a question.
pub struct Ranking {
    /// The question's id.
    pub query: String,
    /// Document ids and scores, best first.
    pub documents: Vec<(String, f32)>,
}

impl Ranking {
    /// As lines of a TREC run.
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
