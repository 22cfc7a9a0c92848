//! Converts the event stream of `genai` to Docent's.
//!
//! Dropping the stream closes the connection. The outcome is reported to the circuit breaker, so that it also
//! opens for a model that always stalls in the middle of an answer.
//!
//! Invariant: the stream ends with one `Done` or one error, and has at most [`LONGEST_ANSWER`] bytes.

use std::collections::VecDeque;
use std::time::Duration;

use docent_core::generate::{EventStream, GenerateError, GenerateEvent, ToolCall, Usage};
use futures_util::{StreamExt, stream};
use genai::chat::{ChatStream, ChatStreamEvent, StreamEnd};
use serde_json::Value;
use tokio::time::timeout;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

use super::failure::Failure;
use crate::resilience::Permit;

/// Maximum number of bytes of text, reasoning and arguments together.
const LONGEST_ANSWER: usize = 1_000_000;

/// The events of an answer, beginning with the one already received.
pub(super) fn events(
    stream: ChatStream,
    first: ChatStreamEvent,
    permit: Permit,
    idle_timeout: Duration,
) -> EventStream {
    let answer = Answer { stream, first: Some(first), idle_timeout, received: 0, ready: VecDeque::new() };
    Box::pin(stream::unfold(Some((answer, permit)), |state| async {
        let (mut answer, permit) = state?;
        let event = answer.next().await;
        match event {
            Ok(GenerateEvent::Done(_)) => {
                permit.succeeded();
                Some((event, None))
            }
            Err(_) => {
                permit.failed();
                Some((event, None))
            }
            Ok(_) => Some((event, Some((answer, permit)))),
        }
    }))
}

struct Answer {
    stream: ChatStream,
    first: Option<ChatStreamEvent>,
    idle_timeout: Duration,
    received: usize,
    /// Converted events that are not yet delivered.
    ready: VecDeque<GenerateEvent>,
}

impl Answer {
    async fn next(&mut self) -> Result<GenerateEvent, GenerateError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            match self.receive().await? {
                ChatStreamEvent::Chunk(chunk) => {
                    self.count(chunk.content.len())?;
                    return Ok(GenerateEvent::Text(chunk.content));
                }
                ChatStreamEvent::ReasoningChunk(chunk) => self.count(chunk.content.len())?,
                // Each chunk contains the whole call so far; it is used when it is complete.
                ChatStreamEvent::ToolCallChunk(chunk) => {
                    let arguments = chunk.tool_call.fn_arguments.as_str().map_or(0, str::len);
                    if self.received + arguments > LONGEST_ANSWER {
                        return Err(too_long());
                    }
                }
                ChatStreamEvent::End(end) => self.finish(end),
                ChatStreamEvent::Start
                | ChatStreamEvent::ThoughtSignatureChunk(_)
                | ChatStreamEvent::Heartbeat => {}
            }
        }
    }

    async fn receive(&mut self) -> Result<ChatStreamEvent, GenerateError> {
        if let Some(first) = self.first.take() {
            return Ok(first);
        }
        // `genai` logs what servers send, and that may quote the conversation.
        let next = self.stream.next().with_subscriber(NoSubscriber::default());
        match timeout(self.idle_timeout, next).await {
            Ok(Some(Ok(event))) => Ok(event),
            Ok(Some(Err(error))) => Err(Failure::within_answer(&error)),
            Ok(None) => Err(interrupted("the connection was closed before the end")),
            Err(_) => Err(interrupted(format!("no data for {:?}", self.idle_timeout))),
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), GenerateError> {
        self.received += bytes;
        if self.received > LONGEST_ANSWER { Err(too_long()) } else { Ok(()) }
    }

    fn finish(&mut self, end: StreamEnd) {
        let tokens = |count: Option<i32>| count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        let usage = end.captured_usage.as_ref().map_or(Usage::default(), |usage| Usage {
            input_tokens: tokens(usage.prompt_tokens),
            output_tokens: tokens(usage.completion_tokens),
        });
        let calls = tool_calls(end.captured_into_tool_calls().unwrap_or_default());
        if !calls.is_empty() {
            self.ready.push_back(GenerateEvent::ToolCalls(calls));
        }
        self.ready.push_back(GenerateEvent::Done(usage));
    }
}

/// The calls of one message, in order.
///
/// `genai` fills gaps in a server's numbering with partial copies of the next call, and gives calls without
/// an id a number that repeats in every message. So copies are removed, and ids are made unique.
fn tool_calls(calls: Vec<genai::chat::ToolCall>) -> Vec<ToolCall> {
    let mut unique: Vec<ToolCall> = Vec::new();
    for call in calls {
        let call = ToolCall {
            id: call.call_id,
            name: call.fn_name,
            arguments: match call.fn_arguments {
                Value::String(text) => text,
                value => value.to_string(),
            },
        };
        unique.retain(|earlier| !is_beginning(earlier, &call));
        unique.push(call);
    }
    for number in 0..unique.len() {
        let (earlier, rest) = unique.split_at_mut(number);
        let id = &mut rest[0].id;
        let digits = id.strip_prefix("call_").unwrap_or(id);
        if digits.bytes().all(|byte| byte.is_ascii_digit()) || earlier.iter().any(|call| call.id == *id) {
            *id = format!("call_{}", uuid::Uuid::new_v4().simple());
        }
    }
    unique
}

fn is_beginning(copy: &ToolCall, whole: &ToolCall) -> bool {
    let broken = || serde_json::from_str::<Value>(&copy.arguments).is_err();
    copy.id == whole.id && copy.name == whole.name && (copy.arguments == whole.arguments || broken())
}

fn too_long() -> GenerateError {
    interrupted("the answer is too long")
}

fn interrupted(reason: impl Into<String>) -> GenerateError {
    GenerateError::Interrupted(reason.into())
}
