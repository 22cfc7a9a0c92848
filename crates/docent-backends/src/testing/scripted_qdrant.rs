//! A Qdrant that lives in the test's own process and speaks gRPC over a real socket.
//!
//! It answers as a single Qdrant 1.19 does, down to the words of its refusals, and on demand does
//! what servers do on bad days: it is slow, it refuses, it cuts the line after it has done the
//! work, it is killed and comes back with its data.
//!
//! Invariant: killing it is like killing a process: no call goes on, no connection stays open, and
//! when [`ScriptedQdrant::stop`] comes back the port is free.

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
mod stage;
mod line;
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
mod refusal;
#[cfg(test)]
mod tests;

pub use fault::{Fault, When};

use fault::Plan;
use line::Line;
use service::Service;
use stage::Stage;

/// The server. It stops when dropped.
pub struct ScriptedQdrant {
    address: SocketAddr,
    stage: Arc<Stage>,
    // Its own runtime, so that killing it takes every task along and a test's stopped clock does
    // not stop the server.
    machine: Mutex<Option<Runtime>>,
}

impl ScriptedQdrant {
    /// Starts, empty, on a free port.
    pub async fn start() -> io::Result<Self> {
        Self::start_at(0, None).await
    }

    /// Starts on a given port of this machine.
    pub async fn start_on(port: u16) -> io::Result<Self> {
        Self::start_at(port, None).await
    }

    /// Starts on a free port and lets nobody in without this key; only the health check needs none.
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

    /// The address for a client's configuration.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port it listens on; the same after a restart.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Kills it: calls under way are forgotten, connections drop, the data stays for a restart.
    pub fn stop(&self) {
        let Some(machine) = self.machine().take() else { return };
        // A runtime may not be waited for from inside another one.
        let killer = std::thread::spawn(move || machine.shutdown_timeout(Duration::from_secs(10)));
        // It panics only if the server did, and then it is gone as well.
        let _ = killer.join();
    }

    /// Brings it back on the same port with the data it had; kills it first if it runs.
    pub async fn restart(&self) -> io::Result<()> {
        self.stop();
        let mut attempts = 0;
        let listener = loop {
            match TcpListener::bind(self.address) {
                Ok(listener) => break listener,
                // Someone's outgoing connection may sit on the port for a moment. By the real clock:
                // the test's may stand still.
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

    /// Sets a fault. Names are those of the protocol: `Upsert`, or `Points/Get` where two services
    /// have the same. Faults add up: each counts its calls, delays all take place, and of the rest
    /// the one set first wins.
    pub fn fault(&self, rpc: &str, when: When, fault: Fault) {
        self.stage.plans().push(Plan::new(rpc, when, fault));
    }

    /// Takes all faults back.
    pub fn heal(&self) {
        self.stage.plans().clear();
    }

    /// The calls so far, in order: `("Points/Upsert", "book")`, with the name as it was sent. A call
    /// counts even if a fault hit it, but not if the key was wrong.
    pub fn calls(&self) -> Vec<(&'static str, String)> {
        self.stage.calls().clone()
    }

    /// How many calls of this name there were.
    pub fn count(&self, rpc: &str) -> usize {
        self.stage.calls().iter().filter(|(called, _)| fault::means(rpc, called)).count()
    }

    /// Starts the record of calls anew.
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

/// Serves in a runtime of its own; the server lives as long as the runtime.
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
    // Like the real server, it takes messages of any size, and packs answers if asked to.
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
