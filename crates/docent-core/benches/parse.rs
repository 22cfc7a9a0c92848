//! Benchmark of parsing and chunking: HTML of a documentation site, on one core and on two.
//!
//! Reads the `.html` files in the folder `DOCENT_BENCH_HTML`, or uses generated pages that look like those of
//! Docusaurus.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use docent_core::chunk::chunk;
use docent_parse::document::Document;
use docent_parse::html::parse_html;

fn main() {
    divan::main();
}

/// Counts tokens as in a book without an embedder.
fn count(text: &str) -> usize {
    text.len().div_ceil(4)
}

fn passages(html: &str) -> usize {
    let parsed = parse_html(html);
    let title = parsed.title.unwrap_or_default();
    let document =
        Document::new("page.html", "https://example.org/page.html", title).with_sections(parsed.sections);
    chunk(&document, 256, &count).len()
}

fn pages() -> Vec<String> {
    let mut pages = Vec::new();
    if let Ok(folder) = std::env::var("DOCENT_BENCH_HTML") {
        collect(Path::new(&folder), &mut pages);
    }
    if pages.is_empty() {
        pages = (0..64).map(made).collect();
    }
    pages
}

fn collect(folder: &Path, pages: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.extend(std::fs::read_to_string(&path).ok());
        }
    }
}

/// A page as a site generator renders it: navigation, sections, code with one span per word.
fn made(number: usize) -> String {
    let mut page = String::from("<html><head><title>Page</title></head><body><nav>");
    (0..200).for_each(|link| {
        page.push_str(&format!("<a class=\"menu__link\" href=\"/docs/{link}\">Page {link}</a>"))
    });
    page.push_str("</nav><main><article><div class=\"theme-doc-markdown markdown\"><h1>Page</h1>");
    for section in 0..30 {
        page.push_str(&format!("<h2 id=\"s{section}\">Section {section} of {number}</h2>"));
        page.push_str(&"<p>A <strong>node</strong> is a process that <a href=\"/x\">performs</a> computation in <code>ros2</code>.</p>".repeat(8));
        page.push_str("<pre><code class=\"language-python\">");
        page.push_str(&"<span class=\"token keyword\">def</span> <span class=\"token function\">run</span>():\n    pass\n".repeat(12));
        page.push_str("</code></pre><table><tr><th>Name</th><th>Value</th></tr>");
        page.push_str(&"<tr><td>rate</td><td>10 Hz</td></tr>".repeat(10));
        page.push_str("</table>");
    }
    page.push_str("</div></article></main></body></html>");
    page
}

/// Threads take pages from one shared queue, as an ingest does. The byte count is that of all pages.
#[divan::bench(args = [1, 2], sample_count = 10)]
fn html_to_passages(bencher: Bencher<'_, '_>, cores: usize) {
    let pages = pages();
    let bytes: usize = pages.iter().map(String::len).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| {
                    while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                        black_box(passages(page));
                    }
                });
            }
        });
    });
}
