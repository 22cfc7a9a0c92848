//! The pages of one source, with the name of the book they belong to.
//!
//! Invariant: a volume has pages of one book only.

use docent_parse::document::Document;

/// The pages of one source.
pub(super) struct Volume {
    /// The name of the book; empty if it has none.
    pub(super) name: String,
    pub(super) documents: Vec<Document>,
}
