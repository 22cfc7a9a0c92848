//! Parses reStructuredText, as Sphinx reads it, into sections: well enough to search and cite.
//!
//! No directive is executed. Directives that show their content are parsed, those that show nothing are
//! skipped, and unknown ones keep their text.
//!
//! Invariant: everything that gets an id on the published page gets it in the same order as in docutils, so
//! that the anchors of headings match the site.

mod block;
mod directive;
mod inline;
mod lines;
mod table;

use std::collections::HashMap;

use super::anchors::{AnchorStyle, Anchors};
use super::blocks::Output;
use super::include::Includes;
use super::references::{Named, References};
use crate::document::Parsed;
use inline::Known;

/// Parses a page into sections. References show the titles of their targets.
///
/// `load` returns the text of an included file, given its path relative to this page; a path that starts with
/// `/` is relative to the root of the book.
pub fn parse_rst(
    source: &str,
    mut references: References<'_>,
    load: &mut dyn FnMut(&str) -> Option<String>,
) -> Parsed {
    references.know_own(named(source));
    let mut parser = Parser {
        references,
        load,
        output: Output::default(),
        anchors: Anchors::new(AnchorStyle::Sphinx),
        title: None,
        warnings: Vec::new(),
        adornments: Vec::new(),
        substitutions: HashMap::new(),
        highlight: String::new(),
        includes: Includes::default(),
        label: None,
    };
    parser.text(source, Place { depth: 0, sections: true });
    Parsed { title: parser.title, sections: parser.output.finish(), warnings: parser.warnings }
}

/// Whether a text contains markup that only reStructuredText has: a directive, a label or a role.
pub(super) fn is_rst(source: &str) -> bool {
    source.lines().any(|line| {
        let explicit = line.trim_start().strip_prefix(".. ");
        let is_directive = explicit.and_then(lines::directive).is_some();
        let is_label = explicit.is_some_and(|rest| rest.starts_with('_') && rest.contains(':'));
        let role = line.split_once(":`").and_then(|(before, _)| before.rsplit_once(':'));
        let is_role = role.is_some_and(|(_, name)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        });
        is_directive || is_label || is_role
    })
}

/// The pages listed in the `toctree` directives of a page, in order: names without extensions, relative to
/// the page or, with a leading `/`, to the root. Globs are returned unexpanded.
pub fn toctree(source: &str) -> Vec<String> {
    let mut entries = Vec::new();
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        if line.trim() != ".. toctree::" {
            continue;
        }
        let inside = |next: &&str| next.trim().is_empty() || next.len() - next.trim_start().len() > indent;
        while let Some(entry) = lines.next_if(inside) {
            let entry = entry.trim();
            // `Title <page>`: only the page name is used.
            let name = entry
                .strip_suffix('>')
                .and_then(|rest| rest.rsplit_once('<'))
                .map_or(entry, |(_, name)| name);
            if !name.is_empty() && !name.starts_with(':') && !name.contains("://") && name != "self" {
                entries.push(name.trim_end_matches(".rst").to_owned());
            }
        }
    }
    entries
}

/// The title of a page, and its labels with the titles or captions below them.
pub(super) fn named(source: &str) -> Named {
    let source = lines::spaced(source);
    let lines: Vec<&str> = source.lines().map(str::trim_end).collect();
    let mut named = Named::default();
    let mut open: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        if line.is_empty() {
            continue;
        }
        if let Some(label) = line.strip_prefix(".. _").and_then(|rest| rest.strip_suffix(':')) {
            open.push(label.trim_matches('`'));
            continue;
        }
        let title = match block::title(&lines, at - 1) {
            Some((title, end)) => {
                at = end;
                Some(title)
            }
            None => caption(&lines, at - 1),
        };
        if let Some(title) = title {
            let references = References::default();
            let known = Known { substitutions: &HashMap::new(), references: &references };
            let words = inline::words(title, known, &mut Vec::new()).replace('`', "");
            named.labels.extend(open.iter().map(|label| (label.to_string(), words.clone())));
            if named.title.is_none() && !line.starts_with("..") {
                named.title = Some(words);
            }
        }
        open.clear();
    }
    named
}

/// The caption of a table or figure, which a label above it refers to.
fn caption<'a>(lines: &[&'a str], at: usize) -> Option<&'a str> {
    let (name, argument) = lines::directive(lines[at].strip_prefix(".. ")?)?;
    match name {
        "table" | "list-table" | "csv-table" => Some(argument),
        "figure" => {
            let below = &lines[at + 1..lines::indented_end(lines, at + 1)];
            let options = below.iter().position(|line| line.is_empty())?;
            below[options..].iter().map(|line| line.trim()).find(|line| !line.is_empty())
        }
        _ => None,
    }
    .filter(|caption| !caption.is_empty())
}

/// The state while a page is parsed.
struct Parser<'load> {
    references: References<'load>,
    load: &'load mut dyn FnMut(&str) -> Option<String>,
    output: Output,
    anchors: Anchors,
    title: Option<String>,
    warnings: Vec<String>,
    /// The styles of section titles, outermost first: the character, and whether there is also a line above.
    adornments: Vec<(char, bool)>,
    substitutions: HashMap<String, String>,
    /// The language of literal blocks that do not specify one.
    highlight: String,
    includes: Includes,
    /// The id of the target directly above, which also applies to a heading that follows.
    label: Option<String>,
}

/// The context of a body of text.
#[derive(Clone, Copy)]
struct Place {
    /// The nesting depth of bodies.
    depth: usize,
    /// Whether titles open sections here; inside a list or a note they are plain text.
    sections: bool,
}

impl Place {
    /// The context inside an element of this body.
    fn inside(self) -> Self {
        Self { depth: self.depth + 1, sections: false }
    }

    /// The context inside an element that is not shown itself, such as a condition.
    fn through(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

impl Parser<'_> {
    /// Parses a whole file.
    fn text(&mut self, source: &str, place: Place) {
        let source = lines::spaced(source);
        let lines: Vec<&str> = source.lines().map(str::trim_end).collect();
        self.collect_substitutions(&lines);
        self.blocks(&lines, place);
    }

    /// Substitutions may be defined after their use.
    fn collect_substitutions(&mut self, lines: &[&str]) {
        for (number, line) in lines.iter().enumerate() {
            let Some((name, definition)) =
                line.trim_start().strip_prefix(".. |").and_then(|rest| rest.split_once("| "))
            else {
                continue;
            };
            let Some(text) = definition.trim_start().strip_prefix("replace::") else { continue };
            let mut words = vec![text.trim()];
            let more =
                lines[number + 1..].iter().take_while(|next| lines::indent(next) > lines::indent(line));
            words.extend(more.map(|next| next.trim()));
            self.substitutions.insert(name.to_lowercase(), words.join(" "));
        }
    }

    /// Reduces inline markup to text and registers the ids of its targets and references.
    fn words(&mut self, text: &str) -> String {
        let mut targets = Vec::new();
        let known = Known { substitutions: &self.substitutions, references: &self.references };
        let words = inline::words(text, known, &mut targets);
        for target in targets {
            self.anchors.next(&target, None);
        }
        words
    }
}

#[cfg(test)]
mod tests;
