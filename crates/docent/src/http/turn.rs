//! Runs a turn for any route, as one response or as a stream.
//!
//! Invariant: a turn is polled only by its response, and its [`TurnGuard`] records it exactly once, however
//! it ends.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use docent_core::agent::{Ask, TurnEvent};
use docent_core::answer::AgentResponse;
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tracing::Instrument;

use super::Server;
use super::error::{ApiError, ErrorBody};
use super::turn_guard::TurnGuard;

/// Runs a turn. It holds its permit until it ends or is dropped, and is recorded either way.
pub async fn turn(
    server: &Arc<Server>,
    permit: OwnedSemaphorePermit,
    ask: Ask,
    listener: impl Fn(TurnEvent) + Send + Sync,
) -> Result<AgentResponse, ApiError> {
    let mut guard = TurnGuard::open(server.clone(), &ask, permit);
    // The turn log always needs the passages.
    let wanted = ask.include_sources;
    let ask = ask.with_sources(true);
    let listener = |event: TurnEvent| {
        match &event {
            TurnEvent::State(state) => tracing::debug!(state = state.name(), "turn"),
            TurnEvent::ModelFailed(error) => {
                metrics::counter!("docent_model_failures_total").increment(1);
                tracing::warn!(%error, "the model failed; falling back to an extractive answer");
            }
            _ => {}
        }
        listener(event);
    };
    let answered = server.agent().ask(&ask, &listener).instrument(guard.span()).await;
    guard.ended(&answered);
    drop(guard);
    let mut response = answered?;
    if !wanted {
        response.sources = None;
    }
    Ok(response)
}

/// An item of a streamed turn.
pub enum Heard {
    /// An event during the turn.
    Event(TurnEvent),
    /// The result of the turn.
    Ended(Result<Box<AgentResponse>, ErrorBody>),
}

/// Runs a turn while its stream is read.
pub fn streamed_turn(
    server: Arc<Server>,
    ask: Ask,
    permit: OwnedSemaphorePermit,
) -> impl Stream<Item = Heard> {
    let (tell, heard) = mpsc::unbounded_channel();
    let work = async move {
        let told = |event| {
            // If the client is gone, the turn itself is dropped.
            let _ = tell.send(event);
        };
        turn(&server, permit, ask, told).await.map(Box::new).map_err(|error| error.body())
    };
    let streaming = Streaming { work: Some(Box::pin(work)), heard, ended: None };
    stream::unfold(streaming, async |mut streaming| Some((streaming.next().await?, streaming)))
}

type Work = Pin<Box<dyn Future<Output = Result<Box<AgentResponse>, ErrorBody>> + Send>>;

struct Streaming {
    /// None once the turn has ended.
    work: Option<Work>,
    heard: mpsc::UnboundedReceiver<TurnEvent>,
    ended: Option<Result<Box<AgentResponse>, ErrorBody>>,
}

impl Streaming {
    /// The next item: all events first, then the result.
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

/// A response of server-sent events that proxies do not buffer.
pub fn unbuffered(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let keep_alive = KeepAlive::new().interval(Duration::from_secs(10)).text("keep-alive");
    let mut response = Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(keep_alive).into_response();
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
