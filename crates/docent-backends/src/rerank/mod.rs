//! Rerankers: those that read question and passage together.

pub mod cohere;
pub mod onnx;
