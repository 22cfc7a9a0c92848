//! Indexes: the one in a folder on this machine.

pub mod embedded;
