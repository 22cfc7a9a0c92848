//! Handles what all requests share: the request id, reading the body, and the log line.
//!
//! Invariant: everything logged about a request, streamed or not, is inside its span. The final log line is
//! written when the last byte was sent or the client disconnected.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use tracing::{Instrument, Span};

use super::error::{ApiError, Code, in_openai_shape};
use super::listen::Running;
use super::request_id::REQUEST_ID;
use crate::mcp;
use crate::settings::Serve;

/// The response header with the request id.
pub static ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// How many characters of a path are logged.
const LOGGED: usize = 200;

/// Assigns the request id that appears in log lines, errors and the response header.
pub async fn identified(mut request: Request, next: Next) -> Response {
    let id: Arc<str> = uuid::Uuid::new_v4().to_string().into();
    let is_compatible = request.uri().path().starts_with("/v1/");
    let (method, path) = (request.method().clone(), logged(request.uri().path()));
    let span = tracing::info_span!("request", request_id = %id, %method, path);
    let running = request.extensions_mut().remove::<Running>();
    let begun = Instant::now();
    let work = async {
        let response = next.run(request).await;
        if is_compatible { in_openai_shape(response) } else { response }
    };
    let mut response = REQUEST_ID.scope(id.clone(), work).instrument(span.clone()).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(&ID_HEADER, value);
    }
    let status = response.status().as_u16();
    metrics::counter!("docent_requests_total", "status" => status.to_string()).increment(1);
    response.map(|body| {
        Body::new(Answering { body, id, span, begun, status, is_whole: false, _running: running })
    })
}

/// The path as it is logged: without ids, so that the log names no conversation, and shortened.
fn logged(path: &str) -> String {
    let parts: Vec<&str> =
        path.split('/').map(|part| if uuid::Uuid::try_parse(part).is_ok() { "{id}" } else { part }).collect();
    let path = parts.join("/");
    match path.char_indices().nth(LOGGED) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path,
    }
}

/// A response body while it is sent. Streamed answers are produced during this time.
struct Answering {
    body: Body,
    id: Arc<str>,
    span: Span,
    begun: Instant,
    status: u16,
    is_whole: bool,
    _running: Option<Running>,
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let _entered = this.span.enter();
        let polled = REQUEST_ID.sync_scope(this.id.clone(), || Pin::new(&mut this.body).poll_frame(context));
        this.is_whole = matches!(polled, Poll::Ready(None)) || this.body.is_end_stream();
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let span = self.span.clone();
        let _entered = span.enter();
        // Drop the body, and a turn that it may contain, inside the span.
        let is_whole = self.is_whole || self.body.is_end_stream();
        let body = std::mem::take(&mut self.body);
        REQUEST_ID.sync_scope(self.id.clone(), || drop(body));
        let milliseconds = self.begun.elapsed().as_secs_f64() * 1000.0;
        if is_whole {
            tracing::info!(status = self.status, milliseconds, "answered");
        } else {
            tracing::info!(status = self.status, milliseconds, "client disconnected before the end");
        }
    }
}

/// Limits for reading request bodies.
#[derive(Clone)]
pub struct Arriving {
    time: Duration,
    body_limit: usize,
}

impl Arriving {
    /// Applies the settings.
    pub fn new(settings: &Serve) -> Self {
        Self { time: Duration::from_secs_f64(settings.request_seconds), body_limit: settings.body_limit }
    }
}

/// How many times the size limit of a body is still read, and thrown away, before the request is rejected.
const DISCARDED: usize = 16;

/// Reads the whole body, with a timeout and a size limit, before the request is handled. If the request is
/// then rejected, nothing is left unread, so the client gets the response and can reuse the connection.
pub async fn arrived(State(arriving): State<Arriving>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let is_mcp = parts.uri.path().starts_with("/mcp");
    let limit = if is_mcp { arriving.body_limit.max(mcp::LONGEST_MESSAGE) } else { arriving.body_limit };
    // A client that asks first sends nothing unless the body is read.
    let asks_first = parts.headers.contains_key(header::EXPECT);
    let rejected = if asks_first && body.size_hint().lower() > limit as u64 {
        Code::TooLarge
    } else {
        match tokio::time::timeout(arriving.time, read(body, limit)).await {
            Ok(Ok(Some(bytes))) => return next.run(Request::from_parts(parts, Body::from(bytes))).await,
            Ok(Ok(None)) => Code::TooLarge,
            Ok(Err(_)) => Code::Validation,
            Err(_) => Code::TooSlow,
        }
    };
    let message = match rejected {
        Code::TooLarge => "The request body is too large",
        Code::TooSlow => "The request body took too long to arrive",
        _ => "The request body could not be read",
    };
    ApiError::new(rejected, message).into_response()
}

/// The body, or `None` if it is larger than `limit`. The rest of a larger body is discarded: if the
/// connection were closed while the client is still sending, the client would get a reset, not the response.
async fn read(mut body: Body, limit: usize) -> Result<Option<Bytes>, axum::Error> {
    let discarded = (limit as u64).saturating_mul(DISCARDED as u64);
    if body.size_hint().lower() > discarded {
        return Ok(None);
    }
    let (mut kept, mut length) = (Vec::new(), 0_u64);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        length += data.len() as u64;
        if length > discarded {
            return Ok(None);
        }
        if length <= limit as u64 {
            kept.extend_from_slice(&data);
        }
    }
    Ok((length <= limit as u64).then(|| kept.into()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A body that arrives in pieces of 1,000 bytes and counts how many were read.
    fn arriving(pieces: usize) -> (Body, Arc<AtomicUsize>) {
        let read = Arc::new(AtomicUsize::new(0));
        let counter = read.clone();
        let pieces = futures_util::stream::iter((0..pieces).map(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(vec![b'x'; 1000])
        }));
        (Body::from_stream(pieces), read)
    }

    #[tokio::test]
    async fn a_body_above_the_limit_is_read_to_its_end_and_rejected() {
        let (body, count) = arriving(3);
        assert_eq!(read(body, 3000).await.unwrap().unwrap().len(), 3000);
        assert_eq!(count.load(Ordering::Relaxed), 3);
        let (body, count) = arriving(40);
        assert_eq!(read(body, 3000).await.unwrap(), None);
        assert_eq!(count.load(Ordering::Relaxed), 40, "the client could send everything");
    }

    #[tokio::test]
    async fn an_endless_body_is_not_read_to_its_end() {
        let (body, count) = arriving(1_000_000);
        assert_eq!(read(body, 3000).await.unwrap(), None);
        assert_eq!(count.load(Ordering::Relaxed), 3 * DISCARDED + 1);
    }

    #[test]
    fn logged_paths_have_no_ids_and_are_shortened() {
        let id = uuid::Uuid::new_v4();
        assert_eq!(logged(&format!("/api/v1/sessions/{id}/export")), "/api/v1/sessions/{id}/export");
        assert_eq!(logged(&format!("/{}", "é".repeat(50_000))).chars().count(), LOGGED + 1);
    }
}
