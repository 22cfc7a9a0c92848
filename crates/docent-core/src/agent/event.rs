//! What happens in a turn, as it happens.

use serde::{Deserialize, Serialize};

use crate::answer::{AgentResponse, Citation, Sentence};
use crate::retrieve::Confidence;
use crate::sources::SourceChunk;

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
    /// The end: answered.
    Completed,
    /// The end: nothing was found.
    NoResults,
    /// The end: the book does not seem to cover the question.
    LowConfidence,
    /// The end: there is an error instead of an answer.
    Failed,
}

impl State {
    /// Where a turn with this answer ends.
    pub fn end_of(response: &AgentResponse) -> Self {
        match response.confidence {
            _ if response.grounded => Self::Completed,
            Confidence::None => Self::NoResults,
            _ => Self::LowConfidence,
        }
    }

    /// As it is written in events and traces.
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

/// What happens in a turn.
#[derive(Debug, Clone)]
pub enum TurnEvent {
    /// The turn moves on.
    State(State),
    /// The passages found.
    Sources(Vec<SourceChunk>),
    /// A sentence that was checked, with the citations it carries.
    Sentence(Sentence, Vec<Citation>),
    /// The sentences so far are not the answer after all; others follow, or none.
    Restart,
}

/// Hears what happens.
pub type Listener<'a> = &'a (dyn Fn(TurnEvent) + Send + Sync);
