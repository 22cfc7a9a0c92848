//! The events a turn reports while it runs.
//!
//! Invariant: the last event of a turn is its final state.

use serde::{Deserialize, Serialize};

use crate::answer::{AgentResponse, Citation, Sentence};
use crate::generate::GenerateError;
use crate::retrieve::Confidence;
use crate::search_response::SourceChunk;

/// The state of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// The question was received.
    Received,
    /// The question is being validated.
    Validating,
    /// Passages are being searched.
    Retrieving,
    /// The answer is being written.
    Generating,
    /// Final: answered.
    Completed,
    /// Final: no passage was found.
    NoResults,
    /// Final: the book does not seem to cover the question.
    LowConfidence,
    /// Final: the turn failed with an error.
    Failed,
}

impl State {
    /// The final state of a turn with this response.
    pub fn end_of(response: &AgentResponse) -> Self {
        match response.confidence {
            _ if response.grounded => Self::Completed,
            Confidence::None => Self::NoResults,
            _ => Self::LowConfidence,
        }
    }

    /// The name used in events and traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Validating => "validating",
            Self::Retrieving => "retrieving",
            Self::Generating => "generating",
            Self::Completed => "completed",
            Self::NoResults => "no_results",
            Self::LowConfidence => "low_confidence",
            Self::Failed => "failed",
        }
    }
}

/// One event of a turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TurnEvent {
    /// The turn entered a new state.
    State(State),
    /// The passages that were found.
    Sources(Vec<SourceChunk>),
    /// A verified sentence of the answer, with its citations.
    Sentence(Sentence, Vec<Citation>),
    /// Discard all sentences sent so far; others may follow.
    Restart,
    /// The model failed; an extractive answer follows. The reason is for operators, not for users.
    ModelFailed(GenerateError),
}

/// Receives the events of a turn.
pub type Listener<'a> = &'a (dyn Fn(TurnEvent) + Send + Sync);
