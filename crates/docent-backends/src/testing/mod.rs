//! External services for tests: test doubles that speak the real protocols, and a real PostgreSQL server.
//!
//! Invariant: no test needs network access beyond this machine.

mod http;
pub mod scripted_model;
#[cfg(unix)]
pub mod postgres;
pub mod scripted_provider;
pub mod scripted_qdrant;
pub mod scripted_site;
mod skipped;
#[cfg(unix)]
pub mod small_disk;

pub use scripted_model::{Reply, ScriptedModel};
pub use scripted_provider::{Act, ScriptedProvider};
pub use scripted_qdrant::ScriptedQdrant;
pub use scripted_site::ScriptedSite;
pub use skipped::skipped;
#[cfg(unix)]
pub use small_disk::SmallDisk;
