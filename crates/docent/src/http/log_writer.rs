//! Writes turns to the turn log in the background.
//!
//! A write that is synced to disk takes milliseconds, and there is only one writer. So turns are written in
//! batches, and no response waits for them.
//!
//! Invariant: turns are written in order, and a rating waits until its turn is written.

use std::sync::Arc;
use std::sync::Mutex;

use docent_core::session::SessionError;
use docent_core::turn_log::{Feedback, LoggedTurn, TurnLog};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// How many turns may wait to be written; further ones are dropped and counted.
const MOST_WAITING: usize = 10_000;

/// How many turns are written at once.
const TOGETHER: usize = 256;

enum Entry {
    Turn(Box<LoggedTurn>),
    /// Signals when everything before it is written.
    Mark(oneshot::Sender<()>),
}

/// The queue in front of the turn log.
pub struct LogWriter {
    log: Arc<dyn TurnLog>,
    entries: Mutex<Option<mpsc::Sender<Entry>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl LogWriter {
    /// Starts the background task; must be called inside a Tokio runtime.
    pub fn new(log: Arc<dyn TurnLog>) -> Self {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        let writer = tokio::spawn(write(log.clone(), receiver));
        Self { log, entries: Mutex::new(Some(sender)), writer: Mutex::new(Some(writer)) }
    }

    /// Queues a turn.
    pub fn record(&self, turn: LoggedTurn) {
        let sent = self.sender().is_some_and(|entries| entries.try_send(Entry::Turn(Box::new(turn))).is_ok());
        if !sent {
            // Rather lose a log entry than delay an answer.
            metrics::counter!("docent_unlogged_total").increment(1);
        }
    }

    /// Stores the feedback on a turn.
    pub async fn rate(&self, turn_id: Uuid, feedback: &Feedback) -> Result<(), SessionError> {
        self.written().await;
        self.log.rate(turn_id, feedback).await
    }

    /// Writes all queued turns and stops.
    pub async fn close(&self) {
        drop(lock(&self.entries).take());
        let writer = lock(&self.writer).take();
        if let Some(writer) = writer {
            let _ = tokio::time::timeout(crate::stop::LOG, writer).await;
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
            tracing::warn!("failed to log {} turns: {error}", turns.len());
        }
        for tell in marks {
            let _ = tell.send(());
        }
    }
}
