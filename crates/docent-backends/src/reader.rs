//! The reader: a model that reads a passage together with a question or a claim.

pub mod local;
