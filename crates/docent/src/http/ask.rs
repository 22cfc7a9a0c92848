//! `POST /api/v1/ask`: answers a question, as one JSON response or as a stream of events.
//!
//! Invariant: the last event of a stream is `done` with the whole answer, or `error`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, header};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use docent_core::agent::{Ask, Selection, Settings, State as TurnState, Transcript, TurnEvent};
use docent_core::answer::{AgentResponse, Citation, Sentence};
use docent_core::index::Filter;
use docent_core::search_response::SourceChunk;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::RateLimited;
use super::error::{ApiError, ErrorBody};
use super::stopped::Unfinished;
use super::turn::{Heard, streamed_turn, turn, unbuffered};
use super::{Server, html, owner};
use crate::settings::Rights;

/// A question.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskRequest {
    /// 1 to 8000 characters after trimming.
    #[schema(min_length = 1, max_length = 8000, pattern = r"\S", example = "What is a ROS 2 node?")]
    query: String,
    /// Number of passages to answer from.
    #[schema(minimum = 1, maximum = 10)]
    top_k: Option<usize>,
    /// Whether to include the passages in the response; true by default.
    include_sources: Option<bool>,
    /// The conversation this question belongs to. Send its session key as `X-Docent-Session-Key`.
    session_id: Option<Uuid>,
    /// Answer only from this book, if the index contains several.
    book: Option<String>,
    /// Answer only from this module.
    module: Option<String>,
    /// Version of the book, or `all`; if not set, the default version. See `versions` of `GET /api/v1/modules`.
    version: Option<String>,
    /// Locale of the book, or `all`; if not set, the default locale. See `locales` of `GET /api/v1/modules`.
    locale: Option<String>,
    /// Whether to stream the answer sentence by sentence.
    stream: Option<bool>,
    /// Text from the book that the question is about; only the first 20,000 characters are used.
    selection: Option<Selection>,
    /// Whether to also return each sentence as sanitized HTML.
    html: Option<bool>,
}

/// A server-sent event of a streamed answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "events are written by `wire`")]
pub struct AskEvent {
    event: AskEventName,
    /// A JSON object.
    data: String,
}

/// The name of an event.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "events are written by `wire`")]
pub enum AskEventName {
    State,
    Sources,
    Sentence,
    Tail,
    Restart,
    Done,
    Error,
}

/// Ask the book
///
/// Responds with JSON, or with server-sent events if `stream` is true or the `Accept` header asks for them:
/// `state`, `sources`, any number of `sentence`, then `done` (the whole answer) or `error`.
///
/// `restart` means that the sentences sent so far must be discarded. The `delta` of a `sentence` is the exact
/// text it adds to the answer, including the separator and citations. A `tail` before `done` has a `delta`
/// with the text after the last sentence: a list of sources, a note about what the book does not cover, or
/// the text of an answer without sentences. All `delta`s after the last `restart`, concatenated, equal the
/// `answer` of `done` byte for byte.
#[utoipa::path(post, path = "/api/v1/ask", tag = "answers", request_body = AskRequest,
    params(("X-Docent-Session-Key" = Option<String>, Header, description = "Session key of the conversation in `session_id`")),
    responses(
        (status = 200, description = "The answer, or an abstention", content((AgentResponse = "application/json"), (AskEvent = "text/event-stream"))),
        (status = 400, body = ErrorBody, description = "Invalid request"),
        (status = 401, body = ErrorBody, description = "Missing or invalid API key"),
        (status = 403, body = ErrorBody, description = "Read-only access to the conversation, or origin not allowed"),
        (status = 404, body = ErrorBody, description = "No such conversation, or wrong session key"),
        (status = 413, body = ErrorBody, description = "Payload too large"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 500, body = ErrorBody, description = "Internal server error"),
        (status = 503, body = ErrorBody, description = "Search is unavailable, or the server is overloaded")
    ))]
pub async fn ask(
    State(server): State<Arc<Server>>,
    _: RateLimited,
    headers: HeaderMap,
    body: Result<Json<AskRequest>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(request) = body?;
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let streamed = request.stream.unwrap_or_else(|| accepts.contains("text/event-stream"));
    if let Some(id) = request.session_id {
        // Check access before the stream begins, so that a failure has a status code of its own.
        owner::must_own(&server, &headers, Rights::Read, id).await?;
    }
    let with_html = request.html.unwrap_or(false);
    let ask = Ask::new(request.query)
        .with_top_k(request.top_k.unwrap_or(server.top_k))
        .with_threshold(server.threshold)
        .with_filter(Filter::requested(request.book, request.module, request.version, request.locale))
        .with_session(request.session_id)
        .with_selection(request.selection.filter(|selection| !selection.text.trim().is_empty()))
        .with_sources(request.include_sources.unwrap_or(true))
        .with_streaming(streamed);
    let permit = server.access.turn_permit().await?;
    if !streamed {
        let mut response = turn(&server, permit, ask, |_| {}).await?;
        if with_html {
            html::add(&mut response);
        }
        return Ok(Json(response).into_response());
    }
    // Check the question before the stream begins, so that an invalid one is rejected with a status code.
    server.agent.check(&ask).await?;
    let mut unfinished = Unfinished::new(&server, &ask);
    let mut told =
        Told { settings: server.agent.settings().clone(), transcript: Transcript::default(), with_html };
    Ok(unbuffered(streamed_turn(server, ask, permit).flat_map(move |heard| {
        unfinished.hear(&heard);
        stream::iter(told.events(heard))
    })))
}

/// The data of an event, as it is serialized.
#[derive(Serialize)]
#[serde(untagged)]
enum Wire<'a> {
    State { state: TurnState },
    Sources { sources: &'a [SourceChunk] },
    Sentence { sentence: &'a Sentence, citations: &'a [Citation], delta: &'a str },
    Tail { delta: &'a str },
    Restart {},
    Done(&'a AgentResponse),
    Error(&'a ErrorBody),
}

fn wire(name: &'static str, data: &Wire<'_>) -> Event {
    // Serialization cannot fail: the data contains only strings and finite numbers.
    let event = Event::default().event(name);
    event.json_data(data).unwrap_or_else(|_| Event::default().event("error").data("{}"))
}

/// Turns what a turn reports into events, and keeps the answer text sent so far.
struct Told {
    settings: Settings,
    transcript: Transcript,
    with_html: bool,
}

impl Told {
    /// The events to send for a report.
    fn events(&mut self, heard: Heard) -> Vec<Event> {
        let event = match heard {
            Heard::Event(TurnEvent::State(state)) => wire("state", &Wire::State { state }),
            Heard::Event(TurnEvent::Sources(sources)) => {
                wire("sources", &Wire::Sources { sources: &sources })
            }
            Heard::Event(TurnEvent::Sentence(mut sentence, mut citations)) => {
                let delta = self.transcript.add(&sentence, &citations, &self.settings);
                if self.with_html {
                    sentence.html = Some(html::piece(&sentence.text));
                    citations.iter_mut().for_each(html::add_quote);
                }
                wire(
                    "sentence",
                    &Wire::Sentence { sentence: &sentence, citations: &citations, delta: &delta },
                )
            }
            Heard::Event(TurnEvent::Restart) => {
                self.transcript = Transcript::default();
                wire("restart", &Wire::Restart {})
            }
            Heard::Event(_) => return Vec::new(),
            Heard::Ended(Ok(response)) => return self.end(*response),
            Heard::Ended(Err(body)) => wire("error", &Wire::Error(&body)),
        };
        vec![event]
    }

    fn end(&mut self, mut response: AgentResponse) -> Vec<Event> {
        let tail = self.transcript.end(&response);
        if self.with_html {
            html::add(&mut response);
        }
        let done = wire("done", &Wire::Done(&response));
        if tail.is_empty() { vec![done] } else { vec![wire("tail", &Wire::Tail { delta: &tail }), done] }
    }
}
