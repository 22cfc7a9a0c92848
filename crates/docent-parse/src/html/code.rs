//! Extracts code with its layout, without line numbers and buttons.
//!
//! Invariant: a fence or span is longer than any run of backticks inside it.

use scraper::{ElementRef, Node};

use super::element;
use crate::fence;

/// A `pre` as a fenced block; empty if it contains no code.
pub(super) fn fenced(pre: ElementRef<'_>) -> String {
    let code = text(pre).replace('\u{a0}', " ").replace('\u{200b}', "");
    let code = code.trim_end();
    let code = match code.find(|c: char| !c.is_whitespace()) {
        // Drop blank lines at the top but keep the indentation of the first line.
        Some(first) => &code[code[..first].rfind('\n').map_or(0, |end| end + 1)..],
        None => return String::new(),
    };
    fence::fenced(&language(pre), code)
}

/// The text inside an element, including white space.
pub(super) fn text(element: ElementRef<'_>) -> String {
    let mut out = String::new();
    collect(element, &mut out, 0);
    out
}

fn collect(element: ElementRef<'_>, out: &mut String, depth: usize) {
    if depth > element::DEEPEST {
        out.extend(element.text());
        return;
    }
    for child in element.children() {
        match child.value() {
            Node::Text(text) => out.push_str(text),
            Node::Element(value) if value.name() == "br" => out.push('\n'),
            Node::Element(_) => {
                let Some(child) = ElementRef::wrap(child) else { continue };
                if element::is_left_out(child) || element::has_class(child, "boring") {
                    continue;
                }
                let start = out.len();
                collect(child, out, depth + 1);
                // Docusaurus wraps each line in an element, with or without a line break at its end.
                let is_line = child.value().name() == "div" || element::has_class(child, "token-line");
                if is_line && !out[start..].ends_with('\n') {
                    out.push('\n');
                }
            }
            _ => {}
        }
    }
}

/// How far up Sphinx puts the language when it renders line numbers as a table.
const LEVELS_AROUND: usize = 7;

/// Site generators put the language on the block, on the `code` inside it or on an element around it.
fn language(pre: ElementRef<'_>) -> String {
    const NEAR: usize = 4;
    let inside = pre.descendent_elements().take(NEAR).find_map(|element| {
        language_class(element, &["language-", "lang-"])
            .or_else(|| element.attr("data-lang"))
            .or_else(|| element.attr("data-language"))
    });
    let mut around = pre.ancestors().filter_map(ElementRef::wrap).take(LEVELS_AROUND);
    let name = inside.or_else(|| {
        around.find_map(|element| language_class(element, &["language-", "highlight-source-", "highlight-"]))
    });
    match name.unwrap_or_default().split([',', ' ']).next().unwrap_or_default() {
        "default" | "none" | "undefined" | "fallback" => String::new(),
        name if name.contains('`') => String::new(),
        name => name.to_owned(),
    }
}

fn language_class<'a>(element: ElementRef<'a>, prefixes: &[&str]) -> Option<&'a str> {
    let mut classes = element.value().classes();
    classes.find_map(|class| prefixes.iter().find_map(|prefix| class.strip_prefix(prefix)))
}
