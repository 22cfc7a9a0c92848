//! SEAM: conversations, kept.
//!
//! Invariant: a turn that [`SessionStore::append`] returned for survives a crash; turns are
//! never changed afterwards.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::answer::{AgentResponse, Metadata, Scope, Sentence};
use crate::retrieve::Confidence;

/// An ordered list of turns.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Names the session.
    pub session_id: Uuid,
    /// What it is about; the first question unless renamed.
    pub title: Option<String>,
    /// When it was created, RFC 3339, UTC.
    pub started_at: String,
    /// When its last turn was stored, or it was reset or renamed.
    pub updated_at: String,
    /// Turns since it was created or last reset.
    pub turn_count: u32,
}

impl Session {
    /// A session without turns that begins `now` (RFC 3339, UTC).
    pub fn new(session_id: Uuid, now: String) -> Self {
        Self { session_id, title: None, started_at: now.clone(), updated_at: now, turn_count: 0 }
    }
}

/// One question and its answer, with everything that led to it.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Names the turn.
    pub turn_id: Uuid,
    /// The question as asked.
    pub query: String,
    /// The question as searched, when it was a follow-up.
    pub rewritten_query: Option<String>,
    /// What the model asked for.
    pub tool_calls: Vec<ToolRecord>,
    /// The answer, with the passages retrieved and the timings.
    pub response: AgentResponse,
    /// When it was answered, RFC 3339, UTC.
    pub timestamp: String,
}

impl Turn {
    /// A turn of which only the words are known.
    pub fn told(question: &str, answer: &str) -> Self {
        let sentence = Sentence {
            text: answer.to_owned(),
            citations: Vec::new(),
            support: 0.0,
            supported: false,
            new_paragraph: true,
            html: None,
        };
        Self {
            turn_id: Uuid::nil(),
            query: question.to_owned(),
            rewritten_query: None,
            tool_calls: Vec::new(),
            timestamp: String::new(),
            response: AgentResponse {
                turn_id: Uuid::nil(),
                session_id: None,
                query: question.to_owned(),
                answer: answer.to_owned(),
                sentences: vec![sentence],
                citations: Vec::new(),
                sources: None,
                grounded: false,
                confidence: Confidence::None,
                relevance: 0.0,
                scope: Scope::default(),
                model_used: String::new(),
                tokens_used: 0,
                retrieval_count: 0,
                degraded: false,
                error: None,
                timestamp: String::new(),
                metadata: Metadata::default(),
            },
        }
    }
}

/// One retrieval by the model.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolRecord {
    /// The tool.
    pub tool_name: String,
    /// Its arguments, as the model wrote them.
    pub arguments: String,
    /// What was searched for.
    pub query: String,
    /// How many passages it got.
    pub results_count: usize,
    /// Their mean score.
    pub avg_similarity: f32,
    /// When, RFC 3339, UTC.
    pub timestamp: String,
}

/// Keeps sessions. Several processes may use one store.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// A new, empty session.
    async fn create(&self) -> Result<Session, SessionError>;

    /// Sessions, the last used first.
    async fn list(&self, limit: usize, offset: usize) -> Result<Vec<Session>, SessionError>;

    /// One session.
    async fn get(&self, id: Uuid) -> Result<Session, SessionError>;

    /// The last `last` turns since the last reset, oldest first.
    async fn turns(&self, id: Uuid, last: usize) -> Result<Vec<Turn>, SessionError>;

    /// Adds a turn; it is durable when this returns. The first turn's question becomes the title.
    async fn append(&self, id: Uuid, turn: &Turn) -> Result<(), SessionError>;

    /// Gives a session another title.
    async fn rename(&self, id: Uuid, title: &str) -> Result<Session, SessionError>;

    /// Clears the history; the session stays, and its old turns are kept out of sight.
    async fn reset(&self, id: Uuid) -> Result<Session, SessionError>;

    /// Removes a session and all its turns.
    async fn delete(&self, id: Uuid) -> Result<(), SessionError>;
}

/// Why a store could not do as asked, sorted by what the caller can do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is no such session, or turn.
    #[error("there is no session {0}")]
    NotFound(Uuid),

    /// Try again later; nothing was written.
    #[error("the session store is unavailable: {0}")]
    Unavailable(String),

    /// The store holds something that cannot be read.
    #[error("the session store is damaged: {0}")]
    Damaged(String),
}
