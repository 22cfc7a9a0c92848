//! Where chunks are stored: in a folder, or on a Qdrant server.

pub mod embedded;
pub mod contents;
pub mod qdrant;
pub mod target;
