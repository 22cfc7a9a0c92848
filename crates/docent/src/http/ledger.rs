//! Turns on their way to the owner's log.
//!
//! A write that is synced to the disk takes milliseconds, and there is one writer. So turns
//! are written many at a time, behind the readers' backs.
//!
//! Invariant: turns are written in the order they came; whoever asks about one waits for it.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use docent_core::log::{Feedback, LoggedTurn, TurnLog};
use docent_core::session::SessionError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Turns that may wait to be written; more are dropped and counted.
const MOST_WAITING: usize = 10_000;

/// Turns written at once.
const TOGETHER: usize = 256;

enum Entry {
    Turn(Box<LoggedTurn>),
    /// Tells when everything before it is written.
    Mark(oneshot::Sender<()>),
}

/// The way to the log.
pub struct Ledger {
    log: Arc<dyn TurnLog>,
    entries: Mutex<Option<mpsc::Sender<Entry>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Ledger {
    /// Begins to write; must be called where tasks can run.
    pub fn new(log: Arc<dyn TurnLog>) -> Self {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        let writer = tokio::spawn(write(log.clone(), receiver));
        Self { log, entries: Mutex::new(Some(sender)), writer: Mutex::new(Some(writer)) }
    }

    /// Keeps a turn, soon.
    pub fn record(&self, turn: LoggedTurn) {
        let sent = self.sender().is_some_and(|entries| entries.try_send(Entry::Turn(Box::new(turn))).is_ok());
        if !sent {
            // The owner's figures are not worth a reader's answer.
            metrics::counter!("docent_unlogged_total").increment(1);
        }
    }

    /// Keeps what a reader thought of a turn.
    pub async fn rate(&self, turn_id: Uuid, feedback: &Feedback) -> Result<(), SessionError> {
        self.written().await;
        self.log.rate(turn_id, feedback).await
    }

    /// Writes what waits and stops.
    pub async fn close(&self) {
        drop(lock(&self.entries).take());
        let writer = lock(&self.writer).take();
        if let Some(writer) = writer {
            let _ = tokio::time::timeout(Duration::from_secs(5), writer).await;
        }
    }

    async fn written(&self) {
        let (tell, told) = oneshot::channel();
        if let Some(entries) = self.sender()
            && entries.send(Entry::Mark(tell)).await.is_ok()
        {
            let _ = told.await;
        }
    }

    fn sender(&self) -> Option<mpsc::Sender<Entry>> {
        lock(&self.entries).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

async fn write(log: Arc<dyn TurnLog>, mut entries: mpsc::Receiver<Entry>) {
    let mut waiting = Vec::with_capacity(TOGETHER);
    while entries.recv_many(&mut waiting, TOGETHER).await > 0 {
        let (mut turns, mut marks) = (Vec::new(), Vec::new());
        for entry in waiting.drain(..) {
            match entry {
                Entry::Turn(turn) => turns.push(*turn),
                Entry::Mark(tell) => marks.push(tell),
            }
        }
        if !turns.is_empty()
            && let Err(error) = log.record(&turns).await
        {
            tracing::warn!("{} turns were not logged: {error}", turns.len());
        }
        for tell in marks {
            let _ = tell.send(());
        }
    }
}
