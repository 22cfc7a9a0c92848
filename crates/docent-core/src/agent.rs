//! The turn: a question becomes a checked, cited, stored answer.
//!
//! ```text
//! received → validating → retrieving → generating → completed
//!                              │             └ the model fails: an extractive answer, degraded
//!                              └ the book does not cover it: no_results or low_confidence
//! ```
//!
//! Invariant: an answer leaves here only with citations from the index, or as an abstention;
//! and it is stored before it is reported complete.

mod before;
mod compose;
mod event;
mod model;
mod respond;
mod selection;
mod settings;
#[cfg(test)]
mod tests;
mod window;

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use uuid::Uuid;

use crate::answer::AgentResponse;
use crate::clock::Clock;
use crate::embed::Embedder;
use crate::extract::{MOST_PIECES, Passage, extract};
use crate::generate::{GenerateError, Generator, Usage};
use crate::index::{Filter, NoSuchPart};
use crate::query::{InvalidQuestion, MOST_AGENT_HITS, Question};
use crate::recent::Recent;
use crate::retrieve::{Confidence, Hit, RetrieveError, Retrieved, Retriever};
use crate::session::{SessionError, SessionStore, ToolRecord, Turn};
use crate::verify::Verifier;
use compose::{Writer, Written};
use respond::{Answered, milliseconds, source_chunks};

pub use compose::{UNSUPPORTED_MARK, rendered};
pub use event::{Listener, State, TurnEvent};
pub use selection::Selection;
pub use settings::{RetrievalMode, Rewrite, Settings, Verify};

/// What answers without a model are said to be made by.
pub const EXTRACTIVE: &str = "extractive";

/// Every abstention contains this.
pub const NO_INFORMATION: &str = "I don't have information about that in the book content";

/// Kept back from the model's time, so that an extractive answer is still in time.
const RESERVE: Duration = Duration::from_millis(500);

/// Searches kept for when the same question comes again.
const RECENT_SEARCHES: usize = 256;

/// A question to the agent.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The question.
    pub query: String,
    /// Passages to retrieve, 1–10.
    pub top_k: usize,
    /// The least score of a passage, 0–1.
    pub threshold: f32,
    /// What it may be answered from.
    pub filter: Filter,
    /// The conversation it is part of.
    pub session_id: Option<Uuid>,
    /// What was said before, when there is no session to remember it.
    pub earlier: Vec<Turn>,
    /// Words of the book the question is about.
    pub selection: Option<Selection>,
    /// Whether the passages are wanted in the answer.
    pub include_sources: bool,
    /// Whether somebody reads along: then a turn may take longer as long as something comes.
    pub streamed: bool,
}

/// Why a turn has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AskError {
    /// Ask something else.
    #[error(transparent)]
    Invalid(#[from] InvalidQuestion),
    /// Name another book or module.
    #[error(transparent)]
    NoSuchPart(#[from] NoSuchPart),
    /// The book cannot be searched.
    #[error(transparent)]
    Retrieve(#[from] RetrieveError),
    /// The conversation cannot be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Answers questions about a book.
#[derive(Clone)]
pub struct Agent {
    retriever: Retriever,
    verifier: Verifier,
    generator: Option<Arc<dyn Generator>>,
    sessions: Option<Arc<dyn SessionStore>>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    searches: Arc<Recent<SearchKey, Retrieved>>,
    answers: Arc<Recent<AnswerKey, Answered>>,
}

/// What a search depends on. The index version makes a new book a new search.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SearchKey {
    text: String,
    top_k: usize,
    threshold: u32,
    filter: Filter,
    index_version: String,
}

/// What an answer depends on; settings and model are the agent's own and do not change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct AnswerKey {
    search: SearchKey,
    asked: String,
    passages: Vec<Uuid>,
    /// The turns the model would be shown, by name or by words.
    shown: Vec<(Uuid, String)>,
}

/// A question on its way to an answer.
struct Brief<'a> {
    /// As it was asked.
    asked: &'a Question,
    /// As it was searched for.
    searched: &'a Question,
    retrieved: &'a Retrieved,
    history: &'a [Turn],
    start: Duration,
    streamed: bool,
}

/// How an answer came about, before it is put into words.
#[derive(Debug, Default)]
struct Draft {
    hits: Vec<Hit>,
    usage: Usage,
    model: String,
    degraded: bool,
    error: Option<String>,
    tool_calls: Vec<ToolRecord>,
    removed_pointers: usize,
    warnings: Vec<String>,
}

impl Agent {
    /// Puts the parts together. Without a generator answers are extractive; without
    /// sessions nothing is remembered; without `meaning` sentences are checked by their
    /// words alone.
    pub fn new(
        retriever: Retriever,
        generator: Option<Arc<dyn Generator>>,
        sessions: Option<Arc<dyn SessionStore>>,
        meaning: Option<Arc<dyn Embedder>>,
        clock: Arc<dyn Clock>,
        settings: Settings,
    ) -> Self {
        let verifier = Verifier::new(retriever.shared_analyzer(), meaning);
        let searches = Arc::new(Recent::new(RECENT_SEARCHES));
        let answers = Arc::new(Recent::new(settings.cached_answers));
        Self { retriever, verifier, generator, sessions, clock, settings, searches, answers }
    }

    /// Answers a question; `listener` hears of it on the way.
    pub async fn ask(&self, ask: &Ask, listener: Listener<'_>) -> Result<AgentResponse, AskError> {
        listener(TurnEvent::State(State::Received));
        let answered = self.turn(ask, listener).await;
        listener(TurnEvent::State(answered.as_ref().map_or(State::Failed, State::end_of)));
        answered
    }

    /// Who writes answers: a model's name, or `extractive`.
    pub fn model(&self) -> &str {
        self.generator.as_ref().map_or(EXTRACTIVE, |generator| generator.model())
    }

    /// Whether calls of the model get through; none without a model.
    pub fn circuit(&self) -> Option<&'static str> {
        self.generator.as_ref().map(|generator| generator.circuit())
    }

    /// How it behaves.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The same agent without its model, for when the model may not be used.
    pub fn without_model(&self) -> Self {
        let answers = Arc::new(Recent::new(self.settings.cached_answers));
        Self { generator: None, answers, ..self.clone() }
    }

    async fn turn(&self, ask: &Ask, listener: Listener<'_>) -> Result<AgentResponse, AskError> {
        let start = self.clock.now();
        listener(TurnEvent::State(State::Validating));
        let asked = self.question(ask).await?;
        let history = self.history(ask).await?;

        let rewritten = self.rewrite(&asked, &history).await;
        let mut searched = match &rewritten.text {
            Some(text) => asked.reworded(text),
            None => asked.clone(),
        };
        if let Some(selection) = &ask.selection {
            searched = searched.reworded(&selection.about(searched.text()));
        }
        listener(TurnEvent::State(State::Retrieving));
        let (search, mut retrieved) = self.search(&searched).await?;
        let selected = match &ask.selection {
            Some(selection) => self.bring_forward(selection, &mut retrieved).await,
            None => None,
        };
        if rewritten.text.is_some() {
            self.keep_cited(&mut retrieved, &history, asked.filter()).await;
        }
        listener(TurnEvent::Sources(source_chunks(&retrieved.hits)));

        let generating = self.clock.now();
        let key = AnswerKey {
            search,
            asked: asked.text().to_owned(),
            passages: retrieved.hits.iter().map(|hit| hit.chunk.id).collect(),
            shown: match &self.generator {
                Some(_) => history.iter().map(|turn| (turn.turn_id, turn.response.answer.clone())).collect(),
                None => Vec::new(),
            },
        };
        let mut answered = match self.answers.get(&key) {
            Some(answered) => self.again(answered, listener),
            None => {
                let brief = Brief {
                    asked: &asked,
                    searched: &searched,
                    retrieved: &retrieved,
                    history: &history,
                    start,
                    streamed: ask.streamed,
                };
                let answered = self.answer(&brief, listener).await;
                if answered.response.grounded && !answered.response.degraded {
                    self.answers.put(key, answered.clone());
                }
                answered
            }
        };
        let response = &mut answered.response;
        if let Some(selected) = selected {
            response.scope = selected.scope(response, &answered.sources);
        }
        let now = self.clock.now();
        response.session_id = ask.session_id;
        response.tokens_used += rewritten.usage.total();
        response.metadata.generation_time_ms = milliseconds(now.saturating_sub(generating));
        response.metadata.response_time_ms = milliseconds(now.saturating_sub(start));
        if let (Some(sessions), Some(session)) = (&self.sessions, ask.session_id) {
            let turn = Turn {
                turn_id: response.turn_id,
                query: asked.text().to_owned(),
                rewritten_query: rewritten.text,
                tool_calls: answered.tool_calls,
                timestamp: response.timestamp.clone(),
                response: AgentResponse { sources: Some(answered.sources.clone()), ..response.clone() },
            };
            sessions.append(session, &turn).await?;
        }
        response.sources = ask.include_sources.then_some(answered.sources);
        Ok(answered.response)
    }

    /// Whether a question may be asked, without asking it.
    pub async fn check(&self, ask: &Ask) -> Result<(), AskError> {
        self.question(ask).await.map(|_| ())
    }

    /// The question, if it may be asked.
    async fn question(&self, ask: &Ask) -> Result<Question, AskError> {
        self.retriever.check(&ask.filter).await??;
        Ok(Question::within(MOST_AGENT_HITS, &ask.query, ask.top_k, ask.threshold, ask.filter.clone())?)
    }

    /// Searches, or remembers: the same question of the same book has the same passages.
    async fn search(&self, question: &Question) -> Result<(SearchKey, Retrieved), AskError> {
        let key = SearchKey {
            text: question.text().to_owned(),
            top_k: question.top_k(),
            threshold: question.threshold().to_bits(),
            filter: question.filter().clone(),
            index_version: self.retriever.version().await?,
        };
        if let Some(known) = self.searches.get(&key) {
            let known = Retrieved { embedding_time: Duration::ZERO, retrieval_time: Duration::ZERO, ..known };
            return Ok((key, known));
        }
        let retrieved = self.retriever.search(question).await?;
        self.searches.put(key.clone(), retrieved.clone());
        Ok((key, retrieved))
    }

    /// An answer that was given before, as a new turn. It cost nothing this time.
    fn again(&self, mut answered: Answered, listener: Listener<'_>) -> Answered {
        let response = &mut answered.response;
        response.turn_id = self.clock.new_id();
        response.timestamp = self.clock.timestamp();
        response.tokens_used = 0;
        response.metadata.cache_hit = true;
        listener(TurnEvent::State(State::Generating));
        for sentence in &response.sentences {
            let cited =
                response.citations.iter().filter(|citation| sentence.citations.contains(&citation.id));
            listener(TurnEvent::Sentence(sentence.clone(), cited.cloned().collect()));
        }
        answered
    }

    async fn answer(&self, brief: &Brief<'_>, listener: Listener<'_>) -> Answered {
        let Brief { asked, searched, retrieved, .. } = *brief;
        if retrieved.confidence != Confidence::High {
            return self.respond(asked, retrieved, None);
        }
        listener(TurnEvent::State(State::Generating));
        let (mut draft, mut heard) = (Draft::default(), false);
        if let Some(generator) = &self.generator {
            let writer = Writer::new(&self.retriever, &self.verifier, &self.settings, listener);
            let mut turn = model::ModelTurn::new(self, generator.as_ref(), brief, writer);
            let ended = turn.run_within(brief).await;
            let written;
            (draft, written) = turn.finish();
            heard = !written.sentences.is_empty();
            match ended {
                Ok(()) => {
                    let answered = self.respond(asked, retrieved, Some((draft, written)));
                    if heard && !answered.response.grounded {
                        listener(TurnEvent::Restart);
                    }
                    return answered;
                }
                Err(error) => {
                    draft.degraded = true;
                    draft.error = Some(error.to_string());
                }
            }
        }
        if heard {
            listener(TurnEvent::Restart);
        }
        let written = self.extract(searched, retrieved, listener).await;
        let draft = Draft { hits: retrieved.hits.clone(), model: EXTRACTIVE.to_owned(), ..draft };
        self.respond(asked, retrieved, Some((draft, written)))
    }

    /// The book's own words.
    async fn extract(&self, searched: &Question, retrieved: &Retrieved, listener: Listener<'_>) -> Written {
        let passages: Vec<Passage<'_>> =
            retrieved.hits.iter().map(|hit| Passage { chunk: &hit.chunk, score: hit.score }).collect();
        let extracts =
            extract(searched.text(), &retrieved.terms, &passages, self.retriever.analyzer(), MOST_PIECES);
        let mut writer = Writer::new(&self.retriever, &self.verifier, &self.settings, listener);
        for piece in compose::extracted(&extracts, &retrieved.hits) {
            writer.write(piece, &retrieved.hits).await;
        }
        writer.finish()
    }
}

/// A model that did not answer in time.
fn too_slow() -> GenerateError {
    GenerateError::Unavailable("it took too long".to_owned())
}
