//! The circuit breaker: a service that keeps failing is not called for a while.
//!
//! Five consecutive failures open the circuit. Half a minute later one trial call is allowed, and its outcome
//! closes the circuit or opens it again.
//!
//! Invariant: while the circuit is half open, at most one call is in progress.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

/// Number of consecutive failures that open the circuit.
const FAILURES: u32 = 5;

/// How long the circuit stays open before a trial call.
const OPEN_FOR: Duration = Duration::from_secs(30);

/// The circuit breaker of one service. Clones share their state.
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

/// The state of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// All calls are allowed.
    Closed,
    /// No calls are allowed.
    Open,
    /// One trial call is allowed, to see whether the service has recovered.
    HalfOpen,
}

impl Breaker {
    /// A closed circuit; `service` is its name in logs.
    pub fn new(service: &'static str) -> Self {
        Self { shared: Arc::new(Shared { service, phase: Mutex::new(Phase::Closed { failures: 0 }) }) }
    }

    /// The current state.
    pub fn state(&self) -> BreakerState {
        match *self.phase() {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { until } if Instant::now() < until => BreakerState::Open,
            Phase::Open { .. } | Phase::Trial => BreakerState::HalfOpen,
        }
    }

    /// A permit for one call; `None` if the circuit is open.
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

/// A permit for one call. If it is dropped without reporting an outcome, the call is not counted: the caller
/// was cancelled, which says nothing about the service.
#[derive(Debug)]
#[must_use]
pub struct Permit {
    breaker: Breaker,
    trial: bool,
}

impl Permit {
    /// The call succeeded.
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
            // The call began before the circuit opened, so it no longer counts.
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

    /// The service responds again, although the response is not complete yet. Other calls are allowed from
    /// now on, but one more failure opens the circuit again.
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
