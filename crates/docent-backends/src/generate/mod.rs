//! Language models behind HTTP APIs.

pub mod remote;
mod address;
mod request;
mod answer;
mod failure;

#[cfg(test)]
mod tests;

pub use remote::{RemoteGenerator, RemoteSettings};
