//! How an ingest or an export reports its progress.
//!
//! Invariant: watching changes nothing; a method that does nothing is a valid implementation.

/// Receives the progress of an ingest.
pub trait Progress: Send + Sync {
    /// A step of the flow begins.
    fn step(&self, name: &str);
    /// The step has processed `done` of `total` passages.
    fn passages(&self, done: usize, total: usize);
    /// `done` of the `known` pages of a site were read; more may be discovered.
    fn pages(&self, _done: usize, _known: usize) {}
}

/// Ignores the progress.
impl Progress for () {
    fn step(&self, _: &str) {}
    fn passages(&self, _: usize, _: usize) {}
}
