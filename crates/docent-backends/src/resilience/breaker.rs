//! The circuit breaker: a service that keeps failing is left alone for a while.
//!
//! Five failures in a row open the circuit; half a minute later one call may try, and its
//! outcome closes the circuit or opens it again.
//!
//! Invariant: while the circuit is half open, at most one call is under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

/// Failures in a row that open the circuit.
const FAILURES: u32 = 5;

/// How long it stays open before a trial.
const OPEN_FOR: Duration = Duration::from_secs(30);

/// Watches one service. Clones watch together.
#[derive(Debug, Clone)]
pub struct Breaker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    service: &'static str,
    phase: Mutex<Phase>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Closed { failures: u32 },
    Open { until: Instant },
    Trial,
}

/// What a breaker lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Everything.
    Closed,
    /// Nothing.
    Open,
    /// One call, to see whether the service has recovered.
    HalfOpen,
}

impl Breaker {
    /// A closed circuit to `service`, which is what logs call it.
    pub fn new(service: &'static str) -> Self {
        Self { shared: Arc::new(Shared { service, phase: Mutex::new(Phase::Closed { failures: 0 }) }) }
    }

    /// What it lets through now.
    pub fn state(&self) -> BreakerState {
        match *self.phase() {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { until } if Instant::now() < until => BreakerState::Open,
            Phase::Open { .. } | Phase::Trial => BreakerState::HalfOpen,
        }
    }

    /// Leave to make one call, or nothing if the service is to be left alone.
    pub fn acquire(&self) -> Option<Permit> {
        let mut phase = self.phase();
        let trial = match *phase {
            Phase::Closed { .. } => false,
            Phase::Open { until } if until <= Instant::now() => {
                *phase = Phase::Trial;
                true
            }
            Phase::Open { .. } | Phase::Trial => return None,
        };
        drop(phase);
        Some(Permit { breaker: self.clone(), trial })
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.shared.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave to make one call. Dropped without a word, the call counts for nothing: its caller
/// went away, which says nothing about the service.
#[derive(Debug)]
#[must_use]
pub struct Permit {
    breaker: Breaker,
    trial: bool,
}

impl Permit {
    /// The call went well.
    pub fn succeeded(mut self) {
        self.answered();
        if let Phase::Closed { failures } = &mut *self.breaker.phase() {
            *failures = 0;
        }
    }

    /// The service failed.
    pub fn failed(mut self) {
        let service = self.breaker.shared.service;
        let mut phase = self.breaker.phase();
        let failures = match *phase {
            Phase::Closed { failures } if !self.trial => failures + 1,
            Phase::Trial if self.trial => FAILURES,
            // The call began before the circuit opened; it is old news.
            _ => return,
        };
        if failures < FAILURES {
            *phase = Phase::Closed { failures };
        } else {
            *phase = Phase::Open { until: Instant::now() + OPEN_FOR };
            tracing::warn!(service, "circuit opened");
        }
        drop(phase);
        self.trial = false;
    }

    /// The service answers again, though the answer is not complete: others need not wait
    /// for that. One more failure opens the circuit again.
    pub(super) fn answered(&mut self) {
        if std::mem::take(&mut self.trial) {
            *self.breaker.phase() = Phase::Closed { failures: FAILURES - 1 };
            tracing::info!(service = self.breaker.shared.service, "circuit closed");
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.trial {
            *self.breaker.phase() = Phase::Open { until: Instant::now() };
        }
    }
}
