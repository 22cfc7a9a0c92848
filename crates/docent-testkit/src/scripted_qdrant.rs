//! A test double of Qdrant in the test's own process, speaking gRPC over a real socket.
//!
//! It responds like a single Qdrant 1.19 node, including its error messages, and can be told to fail like
//! real servers: to be slow, to reject calls, to close the connection after the work is done, to be killed
//! and come back with its data.
//!
//! Invariant: killing it is like killing a process: no call continues, no connection stays open, and when
//! [`ScriptedQdrant::stop`] returns the port is free.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream;
use qdrant_client::qdrant::collections_server::CollectionsServer;
use qdrant_client::qdrant::points_server::PointsServer;
use qdrant_client::qdrant::qdrant_server::QdrantServer;
use tokio::runtime::Runtime;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::transport::Server;

mod fault;
mod service;
mod dispatch;
mod connection;
mod store;
mod collections;
mod points;
mod collection;
mod config;
mod id;
mod vectors;
mod payload;
mod filter;
mod fields;
mod query;
mod errors;
#[cfg(test)]
mod tests;

pub use fault::{Fault, When};

use connection::Line;
use dispatch::Stage;
use fault::Plan;
use service::Service;

/// The server; it stops when dropped.
pub struct ScriptedQdrant {
    address: SocketAddr,
    stage: Arc<Stage>,
    // Its own runtime, so that killing it ends every task, and pausing the test's clock does not pause the
    // server.
    machine: Mutex<Option<Runtime>>,
}

impl ScriptedQdrant {
    /// Starts empty on a free port.
    pub async fn start() -> io::Result<Self> {
        Self::start_at(0, None).await
    }

    /// Starts on a given local port.
    pub async fn start_on(port: u16) -> io::Result<Self> {
        Self::start_at(port, None).await
    }

    /// Starts on a free port and requires this key for everything except the health check.
    pub async fn start_with_key(key: &str) -> io::Result<Self> {
        Self::start_at(0, Some(key.to_owned())).await
    }

    async fn start_at(port: u16, key: Option<String>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let stage = Arc::new(Stage::new(key));
        let machine = run(listener, stage.clone())?;
        Ok(Self { address, stage, machine: Mutex::new(Some(machine)) })
    }

    /// The URL for a client's configuration.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port it listens on; the same after a restart.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Kills the server: pending calls are lost, connections drop, the data is kept for a restart.
    pub fn stop(&self) {
        let Some(machine) = self.machine().take() else { return };
        // A runtime cannot be shut down from inside another one.
        let killer = std::thread::spawn(move || machine.shutdown_timeout(Duration::from_secs(10)));
        // The thread panics only if the server did, and then it is gone too.
        let _ = killer.join();
    }

    /// Starts it again on the same port with its data; kills it first if it is running.
    pub async fn restart(&self) -> io::Result<()> {
        self.stop();
        let mut attempts = 0;
        let listener = loop {
            match TcpListener::bind(self.address) {
                Ok(listener) => break listener,
                // Another process's outgoing connection may occupy the port briefly. Wait in real time,
                // because the test's clock may be paused.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts < 100 => {
                    attempts += 1;
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => return Err(error),
            }
        };
        *self.machine() = Some(run(listener, self.stage.clone())?);
        Ok(())
    }

    /// Sets a fault. Names are those of the protocol: `Upsert`, or `Points/Get` if two services have the same
    /// name. Several faults combine: each counts its own calls, all delays apply, and among the rest the one
    /// set first wins.
    pub fn fault(&self, rpc: &str, when: When, fault: Fault) {
        self.stage.plans().push(Plan::new(rpc, when, fault));
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.stage.plans().clear();
    }

    /// The calls so far, in order: `("Points/Upsert", "book")`, with the collection name as sent. A call
    /// counts even if a fault hit it, but not if the key was wrong.
    pub fn calls(&self) -> Vec<(&'static str, String)> {
        self.stage.calls().clone()
    }

    /// The number of calls with this name.
    pub fn count(&self, rpc: &str) -> usize {
        self.stage.calls().iter().filter(|(called, _)| fault::means(rpc, called)).count()
    }

    /// Clears the record of calls.
    pub fn forget_calls(&self) {
        self.stage.calls().clear();
    }

    fn machine(&self) -> MutexGuard<'_, Option<Runtime>> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ScriptedQdrant {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Serves in its own runtime; the server lives as long as the runtime.
fn run(listener: TcpListener, stage: Arc<Stage>) -> io::Result<Runtime> {
    listener.set_nonblocking(true)?;
    let machine = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("scripted-qdrant")
        .enable_all()
        .build()?;
    let listener = {
        let _inside = machine.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let lines = stream::unfold(listener, |listener| async {
        let line = listener.accept().await.and_then(|(connection, _)| Line::new(connection));
        Some((line, listener))
    });
    // Like the real server, it accepts messages of any size and compresses responses on request.
    macro_rules! service {
        ($server:ident) => {
            $server::new(Service(stage.clone()))
                .send_compressed(Gzip)
                .accept_compressed(Gzip)
                .max_decoding_message_size(usize::MAX)
        };
    }
    let server = Server::builder()
        .add_service(service!(QdrantServer))
        .add_service(service!(CollectionsServer))
        .add_service(service!(PointsServer));
    machine.spawn(server.serve_with_incoming(lines));
    Ok(machine)
}
