//! The body elements of reStructuredText: titles, paragraphs, lists, literal blocks, tables.
//!
//! Invariant: every line of a body belongs to exactly one element, and each element consumes at least one
//! line.

use super::lines::{self, dedented, indented_end};
use super::{Parser, Place, table};
use crate::document::BlockKind;
use crate::fence::code;
use crate::table::rendered;

/// Bodies nested more deeply are read as plain text, so that no page can overflow the stack.
const DEEPEST: usize = 48;

impl Parser<'_> {
    /// Parses a body, element by element.
    pub(super) fn blocks(&mut self, lines: &[&str], place: Place) {
        if place.depth > DEEPEST {
            let text = self.words(&joined(lines));
            return self.output.paragraph(&text);
        }
        let mut at = 0;
        while at < lines.len() {
            if lines[at].is_empty() {
                at += 1;
                continue;
            }
            let is_explicit = lines[at].starts_with("..");
            // Always advance, even if an element consumed nothing.
            at = self.element(lines, at, place).max(at + 1);
            if !is_explicit {
                self.label = None;
            }
        }
    }

    /// Parses the element that starts at `at`; returns where it ends.
    fn element(&mut self, lines: &[&str], at: usize, place: Place) -> usize {
        let line = lines[at];
        if line.starts_with(' ') {
            let end = indented_end(lines, at);
            self.blocks(&dedented(&lines[at..end]), place.inside());
            return end;
        }
        if line == ".." || line.starts_with(".. ") {
            return self.explicit(lines, at, place);
        }
        if let Some((sign, _)) = lines::bullet(line) {
            return self.bullet_list(lines, at, sign, place);
        }
        if is_numbered(lines, at) {
            return self.numbered_list(lines, at, place);
        }
        if lines::field(line).is_some() {
            return self.field_list(lines, at, place);
        }
        if let Some((options, text)) = lines::option(line)
            && (!text.is_empty() || lines.get(at + 1).is_some_and(|next| next.starts_with(' ')))
        {
            return self.defined(&code(options), text, lines, at, place);
        }
        if line.starts_with(">>> ") {
            let end = paragraph_end(lines, at);
            self.output.code("python", &lines[at..end]);
            return end;
        }
        if line == "|" || line.starts_with("| ") {
            return self.line_block(lines, at);
        }
        if table::is_grid_border(line) {
            let end = paragraph_end(lines, at);
            self.grid_table(&lines[at..end], place);
            return end;
        }
        if table::is_simple_border(line)
            && let Some(end) = table::simple_end(lines, at)
        {
            self.simple_table(&lines[at..end], place);
            return end;
        }
        if line == "__" || line.starts_with("__ ") {
            self.anchors.next("", None);
            return indented_end(lines, at + 1);
        }
        if let Some(end) = self.section_title(lines, at, place) {
            return end;
        }
        self.paragraph(lines, at, place)
    }

    /// A line with an underline, or with an overline and an underline.
    fn section_title(&mut self, lines: &[&str], at: usize, place: Place) -> Option<usize> {
        let line = lines[at];
        // A transition between paragraphs.
        let is_rule = lines::adornment(line).is_some() && line != "::" && line.len() >= 4;
        if is_rule && lines.get(at + 1).is_none_or(|next| next.is_empty()) {
            return Some(at + 1);
        }
        let (text, end) = title(lines, at)?;
        let sign = lines::adornment(lines[end - 1])?;
        self.title(text, (sign, end - at == 3), place);
        Some(end)
    }

    fn title(&mut self, title: &str, adornment: (char, bool), place: Place) {
        let words = self.words(&joined(&[title]));
        if !place.sections {
            return self.output.paragraph(&words);
        }
        let known = self.adornments.iter().position(|known| *known == adornment);
        let level = known.unwrap_or_else(|| {
            self.adornments.push(adornment);
            self.adornments.len() - 1
        });
        let words = words.replace('`', "");
        let own = self.anchors.next(&words, None);
        // If a heading has several ids, Sphinx puts the numbered one last.
        let anchor = self.label.take().filter(|_| own.starts_with("id")).unwrap_or(own);
        if self.title.is_none() {
            self.title = Some(words.clone());
        }
        self.output.heading(u8::try_from(level + 1).unwrap_or(6).min(6), &words, Some(anchor));
    }

    fn paragraph(&mut self, lines: &[&str], at: usize, place: Place) -> usize {
        // A paragraph ends at an indented line, or at a directive without a blank line before it.
        let ends = |line: &str| line.is_empty() || line.starts_with(' ') || lines::is_directive(line);
        let end = (at + 1..lines.len()).find(|next| ends(lines[*next])).unwrap_or(lines.len());
        let text = joined(&lines[at..end]);
        if let Some(text) = text.strip_suffix("::") {
            // `text ::` and `::` alone show no colon.
            let shows_colon = !text.is_empty() && !text.ends_with(' ');
            let words = self.words(text.trim_end());
            self.output.paragraph(&format!("{words}{}", if shows_colon { ":" } else { "" }));
            return self.literal_block(lines, end);
        }
        if end == at + 1 && lines.get(end).is_some_and(|next| next.starts_with(' ')) {
            let (term, classifier) = lines[at].split_once(" : ").unwrap_or((lines[at], ""));
            let mut term = self.words(term);
            if !classifier.is_empty() {
                term = format!("{term} ({})", self.words(classifier));
            }
            return self.defined(&term, "", lines, at, place);
        }
        let words = self.words(&text);
        self.output.paragraph(&words);
        end
    }

    /// The indented lines after `::`, or lines that all start with the same character.
    fn literal_block(&mut self, lines: &[&str], at: usize) -> usize {
        let Some(start) = (at..lines.len()).find(|next| !lines[*next].is_empty()) else { return at };
        let end = if lines[start].starts_with(' ') {
            indented_end(lines, start)
        } else {
            let sign = lines[start].chars().next().filter(char::is_ascii_punctuation);
            let end = paragraph_end(lines, start);
            let quoted = lines[start..end].iter().all(|line| line.chars().next() == sign);
            if sign.is_none() || !quoted || lines[start].starts_with(".. ") {
                return at;
            }
            end
        };
        let language = self.highlight.clone();
        self.output.code(&language, &dedented(&lines[start..end]));
        end
    }

    /// A term and its definition: the rest of its line and the indented lines below.
    fn defined(&mut self, term: &str, text: &str, lines: &[&str], at: usize, place: Place) -> usize {
        let end = indented_end(lines, at + 1);
        self.output.term(term);
        let mut body = vec![text];
        body.extend(dedented(&lines[at + 1..end]));
        self.blocks(&body, place.inside());
        self.output.close_term();
        end
    }

    fn bullet_list(&mut self, lines: &[&str], mut at: usize, sign: char, place: Place) -> usize {
        self.output.open_list();
        while let Some((own, text)) = lines.get(at).and_then(|line| lines::bullet(line))
            && own == sign
        {
            let (body, end) = lines::item(lines, at, text);
            self.output.item("-");
            self.blocks(&body, place.inside());
            at = next_element(lines, end);
        }
        self.output.close_list();
        at
    }

    fn numbered_list(&mut self, lines: &[&str], mut at: usize, place: Place) -> usize {
        self.output.open_list();
        let mut number = 1_usize;
        while at < lines.len()
            && is_numbered(lines, at)
            && let Some((marker, text)) = lines::enumerator(lines[at])
        {
            let (body, end) = lines::item(lines, at, text);
            number = marker.trim_matches(['(', ')', '.']).parse().unwrap_or(number);
            self.output.item(&marker.replace('#', &number.to_string()));
            number = number.saturating_add(1);
            self.blocks(&body, place.inside());
            at = next_element(lines, end);
        }
        self.output.close_list();
        at
    }

    fn field_list(&mut self, lines: &[&str], mut at: usize, place: Place) -> usize {
        // Fields at the top of a page are metadata for Sphinx.
        let is_metadata = place.depth == 0 && self.output.is_empty();
        while let Some((name, text)) = lines.get(at).and_then(|line| lines::field(line)) {
            if is_metadata {
                at = indented_end(lines, at + 1);
            } else {
                let name = self.words(name);
                at = self.defined(&name, text, lines, at, place);
            }
            at = next_element(lines, at);
        }
        at
    }

    fn line_block(&mut self, lines: &[&str], at: usize) -> usize {
        let end = paragraph_end(lines, at);
        let mut text: Vec<String> = Vec::new();
        for line in &lines[at..end] {
            match line.strip_prefix('|') {
                Some(start) => text.push(start.trim().to_owned()),
                None => {
                    if let Some(last) = text.last_mut() {
                        last.push(' ');
                        last.push_str(line.trim());
                    }
                }
            }
        }
        let text: Vec<_> = text.iter().map(|line| self.words(line)).filter(|line| !line.is_empty()).collect();
        self.output.paragraph(&text.join("\n"));
        end
    }

    pub(super) fn grid_table(&mut self, lines: &[&str], place: Place) {
        let (rows, headers) = table::grid(lines);
        self.table(rows, headers, place);
    }

    pub(super) fn simple_table(&mut self, lines: &[&str], place: Place) {
        let (rows, headers) = table::simple(lines);
        self.table(rows, headers, place);
    }

    /// Writes a table whose cells are bodies.
    pub(super) fn table(&mut self, rows: Vec<Vec<Vec<String>>>, headers: usize, place: Place) {
        let mut cells = Vec::with_capacity(rows.len());
        for row in rows {
            cells.push(row.iter().map(|cell| self.flattened(cell, place)).collect());
        }
        self.output.whole(BlockKind::Table, &rendered(&cells, headers));
    }

    /// Renders a body on one line.
    pub(super) fn flattened(&mut self, body: &[String], place: Place) -> String {
        let body: Vec<&str> = body.iter().map(String::as_str).collect();
        let around = std::mem::take(&mut self.output);
        self.blocks(&dedented(&body), place.inside());
        let inside = std::mem::replace(&mut self.output, around).finish();
        let blocks = inside.iter().flat_map(|section| &section.blocks);
        let lines = blocks.flat_map(|block| block.text.lines()).filter(|line| !line.starts_with("```"));
        lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    }
}

/// The title that starts at `at`, and where it ends: it has an underline, or an overline and an underline.
pub(super) fn title<'a>(lines: &[&'a str], at: usize) -> Option<(&'a str, usize)> {
    let line = lines[at];
    let next = |number: usize| lines.get(at + number).copied().unwrap_or_default();
    if let Some(sign) = lines::adornment(line).filter(|_| line != "::") {
        let title = next(1).trim();
        let is_title =
            !title.is_empty() && lines::adornment(next(2)) == Some(sign) && is_long_enough(line, title);
        return is_title.then_some((title, at + 3));
    }
    let below = next(1);
    let is_title = lines::adornment(below).is_some() && below != "::" && is_long_enough(below, line);
    (is_title && !line.starts_with(' ')).then_some((line, at + 2))
}

/// The end of the paragraph that starts at `at`: the next blank line.
pub(super) fn paragraph_end(lines: &[&str], at: usize) -> usize {
    (at..lines.len()).find(|next| lines[*next].is_empty()).unwrap_or(lines.len())
}

fn next_element(lines: &[&str], at: usize) -> usize {
    (at..lines.len()).find(|next| !lines[*next].is_empty()).unwrap_or(lines.len())
}

pub(super) fn joined(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// Whether a line starts a numbered item. `A. Name went` across two lines is a sentence: the line after an
/// item is blank, indented or another item.
fn is_numbered(lines: &[&str], at: usize) -> bool {
    let next = lines.get(at + 1).copied().unwrap_or_default();
    // A marker alone is a word: `mix.` is not an empty item.
    lines::enumerator(lines[at]).is_some_and(|(_, text)| !text.is_empty() || next.starts_with(' '))
        && (next.is_empty() || next.starts_with(' ') || lines::enumerator(next).is_some())
}

/// Whether an adornment is long enough: as long as the title, or at least four characters.
fn is_long_enough(signs: &str, title: &str) -> bool {
    signs.len() >= 4 || signs.len() >= title.chars().count()
}
