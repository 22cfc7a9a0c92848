//! What all targets share: a page is parsed and cut, and nothing may panic.

use docent_core::chunk::chunk;
use docent_core::layout::{Base, Layout, Site};
use docent_core::parse::parse_page;

/// A site for one page.
pub fn site(layout: Layout) -> Site {
    let base = Base::Published("https://example.org".to_owned());
    Site { layout, base, root_module: "book".to_owned(), chapters: Default::default() }
}

/// Parses and cuts a page; whatever it includes is the page itself.
pub fn page(path: &str, layout: Layout, bytes: &[u8]) {
    let mut load = |_: &str| Some(String::from_utf8_lossy(bytes).into_owned());
    if let (Some(document), _) = parse_page(path, bytes, &site(layout), &mut load) {
        chunk(&document, 256, &|text| text.len().div_ceil(4));
    }
}
