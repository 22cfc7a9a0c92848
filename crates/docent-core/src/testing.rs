//! Fakes for the seams, and one contract suite per seam.
//!
//! Invariant: a suite knows nothing of the implementation it runs against.

use uuid::Uuid;

use crate::chunk::Chunk;

/// A chunk on `page` at `index`.
pub fn chunk(page: &str, index: u32, content: &str) -> Chunk {
    Chunk {
        id: Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("{page}/{index}").as_bytes()),
        document_id: page.to_owned(),
        index,
        section: index,
        url: format!("https://x.org/{page}#s{index}"),
        page_title: page.to_owned(),
        heading: None,
        heading_hierarchy: Vec::new(),
        module_name: "m".to_owned(),
        content: content.to_owned(),
        token_count: content.split_whitespace().count() as u32,
    }
}
