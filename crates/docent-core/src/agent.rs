//! The turn: a question becomes a checked, cited, stored answer.
//!
//! ```text
//! received → validating → retrieving → generating → completed
//!                              │             └ the model fails: an extractive answer, degraded
//!                              └ the book does not cover it: abstain
//! ```
//!
//! Invariant: an answer leaves here only with citations from the index, or as an abstention;
//! and it is stored before it is reported complete.

mod compose;
mod model;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::answer::{AgentResponse, Citation, Metadata, Sentence};
use crate::cite::CitationStyle;
use crate::clock::Clock;
use crate::extract::{MOST_PIECES, Passage, extract};
use crate::followup;
use crate::generate::{GenerateError, Generator, Usage};
use crate::query::{InvalidQuestion, MOST_AGENT_HITS, Question};
use crate::retrieve::{Confidence, Hit, RetrieveError, Retrieved, Retriever};
use crate::session::{SessionError, SessionStore, ToolRecord, Turn};
use crate::sources::SourceChunk;
use compose::Writer;

/// What answers without a model are said to be made by.
pub const EXTRACTIVE: &str = "extractive";

/// Every abstention contains this.
pub const NO_INFORMATION: &str = "I don't have information about that in the book content";

/// What happens to sentences the passages do not support.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// They stay, marked.
    #[default]
    Mark,
    /// They go.
    Drop,
    /// Nothing is checked.
    Off,
}

/// How passages reach the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetrievalMode {
    /// They are in the first call.
    #[default]
    Prefetch,
    /// The model must ask for them first.
    Tool,
}

/// How an agent behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Messages of the conversation shown to the model.
    pub max_history: usize,
    /// Rounds of tool calls in one turn.
    pub max_tool_rounds: usize,
    /// The model's temperature.
    pub temperature: f32,
    /// The most tokens of an answer.
    pub max_output_tokens: Option<u32>,
    /// The time a whole turn may take.
    pub deadline: Duration,
    /// What happens to unsupported sentences.
    pub verify: Verify,
    /// How citations look.
    pub citation_style: CitationStyle,
    /// How passages reach the model.
    pub retrieval_mode: RetrievalMode,
    /// What the tool is called.
    pub tool_name: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_history: 20,
            max_tool_rounds: 4,
            temperature: 0.1,
            max_output_tokens: Some(1000),
            deadline: Duration::from_secs(10),
            verify: Verify::default(),
            citation_style: CitationStyle::default(),
            retrieval_mode: RetrievalMode::default(),
            tool_name: "retrieve_documentation".to_owned(),
        }
    }
}

/// Kept back from the model's time, so that an extractive answer is still in time.
const RESERVE: Duration = Duration::from_millis(500);

/// A question to the agent.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The question.
    pub query: String,
    /// Passages to retrieve, 1–10.
    pub top_k: usize,
    /// Only passages of this module.
    pub module: Option<String>,
    /// The conversation it is part of.
    pub session_id: Option<Uuid>,
    /// Whether the passages are wanted in the answer.
    pub include_sources: bool,
}

/// Where a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The question is here.
    Received,
    /// Its limits are checked.
    Validating,
    /// Passages are looked for.
    Retrieving,
    /// The answer is written.
    Generating,
    /// Done.
    Completed,
    /// Nothing was found.
    NoResults,
    /// The book does not seem to cover the question.
    LowConfidence,
}

/// What happens in a turn, as it happens.
#[derive(Debug, Clone)]
pub enum TurnEvent {
    /// The turn moves on.
    State(State),
    /// The passages found.
    Sources(Vec<SourceChunk>),
    /// A sentence that was checked, with the citations it carries.
    Sentence(Sentence, Vec<Citation>),
}

/// Hears what happens.
pub type Listener<'a> = &'a (dyn Fn(TurnEvent) + Send + Sync);

/// Why a turn has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AskError {
    /// Ask something else.
    #[error(transparent)]
    Invalid(#[from] InvalidQuestion),
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
    generator: Option<Arc<dyn Generator>>,
    sessions: Option<Arc<dyn SessionStore>>,
    clock: Arc<dyn Clock>,
    settings: Settings,
}

/// How an answer came about, before it is put into words.
struct Draft {
    hits: Vec<Hit>,
    usage: Usage,
    model: String,
    degraded: bool,
    error: Option<String>,
    tool_calls: Vec<ToolRecord>,
}

impl Agent {
    /// Puts the parts together. Without a generator answers are extractive; without
    /// sessions nothing is remembered.
    pub fn new(
        retriever: Retriever,
        generator: Option<Arc<dyn Generator>>,
        sessions: Option<Arc<dyn SessionStore>>,
        clock: Arc<dyn Clock>,
        settings: Settings,
    ) -> Self {
        Self { retriever, generator, sessions, clock, settings }
    }

    /// Answers a question; `listener` hears of it on the way.
    pub async fn ask(&self, ask: &Ask, listener: Listener<'_>) -> Result<AgentResponse, AskError> {
        let start = self.clock.now();
        listener(TurnEvent::State(State::Received));
        listener(TurnEvent::State(State::Validating));
        let asked = Question::within(MOST_AGENT_HITS, &ask.query, ask.top_k, 0.0, ask.module.clone())?;
        let history = self.history(ask.session_id).await?;

        let before = history.last().map(|turn| turn.rewritten_query.as_deref().unwrap_or(&turn.query));
        let rewritten = followup::rewrite(asked.text(), before, self.retriever.analyzer());
        let searched = match &rewritten {
            Some(text) => asked.reworded(text),
            None => asked.clone(),
        };
        listener(TurnEvent::State(State::Retrieving));
        let retrieved = self.retriever.search(&searched).await?;
        listener(TurnEvent::Sources(source_chunks(&retrieved.hits)));

        let generating = self.clock.now();
        let draft = match retrieved.confidence {
            Confidence::High => {
                listener(TurnEvent::State(State::Generating));
                let writer = Writer::new(&self.retriever, &self.settings, listener);
                self.draft(&asked, &searched, &retrieved, &history, start, writer).await
            }
            Confidence::Low => {
                listener(TurnEvent::State(State::LowConfidence));
                None
            }
            Confidence::None => {
                listener(TurnEvent::State(State::NoResults));
                None
            }
        };
        let mut response = match draft {
            Some((draft, written)) if !written.citations.is_empty() => {
                self.respond(&asked, &retrieved, draft, written, ask.include_sources)
            }
            other => self.abstain(&asked, &retrieved, other.map(|(draft, _)| draft), ask.include_sources),
        };
        let now = self.clock.now();
        response.response.session_id = ask.session_id;
        response.response.metadata.generation_time_ms = milliseconds(now.saturating_sub(generating));
        response.response.metadata.response_time_ms = milliseconds(now.saturating_sub(start));
        if let (Some(sessions), Some(session)) = (&self.sessions, ask.session_id) {
            let turn = Turn {
                turn_id: response.response.turn_id,
                query: asked.text().to_owned(),
                rewritten_query: rewritten,
                tool_calls: response.tool_calls,
                timestamp: response.response.timestamp.clone(),
                response: AgentResponse { sources: Some(response.sources), ..response.response.clone() },
            };
            sessions.append(session, &turn).await?;
        }
        listener(TurnEvent::State(State::Completed));
        Ok(response.response)
    }

    async fn history(&self, session: Option<Uuid>) -> Result<Vec<Turn>, AskError> {
        match (&self.sessions, session) {
            // A turn is two messages.
            (Some(sessions), Some(id)) => {
                Ok(sessions.turns(id, self.settings.max_history.div_ceil(2)).await?)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The model's answer, or an extractive one when there is no model or it fails.
    async fn draft(
        &self,
        asked: &Question,
        searched: &Question,
        retrieved: &Retrieved,
        history: &[Turn],
        start: Duration,
        writer: Writer<'_>,
    ) -> Option<(Draft, compose::Written)> {
        let mut failure: Option<GenerateError> = None;
        if let Some(generator) = &self.generator {
            let left = self
                .settings
                .deadline
                .saturating_sub(self.clock.now().saturating_sub(start))
                .saturating_sub(RESERVE);
            let mut turn =
                model::ModelTurn::new(self, generator.as_ref(), asked, retrieved, history, writer.fresh());
            match model::within(self.clock.as_ref(), left, turn.run()).await {
                Some(Ok(())) => {
                    let (mut draft, written) = turn.finish();
                    draft.model = generator.model().to_owned();
                    return Some((draft, written));
                }
                Some(Err(error)) => failure = Some(error),
                None => failure = Some(GenerateError::Unavailable("it took too long".to_owned())),
            }
        }
        let passages: Vec<Passage<'_>> =
            retrieved.hits.iter().map(|hit| Passage { chunk: &hit.chunk, score: hit.score }).collect();
        let extracts =
            extract(searched.text(), &retrieved.terms, &passages, self.retriever.analyzer(), MOST_PIECES);
        let mut writer = writer;
        for piece in compose::extracted(&extracts, &retrieved.hits) {
            writer.write(piece, &retrieved.hits).await;
        }
        let draft = Draft {
            hits: retrieved.hits.clone(),
            usage: Usage::default(),
            model: EXTRACTIVE.to_owned(),
            degraded: failure.is_some(),
            error: failure.map(|error| error.to_string()),
            tool_calls: Vec::new(),
        };
        Some((draft, writer.finish()))
    }

    fn respond(
        &self,
        asked: &Question,
        retrieved: &Retrieved,
        draft: Draft,
        written: compose::Written,
        include: bool,
    ) -> Answered {
        let sources = source_chunks(&draft.hits);
        let response = AgentResponse {
            answer: written.answer(self.settings.citation_style),
            sentences: written.sentences,
            citations: written.citations,
            grounded: true,
            confidence: retrieved.confidence,
            model_used: draft.model,
            tokens_used: draft.usage.total(),
            degraded: draft.degraded,
            error: draft.error,
            retrieval_count: draft.hits.len(),
            sources: include.then(|| sources.clone()),
            ..self.blank(asked, retrieved)
        };
        Answered { response, sources, tool_calls: draft.tool_calls }
    }

    /// Says that the book does not cover the question, and where to look.
    fn abstain(
        &self,
        asked: &Question,
        retrieved: &Retrieved,
        draft: Option<Draft>,
        include: bool,
    ) -> Answered {
        let sources = source_chunks(&retrieved.hits);
        let confidence = if retrieved.hits.is_empty() { Confidence::None } else { Confidence::Low };
        let mut response = AgentResponse {
            answer: compose::abstention(&sources),
            confidence,
            sources: include.then(|| sources.clone()),
            ..self.blank(asked, retrieved)
        };
        let mut tool_calls = Vec::new();
        if let Some(draft) = draft {
            response.model_used = draft.model;
            response.tokens_used = draft.usage.total();
            response.degraded = draft.degraded;
            response.error = draft.error;
            tool_calls = draft.tool_calls;
        }
        Answered { response, sources, tool_calls }
    }

    /// A response with everything that does not depend on the answer.
    fn blank(&self, asked: &Question, retrieved: &Retrieved) -> AgentResponse {
        AgentResponse {
            turn_id: self.clock.new_id(),
            session_id: None,
            query: asked.text().to_owned(),
            answer: String::new(),
            sentences: Vec::new(),
            citations: Vec::new(),
            sources: None,
            grounded: false,
            confidence: retrieved.confidence,
            relevance: retrieved.relevance,
            model_used: EXTRACTIVE.to_owned(),
            tokens_used: 0,
            retrieval_count: retrieved.hits.len(),
            degraded: false,
            error: None,
            timestamp: self.clock.timestamp(),
            metadata: Metadata {
                embedding_time_ms: milliseconds(retrieved.embedding_time),
                retrieval_time_ms: milliseconds(retrieved.retrieval_time),
                chunk_count: retrieved.hits.len(),
                index_version: retrieved.version.clone(),
                ..Metadata::default()
            },
        }
    }
}

/// A response, and what the store keeps beside it.
struct Answered {
    response: AgentResponse,
    sources: Vec<SourceChunk>,
    tool_calls: Vec<ToolRecord>,
}

/// Whole microseconds, so that a stored number reads back as it was.
fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

fn source_chunks(hits: &[Hit]) -> Vec<SourceChunk> {
    hits.iter().zip(1..).map(|(hit, position)| SourceChunk::new(position, hit)).collect()
}
