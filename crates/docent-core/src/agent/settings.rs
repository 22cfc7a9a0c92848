//! How an agent behaves.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cite::CitationStyle;

/// What happens to sentences the passages do not support.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// They stay, marked.
    #[default]
    Mark,
    /// They go.
    Drop,
    /// They stay as they are.
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

/// Who makes a follow-up stand alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rewrite {
    /// The model when there is one, else the rule.
    #[default]
    Model,
    /// Always the rule.
    Rule,
}

/// How an agent behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Messages of the conversation shown to the model.
    pub max_history: usize,
    /// Tokens the model is sent at most, its answer included; the oldest messages go first.
    pub context_tokens: usize,
    /// Rounds of tool calls in one turn.
    pub max_tool_rounds: usize,
    /// The model's temperature.
    pub temperature: f32,
    /// The most tokens of an answer; none leaves it to the model.
    pub max_output_tokens: Option<u32>,
    /// The time a whole turn may take; streamed, the time until something comes.
    pub deadline: Duration,
    /// The time a streamed turn may take.
    pub stream_deadline: Duration,
    /// What happens to unsupported sentences.
    pub verify: Verify,
    /// How citations look.
    pub citation_style: CitationStyle,
    /// How passages reach the model.
    pub retrieval_mode: RetrievalMode,
    /// Who makes a follow-up stand alone.
    pub rewrite: Rewrite,
    /// What the tool is called.
    pub tool_name: String,
    /// Answers kept for when they are asked for again.
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
