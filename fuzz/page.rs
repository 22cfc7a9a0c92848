//! Shared by all targets: parses and chunks a page.
//!
//! Invariant: no input may panic.

use docent_core::chunk::chunk;
use docent_parse::layout::{Base, Layout, Site};
use docent_parse::parse_page;

/// A site with a single page.
pub fn site(layout: Layout) -> Site {
    Site::new(layout, Base::Published("https://example.org".to_owned()))
}

/// Parses and chunks a page; every include returns the page itself.
pub fn page(path: &str, layout: Layout, bytes: &[u8]) {
    let mut load = |_: &str| Some(String::from_utf8_lossy(bytes).into_owned());
    if let (Some(document), _) = parse_page(path, bytes, &site(layout), &mut load) {
        chunk(&document, 256, &|text| text.len().div_ceil(4));
    }
}
