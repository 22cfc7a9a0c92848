//! Driven by the real client.
