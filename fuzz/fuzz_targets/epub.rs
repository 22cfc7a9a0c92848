#![no_main]

use std::io::{Cursor, Write};

use docent_parse::layout::Layout;
use docent_parse::epub::parse_epub;
use zip::CompressionMethod::Stored;
use zip::write::SimpleFileOptions;

const CONTAINER: &[u8] = b"<container><rootfile full-path=\"book.opf\"/></container>";

// Random bytes are hardly ever an archive with correct checksums, so most inputs are packed into one here:
// the package file, the two tables of contents and a page, separated by `=====`.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let site = docent_fuzz::site(Layout::Plain);
    parse_epub("a.epub", bytes, &site);
    let text = String::from_utf8_lossy(bytes);
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let names = ["book.opf", "nav.xhtml", "toc.ncx", "page.xhtml"];
    let parts = names.into_iter().zip(text.split("=====\n").map(str::as_bytes));
    for (name, part) in parts.chain([("META-INF/container.xml", CONTAINER)]) {
        writer.start_file(name, SimpleFileOptions::default().compression_method(Stored)).unwrap();
        writer.write_all(part).unwrap();
    }
    parse_epub("a.epub", &writer.finish().unwrap().into_inner(), &site);
});
