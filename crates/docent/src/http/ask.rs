//! `POST /api/v1/ask`: a question, answered whole or as it is written.
//!
//! Invariant: a reader who goes away takes the turn along; it is polled by the response alone.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use docent_core::agent::{Ask, AskError, Selection, State as TurnState, TurnEvent};
use docent_core::answer::{AgentResponse, Citation, Sentence};
use docent_core::log::LoggedTurn;
use docent_core::query::{MOST_AGENT_HITS, Question};
use docent_core::retrieve::Confidence;
use docent_core::sources::SourceChunk;
use futures_util::{Stream, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::{ApiError, ErrorBody};
use super::guard::Reader;
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
        module: request.module,
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
    check(&server, &ask).await?;
    let events = events(server, ask, with_html, place);
    let keep_alive = KeepAlive::new().interval(Duration::from_secs(10)).text("still here");
    let mut response = Sse::new(events).keep_alive(keep_alive).into_response();
    // Proxies must not collect what is meant to trickle.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// What is wrong with a question is an error of the request, not of the stream.
pub async fn check(server: &Server, ask: &Ask) -> Result<(), ApiError> {
    Question::within(MOST_AGENT_HITS, &ask.query, ask.top_k, 0.0, None).map_err(AskError::from)?;
    server.check_module(ask.module.as_deref()).await
}

/// Runs a turn, measures it, and keeps it for the owner.
pub async fn turn(
    server: &Server,
    ask: Ask,
    listener: impl Fn(TurnEvent) + Send + Sync,
) -> Result<AgentResponse, ApiError> {
    // The owner's log needs the passages whether or not the reader does.
    let wanted = ask.include_sources;
    let ask = Ask { include_sources: true, ..ask };
    let listener = |event: TurnEvent| {
        if let TurnEvent::State(state) = &event {
            tracing::debug!(state = state.name(), "turn");
        }
        listener(event);
    };
    let answered = server.agent().ask(&ask, &listener).await;
    let mut response = answered.inspect_err(|_| measure_failure())?;
    measure(server, &response);
    if server.settings.retention_days > 0 {
        let sources = response.sources.as_deref().unwrap_or_default();
        server.ledger.record(LoggedTurn::new(&response, sources));
    }
    if !wanted {
        response.sources = None;
    }
    Ok(response)
}

fn measure_failure() {
    metrics::counter!("docent_turns_total", "outcome" => TurnState::Failed.name()).increment(1);
}

fn measure(server: &Server, response: &AgentResponse) {
    let outcome = match (response.grounded, response.confidence) {
        (true, _) if response.degraded => "degraded",
        (true, _) => TurnState::Completed.name(),
        (false, Confidence::None) => TurnState::NoResults.name(),
        (false, _) => TurnState::LowConfidence.name(),
    };
    metrics::counter!("docent_turns_total", "outcome" => outcome).increment(1);
    let times = &response.metadata;
    for (step, milliseconds) in [
        ("embedding", times.embedding_time_ms),
        ("retrieval", times.retrieval_time_ms),
        ("generation", times.generation_time_ms),
        ("whole", times.response_time_ms),
    ] {
        metrics::histogram!("docent_step_seconds", "step" => step).record(milliseconds / 1000.0);
    }
    if times.cache_hit {
        metrics::counter!("docent_cache_hits_total").increment(1);
    }
    server.guard.tokens().spend(response.tokens_used);
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

type Turn = Pin<Box<dyn Future<Output = Result<AgentResponse, ApiError>> + Send>>;

struct Streaming {
    /// None when the turn has ended.
    turn: Option<Turn>,
    heard: mpsc::UnboundedReceiver<TurnEvent>,
    ended: Option<Event>,
    with_html: bool,
    _place: OwnedSemaphorePermit,
}

fn events(
    server: Arc<Server>,
    ask: Ask,
    with_html: bool,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let (tell, heard) = mpsc::unbounded_channel();
    let id = super::request_id();
    let turn = async move {
        turn(&server, ask, |event| {
            // A reader who is gone drops the turn itself.
            let _ = tell.send(event);
        })
        .await
    };
    // The stream is polled outside the request's own scope; its errors carry the same name.
    let turn: Turn = Box::pin(super::REQUEST_ID.scope(id.clone(), turn));
    let streaming = Streaming { turn: Some(turn), heard, ended: None, with_html, _place: place };
    stream::unfold((streaming, id), async |(mut streaming, id)| {
        let event = super::REQUEST_ID.scope(id.clone(), streaming.next()).await?;
        Some((Ok(event), (streaming, id)))
    })
}

impl Streaming {
    /// The next event: all that was heard, then the end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let Some(turn) = &mut self.turn else {
                return match self.heard.recv().await {
                    Some(event) => Some(self.told(event)),
                    None => self.ended.take(),
                };
            };
            tokio::select! {
                biased;
                Some(event) = self.heard.recv() => return Some(self.told(event)),
                ended = turn => {
                    self.ended = Some(match ended {
                        Ok(mut response) => {
                            if self.with_html {
                                html::add(&mut response);
                            }
                            wire("done", &Wire::Done(&response))
                        }
                        Err(error) => wire("error", &Wire::Error(&error.body())),
                    });
                    self.turn = None;
                }
            }
        }
    }

    fn told(&self, event: TurnEvent) -> Event {
        match event {
            TurnEvent::State(state) => wire("state", &Wire::State { state }),
            TurnEvent::Sources(sources) => wire("sources", &Wire::Sources { sources: &sources }),
            TurnEvent::Sentence(mut sentence, citations) => {
                sentence.html = self.with_html.then(|| html::piece(&sentence.text));
                wire("sentence", &Wire::Sentence { sentence: &sentence, citations: &citations })
            }
            TurnEvent::Restart => wire("restart", &Wire::Restart {}),
        }
    }
}
