//! Collects the text of a paragraph: white space collapsed, inline code in backticks.
//!
//! Invariant: a finished line has no blank lines and no white space at its ends.

use scraper::{ElementRef, Node};

use super::code;
use super::element;
use crate::fence::push_code;

/// The current paragraph.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: String,
    /// Whether white space was read since the last text.
    space: bool,
    /// Whether the last code written is a key (`kbd`).
    after_key: bool,
    /// The alt text, used if the paragraph has no words.
    image: String,
}

impl Line {
    /// Adds text the way a browser shows it.
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

    /// Adds inline code with enough backticks around it.
    pub(super) fn code(&mut self, code: &str) {
        let words = code.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() {
            self.space |= !code.is_empty();
            return;
        }
        self.space |= std::mem::take(&mut self.after_key) && self.text.ends_with('`');
        self.write_space();
        push_code(&mut self.text, &words);
    }

    /// Starts a new line inside the paragraph.
    pub(super) fn line_break(&mut self) {
        self.space = false;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Whether nothing has been written yet.
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// Remembers the alt text of an image.
    pub(super) fn image(&mut self, description: &str) {
        if self.image.is_empty() {
            self.image = words(description);
        }
        self.space = true;
    }

    /// Returns the paragraph and starts a new one.
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

/// All text of an element on one line.
pub(super) fn one_line(element: ElementRef<'_>) -> String {
    let mut line = Line::default();
    inline(element, &mut line, 0);
    line.finish().replace('\n', " ")
}

/// Handles an element that becomes part of the line as a whole. Returns false if its children must be read
/// instead.
pub(super) fn leaf(element: ElementRef<'_>, line: &mut Line) -> bool {
    if element::is_left_out(element) {
        return true;
    }
    match element.value().name() {
        "code" | "samp" | "tt" => line.code(&code::text(element)),
        // Adjacent keys are separate keys, not one word.
        "kbd" => {
            line.space |= line.text.ends_with('`');
            line.code(&code::text(element));
            line.after_key = true;
        }
        "br" => line.line_break(),
        "img" => line.image(element.attr("alt").unwrap_or_default()),
        "a" if element::is_boilerplate_link(element) => line.push(" "),
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

/// The source of a formula if the page includes it, otherwise its rendered text.
fn formula(math: ElementRef<'_>) -> String {
    let source = math.descendent_elements().find(|element| element.value().name() == "annotation");
    source.unwrap_or(math).text().collect()
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
