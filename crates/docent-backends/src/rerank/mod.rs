//! Rerankers: models that read the question and a passage together and reorder the passages.

pub mod cohere;
pub mod onnx;
