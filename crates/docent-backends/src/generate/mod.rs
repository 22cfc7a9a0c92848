//! Language models behind HTTP APIs.

pub mod remote;
mod settings;
mod address;
mod request;
mod answer;
mod failure;

#[cfg(test)]
mod tests;

pub use remote::RemoteGenerator;
pub use settings::RemoteSettings;
