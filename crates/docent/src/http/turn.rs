//! A turn as every route runs it: measured, kept for the owner, whole or as a stream.
//!
//! Invariant: a reader who goes away takes the turn along; it is polled by the response alone.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use docent_core::agent::{Ask, State, TurnEvent};
use docent_core::answer::AgentResponse;
use docent_core::log::LoggedTurn;
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::Server;
use super::error::{ApiError, ErrorBody};

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
    metrics::counter!("docent_turns_total", "outcome" => State::Failed.name()).increment(1);
}

fn measure(server: &Server, response: &AgentResponse) {
    let outcome = match State::end_of(response) {
        State::Completed if response.degraded => "degraded",
        end => end.name(),
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

/// What a stream of a turn brings.
pub enum Heard {
    /// Something on the way.
    Event(TurnEvent),
    /// The end.
    Ended(Result<Box<AgentResponse>, ErrorBody>),
}

/// Runs a turn while its stream is read; it holds its place until it ends.
pub fn streamed_turn(
    server: Arc<Server>,
    ask: Ask,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Heard> {
    let (tell, heard) = mpsc::unbounded_channel();
    let work = async move {
        let _place = place;
        let told = |event| {
            // A reader who is gone drops the turn itself.
            let _ = tell.send(event);
        };
        turn(&server, ask, told).await.map(Box::new).map_err(|error| error.body())
    };
    // The stream is polled outside the request's own scope; its errors carry the same name.
    let work: Work = Box::pin(super::REQUEST_ID.scope(super::request_id(), work));
    let streaming = Streaming { work: Some(work), heard, ended: None };
    stream::unfold(streaming, async |mut streaming| Some((streaming.next().await?, streaming)))
}

type Work = Pin<Box<dyn Future<Output = Result<Box<AgentResponse>, ErrorBody>> + Send>>;

struct Streaming {
    /// None when the turn has ended.
    work: Option<Work>,
    heard: mpsc::UnboundedReceiver<TurnEvent>,
    ended: Option<Result<Box<AgentResponse>, ErrorBody>>,
}

impl Streaming {
    /// All that was heard, then the end.
    async fn next(&mut self) -> Option<Heard> {
        loop {
            let Some(work) = &mut self.work else {
                return match self.heard.recv().await {
                    Some(event) => Some(Heard::Event(event)),
                    None => self.ended.take().map(Heard::Ended),
                };
            };
            tokio::select! {
                biased;
                Some(event) = self.heard.recv() => return Some(Heard::Event(event)),
                ended = work => {
                    self.ended = Some(ended);
                    self.work = None;
                }
            }
        }
    }
}

/// Events as a response that nobody on the way collects.
pub fn trickling(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let keep_alive = KeepAlive::new().interval(Duration::from_secs(10)).text("still here");
    let mut response = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(keep_alive).into_response();
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
