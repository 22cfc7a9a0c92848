//! Run a turn: from a question to a verified, cited and stored answer.
//!
//! ```text
//! received → validating → retrieving → generating → completed
//!                              │             └ the model fails: an extractive answer (`degraded`)
//!                              └ the book does not cover the question: no_results or low_confidence
//! ```
//!
//! Invariant: every response is small talk, an abstention, or an answer with citations from the index. It is
//! stored before it is reported as complete, and a turn uses the same snapshot of the book throughout.

mod aside;
mod history;
mod cached;
mod writer;
mod event;
mod incoming;
mod model;
mod response;
mod selection;
mod settings;
mod small_talk;
#[cfg(test)]
mod tests;
mod transcript;
mod window;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use uuid::Uuid;

use crate::answer::AgentResponse;
use crate::cache::Cache;
use crate::chunk::Chunk;
use crate::clock::Clock;
use crate::embed::Embedder;
use crate::excerpt::{Excerpt, excerpts};
use crate::extract::{Material, extract};
use crate::followup::refers_back;
use crate::generate::{GenerateError, Generator, Meter, Usage};
use crate::index::{Filter, IndexError, NoSuchPart};
use crate::library::{Library, Snapshot};
use crate::query::{DEFAULT_HITS, InvalidQuestion, MOST_AGENT_HITS, Question};
use crate::retrieve::{Confidence, Hit, RetrieveError, Retrieved, Retriever};
use crate::session::{SessionError, SessionStore, ToolRecord, Turn};
use crate::small_talk::small_talk;
use crate::terms::Analyzer;
use crate::verify::Verifier;
use cached::{AnswerKey, SearchKey};
use response::{Answered, milliseconds, source_chunks};
use writer::{Writer, Written};

pub use event::{Listener, State, TurnEvent};
pub use selection::Selection;
pub use settings::{RetrievalMode, Rewrite, Settings, Verify};
pub use transcript::{Mark, Transcript, UNSUPPORTED_MARK};

/// The value of `model_used` for answers written without a model.
pub const EXTRACTIVE: &str = "extractive";

/// Every abstention contains this text.
pub const NO_INFORMATION: &str = "I don't have information about that in the book content";

/// Shown to users when the model failed. The reason is only reported to operators.
pub const MODEL_UNAVAILABLE: &str = "The language model is unavailable; this answer quotes the book.";

/// Subtracted from the model's deadline, to leave time for the extractive fallback.
const RESERVE: Duration = Duration::from_millis(500);

/// How many searches are cached.
const RECENT_SEARCHES: usize = 256;

/// A request to the agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ask {
    /// The question.
    pub query: String,
    /// Number of passages to retrieve, 1–10.
    pub top_k: usize,
    /// Minimum score of a passage, 0–1.
    pub threshold: f32,
    /// Which part of the book may be used for the answer.
    pub filter: Filter,
    /// The conversation this question belongs to.
    pub session_id: Option<Uuid>,
    /// Earlier turns, for clients that send the conversation themselves instead of using a session.
    pub earlier: Vec<Turn>,
    /// Text the user selected on a page of the book; the question is about it.
    pub selection: Option<Selection>,
    /// Whether the response should contain the retrieved passages.
    pub include_sources: bool,
    /// Whether the answer is streamed. A streamed turn may take longer, as long as the model keeps sending
    /// text.
    pub streamed: bool,
    /// Counts the tokens the model used. Can be read while the turn runs and after it was dropped.
    pub meter: Arc<Meter>,
}

impl Ask {
    /// A question about the whole book, without a conversation. The response is not streamed and does not contain
    /// the passages.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            top_k: DEFAULT_HITS,
            threshold: 0.0,
            filter: Filter::default(),
            session_id: None,
            earlier: Vec::new(),
            selection: None,
            include_sources: false,
            streamed: false,
            meter: Arc::default(),
        }
    }

    /// Retrieves this number of passages, 1–10.
    pub fn with_top_k(self, top_k: usize) -> Self {
        Self { top_k, ..self }
    }

    /// Only uses passages with at least this score, 0–1.
    pub fn with_threshold(self, threshold: f32) -> Self {
        Self { threshold, ..self }
    }

    /// Only uses this part of the book.
    pub fn with_filter(self, filter: Filter) -> Self {
        Self { filter, ..self }
    }

    /// Continues this conversation.
    pub fn with_session(self, session_id: impl Into<Option<Uuid>>) -> Self {
        Self { session_id: session_id.into(), ..self }
    }

    /// Continues a conversation that the client sends itself.
    pub fn with_earlier(self, earlier: Vec<Turn>) -> Self {
        Self { earlier, ..self }
    }

    /// Asks about text the user selected.
    pub fn with_selection(self, selection: impl Into<Option<Selection>>) -> Self {
        Self { selection: selection.into(), ..self }
    }

    /// Whether the response should contain the retrieved passages.
    pub fn with_sources(self, include_sources: bool) -> Self {
        Self { include_sources, ..self }
    }

    /// Whether the answer is streamed.
    pub fn with_streaming(self, streamed: bool) -> Self {
        Self { streamed, ..self }
    }
}

/// Why a turn failed, sorted by what the client can do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AskError {
    /// The question is invalid; change it.
    #[error(transparent)]
    Invalid(#[from] InvalidQuestion),
    /// The filter names a book, module, version or locale that does not exist.
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
    library: Library,
    meaning: Option<Arc<dyn Embedder>>,
    /// The verifier for the snapshot that was used last.
    verifier: Arc<Mutex<Option<Checking>>>,
    parts: Parts,
}

/// Builds an [`Agent`].
pub struct AgentBuilder {
    library: Library,
    clock: Arc<dyn Clock>,
    generator: Option<Arc<dyn Generator>>,
    sessions: Option<Arc<dyn SessionStore>>,
    meaning: Option<Arc<dyn Embedder>>,
    settings: Settings,
}

impl AgentBuilder {
    /// The language model that writes answers.
    pub fn generator(self, generator: Option<Arc<dyn Generator>>) -> Self {
        Self { generator, ..self }
    }

    /// Where conversations are stored.
    pub fn sessions(self, sessions: Option<Arc<dyn SessionStore>>) -> Self {
        Self { sessions, ..self }
    }

    /// An embedder for checking sentences. Without it they are checked by their words and by the reader.
    pub fn meaning(self, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { meaning: embedder, ..self }
    }

    /// How the agent answers.
    pub fn settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// The agent.
    pub fn build(self) -> Agent {
        let parts = Parts {
            generator: self.generator,
            sessions: self.sessions,
            clock: self.clock,
            searches: Arc::new(Cache::new(RECENT_SEARCHES)),
            answers: Arc::new(Cache::new(self.settings.cached_answers)),
            settings: Arc::new(self.settings),
            hides_model_errors: false,
        };
        Agent { library: self.library, meaning: self.meaning, verifier: Arc::default(), parts }
    }
}

/// A snapshot and its verifier.
type Checking = (Arc<Snapshot>, Verifier);

/// The parts of an agent that do not depend on the book.
#[derive(Clone)]
struct Parts {
    generator: Option<Arc<dyn Generator>>,
    sessions: Option<Arc<dyn SessionStore>>,
    clock: Arc<dyn Clock>,
    settings: Arc<Settings>,
    searches: Arc<Cache<SearchKey, Retrieved>>,
    answers: Arc<Cache<AnswerKey, Answered>>,
    /// Whether responses omit the reason why the model failed.
    hides_model_errors: bool,
}

/// The agent during one turn, pinned to one snapshot of the book.
struct PinnedAgent {
    retriever: Retriever,
    verifier: Verifier,
    parts: Parts,
}

/// What is known about a question when the answer is written.
struct Brief<'a> {
    /// The question as the user asked it.
    asked: &'a Question,
    /// The query that was searched for.
    searched: &'a Question,
    retrieved: &'a Retrieved,
    history: &'a [Turn],
    start: Duration,
    streamed: bool,
    meter: &'a Meter,
}

impl<'a> Brief<'a> {
    /// What a model is sent with the question: the passages, cut to what matters; none if the model searches itself.
    fn prefetched(&self, settings: &Settings) -> Vec<Excerpt<'a>> {
        match settings.retrieval_mode {
            RetrievalMode::Prefetch => excerpts(&self.retrieved.hits, &self.retrieved.read),
            _ => Vec::new(),
        }
    }
}

/// How an answer was produced; copied into the response.
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
    /// Starts building an agent for a book. Without further calls, answers are extractive and nothing is stored.
    pub fn builder(library: impl Into<Library>, clock: Arc<dyn Clock>) -> AgentBuilder {
        AgentBuilder {
            library: library.into(),
            clock,
            generator: None,
            sessions: None,
            meaning: None,
            settings: Settings::default(),
        }
    }

    /// Answers a question and reports progress to `listener`.
    pub async fn ask(&self, ask: &Ask, listener: Listener<'_>) -> Result<AgentResponse, AskError> {
        ask.meter.set(Usage::default());
        listener(TurnEvent::State(State::Received));
        let mut answered = self.turn(ask, listener).await;
        if let Err(AskError::Retrieve(RetrieveError::Index(IndexError::Gone(_)))) = &answered {
            // The generation was removed before it could be searched; retry with the newer one.
            answered = self.turn(ask, listener).await;
        }
        listener(TurnEvent::State(answered.as_ref().map_or(State::Failed, State::end_of)));
        answered
    }

    async fn turn(&self, ask: &Ask, listener: Listener<'_>) -> Result<AgentResponse, AskError> {
        self.pinned().await?.turn(ask, listener).await
    }

    /// Validates a request without running it.
    pub async fn check(&self, ask: &Ask) -> Result<(), AskError> {
        self.pinned().await?.question(ask).await.map(|_| ())
    }

    /// The name of the model that writes answers, or `extractive`.
    pub fn model(&self) -> &str {
        self.parts.generator.as_ref().map_or(EXTRACTIVE, |generator| generator.model())
    }

    /// State of the model's circuit breaker; none without a model.
    pub fn circuit(&self) -> Option<&'static str> {
        self.parts.generator.as_ref().map(|generator| generator.circuit())
    }

    /// The agent's settings.
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// The same agent without its model, used when the token budget is spent.
    pub fn without_model(&self) -> Self {
        let answers = Arc::new(Cache::new(self.parts.settings.cached_answers));
        let parts = Parts { generator: None, answers, ..self.parts.clone() };
        Self { parts, ..self.clone() }
    }

    /// The same agent for public use: the reason why the model failed goes to the listener, not into the
    /// response.
    pub fn hiding_model_errors(self) -> Self {
        Self { parts: Parts { hides_model_errors: true, ..self.parts }, ..self }
    }

    /// Pins the agent to the current snapshot of the book.
    async fn pinned(&self) -> Result<PinnedAgent, AskError> {
        let snapshot = self.library.current().await.map_err(RetrieveError::from)?;
        let verifier = self.verifier(&snapshot);
        Ok(PinnedAgent { retriever: snapshot.retriever.clone(), verifier, parts: self.parts.clone() })
    }

    fn verifier(&self, snapshot: &Arc<Snapshot>) -> Verifier {
        let mut kept = self.verifier.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((known, verifier)) if Arc::ptr_eq(known, snapshot) => verifier.clone(),
            _ => {
                let retriever = &snapshot.retriever;
                let reader = retriever.reader().cloned();
                let verifier = Verifier::new(retriever.shared_analyzer(), self.meaning.clone(), reader);
                *kept = Some((snapshot.clone(), verifier.clone()));
                verifier
            }
        }
    }
}

impl PinnedAgent {
    async fn turn(&self, ask: &Ask, listener: Listener<'_>) -> Result<AgentResponse, AskError> {
        let start = self.parts.clock.now();
        listener(TurnEvent::State(State::Validating));
        let asked = self.question(ask).await?;
        let history = self.history(ask).await?;

        if let Some(talk) = small_talk(asked.text())
            && let Some(answered) = self.small_talk(talk, &asked, listener).await?
        {
            return self.completed(ask, &asked, answered, None, start).await;
        }
        let rewritten = self.rewrite(&asked, &history, &ask.meter).await;
        listener(TurnEvent::State(State::Retrieving));
        let Found { searched, key: search, mut retrieved, rewritten_query } =
            self.find(ask, &asked, rewritten.text).await?;
        let selected = match &ask.selection {
            Some(selection) => self.bring_forward(selection, asked.filter(), &mut retrieved).await,
            None => None,
        };
        if selected.is_some() {
            self.retriever.read_again(searched.text(), &mut retrieved);
        }
        if rewritten_query.is_some() {
            self.keep_cited(&mut retrieved, &history, asked.filter()).await;
        }
        listener(TurnEvent::Sources(source_chunks(&retrieved.hits)));

        let generating = self.parts.clock.now();
        let brief = Brief {
            asked: &asked,
            searched: &searched,
            retrieved: &retrieved,
            history: &history,
            start,
            streamed: ask.streamed,
            meter: &ask.meter,
        };
        let key = self.answer_key(search, &brief);
        let mut answered = match self.parts.answers.get(&key) {
            Some(answered) => self.again(answered, &asked, listener),
            None => {
                let answered = self.answer(&brief, listener).await;
                if cached::may_recur(&answered, &retrieved) {
                    self.parts.answers.put(key, answered.clone());
                }
                answered
            }
        };
        let response = &mut answered.response;
        if let Some(selected) = selected {
            response.scope = selected.scope(response, &answered.sources);
        }
        response.charge(rewritten.usage);
        let respelled = retrieved.respelled.clone().filter(|_| ask.selection.is_none());
        let rewritten_query = respelled.or(rewritten_query);
        response.rewritten_query.clone_from(&rewritten_query);
        response.metadata.generation_time_ms =
            milliseconds(self.parts.clock.now().saturating_sub(generating));
        self.completed(ask, &asked, answered, rewritten_query, start).await
    }

    /// Searches for the question, or for the follow-up `rewritten` so that it stands alone.
    async fn find(&self, ask: &Ask, asked: &Question, rewritten: Option<String>) -> Result<Found, AskError> {
        let about = |text: &str| match &ask.selection {
            Some(selection) => asked.reworded(&selection.about(text)),
            None => asked.reworded(text),
        };
        let searched = about(rewritten.as_deref().unwrap_or(asked.text()));
        let (key, retrieved) = self.search(&searched).await?;
        if rewritten.is_some() {
            // Search for the original question too, in case the user has changed the subject.
            let searched = about(asked.text());
            let (key, alone) = self.search(&searched).await?;
            if stands_alone(asked, &alone, &retrieved, self.retriever.analyzer()) {
                let searched = as_searched(searched, &alone);
                return Ok(Found { searched, key, retrieved: alone, rewritten_query: None });
            }
        }
        let searched = as_searched(searched, &retrieved);
        Ok(Found { searched, key, retrieved, rewritten_query: rewritten })
    }

    /// Stores the turn and returns its response.
    async fn completed(
        &self,
        ask: &Ask,
        asked: &Question,
        mut answered: Answered,
        rewritten_query: Option<String>,
        start: Duration,
    ) -> Result<AgentResponse, AskError> {
        let response = &mut answered.response;
        response.session_id = ask.session_id;
        response.metadata.response_time_ms = milliseconds(self.parts.clock.now().saturating_sub(start));
        if let (Some(sessions), Some(session)) = (&self.parts.sessions, ask.session_id) {
            let turn = Turn {
                turn_id: response.turn_id,
                query: asked.text().to_owned(),
                rewritten_query,
                tool_calls: answered.tool_calls,
                timestamp: response.timestamp.clone(),
                response: AgentResponse { sources: Some(answered.sources.clone()), ..response.clone() },
            };
            sessions.append(session, &turn).await?;
        }
        response.sources = ask.include_sources.then_some(answered.sources);
        Ok(answered.response)
    }

    /// Validates the request.
    async fn question(&self, ask: &Ask) -> Result<Question, AskError> {
        self.retriever.check(&ask.filter).await??;
        Ok(Question::within(MOST_AGENT_HITS, &ask.query, ask.top_k, ask.threshold, ask.filter.clone())?)
    }

    async fn answer(&self, brief: &Brief<'_>, listener: Listener<'_>) -> Answered {
        let Brief { asked, searched, retrieved, .. } = *brief;
        if retrieved.confidence != Confidence::High {
            // The table of contents is only shown if no section is close, so it is only read then.
            let is_near = retrieved.hits.iter().any(|hit| hit.score >= writer::NEAR);
            let contents = if is_near { Vec::new() } else { self.contents(asked.filter()).await };
            return self.respond(asked, retrieved, None, &contents);
        }
        listener(TurnEvent::State(State::Generating));
        let (mut draft, mut heard) = (Draft::default(), false);
        if let Some(generator) = &self.parts.generator {
            let writer = Writer::new(&self.retriever, &self.verifier, &self.parts.settings, listener);
            let mut turn = model::ModelTurn::new(self, generator.as_ref(), brief, writer);
            let ended = turn.run_within(brief).await;
            let written;
            (draft, written) = turn.finish();
            heard = !written.sentences.is_empty();
            match ended {
                Ok(()) => {
                    let answered = self.respond(asked, retrieved, Some((draft, written)), &[]);
                    if heard && !answered.response.grounded {
                        listener(TurnEvent::Restart);
                    }
                    return answered;
                }
                Err(error) => {
                    draft.degraded = true;
                    let told = if self.parts.hides_model_errors {
                        MODEL_UNAVAILABLE.to_owned()
                    } else {
                        error.to_string()
                    };
                    draft.error = Some(told);
                    listener(TurnEvent::ModelFailed(error));
                }
            }
        }
        if heard {
            listener(TurnEvent::Restart);
        }
        let written = self.extract(searched, retrieved, listener).await;
        let draft = Draft { hits: retrieved.hits.clone(), model: EXTRACTIVE.to_owned(), ..draft };
        self.respond(asked, retrieved, Some((draft, written)), &[])
    }

    /// Writes an extractive answer.
    async fn extract(&self, searched: &Question, retrieved: &Retrieved, listener: Listener<'_>) -> Written {
        let chunks: Vec<&Chunk> = retrieved.hits.iter().map(|hit| hit.chunk.as_ref()).collect();
        let material = Material {
            question: searched.text(),
            terms: &retrieved.terms,
            chunks: &chunks,
            read: &retrieved.read,
            parts: retrieved.parts,
            in_doubt: retrieved.answers.is_some_and(|answers| answers < 0.0),
        };
        let extracts = extract(&material, self.retriever.analyzer());
        let mut writer = Writer::new(&self.retriever, &self.verifier, &self.parts.settings, listener);
        for piece in writer::extracted(extracts) {
            writer.write(piece, &retrieved.hits).await;
        }
        writer.finish()
    }
}

/// The result of the search of a turn.
struct Found {
    /// What was searched for.
    searched: Question,
    /// Identifies the search in the cache of answers.
    key: SearchKey,
    retrieved: Retrieved,
    /// The follow-up as it was rewritten; none if the question stands alone.
    rewritten_query: Option<String>,
}

/// The question with its misspelled words corrected, as it was searched for.
fn as_searched(question: Question, retrieved: &Retrieved) -> Question {
    match &retrieved.respelled {
        Some(text) => question.reworded(text),
        None => question,
    }
}

/// Whether a possible follow-up is a question of its own. If it refers back ("it", "that"), the book must
/// cover the original wording far better than the rewritten one. If not, one passage must contain all its
/// words.
fn stands_alone(asked: &Question, alone: &Retrieved, completed: &Retrieved, analyzer: &Analyzer) -> bool {
    let covered = alone.confidence == Confidence::High;
    if refers_back(asked.text(), analyzer) {
        covered && alone.relevance > completed.relevance + FAR_BETTER
    } else {
        covered && alone.signals.coverage >= ALL_WORDS
    }
}

/// How much higher the relevance of the original wording must be.
const FAR_BETTER: f32 = 0.4;

/// Coverage, 0–1, from which one passage counts as containing all words of the question.
const ALL_WORDS: f32 = 0.99;

/// The model did not answer in time.
fn too_slow() -> GenerateError {
    GenerateError::Unavailable("it took too long".to_owned())
}
