//! SEAM: the turn log, a record of turns for the operator.
//!
//! Invariant: the log does not identify users, and turns older than the retention period are removed.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::answer::{AgentResponse, ResponseKind};
use crate::retrieve::Confidence;
use crate::search_response::SourceChunk;
use crate::session::SessionError;

/// A turn in the log; it does not identify the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoggedTurn {
    /// Id of the turn.
    pub turn_id: Uuid,
    /// Time of the turn, RFC 3339, UTC.
    pub at: String,
    /// The question.
    pub question: String,
    /// The kind of the response; in older records, an abstention is an answer that is not grounded.
    #[serde(default)]
    pub kind: ResponseKind,
    /// Whether the answer has at least one citation.
    pub grounded: bool,
    /// Whether it was an abstention because the book supports no sentence that the model wrote.
    #[serde(default)]
    pub unverified: bool,
    /// How likely it is that the book covers the question.
    pub confidence: Confidence,
    /// Estimated probability that the book covers the question, 0–1.
    pub relevance: f32,
    /// Whether the model failed and the answer was extractive instead.
    pub degraded: bool,
    /// Time from the question to the complete answer, in milliseconds.
    pub milliseconds: f64,
    /// Number of tokens the model used.
    pub tokens: u32,
    /// URLs of the cited sections: page and anchor.
    pub cited: Vec<String>,
    /// The best passage that was found: its breadcrumb and its URL.
    pub nearest: Option<(String, String)>,
    /// The user's feedback on the answer.
    #[serde(default)]
    pub feedback: Option<Feedback>,
    /// Whether the turn was not completed, for example because the client disconnected. Only its tokens
    /// count.
    #[serde(default)]
    pub abandoned: bool,
}

/// A user's feedback on an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Feedback {
    /// Thumbs up or down.
    pub rating: Rating,
    /// A comment, if the user wrote one.
    pub comment: Option<String>,
}

impl Feedback {
    /// A rating, with a comment if the user wrote one.
    pub fn new(rating: Rating, comment: Option<String>) -> Self {
        Self { rating, comment }
    }
}

/// Thumbs up or down.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rating {
    /// The answer was helpful.
    Up,
    /// The answer was not helpful.
    Down,
}

impl LoggedTurn {
    /// The record of a response; `sources` are the passages that were retrieved.
    pub fn new(response: &AgentResponse, sources: &[SourceChunk]) -> Self {
        let section =
            |url: &str| url.split(":~:").next().unwrap_or_default().trim_end_matches('#').to_owned();
        let mut cited: Vec<String> =
            response.citations.iter().map(|citation| section(&citation.url)).collect();
        cited.sort();
        cited.dedup();
        Self {
            turn_id: response.turn_id,
            at: response.timestamp.clone(),
            question: response.query.clone(),
            kind: response.kind,
            grounded: response.grounded,
            unverified: !response.grounded && response.metadata.rejected_sentences > 0,
            confidence: response.confidence,
            relevance: response.relevance,
            degraded: response.degraded,
            milliseconds: response.metadata.response_time_ms,
            tokens: response.tokens_used,
            cited,
            nearest: sources.first().map(|source| (source.breadcrumb.clone(), source.url.clone())),
            feedback: None,
            abandoned: false,
        }
    }

    /// The record of a turn that was not completed.
    pub fn abandoned(turn_id: Uuid, at: String, question: String, milliseconds: f64, tokens: u32) -> Self {
        Self {
            turn_id,
            at,
            question,
            kind: ResponseKind::Stopped,
            grounded: false,
            unverified: false,
            confidence: Confidence::None,
            relevance: 0.0,
            degraded: false,
            milliseconds,
            tokens,
            cited: Vec::new(),
            nearest: None,
            feedback: None,
            abandoned: true,
        }
    }
}

/// Stores turns for the operator.
#[async_trait]
pub trait TurnLog: Send + Sync {
    /// Records turns, either all or none. A turn that is already recorded stays as it is.
    async fn record(&self, turns: &[LoggedTurn]) -> Result<(), SessionError>;

    /// Stores feedback and replaces earlier feedback on the same turn. Fails with [`SessionError::NotFound`]
    /// if there is no such turn.
    async fn rate(&self, turn_id: Uuid, feedback: &Feedback) -> Result<(), SessionError>;

    /// The turns since `moment` (RFC 3339, UTC), oldest first.
    async fn since(&self, moment: &str) -> Result<Vec<LoggedTurn>, SessionError>;

    /// The number of tokens that the turns since `moment` used, without reading the turns into memory.
    async fn tokens_since(&self, moment: &str) -> Result<u64, SessionError>;

    /// Removes turns before `moment` and returns how many.
    async fn forget_before(&self, moment: &str) -> Result<usize, SessionError>;
}
