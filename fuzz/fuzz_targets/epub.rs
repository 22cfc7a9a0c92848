#![no_main]

use docent_core::layout::Layout;
use docent_core::parse::epub::parse_epub;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    parse_epub("a.epub", bytes, &docent_fuzz::site(Layout::Plain));
});
