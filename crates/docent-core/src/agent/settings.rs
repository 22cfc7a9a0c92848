//! Settings of the agent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cite::CitationStyle;

/// What to do with sentences that the passages do not support.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verify {
    /// Keep and mark them.
    #[default]
    Mark,
    /// Remove them.
    Drop,
    /// Verify nothing and keep all sentences.
    Off,
}

/// How the model gets passages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RetrievalMode {
    /// The first call contains them.
    #[default]
    Prefetch,
    /// The model must search for them with the tool.
    Tool,
}

/// How follow-up questions are rewritten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Rewrite {
    /// By the model if there is one, else by rule.
    #[default]
    Model,
    /// Always by rule.
    Rule,
}

/// Settings of the agent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Maximum number of earlier messages the model sees; a turn has two, and an odd number is rounded up.
    pub max_history: usize,
    /// Size of the model's context window in tokens, including the answer. The oldest messages are dropped
    /// first.
    pub context_tokens: usize,
    /// Maximum number of rounds of tool calls in one turn.
    pub max_tool_rounds: usize,
    /// The model's temperature.
    pub temperature: f32,
    /// Maximum number of tokens in an answer; none leaves it to the model.
    pub max_output_tokens: Option<u32>,
    /// Time limit of a turn. For a streamed turn, the longest time without new text.
    pub deadline: Duration,
    /// Time limit of a streamed turn.
    pub stream_deadline: Duration,
    /// What to do with unsupported sentences.
    pub verify: Verify,
    /// How citations are rendered in the answer.
    pub citation_style: CitationStyle,
    /// How the model gets passages.
    pub retrieval_mode: RetrievalMode,
    /// How follow-up questions are rewritten.
    pub rewrite: Rewrite,
    /// Name of the search tool that the model can call.
    pub tool_name: String,
    /// Number of answers kept in the cache.
    pub cached_answers: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_history: 20,
            context_tokens: 16_000,
            max_tool_rounds: 4,
            temperature: 0.1,
            max_output_tokens: Some(1000),
            deadline: Duration::from_secs(10),
            stream_deadline: Duration::from_secs(60),
            verify: Verify::default(),
            citation_style: CitationStyle::default(),
            retrieval_mode: RetrievalMode::default(),
            rewrite: Rewrite::default(),
            tool_name: "retrieve_documentation".to_owned(),
            cached_answers: 1000,
        }
    }
}
