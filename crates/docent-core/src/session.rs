//! SEAM: store conversations.
//!
//! Invariant: once [`SessionStore::append`] returns, the turn survives a crash and is never changed. A reset
//! or a deletion removes turns permanently.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::answer::{
    AgentResponse, AnswerStatus, Citation, Metadata, ResponseKind, Scope, Sentence, Verdict,
};
use crate::retrieve::Confidence;
use crate::search_response::SourceChunk;

/// A conversation.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Session {
    /// Id of the conversation.
    pub session_id: Uuid,
    /// Title of the conversation: its first question, unless it was renamed; null before the first question.
    pub title: Option<String>,
    /// Time of creation, RFC 3339, UTC.
    pub started_at: String,
    /// Time when a turn was last stored, or the conversation was reset or renamed, RFC 3339, UTC.
    pub updated_at: String,
    /// Number of turns since it was created or last reset.
    pub turn_count: u32,
}

impl Session {
    /// An empty session, created `now` (RFC 3339, UTC).
    pub fn new(session_id: Uuid, now: String) -> Self {
        Self { session_id, title: None, started_at: now.clone(), updated_at: now, turn_count: 0 }
    }
}

/// A question with its answer.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Turn {
    /// Id of the turn.
    pub turn_id: Uuid,
    /// The question as the user asked it.
    pub query: String,
    /// The query that was searched for, if the question was a follow-up.
    pub rewritten_query: Option<String>,
    /// The tool calls of the model.
    pub tool_calls: Vec<ToolRecord>,
    /// The response, including the retrieved passages and the timings.
    pub response: AgentResponse,
    /// Time of the answer, RFC 3339, UTC.
    pub timestamp: String,
}

impl Turn {
    /// A turn without tool calls. `query` is the question as the user asked it.
    pub fn new(query: impl Into<String>, response: AgentResponse) -> Self {
        Self {
            turn_id: response.turn_id,
            query: query.into(),
            rewritten_query: response.rewritten_query.clone(),
            tool_calls: Vec::new(),
            timestamp: response.timestamp.clone(),
            response,
        }
    }

    /// A turn of which only question and answer are known.
    pub fn told(question: &str, answer: &str) -> Self {
        let sentence = Sentence {
            text: answer.to_owned(),
            citations: Vec::new(),
            support: 0.0,
            supported: false,
            verdict: Verdict::Unverified,
            new_paragraph: true,
            separator: String::new(),
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
                rewritten_query: None,
                kind: ResponseKind::default(),
                answer: answer.to_owned(),
                sentences: vec![sentence],
                citations: Vec::new(),
                sources: None,
                grounded: false,
                answer_status: AnswerStatus::default(),
                missing: Vec::new(),
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

impl Turn {
    /// A turn that the user stopped, with the sentences written until then.
    pub fn stopped(
        (turn_id, session_id): (Uuid, Uuid),
        question: &str,
        timestamp: String,
        (sentences, citations): (Vec<Sentence>, Vec<Citation>),
        sources: Vec<SourceChunk>,
    ) -> Self {
        let mut answer = String::new();
        for sentence in &sentences {
            if !answer.is_empty() {
                answer.push_str(if sentence.new_paragraph { "\n\n" } else { " " });
            }
            answer.push_str(&sentence.text);
        }
        let told = Self::told(question, &answer);
        let grounded = !citations.is_empty();
        Self {
            turn_id,
            timestamp: timestamp.clone(),
            response: AgentResponse {
                turn_id,
                session_id: Some(session_id),
                kind: ResponseKind::Stopped,
                sentences,
                citations,
                retrieval_count: sources.len(),
                sources: Some(sources),
                grounded,
                confidence: if grounded { Confidence::High } else { Confidence::None },
                timestamp,
                ..told.response
            },
            ..told
        }
    }
}

/// A tool call of the model.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolRecord {
    /// Name of the tool.
    pub tool_name: String,
    /// The arguments, as the model wrote them.
    pub arguments: String,
    /// The query that was searched for.
    pub query: String,
    /// Number of passages that were found.
    pub results_count: usize,
    /// Mean score of these passages, 0–1; 0 if there are none.
    pub avg_similarity: f32,
    /// Time of the call, RFC 3339, UTC.
    pub timestamp: String,
}

/// SHA-256 hash of a secret that gives access to a session. Stores never see the secret itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    /// The hash as 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Parses 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut hash = [0; 32];
        hex::decode_to_slice(text, &mut hash).ok()?;
        Some(Self(hash))
    }
}

/// The secrets that give access to a session. A session created on the command line has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionAccess {
    /// The creator's secret: may read, continue, share and delete the session.
    pub owner: Option<SecretHash>,
    /// The secret of a shared link: may only read the session.
    pub share: Option<SecretHash>,
}

/// Stores sessions. Several processes may use one store.
///
/// A store does not check access. Interfaces that are open to the public must compare secrets with
/// [`SessionStore::access`] first.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Creates an empty session without secrets.
    async fn create(&self) -> Result<Session, SessionError> {
        self.create_with(SessionAccess::default()).await
    }

    /// Creates an empty session with these secrets.
    async fn create_with(&self, access: SessionAccess) -> Result<Session, SessionError>;

    /// The secrets of a session.
    async fn access(&self, id: Uuid) -> Result<SessionAccess, SessionError>;

    /// Sets the secret for reading the session, and replaces the previous one; none ends sharing. This does
    /// not count as using the session.
    async fn share(&self, id: Uuid, share: Option<SecretHash>) -> Result<(), SessionError>;

    /// Lists sessions, most recently used first.
    async fn list(&self, limit: usize, offset: usize) -> Result<Vec<Session>, SessionError>;

    /// Returns a session.
    async fn get(&self, id: Uuid) -> Result<Session, SessionError>;

    /// The newest `last` turns since the last reset, oldest first.
    async fn turns(&self, id: Uuid, last: usize) -> Result<Vec<Turn>, SessionError> {
        self.turns_before(id, u32::MAX, last).await
    }

    /// The newest `most` turns with a number below `before`, oldest first. Turns are numbered from 1 since
    /// the last reset, without gaps.
    async fn turns_before(&self, id: Uuid, before: u32, most: usize) -> Result<Vec<Turn>, SessionError>;

    /// Appends a turn, which is durable when this returns. The question of the first turn becomes the title.
    async fn append(&self, id: Uuid, turn: &Turn) -> Result<(), SessionError>;

    /// Changes the title of a session.
    async fn rename(&self, id: Uuid, title: &str) -> Result<Session, SessionError>;

    /// Permanently removes all turns but keeps the session.
    async fn reset(&self, id: Uuid) -> Result<Session, SessionError>;

    /// Permanently removes a session and all its turns.
    async fn delete(&self, id: Uuid) -> Result<(), SessionError>;

    /// Checks that the store can be read and written. A store on a full disk, for example, can only be read.
    async fn check_writable(&self) -> Result<(), SessionError> {
        self.list(1, 0).await.map(|_| ())
    }

    /// Removes sessions that were last used before `moment` (RFC 3339, UTC), and returns how many.
    async fn expire_before(&self, moment: &str) -> Result<usize, SessionError>;

    /// The time to use for expiry, given the time of the system clock (both RFC 3339, UTC).
    ///
    /// If the clock jumps forward, sessions must not all expire at once. So this time advances by at most one
    /// day per call, even across restarts, and is never later than `now`. The first call for a store starts
    /// at its newest session, or at `now` if that is earlier or there are no sessions.
    async fn retention_time(&self, now: &str) -> Result<String, SessionError>;
}

/// Why a store failed, sorted by what the caller can do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is no such session.
    #[error("there is no session {0}")]
    NotFound(Uuid),

    /// Retry later; nothing was written.
    #[error("the session store is unavailable: {0}")]
    Unavailable(String),

    /// The store contains data that cannot be read.
    #[error("the session store is damaged: {0}")]
    Damaged(String),
}
