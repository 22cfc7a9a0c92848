#![no_main]

use docent_parse::layout::Layout;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| docent_fuzz::page("a.md", Layout::Plain, bytes));
