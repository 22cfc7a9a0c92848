//! The real binary, as a user runs it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod support;
mod rendered;

mod bad_input;
mod books;
mod crash;
mod doctor;
mod embedders;
mod rerankers;
mod eval;
mod fresh;
#[cfg(unix)]
mod full_disk;
mod init;
mod ingest;
#[cfg(unix)]
mod kills;
mod search;
mod ask;
mod chat;
mod quiz;
mod hostile;
mod http;
mod model;
mod pdfs;
mod qdrant;
mod sessions;
mod several;
mod sites;
#[cfg(unix)]
mod stop;
mod versions;
mod generators;
