//! Records what a turn used and how it ended.
//!
//! Invariant: every turn is recorded exactly once, when its [`TurnGuard`] is dropped: because it ended, the
//! client disconnected, a deadline passed or the server is stopping.

use std::sync::Arc;
use std::time::Instant;

use docent_core::agent::{Ask, AskError, State};
use docent_core::answer::AgentResponse;
use docent_core::generate::Meter;
use docent_core::turn_log::LoggedTurn;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Span;
use tracing::field::Empty;

use super::Server;

/// A running turn. Dropping it counts its tokens, outcome and duration, writes its entry in the turn log,
/// ends its span and releases its permit.
pub struct TurnGuard {
    server: Arc<Server>,
    meter: Arc<Meter>,
    question: String,
    begun: Instant,
    outcome: &'static str,
    entry: Option<LoggedTurn>,
    span: Span,
    _permit: OwnedSemaphorePermit,
}

/// The outcome of a turn that was dropped before its end.
const ABANDONED: &str = "abandoned";

impl TurnGuard {
    /// Starts to record a turn.
    pub fn open(server: Arc<Server>, ask: &Ask, permit: OwnedSemaphorePermit) -> Self {
        Self {
            server,
            meter: ask.meter.clone(),
            question: ask.query.trim().to_owned(),
            begun: Instant::now(),
            outcome: ABANDONED,
            entry: None,
            span: tracing::info_span!("turn", outcome = Empty, tokens = Empty),
            _permit: permit,
        }
    }

    /// The span of the turn.
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// Records how the turn ended.
    pub fn ended(&mut self, answered: &Result<AgentResponse, AskError>) {
        let Ok(response) = answered else {
            self.outcome = State::Failed.name();
            return;
        };
        self.outcome = match State::end_of(response) {
            State::Completed if response.degraded => "degraded",
            end => end.name(),
        };
        measure(response);
        let sources = response.sources.as_deref().unwrap_or_default();
        self.entry = Some(LoggedTurn::new(response, sources));
    }

    /// The entry in the turn log. A turn that failed before it used any tokens is not logged.
    fn entry(&mut self, tokens: u32) -> Option<LoggedTurn> {
        let unfinished = (self.outcome == ABANDONED || tokens > 0).then(|| {
            let milliseconds = self.begun.elapsed().as_secs_f64() * 1000.0;
            let question = std::mem::take(&mut self.question);
            let (id, now) = (uuid::Uuid::new_v4(), docent_backends::now_rfc3339());
            LoggedTurn::abandoned(id, now, question, milliseconds, tokens)
        });
        self.entry.take().or(unfinished)
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let span = self.span.clone();
        let _entered = span.enter();
        let tokens = self.meter.usage().total();
        span.record("outcome", self.outcome);
        span.record("tokens", tokens);
        self.server.access.tokens().spend(tokens);
        metrics::counter!("docent_turns_total", "outcome" => self.outcome).increment(1);
        let milliseconds = self.begun.elapsed().as_secs_f64() * 1000.0;
        tracing::info!(outcome = self.outcome, tokens, milliseconds, "turn ended");
        let entry = self.entry(tokens);
        if let Some(entry) = entry.filter(|_| self.server.settings.retention_days > 0) {
            self.server.log_writer.record(entry);
        }
    }
}

fn measure(response: &AgentResponse) {
    let times = &response.metadata;
    for (step, milliseconds) in [
        ("embedding", times.embedding_time_ms),
        ("retrieval", times.retrieval_time_ms),
        ("generation", times.generation_time_ms),
        ("whole", times.response_time_ms),
    ] {
        metrics::histogram!("docent_step_seconds", "step" => step).record(milliseconds / 1000.0);
    }
    if times.cache_hit {
        metrics::counter!("docent_cache_hits_total").increment(1);
    } else {
        metrics::counter!("docent_passages_read_total").increment(times.passages_read as u64);
        metrics::counter!("docent_reader_busy_total").increment(u64::from(times.reader_busy));
    }
}
