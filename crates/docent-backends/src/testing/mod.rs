//! Doubles of outside services that speak their real protocol.

mod http;
pub mod scripted_model;
pub mod scripted_provider;
pub mod scripted_qdrant;

pub use scripted_model::{Reply, ScriptedModel};
pub use scripted_provider::{Act, ScriptedProvider};
pub use scripted_qdrant::ScriptedQdrant;
