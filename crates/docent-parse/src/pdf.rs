//! PDF files: text under headings, with one anchor per page.
//!
//! Headings come from the outline, or from lines in a larger font. Running headers and footers are removed,
//! and words hyphenated at the end of a line are joined.
//!
//! Invariant: a section never crosses a page, so that its anchor `page=N` opens the page it is on.

#[cfg(feature = "pdf-drawing")]
pub mod drawing;
mod lines;
mod outline;
mod paragraphs;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_interpret::hayro_syntax::{LoadPdfError, Pdf};
use hayro_interpret::{InterpreterCache, InterpreterSettings};

use crate::document::{Parsed, SectionBuilder};
use lines::Line;
use outline::Entry;

/// Maximum number of pages per file.
const MOST_PAGES: usize = 5_000;

/// A line whose font is this much larger than the text is a heading.
const LARGER: f64 = 1.15;

/// Longer lines are not headings.
const LONGEST_HEADING: usize = 120;

/// Parses a PDF.
pub fn parse_pdf(bytes: &[u8]) -> Parsed {
    let read = catch_unwind(|| read(bytes));
    read.unwrap_or_else(|_| failed("the PDF is damaged; skipped"))
}

fn failed(reason: &str) -> Parsed {
    Parsed { warnings: vec![reason.to_owned()], ..Parsed::default() }
}

fn read(bytes: &[u8]) -> Parsed {
    let pdf = match Pdf::new(bytes.to_vec()) {
        Ok(pdf) => pdf,
        Err(LoadPdfError::Decryption(_)) => {
            return failed("the PDF is encrypted (password-protected); skipped");
        }
        Err(LoadPdfError::Invalid) => return failed("not a PDF, or damaged"),
    };
    let mut warnings = Vec::new();
    let mut pages = pages(&pdf, &mut warnings);
    if pages.iter().all(Vec::is_empty) {
        warnings.insert(0, "the PDF has no text (scanned images only); run OCR on it first".to_owned());
        return Parsed { warnings, ..Parsed::default() };
    }
    remove_running(&mut pages);
    let entries = outline::outline(&pdf);
    let (headings, large_title) =
        if entries.is_empty() { by_size(&pages) } else { (by_outline(&pages, &entries), None) };
    let title =
        pdf.metadata().title.as_deref().map(outline::text).filter(|title| is_title(title)).or(large_title);
    let mut writer =
        Writer { current: (1, title.clone().unwrap_or_default()), builder: SectionBuilder::default() };
    for (number, page) in pages.iter().enumerate() {
        writer.page(number, page, headings.get(&number).map_or(&[][..], Vec::as_slice));
    }
    Parsed { title, sections: writer.builder.finish(), warnings }
}

fn pages(pdf: &Pdf, warnings: &mut Vec<String>) -> Vec<Vec<Line>> {
    let settings = InterpreterSettings::default();
    let cache = InterpreterCache::new();
    let mut pages = Vec::new();
    for (number, page) in pdf.pages().iter().take(MOST_PAGES).enumerate() {
        let lines = catch_unwind(AssertUnwindSafe(|| lines::lines(page, &cache, &settings)));
        pages.push(lines.unwrap_or_else(|reason| {
            let why = if reason.is::<lines::TooMuch>() { "is too complex" } else { "is damaged" };
            warnings.push(format!("page {} {why}; skipped", number + 1));
            Vec::new()
        }));
    }
    if pdf.pages().len() > MOST_PAGES {
        warnings.push(format!("only the first {MOST_PAGES} pages were read"));
    }
    pages
}

/// Whether the title in the metadata is usable; many programs store a file name there.
fn is_title(title: &str) -> bool {
    let title = title.trim();
    let is_file = [".doc", ".docx", ".tex", ".indd", ".dvi", ".pdf"]
        .iter()
        .any(|ending| title.to_lowercase().ends_with(ending));
    title.len() > 2 && !is_file && !title.eq_ignore_ascii_case("untitled")
}

/// The fraction of a page, at the top and at the bottom, where headers and footers are.
const EDGE: f64 = 0.12;

/// Removes the lines that repeat at the edge of most pages, ignoring page numbers.
fn remove_running(pages: &mut [Vec<Line>]) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for page in pages.iter() {
        let mut own: Vec<String> = page.iter().filter(|line| is_at_edge(line)).map(shape).collect();
        own.sort_unstable();
        own.dedup();
        for shape in own {
            *seen.entry(shape).or_default() += 1;
        }
    }
    // Left and right pages may have different headers.
    let enough = (pages.len() * 2 / 5).max(3);
    for page in pages.iter_mut() {
        page.retain(|line| !is_at_edge(line) || seen.get(&shape(line)).is_none_or(|count| *count < enough));
    }
}

fn is_at_edge(line: &Line) -> bool {
    line.place < EDGE || line.place > 1.0 - EDGE
}

/// A line with every number replaced by `#`.
fn shape(line: &Line) -> String {
    let mut shape = String::new();
    let edge = if line.place < EDGE { '^' } else { '_' };
    shape.push(edge);
    for c in line.text.chars().filter(|c| !c.is_whitespace()) {
        match c {
            c if c.is_numeric() => {
                if !shape.ends_with('#') {
                    shape.push('#');
                }
            }
            c => shape.extend(c.to_lowercase()),
        }
    }
    shape
}

/// A heading: its range of lines, level and text.
#[derive(Debug, Clone)]
struct Heading {
    from: usize,
    to: usize,
    level: u8,
    text: String,
}

type Headings = HashMap<usize, Vec<Heading>>;

/// Finds the lines of the outline's entries. An entry without a matching line is placed after the heading
/// before it, or at the top of its page.
fn by_outline(pages: &[Vec<Line>], entries: &[Entry]) -> Headings {
    let mut headings: Headings = HashMap::new();
    for entry in entries {
        let Some(page) = pages.get(entry.page) else { continue };
        let own = headings.entry(entry.page).or_default();
        let wanted = letters(&entry.title);
        let after = own.last().map_or(0, |last| last.to);
        let found = (after..page.len()).find_map(|from| {
            let mut said = String::new();
            for (to, line) in page.iter().enumerate().skip(from).take(3) {
                said.push_str(&letters(&line.text));
                // The page may number headings that the outline does not number.
                let unnumbered = said.trim_start_matches(|c: char| c.is_numeric());
                if !wanted.is_empty() && (said == wanted || unnumbered == wanted) {
                    return Some((from, to + 1));
                }
            }
            None
        });
        let (from, to) = found.unwrap_or((after, after));
        let level = u8::try_from(entry.depth + 2).unwrap_or(6).min(6);
        own.push(Heading { from, to, level, text: entry.title.clone() });
    }
    headings
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Headings are the lines in a larger font, the largest on top. Also returns the title if exactly one is the
/// largest.
fn by_size(pages: &[Vec<Line>]) -> (Headings, Option<String>) {
    let rounded = |size: f64| (size * 2.0).round() as u64;
    let mut letters: HashMap<u64, usize> = HashMap::new();
    for line in pages.iter().flatten() {
        *letters.entry(rounded(line.size)).or_default() += line.text.len();
    }
    let body = letters.iter().max_by_key(|(size, count)| (**count, **size)).map_or(0, |(size, _)| *size);
    let is_heading = |line: &Line| {
        rounded(line.size) as f64 > body as f64 * LARGER
            && line.text.chars().count() <= LONGEST_HEADING
            && line.text.chars().any(char::is_alphabetic)
            && !line.is_mono
    };
    let mut sizes: Vec<u64> =
        pages.iter().flatten().filter(|line| is_heading(line)).map(|line| rounded(line.size)).collect();
    sizes.sort_unstable_by(|left, right| right.cmp(left));
    sizes.dedup();
    let mut headings: Headings = HashMap::new();
    for (number, page) in pages.iter().enumerate() {
        let mut at = 0;
        while at < page.len() {
            let from = at;
            at += 1;
            if !is_heading(&page[from]) {
                continue;
            }
            let size = rounded(page[from].size);
            let mut text = page[from].text.replace(lines::CELL, " ");
            while at < page.len()
                && rounded(page[at].size) == size
                && page[at].y - page[at - 1].y < page[at].size * 1.6
            {
                text.push(' ');
                text.push_str(&page[at].text.replace(lines::CELL, " "));
                at += 1;
            }
            let level = sizes.iter().position(|own| *own == size).unwrap_or(0) + 1;
            let heading = Heading { from, to: at, level: level.min(6) as u8, text };
            headings.entry(number).or_default().push(heading);
        }
    }
    let title = take_title(&mut headings);
    (headings, title)
}

/// The heading that is the title: the only one of the largest, near the beginning. If there are several of the largest,
/// they are chapters, and the title is unknown; then every heading moves one level down.
fn take_title(headings: &mut Headings) -> Option<String> {
    let top: Vec<(usize, &Heading)> = headings
        .iter()
        .flat_map(|(page, own)| own.iter().map(move |heading| (*page, heading)))
        .filter(|(_, heading)| heading.level == 1)
        .collect();
    let title = match top.as_slice() {
        [(page, heading)] if *page <= 2 => Some(heading.text.clone()),
        _ => None,
    };
    if title.is_none() {
        for heading in headings.values_mut().flatten() {
            heading.level = (heading.level + 1).min(6);
        }
    }
    title
}

/// Writes sections, each on one page.
struct Writer {
    builder: SectionBuilder,
    /// The current heading, which continues on the next page.
    current: (u8, String),
}

impl Writer {
    fn page(&mut self, number: usize, lines: &[Line], headings: &[Heading]) {
        let mut at = 0;
        let first = headings.first().map_or(lines.len(), |heading| heading.from);
        if first > 0 {
            self.builder.heading(self.current.0, &self.current.1, Some(anchor(number)));
            self.blocks(&lines[..first]);
            at = first;
        }
        for (order, heading) in headings.iter().enumerate() {
            let end = headings.get(order + 1).map_or(lines.len(), |next| next.from);
            self.builder.heading(heading.level, &heading.text, Some(anchor(number)));
            self.current = (heading.level, heading.text.clone());
            self.blocks(lines.get(heading.to.max(at)..end).unwrap_or_default());
            at = end.max(at);
        }
    }

    fn blocks(&mut self, lines: &[Line]) {
        for (kind, text) in paragraphs::blocks(lines) {
            self.builder.block(kind, &text);
        }
    }
}

fn anchor(page: usize) -> String {
    format!("page={}", page + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown;

    const OUTLINE: &[u8] = include_bytes!("../tests/fixtures/outline.pdf");
    const PLAIN: &[u8] = include_bytes!("../tests/fixtures/plain.pdf");

    #[test]
    fn headings_come_from_the_outline() {
        let parsed = parse_pdf(OUTLINE);
        assert_eq!(parsed.title.as_deref(), Some("The Pump Book"));
        assert_eq!(
            shown(&parsed),
            "# The Pump Book #page=1\n\
             [Text] The Pump Book\n\
             [Text] A pump moves a liquid from one place to another. Gear pumps are the most common kind in small machines.\n\
             ## Gear pumps #page=1\n\
             [Text] A gear pump moves 4 litres a minute. Its well-known weakness is noise.\n\
             [Code] ```\npump = Pump()\nif pump.ready:\n    pump.start()\n```\n\
             ## Gear pumps #page=2\n\
             [Text] Two gears turn against each other and carry the liquid along the wall.\n\
             ## Valves #page=2\n\
             [Text] A relief valve opens at 3 bar.\n\
             [Table] | Valve | Opens at |\n| --- | --- |\n| Relief | 3 bar |\n| Check | 1 bar |\n\
             ## Seals #page=3\n\
             [Text] A seal lasts five years.\n\
             ### Shaft seals #page=3\n\
             [Text] A shaft seal sits on the shaft.\n"
        );
        assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    }

    #[test]
    fn without_an_outline_larger_lines_are_headings() {
        let parsed = parse_pdf(PLAIN);
        assert_eq!(parsed.title.as_deref(), Some("The Pump Book"));
        let headings: Vec<_> = parsed
            .sections
            .iter()
            .filter_map(|section| section.heading.as_ref())
            .map(|heading| {
                format!(
                    "{} {} {}",
                    heading.level,
                    heading.text,
                    heading.anchor.as_deref().unwrap_or_default()
                )
            })
            .collect();
        assert_eq!(
            headings,
            [
                "1 The Pump Book page=1",
                "2 Gear pumps page=1",
                "2 Gear pumps page=2",
                "2 Valves page=2",
                "2 Seals page=3",
                "3 Shaft seals page=3",
            ]
        );
        assert!(!shown(&parsed).contains("second edition"), "running headers are left out");
    }

    #[test]
    fn encrypted_scanned_and_damaged_files_give_a_warning() {
        let reason = |bytes: &[u8]| parse_pdf(bytes).warnings.join("; ");
        assert!(reason(include_bytes!("../tests/fixtures/locked.pdf")).contains("encrypted"));
        assert!(reason(include_bytes!("../tests/fixtures/scan.pdf")).contains("scanned images only"));
        assert!(reason(b"%PDF-1.7 nothing").contains("damaged"));
        assert!(reason(b"").contains("damaged"));
    }

    #[test]
    fn damaged_files_do_not_panic() {
        for start in (0..OUTLINE.len()).step_by(7) {
            let mut bytes = OUTLINE.to_vec();
            bytes[start] = bytes[start].wrapping_mul(31).wrapping_add(7);
            parse_pdf(&bytes);
            parse_pdf(&OUTLINE[..start]);
        }
    }
}
