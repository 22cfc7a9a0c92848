//! An OpenAI-compatible chat API, so that existing clients can use Docent.
//!
//! The messages are the conversation; nothing is stored. Citations become annotations of the answer's text.
//!
//! Invariant: every answer comes from the book, whatever model the request names.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use docent_core::agent::{Ask, Mark, Settings, Transcript, TurnEvent};
use docent_core::answer::AgentResponse;
use docent_core::query::LONGEST_QUESTION;
use docent_core::session::Turn;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::Server;
use super::access::{Allowed, RateLimited};
use super::error::{ApiError, Code, OpenAiError};
use super::turn::{Heard, streamed_turn, turn, unbuffered};

/// The only model that is listed.
const MODEL: &str = "docent";

/// A chat request of an OpenAI client. Model settings, such as `temperature`, are accepted and ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ChatRequest {
    /// Ignored; any name is accepted.
    #[serde(default, rename = "model")]
    #[schema(example = "docent")]
    _model: Option<String>,
    /// The conversation; the last message is the question.
    #[schema(min_items = 1, example = json!([{"role": "user", "content": "What is a ROS 2 node?"}]))]
    messages: Vec<ChatMessage>,
    /// Whether to stream the answer.
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

/// Options for streaming.
#[derive(Debug, Deserialize, ToSchema)]
pub struct StreamOptions {
    /// Whether the last chunk contains the token usage.
    #[serde(default)]
    include_usage: Option<bool>,
}

/// A message.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ChatMessage {
    /// Only messages with the role `user` or `assistant` are used.
    role: Role,
    /// Text, or a list of parts, of which only the text parts are used.
    #[serde(default)]
    content: Option<Content>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    Function,
}

/// The content of a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of a message; images and other non-text parts are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Part {
    #[serde(default)]
    text: Option<String>,
}

impl ChatMessage {
    fn text(&self) -> String {
        match &self.content {
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => {
                let texts = parts.iter().filter_map(|part| part.text.as_deref());
                texts.collect::<Vec<_>>().join("\n")
            }
            None => String::new(),
        }
    }
}

/// The answer in OpenAI's format.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChatCompletion {
    id: String,
    object: &'static str,
    created: u64,
    model: &'static str,
    choices: Vec<Value>,
    usage: Value,
}

/// A server-sent event of a streamed answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "events are written by `completions`")]
pub struct ChatEvent {
    /// A `chat.completion.chunk`, or `[DONE]`.
    data: String,
}

/// The available models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    object: &'static str,
    data: Vec<ModelEntry>,
}

/// A model.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelEntry {
    id: &'static str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
}

/// List models
#[utoipa::path(get, path = "/v1/models", tag = "compatible",
    responses(
        (status = 200, body = ModelList, description = "A list with one model, `docent`"),
        (status = 401, body = OpenAiError, description = "Missing or invalid API key")
    ))]
pub async fn models(_: State<Arc<Server>>, _: Allowed) -> Json<ModelList> {
    let entry = ModelEntry { id: MODEL, object: "model", created: 1_767_225_600, owned_by: "docent" };
    Json(ModelList { object: "list", data: vec![entry] })
}

/// Chat with the book
#[utoipa::path(post, path = "/v1/chat/completions", tag = "compatible", request_body = ChatRequest,
    responses(
        (status = 200, description = "The answer", content((ChatCompletion = "application/json"), (ChatEvent = "text/event-stream"))),
        (status = 400, body = OpenAiError, description = "Invalid request"),
        (status = 401, body = OpenAiError, description = "Missing or invalid API key"),
        (status = 413, body = OpenAiError, description = "Payload too large"),
        (status = 429, body = OpenAiError, description = "Too many requests"),
        (status = 500, body = OpenAiError, description = "Internal server error"),
        (status = 503, body = OpenAiError, description = "Search is unavailable, or the server is overloaded")
    ))]
pub async fn completions(
    State(server): State<Arc<Server>>,
    _: RateLimited,
    body: Result<Json<ChatRequest>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(request) = body?;
    let streamed = request.stream.unwrap_or(false);
    let include_usage = request.stream_options.and_then(|options| options.include_usage).unwrap_or(false);
    let (query, earlier) = conversation(&request.messages)?;
    let ask = Ask::new(query)
        .with_top_k(server.top_k)
        .with_threshold(server.threshold)
        .with_earlier(earlier)
        .with_streaming(streamed);
    let permit = server.access.turn_permit().await?;
    let id = format!("chatcmpl-{}", uuid::Uuid::new_v4().simple());
    if !streamed {
        let response = turn(&server, permit, ask, |_| {}).await?;
        return Ok(Json(completion(id, &server, &response)).into_response());
    }
    server.agent.check(&ask).await?;
    let mut chat = Chat {
        id,
        created: now(),
        settings: server.agent.settings().clone(),
        transcript: Transcript::default(),
        sent_before: 0,
        include_usage,
    };
    let first = chat.chunk(json!({"role": "assistant", "content": ""}), None);
    let pieces = streamed_turn(server, ask, permit).flat_map(move |heard| stream::iter(chat.chunks(heard)));
    let events = stream::once(async { first })
        .chain(pieces)
        .map(|value| Event::default().data(value.to_string()))
        .chain(stream::once(async { Event::default().data("[DONE]") }));
    Ok(unbuffered(events))
}

/// Sent when the text streamed so far is discarded, because it cannot be taken back.
const RESTARTED: &str = "\n\n*(Discard the text above; it could not be verified. Answer:)*\n\n";

/// A streamed completion.
struct Chat {
    id: String,
    created: u64,
    settings: Settings,
    /// The part of the answer that was sent.
    transcript: Transcript,
    /// Number of characters sent before the final answer began.
    sent_before: usize,
    include_usage: bool,
}

impl Chat {
    fn chunks(&mut self, heard: Heard) -> Vec<Value> {
        match heard {
            Heard::Event(TurnEvent::Sentence(sentence, citations)) => {
                let text = self.transcript.add(&sentence, &citations, &self.settings);
                vec![self.text(&text)]
            }
            Heard::Event(TurnEvent::Restart) if self.transcript.length() > 0 => {
                self.sent_before += self.transcript.length() + RESTARTED.chars().count();
                self.transcript = Transcript::default();
                vec![self.text(RESTARTED)]
            }
            Heard::Event(_) => Vec::new(),
            Heard::Ended(Ok(response)) => self.end(&response),
            Heard::Ended(Err(body)) => {
                vec![serde_json::to_value(OpenAiError::from(&body)).unwrap_or_default()]
            }
        }
    }

    /// The last chunks: the text after the sentences, the annotations, the token usage.
    fn end(&mut self, response: &AgentResponse) -> Vec<Value> {
        let rest = self.transcript.end(response);
        let mut ends = Vec::new();
        if !rest.is_empty() {
            ends.push(self.text(&rest));
        }
        let annotations = annotations(response, &self.transcript, self.sent_before);
        ends.push(self.chunk(json!({ "annotations": annotations }), Some("stop")));
        if self.include_usage {
            let mut cost = self.value(Value::Array(Vec::new()));
            cost["usage"] = usage(response);
            ends.push(cost);
        }
        ends
    }

    fn text(&self, text: &str) -> Value {
        self.chunk(json!({ "content": text }), None)
    }

    fn chunk(&self, delta: Value, finish_reason: Option<&str>) -> Value {
        self.value(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}]))
    }

    fn value(&self, choices: Value) -> Value {
        json!({"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": MODEL, "choices": choices})
    }
}

/// The question, and the turns before it.
fn conversation(messages: &[ChatMessage]) -> Result<(String, Vec<Turn>), ApiError> {
    let invalid = |message: &str| ApiError::new(Code::Validation, message).param("messages");
    let (last, before) = messages.split_last().ok_or_else(|| invalid("messages cannot be empty"))?;
    if last.role != Role::User {
        return Err(invalid("The last message must have the role `user`"));
    }
    let mut earlier = Vec::new();
    let mut asked: Option<String> = None;
    for message in before {
        match message.role {
            Role::User => asked = Some(message.text().chars().take(LONGEST_QUESTION).collect()),
            Role::Assistant => {
                if let Some(question) = asked.take() {
                    earlier.push(Turn::told(&question, &message.text()));
                }
            }
            Role::System | Role::Developer | Role::Tool | Role::Function => {}
        }
    }
    Ok((last.text(), earlier))
}

fn completion(id: String, server: &Server, response: &AgentResponse) -> ChatCompletion {
    let transcript = Transcript::of(response, server.agent.settings());
    let message = json!({
        "role": "assistant",
        "content": response.answer,
        "refusal": null,
        "annotations": annotations(response, &transcript, 0),
    });
    ChatCompletion {
        id,
        object: "chat.completion",
        created: now(),
        model: MODEL,
        choices: vec![json!({"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"})],
        usage: usage(response),
    }
}

/// The positions of the citations in the text that was sent, in characters. A citation that is used several
/// times has several annotations.
fn annotations(response: &AgentResponse, transcript: &Transcript, sent_before: usize) -> Vec<Value> {
    let annotation = |mark: &Mark| {
        let citation = response.citations.iter().find(|citation| citation.id == mark.citation)?;
        let title = match &citation.heading {
            Some(heading) => format!("{} - {heading}", citation.page_title),
            None => citation.page_title.clone(),
        };
        Some(json!({"type": "url_citation", "url_citation": {
            "start_index": sent_before + mark.start,
            "end_index": sent_before + mark.end,
            "title": title,
            "url": citation.url,
        }}))
    };
    transcript.marks().iter().filter_map(annotation).collect()
}

fn usage(response: &AgentResponse) -> Value {
    json!({
        "prompt_tokens": response.metadata.prompt_tokens,
        "completion_tokens": response.metadata.completion_tokens,
        "total_tokens": response.tokens_used,
    })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
