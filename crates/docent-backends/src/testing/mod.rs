//! Doubles of outside services that speak their real protocol.

pub mod scripted_model;

pub use scripted_model::{Reply, ScriptedModel};
