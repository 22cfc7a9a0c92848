//! `POST /api/v1/ask`: a question, answered whole or as it is written.
//!
//! Invariant: the last event of a stream is the whole answer, or why there is none.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, header};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use docent_core::agent::{Ask, Selection, State as TurnState, TurnEvent};
use docent_core::answer::{AgentResponse, Citation, Sentence};
use docent_core::index::Filter;
use docent_core::sources::SourceChunk;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::{ApiError, ErrorBody};
use super::guard::Reader;
use super::turn::{Heard, streamed_turn, trickling, turn};
use super::{Server, html};

/// A question.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskRequest {
    /// 1 to 1000 characters after trimming.
    #[schema(min_length = 1, max_length = 1000, pattern = r"\S", example = "What is a ROS 2 node?")]
    query: String,
    /// Passages to answer from.
    #[schema(minimum = 1, maximum = 10)]
    top_k: Option<usize>,
    /// Whether the passages are wanted in the answer; yes unless told otherwise.
    include_sources: Option<bool>,
    /// The conversation it is part of.
    session_id: Option<Uuid>,
    /// Only passages of this book, where there are several.
    book: Option<String>,
    /// Only passages of this module.
    module: Option<String>,
    /// Whether to send the answer sentence by sentence.
    stream: Option<bool>,
    /// Words of the book the question is about.
    selection: Option<Selection>,
    /// Whether each sentence is also wanted as safe HTML.
    html: Option<bool>,
}

/// An event of the stream, as it is described.
#[derive(ToSchema)]
#[expect(dead_code, reason = "events are written by `wire`")]
pub struct AskEvent {
    event: AskEventName,
    /// An object, in JSON.
    data: String,
}

/// What an event tells.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "events are written by `wire`")]
pub enum AskEventName {
    State,
    Sources,
    Sentence,
    Restart,
    Done,
    Error,
}

/// Ask the book
///
/// As JSON, or as server-sent events when `stream` is true or the `Accept` header asks for
/// them: `state`, `sources`, `sentence` repeated, then `done` (the whole answer) or `error`.
/// `restart` means that the sentences so far are not the answer after all.
#[utoipa::path(post, path = "/api/v1/ask", tag = "answers", request_body = AskRequest,
    responses(
        (status = 200, description = "The answer, or an abstention", content((AgentResponse = "application/json"), (AskEvent = "text/event-stream"))),
        (status = 400, body = ErrorBody, description = "Not a valid question"),
        (status = 401, body = ErrorBody, description = "No key, or a wrong one"),
        (status = 404, body = ErrorBody, description = "No such session"),
        (status = 413, body = ErrorBody, description = "Too long"),
        (status = 429, body = ErrorBody, description = "Too many requests"),
        (status = 500, body = ErrorBody, description = "Our fault"),
        (status = 503, body = ErrorBody, description = "The book cannot be searched, or too many questions at once")
    ))]
pub async fn ask(
    State(server): State<Arc<Server>>,
    _: Reader,
    headers: HeaderMap,
    body: Result<Json<AskRequest>, JsonRejection>,
) -> Result<Response, ApiError> {
    let Json(request) = body?;
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let streamed = request.stream.unwrap_or_else(|| accepts.contains("text/event-stream"));
    if let Some(id) = request.session_id {
        // A session that is not there is better said before a stream begins.
        server.sessions.get(id).await?;
    }
    let with_html = request.html.unwrap_or(false);
    let ask = Ask {
        query: request.query,
        top_k: request.top_k.unwrap_or(server.top_k),
        threshold: server.threshold,
        filter: Filter { book: request.book, module: request.module },
        session_id: request.session_id,
        selection: request.selection.filter(|selection| !selection.text.trim().is_empty()),
        include_sources: request.include_sources.unwrap_or(true),
        streamed,
        ..Ask::default()
    };
    let place = server.guard.place().await?;
    if !streamed {
        let mut response = turn(&server, ask, |_| {}).await?;
        if with_html {
            html::add(&mut response);
        }
        drop(place);
        return Ok(Json(response).into_response());
    }
    // What is wrong with a question is an error of the request, not of the stream.
    server.agent.check(&ask).await?;
    Ok(trickling(streamed_turn(server, ask, place).map(move |heard| event(heard, with_html))))
}

/// What streams on the wire.
#[derive(Serialize)]
#[serde(untagged)]
enum Wire<'a> {
    State { state: TurnState },
    Sources { sources: &'a [SourceChunk] },
    Sentence { sentence: &'a Sentence, citations: &'a [Citation] },
    Restart {},
    Done(&'a AgentResponse),
    Error(&'a ErrorBody),
}

fn wire(name: &'static str, data: &Wire<'_>) -> Event {
    // All of it is strings and finite numbers.
    let event = Event::default().event(name);
    event.json_data(data).unwrap_or_else(|_| Event::default().event("error").data("{}"))
}

/// What was heard, as it is sent.
fn event(heard: Heard, with_html: bool) -> Event {
    match heard {
        Heard::Event(TurnEvent::State(state)) => wire("state", &Wire::State { state }),
        Heard::Event(TurnEvent::Sources(sources)) => wire("sources", &Wire::Sources { sources: &sources }),
        Heard::Event(TurnEvent::Sentence(mut sentence, citations)) => {
            sentence.html = with_html.then(|| html::piece(&sentence.text));
            wire("sentence", &Wire::Sentence { sentence: &sentence, citations: &citations })
        }
        Heard::Event(TurnEvent::Restart) => wire("restart", &Wire::Restart {}),
        Heard::Ended(Ok(mut response)) => {
            if with_html {
                html::add(&mut response);
            }
            wire("done", &Wire::Done(&response))
        }
        Heard::Ended(Err(body)) => wire("error", &Wire::Error(&body)),
    }
}
