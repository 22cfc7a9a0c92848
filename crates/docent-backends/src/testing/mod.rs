//! Outside services for tests: doubles that speak the real protocol, and the real thing.

pub mod scripted_model;
#[cfg(unix)]
pub mod postgres;

pub use scripted_model::{Reply, ScriptedModel};
