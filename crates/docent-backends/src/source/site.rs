//! A site as its readers have it: pages found by `llms.txt`, by sitemap or by links.

pub mod address;
pub mod charset;
pub mod fetch;
mod host;
pub mod limits;

pub use limits::Limits;
