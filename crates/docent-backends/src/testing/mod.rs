//! Doubles of outside services that speak their real protocol.

pub mod scripted_model;
#[cfg(feature = "testing")]
pub mod scripted_qdrant;

pub use scripted_model::{Reply, ScriptedModel};
#[cfg(feature = "testing")]
pub use scripted_qdrant::ScriptedQdrant;
