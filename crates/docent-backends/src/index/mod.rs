//! Where chunks are kept: in a folder, or on a Qdrant server.

pub mod embedded;
pub mod parts;
pub mod qdrant;
pub mod shelf;
