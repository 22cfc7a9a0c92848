//! OpenAI's chat API over a book, so that existing clients can point at one.
//!
//! The messages are a conversation without a session; citations are annotations of the
//! answer's text. Whatever model is named, the book answers.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use docent_core::agent::{Ask, TurnEvent, rendered};
use docent_core::answer::{AgentResponse, Citation};
use docent_core::query::LONGEST_QUESTION;
use docent_core::session::Turn;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::Server;
use super::ask::{check, turn};
use super::error::{ApiError, Code, ErrorBody};
use super::guard::{Reader, Visitor};

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
    check(&server, &ask).await?;
    let (tell, heard) = mpsc::unbounded_channel();
    let head = Head { id, created: now() };
    let first = head.chunk(json!({"role": "assistant", "content": ""}), None);
    let last = head.clone();
    let answering = server.clone();
    let request_id = super::request_id();
    let pieces = Arc::new(std::sync::Mutex::new(0usize));
    let work = super::REQUEST_ID.scope(request_id, async move {
        let _place = place;
        let (server, counted) = (answering, pieces);
        let told = |event: TurnEvent| {
            if let Some(text) = spoken(&event, &server, &counted) {
                let _ = tell.send(head.chunk(json!({ "content": text }), None));
            }
        };
        match turn(&server, ask, told).await {
            Ok(response) => {
                let mut ends = Vec::new();
                if !response.grounded {
                    ends.push(last.chunk(json!({ "content": response.answer }), None));
                }
                let annotations = annotations(&response, &server);
                ends.push(last.chunk(json!({ "annotations": annotations }), Some("stop")));
                if include_usage {
                    let mut usage = last.value(Value::Array(Vec::new()));
                    usage["usage"] = self::usage(&response);
                    ends.push(usage);
                }
                ends
            }
            Err(error) => vec![serde_json::to_value(error.body()).unwrap_or_default()],
        }
    });
    // The work is polled with the stream: a client who leaves takes it along.
    let heard = stream::unfold((Some(Box::pin(work)), heard, Vec::<Value>::new().into_iter()), next);
    let events = stream::once(async { first })
        .chain(heard)
        .map(|value| Event::default().data(value.to_string()))
        .chain(stream::once(async { Event::default().data("[DONE]") }))
        .map(Ok::<_, std::convert::Infallible>);
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

type Going<Work> = (Option<Work>, mpsc::UnboundedReceiver<Value>, std::vec::IntoIter<Value>);

/// The next piece: what was heard, then what the end brings.
async fn next<Work>((mut work, mut heard, mut ends): Going<Work>) -> Option<(Value, Going<Work>)>
where
    Work: Future<Output = Vec<Value>> + Unpin,
{
    loop {
        let Some(running) = &mut work else {
            let value = match heard.try_recv() {
                Ok(value) => value,
                Err(_) => ends.next()?,
            };
            return Some((value, (work, heard, ends)));
        };
        tokio::select! {
            biased;
            Some(value) = heard.recv() => return Some((value, (work, heard, ends))),
            ended = running => {
                ends = ended.into_iter();
                work = None;
            }
        }
    }
}

/// What an event adds to the text: a sentence with its citations, as in the whole answer.
fn spoken(event: &TurnEvent, server: &Server, pieces: &std::sync::Mutex<usize>) -> Option<String> {
    let mut count = pieces.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match event {
        TurnEvent::Sentence(sentence, citations) => {
            *count += 1;
            let gap = match (*count, sentence.new_paragraph) {
                (1, _) => "",
                (_, true) => "\n\n",
                _ => " ",
            };
            Some(format!("{gap}{}", rendered(sentence, citations, server.agent.settings())))
        }
        // What was sent cannot be taken back; it can only be said.
        TurnEvent::Restart if *count > 0 => {
            *count = 0;
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

#[derive(Clone)]
struct Head {
    id: String,
    created: u64,
}

impl Head {
    fn value(&self, choices: Value) -> Value {
        json!({"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": MODEL, "choices": choices})
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
