//! External services for tests: test doubles that speak the real protocols, and a real PostgreSQL server.
//!
//! The crate uses none of the crates that it tests: a double knows what a service does, not what Docent expects of it.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! use docent_testkit::ScriptedSite;
//! use docent_testkit::scripted_site::Answer;
//!
//! # fn main() -> std::io::Result<()> {
//! let site = ScriptedSite::start(|visit| match visit.path.as_str() {
//!     "/pumps" => Answer::html("<h1>Pumps</h1>"),
//!     _ => Answer::status(404),
//! })?;
//!
//! let mut connection = TcpStream::connect(("127.0.0.1", site.port()))?;
//! connection.write_all(b"GET /pumps HTTP/1.1\r\nhost: example.org\r\n\r\n")?;
//! let mut response = String::new();
//! connection.read_to_string(&mut response)?;
//! assert!(response.ends_with("<h1>Pumps</h1>"));
//! assert_eq!(site.visits()[0].path, "/pumps");
//! # Ok(())
//! # }
//! ```
//!
//! Invariant: no test needs network access beyond this machine.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod http;
pub mod scripted_model;
#[cfg(unix)]
pub mod postgres;
pub mod scripted_provider;
pub mod scripted_qdrant;
pub mod scripted_site;
mod skipped;
#[cfg(unix)]
pub mod small_disk;

pub use scripted_model::{Reply, ScriptedModel};
pub use scripted_provider::{Act, ScriptedProvider};
pub use scripted_qdrant::ScriptedQdrant;
pub use scripted_site::ScriptedSite;
pub use skipped::skipped;
#[cfg(unix)]
pub use small_disk::SmallDisk;
