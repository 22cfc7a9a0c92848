//! SEAM: what is remembered of turns for the book's owner.
//!
//! Invariant: nothing here tells who asked, and what is older than the owner wants is gone.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::answer::AgentResponse;
use crate::retrieve::Confidence;
use crate::session::SessionError;
use crate::sources::SourceChunk;

/// A turn, without its reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedTurn {
    /// Names the turn.
    pub turn_id: Uuid,
    /// When, RFC 3339, UTC.
    pub at: String,
    /// The question.
    pub question: String,
    /// Whether it was answered from the book.
    pub grounded: bool,
    /// How well the book covers it.
    pub confidence: Confidence,
    /// The same as a number.
    pub relevance: f32,
    /// Whether the model was replaced.
    pub degraded: bool,
    /// From question to answer.
    pub milliseconds: f64,
    /// What the model used.
    pub tokens: u32,
    /// The sections cited: page and anchor.
    pub cited: Vec<String>,
    /// The nearest section: title line, page and anchor.
    pub nearest: Option<(String, String)>,
    /// What the reader thought of the answer.
    #[serde(default)]
    pub feedback: Option<Feedback>,
}

/// What a reader thought of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// Thumb up or down.
    pub rating: Rating,
    /// Why.
    pub comment: Option<String>,
}

/// Thumb up or down.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rating {
    /// It helped.
    Up,
    /// It did not.
    Down,
}

impl LoggedTurn {
    /// What is kept of an answer; `sources` are the passages it was made from.
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
            grounded: response.grounded,
            confidence: response.confidence,
            relevance: response.relevance,
            degraded: response.degraded,
            milliseconds: response.metadata.response_time_ms,
            tokens: response.tokens_used,
            cited,
            nearest: sources.first().map(|source| (source.breadcrumb.clone(), source.url.clone())),
            feedback: None,
        }
    }
}

/// Keeps turns for the owner.
#[async_trait]
pub trait TurnLog: Send + Sync {
    /// Keeps turns, all or none.
    async fn record(&self, turns: &[LoggedTurn]) -> Result<(), SessionError>;

    /// Keeps what a reader thought; the last word counts. [`SessionError::NotFound`] when
    /// there is no such turn.
    async fn rate(&self, turn_id: Uuid, feedback: &Feedback) -> Result<(), SessionError>;

    /// The turns since a moment (RFC 3339, UTC), oldest first.
    async fn since(&self, moment: &str) -> Result<Vec<LoggedTurn>, SessionError>;

    /// Forgets turns from before a moment; returns how many.
    async fn forget_before(&self, moment: &str) -> Result<usize, SessionError>;
}
