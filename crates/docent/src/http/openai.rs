//! OpenAI's chat API over a book, so that existing clients can point at one.
//!
//! The messages are a conversation without a session; citations are annotations of the
//! answer's text. Whatever model is named, the book answers.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use docent_core::agent::{Ask, TurnEvent, rendered};
use docent_core::answer::{AgentResponse, Citation};
use docent_core::query::LONGEST_QUESTION;
use docent_core::session::Turn;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::Server;
use super::error::{ApiError, Code, ErrorBody};
use super::guard::{Reader, Visitor};
use super::turn::{Heard, streamed_turn, trickling, turn};

/// The one model there is.
const MODEL: &str = "docent";

/// A chat, as OpenAI's clients send it. Settings of the model are accepted and ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ChatRequest {
    /// Any name; the book answers.
    #[serde(default, rename = "model")]
    #[schema(example = "docent")]
    _model: Option<String>,
    /// The conversation; the last message is the question.
    #[schema(min_items = 1, example = json!([{"role": "user", "content": "What is a ROS 2 node?"}]))]
    messages: Vec<ChatMessage>,
    /// Whether to send the answer in pieces.
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

/// What else to stream.
#[derive(Debug, Deserialize, ToSchema)]
pub struct StreamOptions {
    /// Whether the last piece says what it cost.
    #[serde(default)]
    include_usage: Option<bool>,
}

/// A message.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ChatMessage {
    /// Only readers and answers count.
    role: Role,
    /// Text, or a list of parts of which the texts count.
    #[serde(default)]
    content: Option<Content>,
}

/// Who speaks.
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

/// What a message says.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of a message; pictures and such are passed over.
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

/// The answer in OpenAI's shape.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChatCompletion {
    id: String,
    object: &'static str,
    created: u64,
    model: &'static str,
    choices: Vec<Value>,
    usage: Value,
}

/// An event of the stream, as it is described.
#[derive(ToSchema)]
#[expect(dead_code, reason = "events are written by `completions`")]
pub struct ChatEvent {
    /// A `chat.completion.chunk`, or `[DONE]`.
    data: String,
}

/// The models there are.
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
        (status = 200, body = ModelList, description = "The book is the only model"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one")
    ))]
pub async fn models(_: State<Arc<Server>>, _: Visitor) -> Json<ModelList> {
    let entry = ModelEntry { id: MODEL, object: "model", created: 1_767_225_600, owned_by: "docent" };
    Json(ModelList { object: "list", data: vec![entry] })
}

/// Chat with the book
#[utoipa::path(post, path = "/v1/chat/completions", tag = "compatible", request_body = ChatRequest,
    responses(
        (status = 200, description = "The answer", content((ChatCompletion = "application/json"), (ChatEvent = "text/event-stream"))),
        (status = 400, body = ErrorBody, description = "Not a valid chat"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 413, body = ErrorBody, description = "Too long"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 500, body = ErrorBody, description = "Our fault"),
        (status = 503, body = ErrorBody, description = "The book cannot be searched, or too many questions at once")
    ))]
pub async fn completions(
    State(server): State<Arc<Server>>,
    _: Reader,
    body: Result<Json<ChatRequest>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(request) = body?;
    let streamed = request.stream.unwrap_or(false);
    let include_usage = request.stream_options.and_then(|options| options.include_usage).unwrap_or(false);
    let (query, earlier) = conversation(&request.messages)?;
    let ask =
        Ask { query, top_k: server.top_k, threshold: server.threshold, earlier, streamed, ..Ask::default() };
    let place = server.guard.place().await?;
    let id = format!("chatcmpl-{}", uuid::Uuid::new_v4().simple());
    if !streamed {
        let response = turn(&server, ask, |_| {}).await?;
        drop(place);
        return Ok(Json(completion(id, &server, &response)).into_response());
    }
    server.agent.check(&ask).await?;
    let head = Head { id, created: now() };
    let first = head.chunk(json!({"role": "assistant", "content": ""}), None);
    let mut said = 0;
    let pieces = streamed_turn(server.clone(), ask, place).flat_map(move |heard| {
        stream::iter(match heard {
            Heard::Event(event) => {
                let text = spoken(&event, &server, &mut said);
                text.map(|text| head.chunk(json!({ "content": text }), None)).into_iter().collect()
            }
            Heard::Ended(Ok(response)) => head.end(&response, &server, include_usage),
            Heard::Ended(Err(body)) => vec![serde_json::to_value(body).unwrap_or_default()],
        })
    });
    let events = stream::once(async { first })
        .chain(pieces)
        .map(|value| Event::default().data(value.to_string()))
        .chain(stream::once(async { Event::default().data("[DONE]") }));
    Ok(trickling(events))
}

/// What an event adds to the text: a sentence with its citations, as in the whole answer.
fn spoken(event: &TurnEvent, server: &Server, said: &mut usize) -> Option<String> {
    match event {
        TurnEvent::Sentence(sentence, citations) => {
            *said += 1;
            let gap = match (*said, sentence.new_paragraph) {
                (1, _) => "",
                (_, true) => "\n\n",
                _ => " ",
            };
            Some(format!("{gap}{}", rendered(sentence, citations, server.agent.settings())))
        }
        // What was sent cannot be taken back; it can only be said.
        TurnEvent::Restart if *said > 0 => {
            *said = 0;
            Some("\n\n*(The above did not hold. The answer is:)*\n\n".to_owned())
        }
        _ => None,
    }
}

/// The question, and what was said before it.
fn conversation(messages: &[ChatMessage]) -> Result<(String, Vec<Turn>), ApiError> {
    let invalid = |message: &str| ApiError::new(Code::Validation, message);
    let (last, before) = messages.split_last().ok_or_else(|| invalid("messages cannot be empty"))?;
    if last.role != Role::User {
        return Err(invalid("The last message must be the user's"));
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

struct Head {
    id: String,
    created: u64,
}

impl Head {
    fn value(&self, choices: Value) -> Value {
        json!({"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": MODEL, "choices": choices})
    }

    /// The last pieces: an abstention's words, where the citations stand, what it cost.
    fn end(&self, response: &AgentResponse, server: &Server, include_usage: bool) -> Vec<Value> {
        let mut ends = Vec::new();
        if !response.grounded {
            ends.push(self.chunk(json!({ "content": response.answer }), None));
        }
        ends.push(self.chunk(json!({ "annotations": annotations(response, server) }), Some("stop")));
        if include_usage {
            let mut cost = self.value(Value::Array(Vec::new()));
            cost["usage"] = usage(response);
            ends.push(cost);
        }
        ends
    }

    fn chunk(&self, delta: Value, finish_reason: Option<&str>) -> Value {
        self.value(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}]))
    }
}

fn completion(id: String, server: &Server, response: &AgentResponse) -> ChatCompletion {
    let message = json!({
        "role": "assistant",
        "content": response.answer,
        "refusal": null,
        "annotations": annotations(response, server),
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

/// Where the citations stand in the answer, in characters.
fn annotations(response: &AgentResponse, server: &Server) -> Vec<Value> {
    let style = server.agent.settings().citation_style;
    let annotation = |citation: &Citation| {
        let mark = style.mark(citation);
        let start = response.answer.find(&mark)?;
        let start_index = response.answer[..start].chars().count();
        let title = match &citation.heading {
            Some(heading) => format!("{} - {heading}", citation.page_title),
            None => citation.page_title.clone(),
        };
        Some(json!({"type": "url_citation", "url_citation": {
            "start_index": start_index,
            "end_index": start_index + mark.chars().count(),
            "title": title,
            "url": citation.url,
        }}))
    };
    response.citations.iter().filter_map(annotation).collect()
}

/// The sum is known; how it divides is not.
fn usage(response: &AgentResponse) -> Value {
    let total = response.tokens_used;
    json!({"prompt_tokens": total, "completion_tokens": 0, "total_tokens": total})
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
