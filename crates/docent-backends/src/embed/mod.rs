//! Embedders: the one inside the binary, and whatever else can turn text into vectors.

pub mod local;
