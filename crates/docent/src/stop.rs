//! How a running command is stopped: Ctrl-C (SIGINT), or SIGTERM from a service manager.
//!
//! The first signal asks the command to stop, the second ends the process immediately. Commands that
//! have nothing to finish do not handle signals, so any signal ends them as usual.
//!
//! Invariant: after the first signal the process exits within the limits below, whatever it is doing:
//! a server before systemd's stop timeout, an ingest shortly after [`READING`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How long requests may continue after a server was asked to stop.
pub const REQUESTS: Duration = Duration::from_secs(20);

/// How long writing the turn log may take after that.
pub const LOG: Duration = Duration::from_secs(3);

/// How long an ingest may take to finish its current file or batch. In a server this limit runs in
/// parallel with [`REQUESTS`].
pub const READING: Duration = Duration::from_secs(3);

/// How long to wait for busy threads at the very end.
pub const THREADS: Duration = Duration::from_millis(500);

/// Tells a command that it should stop.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
}

impl Stop {
    /// Handles signals from now on; must be called inside a runtime.
    pub fn on_signals() -> Self {
        let stop = Self::default();
        match Signals::listen() {
            Ok(mut signals) => {
                let token = stop.token.clone();
                tokio::spawn(async move {
                    signals.next().await;
                    token.cancel();
                    let status = signals.next().await;
                    std::process::exit(status);
                });
            }
            // Signals then end the process immediately, as they do by default.
            Err(error) => tracing::warn!("cannot handle signals: {error}"),
        }
        stop
    }

    /// Waits until a stop is requested.
    pub fn requested(&self) -> impl Future<Output = ()> + Send + 'static {
        self.token.clone().cancelled_owned()
    }

    /// Waits until a stop is requested and [`READING`] has passed.
    pub async fn overdue(&self) {
        self.token.cancelled().await;
        tokio::time::sleep(READING).await;
    }

    /// The same as a token, for code that does not know about signals.
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }
}

/// Ctrl-C in a chat: cancels the current answer, or ends the program if there is none.
#[derive(Debug, Clone, Default)]
pub struct Interrupts {
    answer: Arc<Mutex<Option<CancellationToken>>>,
}

impl Interrupts {
    /// Handles signals from now on; must be called inside a runtime.
    pub fn listen() -> Self {
        let interrupts = Self::default();
        let answer = interrupts.answer.clone();
        match interrupt() {
            Ok(mut signal) => drop(tokio::spawn(async move {
                while signal.recv().await.is_some() {
                    match take(&answer) {
                        Some(answer) => answer.cancel(),
                        None => std::process::exit(INTERRUPTED),
                    }
                }
            })),
            Err(error) => tracing::warn!("cannot handle Ctrl-C: {error}"),
        }
        interrupts
    }

    /// Runs `work` until it is done; returns `None` if it was interrupted.
    pub async fn or_interrupted<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let token = CancellationToken::new();
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        let done = tokio::select! {
            biased;
            () = token.cancelled() => None,
            done = work => Some(done),
        };
        take(&self.answer);
        done
    }
}

fn take(answer: &Mutex<Option<CancellationToken>>) -> Option<CancellationToken> {
    answer.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The exit status of a process ended by Ctrl-C, as shells report it.
const INTERRUPTED: i32 = 128 + 2;

/// The same for SIGTERM.
#[cfg(unix)]
const TERMINATED: i32 = 128 + 15;

#[cfg(unix)]
use tokio::signal::unix::Signal as Interrupt;
#[cfg(windows)]
use tokio::signal::windows::CtrlC as Interrupt;

#[cfg(unix)]
fn interrupt() -> std::io::Result<Interrupt> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn interrupt() -> std::io::Result<Interrupt> {
    tokio::signal::windows::ctrl_c()
}

struct Signals {
    interrupt: Interrupt,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: interrupt()?,
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal; returns the exit status of a process that it ends.
    #[cfg(unix)]
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }

    /// Waits for the next signal; returns the exit status of a process that it ends.
    #[cfg(windows)]
    async fn next(&mut self) -> i32 {
        self.interrupt.recv().await;
        INTERRUPTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_waits_longer_than_a_server_takes_to_stop() {
        let unit = include_str!("../../../packaging/systemd/docent.service");
        let waits = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
        let waits = Duration::from_secs(waits.parse().unwrap());
        // The trace exporter's limit for sending its last batch.
        let traces = Duration::from_secs(5);
        let takes = REQUESTS.max(READING) + LOG + traces + THREADS;
        assert!(takes < waits, "{takes:?} of {waits:?}");
    }
}
