//! SEAM: a language model: messages in, a stream of text and tool calls out.
//!
//! Invariant: a stream ends with exactly one [`GenerateEvent::Done`] or one error; nothing
//! follows either.

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The rules.
    System,
    /// The reader.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// One message of the conversation the model is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said; may be empty when the model only calls tools.
    pub content: String,
    /// Tools the model asked for, in order; only an assistant's message has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Which call a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message of words alone.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None }
    }

    /// The result of a call.
    pub fn tool_result(call: &ToolCall, content: impl Into<String>) -> Self {
        Self {
            role: Role::Tool,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: Some(call.id.clone()),
        }
    }
}

/// A tool the model wants run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names the call in this conversation.
    pub id: String,
    /// Names the tool.
    pub name: String,
    /// As the model wrote them: JSON, if all is well.
    pub arguments: String,
}

/// A tool the model may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: serde_json::Value,
}

/// One call of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateRequest {
    /// The conversation, rules first.
    pub messages: Vec<Message>,
    /// The tools it may use.
    pub tools: Vec<ToolSpec>,
    /// Whether it must use one before it answers.
    pub must_use_tool: bool,
    /// 0–1.
    pub temperature: f32,
    /// The most tokens of the answer.
    pub max_output_tokens: Option<u32>,
}

/// What the model sends.
#[derive(Debug, Clone, PartialEq)]
pub enum GenerateEvent {
    /// The next piece of the answer.
    Text(String),
    /// The tools it wants run, all of one message.
    ToolCalls(Vec<ToolCall>),
    /// The end, with what it cost.
    Done(Usage),
}

/// Tokens used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Of the request.
    pub input_tokens: u32,
    /// Of the answer.
    pub output_tokens: u32,
}

impl Usage {
    /// Both together.
    pub fn total(self) -> u32 {
        self.input_tokens + self.output_tokens
    }
}

/// Events as they come.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<GenerateEvent, GenerateError>> + Send>>;

/// A language model.
#[async_trait]
pub trait Generator: Send + Sync {
    /// The model's name, as reported in answers.
    fn model(&self) -> &str;

    /// Whether calls get through: `closed`, `open` or `half_open`, as of a circuit.
    fn circuit(&self) -> &'static str {
        "closed"
    }

    /// Starts an answer. An error here means that nothing was sent to the reader yet.
    async fn generate(&self, request: &GenerateRequest) -> Result<EventStream, GenerateError>;
}

/// Why a model gave no answer, sorted by what the caller can do about it. Messages never
/// contain keys or the text of the conversation.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// Try again later; the request itself was fine.
    #[error("the model is unavailable: {0}")]
    Unavailable(String),

    /// Try again after a while.
    #[error("the model is busy")]
    RateLimited {
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
    },

    /// The answer broke off; what was received may be used or thrown away.
    #[error("the model's answer broke off: {0}")]
    Interrupted(String),

    /// Send less; the request was longer than the model's window.
    #[error("the conversation is too long for the model: {0}")]
    TooLong(String),

    /// Fix the configuration: the key, the model's name, the address.
    #[error("the model refused the request: {0}")]
    Refused(String),
}

impl GenerateError {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::TooLong(_))
    }
}
