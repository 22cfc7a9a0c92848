//! SEAM: the language model. Messages in, a stream of text and tool calls out.
//!
//! Invariant: a stream ends with exactly one [`GenerateEvent::Done`] or one error; nothing follows it.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The system prompt.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// One message of the conversation sent to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The author of the message.
    pub role: Role,
    /// The text; may be empty if the model only calls tools.
    pub content: String,
    /// Tool calls the model requested, in order; only in messages of the assistant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Id of the tool call this message is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message with text only.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None }
    }

    /// The result of a tool call.
    pub fn tool_result(call: &ToolCall, content: impl Into<String>) -> Self {
        Self {
            role: Role::Tool,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: Some(call.id.clone()),
        }
    }
}

/// A tool call requested by the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id of the call within the conversation.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The arguments as the model wrote them; should be JSON, but may not be.
    pub arguments: String,
}

/// A tool the model may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name of the tool.
    pub name: String,
    /// Describes the tool to the model.
    pub description: String,
    /// JSON schema of the arguments.
    pub parameters: serde_json::Value,
}

/// One call of the model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GenerateRequest {
    /// The conversation, beginning with the system prompt.
    pub messages: Vec<Message>,
    /// The tools the model may call.
    pub tools: Vec<ToolSpec>,
    /// Whether the model must call a tool before it answers.
    pub must_use_tool: bool,
    /// Sampling temperature, 0–1.
    pub temperature: f32,
    /// Maximum number of tokens in the answer; none leaves it to the model.
    pub max_output_tokens: Option<u32>,
}

impl GenerateRequest {
    /// A request without tools, with temperature 0 and the model's own limit on the length of the answer.
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages, tools: Vec::new(), must_use_tool: false, temperature: 0.0, max_output_tokens: None }
    }
}

/// An event in the stream of the model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum GenerateEvent {
    /// The next part of the answer.
    Text(String),
    /// All tool calls of one message.
    ToolCalls(Vec<ToolCall>),
    /// The end of the answer, with the tokens used.
    Done(Usage),
}

/// Tokens used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u32,
    /// Tokens of the answer.
    pub output_tokens: u32,
}

impl Usage {
    /// Input and output tokens together.
    pub fn total(self) -> u32 {
        self.input_tokens + self.output_tokens
    }
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }
}

/// Counts the tokens of a turn while it runs, and keeps the count if the turn is dropped. Estimates are used
/// until the model reports its own figures.
#[derive(Debug, Default)]
pub struct Meter {
    input: AtomicU32,
    output: AtomicU32,
}

impl Meter {
    /// Tokens used so far.
    pub fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input.load(Ordering::Relaxed),
            output_tokens: self.output.load(Ordering::Relaxed),
        }
    }

    /// Replaces the tokens used so far.
    pub fn set(&self, usage: Usage) {
        self.input.store(usage.input_tokens, Ordering::Relaxed);
        self.output.store(usage.output_tokens, Ordering::Relaxed);
    }
}

/// The events of one call.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<GenerateEvent, GenerateError>> + Send>>;

/// A language model.
#[async_trait]
pub trait Generator: Send + Sync {
    /// Name of the model, as reported in responses.
    fn model(&self) -> &str;

    /// State of the circuit breaker: `closed`, `open` or `half_open`.
    fn circuit(&self) -> &'static str {
        "closed"
    }

    /// Starts an answer. If this fails, the user has not seen any text yet.
    async fn generate(&self, request: &GenerateRequest) -> Result<EventStream, GenerateError>;
}

/// Why a call failed, sorted by what the caller can do about it. Messages never contain API keys or text of
/// the conversation.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// Retry later; the request itself was valid.
    #[error("the model is unavailable: {0}")]
    Unavailable(String),

    /// Retry after a delay.
    #[error("the model is busy")]
    RateLimited {
        /// The delay requested by the provider, if any.
        retry_after: Option<Duration>,
    },

    /// The stream ended early; the text received so far may be used or discarded.
    #[error("the model's answer was interrupted: {0}")]
    Interrupted(String),

    /// Send less; the request exceeds the model's context window.
    #[error("the conversation is too long for the model: {0}")]
    TooLong(String),

    /// Fix the configuration: the API key, the model name or the URL.
    #[error("the model refused the request: {0}")]
    Refused(String),
}

impl GenerateError {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::TooLong(_))
    }
}
