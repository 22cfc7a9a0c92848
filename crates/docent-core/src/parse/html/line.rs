//! The words of a paragraph on one line: white space collapsed, inline code in backticks.
//!
//! Invariant: a finished line has no blank lines and no white space at its ends.

use scraper::{ElementRef, Node};

use super::code;
use super::element;

/// A paragraph under way.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: String,
    /// White space was read and nothing written since.
    space: bool,
    /// Shown when the paragraph has no words.
    image: String,
}

impl Line {
    /// Adds text as a browser shows it.
    pub(super) fn push(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\u{200b}' | '\u{feff}' | '\u{ad}' => {}
                c if c.is_whitespace() => self.space = true,
                c => {
                    self.write_space();
                    self.text.push(c);
                }
            }
        }
    }

    /// Adds inline code, with enough backticks around it.
    pub(super) fn code(&mut self, code: &str) {
        let words = code.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() {
            self.space |= !code.is_empty();
            return;
        }
        // Two codes side by side would read as one with double backticks.
        self.space |= self.text.ends_with('`');
        self.write_space();
        self.text.push_str(&code::span(&words));
    }

    /// Starts a new line inside the paragraph.
    pub(super) fn line_break(&mut self) {
        self.space = false;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Remembers what an image shows.
    pub(super) fn image(&mut self, description: &str) {
        if self.image.is_empty() {
            self.image = words(description);
        }
        self.space = true;
    }

    /// Ends the paragraph and leaves an empty one.
    pub(super) fn finish(&mut self) -> String {
        let line = std::mem::take(self);
        let text = line.text.trim_end();
        if text.is_empty() { line.image } else { text.to_owned() }
    }

    fn write_space(&mut self) {
        if self.space && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push(' ');
        }
        self.space = false;
    }
}

/// The words of an element on one line, whatever stands inside.
pub(super) fn one_line(element: ElementRef<'_>) -> String {
    let mut line = Line::default();
    inline(element, &mut line, 0);
    line.finish().replace('\n', " ")
}

/// Writes an element that a line takes as a whole; false when its children are to be read.
pub(super) fn leaf(element: ElementRef<'_>, line: &mut Line) -> bool {
    if element::is_left_out(element) {
        return true;
    }
    match element.value().name() {
        "code" | "kbd" | "samp" | "tt" => line.code(&code::text(element)),
        "br" => line.line_break(),
        "img" => line.image(element.attr("alt").unwrap_or_default()),
        "a" if element::is_page_furniture(element) => line.push(" "),
        "math" => line.push(&formula(element)),
        _ => return false,
    }
    true
}

fn inline(element: ElementRef<'_>, line: &mut Line, depth: usize) {
    for child in element.children() {
        match child.value() {
            Node::Text(text) => line.push(text),
            Node::Element(_) => {
                let Some(child) = ElementRef::wrap(child) else { continue };
                if leaf(child, line) {
                    continue;
                }
                let is_block = element::is_block(child);
                line.space |= is_block;
                if depth < element::DEEPEST {
                    inline(child, line, depth + 1);
                } else {
                    child.text().for_each(|text| line.push(text));
                }
                line.space |= is_block;
            }
            _ => {}
        }
    }
}

/// A formula as it was written, when the page carries that beside the rendering.
fn formula(math: ElementRef<'_>) -> String {
    let source = math.descendent_elements().find(|element| element.value().name() == "annotation");
    source.unwrap_or(math).text().collect()
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
