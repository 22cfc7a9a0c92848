//! Faults on demand: what fails, in which calls, and when.
//!
//! Invariant: a fault counts calls from the moment it was set, and only those it applies to.

use std::time::Duration;

use tonic::{Code, Status};

/// What fails in a call.
#[derive(Debug, Clone)]
pub enum Fault {
    /// `UNAVAILABLE`, as while a shard recovers. Nothing is applied.
    Unavailable,
    /// `INTERNAL`. Nothing is applied.
    Internal,
    /// `RESOURCE_EXHAUSTED`, as over a rate limit, with `retry-after` in the metadata. Nothing is
    /// applied.
    RateLimited {
        /// Seconds for `retry-after`.
        retry_after: u32,
    },
    /// `DEADLINE_EXCEEDED` for a call that is applied nevertheless: the real server writes an update to its
    /// log before it gives up waiting.
    Deadline,
    /// Waits this long, then continues normally.
    Slow(Duration),
    /// Closes the connection before anything is applied.
    CutBefore,
    /// Applies the call, then closes the connection instead of responding.
    CutAfter,
    /// Fails with this status. Nothing is applied.
    Status(Code, String),
}

/// Which calls a fault applies to, counted from the moment it was set.
#[derive(Debug, Clone, Copy)]
pub enum When {
    /// The next `n` calls.
    Next(usize),
    /// Every `n`th call.
    Every(usize),
    /// The `n`th call, counted from one, and all calls after it.
    From(usize),
}

impl When {
    /// Whether the call with this number, counted from one, is hit.
    fn hits(self, number: usize) -> bool {
        match self {
            Self::Next(count) => number <= count,
            Self::Every(step) => step > 0 && number.is_multiple_of(step),
            Self::From(first) => number >= first,
        }
    }
}

/// A fault that was set, and the number of its calls so far.
pub(super) struct Plan {
    rpc: String,
    when: When,
    fault: Fault,
    seen: usize,
}

impl Plan {
    pub(super) fn new(rpc: &str, when: When, fault: Fault) -> Self {
        Self { rpc: rpc.to_owned(), when, fault, seen: 0 }
    }

    /// Counts a call and returns the fault that hits it, if any.
    pub(super) fn meet(&mut self, rpc: &str) -> Option<Fault> {
        if !means(&self.rpc, rpc) {
            return None;
        }
        self.seen += 1;
        self.when.hits(self.seen).then(|| self.fault.clone())
    }
}

/// `Upsert` matches `Points/Upsert`; `Get` matches both `Points/Get` and `Collections/Get`.
pub(super) fn means(name: &str, rpc: &str) -> bool {
    rpc == name || rpc.split_once('/').is_some_and(|(_, method)| method == name)
}

impl Fault {
    /// The error to respond with, if this fault is one.
    pub(super) fn status(&self) -> Option<Status> {
        Some(match self {
            Self::Unavailable => Status::unavailable("Shard temporarily unavailable: scripted"),
            Self::Internal => Status::internal("Service internal error: scripted"),
            Self::RateLimited { retry_after } => {
                let mut status = Status::resource_exhausted(format!(
                    "Rate limiting exceeded: Write rate limit exceeded: Operation requires 1 tokens but only \
                     0.0 were available. Retry after {retry_after}s"
                ));
                status.metadata_mut().insert("retry-after", (*retry_after).into());
                status
            }
            Self::Deadline => Status::deadline_exceeded(
                "Timeout: Timeout error: Update operation timed out in 60.00 seconds on 1 out of 1 shards.",
            ),
            Self::Status(code, message) => Status::new(*code, message.clone()),
            Self::Slow(_) | Self::CutBefore | Self::CutAfter => return None,
        })
    }
}
