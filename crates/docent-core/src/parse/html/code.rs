//! Code as it was typed: layout kept, line numbers and buttons gone.
//!
//! Invariant: a fence or span is longer than any run of backticks inside it.

use scraper::{ElementRef, Node};

use super::element;

/// A `pre` as a fenced block; empty when it holds no code.
pub(super) fn fenced(pre: ElementRef<'_>) -> String {
    let code = text(pre).replace('\u{a0}', " ").replace('\u{200b}', "");
    let code = code.trim_end();
    let code = match code.find(|c: char| !c.is_whitespace()) {
        // Blank lines above go; the indentation of the first line stays.
        Some(first) => &code[code[..first].rfind('\n').map_or(0, |end| end + 1)..],
        None => return String::new(),
    };
    let fence = "`".repeat(longest_run(code).max(2) + 1);
    format!("{fence}{}\n{code}\n{fence}", language(pre))
}

/// Words in backticks.
pub(super) fn span(code: &str) -> String {
    let ticks = "`".repeat(longest_run(code) + 1);
    let pad = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{code}{pad}{ticks}")
}

/// The characters inside an element, white space included.
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
                // Docusaurus makes an element of each line, with or without a break at its end.
                let is_line = child.value().name() == "div" || element::has_class(child, "token-line");
                if is_line && !out[start..].ends_with('\n') {
                    out.push('\n');
                }
            }
            _ => {}
        }
    }
}

fn longest_run(code: &str) -> usize {
    code.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// As far up as Sphinx goes when it puts line numbers into a table.
const LEVELS_AROUND: usize = 7;

/// Generators name the language on the block, on the `code` inside or on an element around.
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
