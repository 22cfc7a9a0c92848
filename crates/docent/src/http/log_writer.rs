//! Writes turns to the turn log in the background.
//!
//! A write that is synced to disk takes milliseconds, and there is only one writer. So turns are written in
//! batches, and no response waits for them. Until a turn is written it is also in a file
//! ([`PendingTurns`]), so that it survives if the server is killed.
//!
//! Invariant: turns are written in order, and a rating waits until its turn is written.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use docent_backends::failpoint;
use docent_backends::session::pending::{PendingTurns, Place};
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
    Turn(Box<LoggedTurn>, Place),
    /// Signals when everything before it is written.
    Mark(oneshot::Sender<()>),
}

/// The queue in front of the turn log.
pub struct LogWriter {
    log: Arc<dyn TurnLog>,
    pending: Option<Arc<Pending>>,
    entries: Mutex<Option<mpsc::Sender<Entry>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// The files of turns that are not written yet.
struct Pending {
    turns: Mutex<PendingTurns>,
    has_failed: AtomicBool,
}

impl Pending {
    fn add(&self, turn: &LoggedTurn) -> Place {
        let added = lock(&self.turns).add(turn);
        self.warn_once(added).flatten()
    }

    fn logged(&self, places: impl Iterator<Item = Place>) {
        let done = lock(&self.turns).logged(places);
        self.warn_once(done);
    }

    fn warn_once<T>(&self, done: std::io::Result<T>) -> Option<T> {
        done.inspect_err(|error| {
            if !self.has_failed.swap(true, Ordering::Relaxed) {
                tracing::warn!("turns that are not in the turn log yet would be lost in a crash: {error}");
            }
        })
        .ok()
    }
}

impl LogWriter {
    /// Starts the background task; must be called inside a Tokio runtime. Without `pending`, turns that are not
    /// written yet are lost if the process is killed.
    pub fn new(log: Arc<dyn TurnLog>, pending: Option<PendingTurns>) -> Self {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        let pending = pending
            .map(|turns| Arc::new(Pending { turns: Mutex::new(turns), has_failed: AtomicBool::new(false) }));
        let writer = tokio::spawn(write(log.clone(), pending.clone(), receiver));
        Self { log, pending, entries: Mutex::new(Some(sender)), writer: Mutex::new(Some(writer)) }
    }

    /// Queues a turn.
    pub fn record(&self, turn: LoggedTurn) {
        let entries = self.sender();
        let Some(room) = entries.as_ref().and_then(|entries| entries.try_reserve().ok()) else {
            // Rather lose a log entry than delay an answer.
            metrics::counter!("docent_unlogged_total").increment(1);
            return;
        };
        let place = self.pending.as_ref().and_then(|pending| pending.add(&turn));
        room.send(Entry::Turn(Box::new(turn), place));
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
        if let Some(pending) = &self.pending {
            lock(&pending.turns).close();
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

async fn write(log: Arc<dyn TurnLog>, pending: Option<Arc<Pending>>, mut entries: mpsc::Receiver<Entry>) {
    let mut waiting = Vec::with_capacity(TOGETHER);
    while entries.recv_many(&mut waiting, TOGETHER).await > 0 {
        let (mut turns, mut places, mut marks) = (Vec::new(), Vec::new(), Vec::new());
        for entry in waiting.drain(..) {
            match entry {
                Entry::Turn(turn, place) => {
                    turns.push(*turn);
                    places.push(place);
                }
                Entry::Mark(tell) => marks.push(tell),
            }
        }
        if !turns.is_empty() {
            match record(log.as_ref(), &turns).await {
                Ok(()) => {
                    if let Some(pending) = &pending {
                        pending.logged(places.into_iter());
                    }
                }
                Err(error) => tracing::warn!("failed to log {} turns: {error}", turns.len()),
            }
        }
        for tell in marks {
            let _ = tell.send(());
        }
    }
}

async fn record(log: &dyn TurnLog, turns: &[LoggedTurn]) -> Result<(), SessionError> {
    failpoint::reach("turn_log.write").map_err(|error| SessionError::Unavailable(error.to_string()))?;
    log.record(turns).await
}
