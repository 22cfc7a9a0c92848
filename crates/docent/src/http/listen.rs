//! Accepts connections: limits them per address, times out slow requests, and shuts down gracefully.
//!
//! Invariant: a client that sends nothing, or sends slowly, only uses up its own connections.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::network::network;
use crate::settings::Serve;
use crate::stop::REQUESTS;

/// How long to wait after accepting a connection failed, for example because there are no file descriptors
/// left.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves connections until `stop` completes, then waits for running requests to finish.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    settings: &Serve,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    // Behind a proxy, all connections come from the proxy.
    let most = if settings.trust_proxy { 0 } else { settings.connections_per_address };
    let open = Arc::new(Open { most, by_address: Mutex::default() });
    let arrival = Duration::from_secs_f64(settings.request_seconds);
    let (stopping, _) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(slot) = open.enter(peer.ip()) else {
                    metrics::counter!("docent_connections_refused_total").increment(1);
                    tracing::debug!("connection closed: too many connections from this address");
                    continue;
                };
                let connection = connection(stream, peer, app.clone(), arrival, stopping.subscribe());
                connections.spawn(async move {
                    connection.await;
                    drop(slot);
                });
            }
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    let _ = stopping.send(true);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(REQUESTS, finished).await.is_err() {
        tracing::warn!("some requests did not finish within {} s and were cancelled", REQUESTS.as_secs());
        // Wait until all are dropped: dropping a turn records it through its guard.
        connections.shutdown().await;
    }
    Ok(())
}

/// Whether the error only concerns one connection.
fn is_the_clients(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Serves the requests of one connection.
async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    app: Router,
    arrival: Duration,
    mut stopping: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let requests = Arc::new(Requests::default());
    let counted = requests.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request: Request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(Running::new(counted.clone()));
        let app = app.clone();
        async move { Ok::<_, Infallible>(app.oneshot(request).await.unwrap_or_else(|never| match never {})) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(arrival);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(30));
    let mut served = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    // Detecting the HTTP version has no timeout in hyper, so the first request gets one here.
    let mut first = std::pin::pin!(tokio::time::sleep(arrival));
    let mut is_first = true;
    let mut is_stopping = false;
    loop {
        tokio::select! {
            // Connection errors only concern the client.
            _ = &mut served => return,
            () = &mut first, if is_first => {
                if !requests.any.load(Ordering::Relaxed) {
                    return;
                }
                is_first = false;
            }
            _ = stopping.changed(), if !is_stopping => {
                // No request is running, although part of one may have arrived.
                if requests.running.load(Ordering::Relaxed) == 0 {
                    return;
                }
                is_stopping = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Counts the requests of a connection.
#[derive(Default)]
struct Requests {
    any: AtomicBool,
    running: AtomicUsize,
}

/// Marks a request as running until it is dropped. The response body holds it.
#[derive(Clone)]
pub struct Running {
    _count: Arc<Count>,
}

struct Count(Arc<Requests>);

impl Running {
    fn new(requests: Arc<Requests>) -> Self {
        requests.any.store(true, Ordering::Relaxed);
        requests.running.fetch_add(1, Ordering::Relaxed);
        Self { _count: Arc::new(Count(requests)) }
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts the open connections per address.
struct Open {
    /// Maximum per address; 0 means no limit.
    most: usize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// One counted connection; dropping it reduces the count.
struct CountedConnection {
    open: Arc<Open>,
    address: IpAddr,
}

impl Open {
    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<CountedConnection> {
        let address = network(address);
        let mut by_address = self.lock();
        let count = by_address.entry(address).or_default();
        if self.most > 0 && *count >= self.most {
            return None;
        }
        *count += 1;
        Some(CountedConnection { open: self.clone(), address })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut by_address = self.open.lock();
        if let Some(count) = by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_per_address() {
        let open = Arc::new(Open { most: 2, by_address: Mutex::default() });
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let first = open.enter(address("192.0.2.1"));
        let _second = open.enter(address("192.0.2.1"));
        assert!(open.enter(address("192.0.2.1")).is_none());
        // All IPv6 addresses of a /64 network count as one.
        let _third = open.enter(address("2001:db8::1"));
        let _fourth = open.enter(address("2001:db8::2"));
        assert!(open.enter(address("2001:db8::3")).is_none());
        assert!(open.enter(address("2001:db8:0:1::3")).is_some());
        drop(first);
        assert!(open.enter(address("192.0.2.1")).is_some());
        assert_eq!(open.lock().len(), 2, "addresses without connections are removed");
    }
}
