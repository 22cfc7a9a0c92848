//! Outside services for tests: doubles that speak the real protocol, and the real thing.

mod http;
pub mod scripted_model;
#[cfg(unix)]
pub mod postgres;
pub mod scripted_provider;
pub mod scripted_qdrant;
pub mod scripted_site;

pub use scripted_model::{Reply, ScriptedModel};
pub use scripted_provider::{Act, ScriptedProvider};
pub use scripted_qdrant::ScriptedQdrant;
pub use scripted_site::ScriptedSite;
