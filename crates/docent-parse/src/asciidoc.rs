//! Parses AsciiDoc, as Asciidoctor publishes it, into sections.
//!
//! There are two passes over the lines: `preprocess.rs` expands includes and conditions; `block.rs` and
//! `list.rs` parse the result, and `inline.rs` the inline markup.
//!
//! Invariant: the anchor of a heading is the id that Asciidoctor gives it: an explicit one, or one derived
//! from the title with the page's prefix and separator.

mod attributes;
mod block;
mod inline;
mod lines;
mod list;
mod preprocess;
mod style;
mod table;

use std::collections::{HashMap, HashSet};

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::blocks::Output;
use super::references::{Named, References};
use crate::document::Parsed;
use attributes::Attributes;
use preprocess::Preprocessor;
use style::Style;

/// Parses a page into sections. References show the titles of their targets. `load` returns the text of an
/// included file, given its path relative to this page.
pub fn parse_asciidoc(
    source: &str,
    mut references: References<'_>,
    load: &mut dyn FnMut(&str) -> Option<String>,
) -> Parsed {
    let mut preprocessor = Preprocessor::new(load);
    preprocessor.text(source.strip_prefix('\u{feff}').unwrap_or(source));
    let lines = joined_entries(preprocessor.lines);
    let has_references = lines.iter().any(|line| line.contains("<<") || line.contains("xref:"));
    if has_references {
        // A reference may precede its target, and the ids are known only after the whole page was parsed.
        let named = Parser::new(&references).named(&lines);
        references.know_own(named);
    }
    let mut parser = Parser::new(&references);
    parser.warnings = preprocessor.warnings;
    parser.blocks(&lines, 0);
    Parsed { title: parser.title, sections: parser.output.finish(), warnings: parser.warnings }
}

/// The title of a page, and its ids with the titles they belong to.
pub(super) fn named(source: &str) -> Named {
    let mut nothing = |_: &str| None;
    let mut preprocessor = Preprocessor::new(&mut nothing);
    preprocessor.text(source);
    Parser::new(&References::default()).named(&joined_entries(preprocessor.lines))
}

/// The files that a page includes as a whole, directly or indirectly, relative to the page.
pub fn included(source: &str, load: &mut dyn FnMut(&str) -> Option<String>) -> Vec<String> {
    let mut preprocessor = Preprocessor::new(load);
    preprocessor.text(source);
    preprocessor.whole
}

/// The state while a page is parsed.
struct Parser<'a> {
    references: &'a References<'a>,
    output: Output,
    attributes: Attributes,
    /// The attributes for the next block.
    style: Style,
    /// The ids used so far.
    ids: HashSet<String>,
    /// The next number to try for an id that is already used.
    numbers: HashMap<String, usize>,
    title: Option<String>,
    /// The ids and titles of blocks that have both.
    captions: Vec<(String, String)>,
    warnings: Vec<String>,
}

impl<'a> Parser<'a> {
    fn new(references: &'a References<'a>) -> Self {
        Self {
            references,
            output: Output::default(),
            attributes: Attributes::default(),
            style: Style::default(),
            ids: HashSet::new(),
            numbers: HashMap::new(),
            title: None,
            captions: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn named(mut self, lines: &[String]) -> Named {
        self.blocks(lines, 0);
        let sections = self.output.finish().into_iter().filter_map(|section| section.heading);
        let labels = sections.filter_map(|heading| Some((heading.anchor?, heading.text)));
        Named { title: self.title, labels: labels.chain(self.captions).collect() }
    }

    /// Reduces inline markup to text and registers the ids it defines.
    fn words(&mut self, text: &str) -> String {
        let text = self.attributes.substituted(text);
        let mut ids = Vec::new();
        let words = inline::words(&text, self.references, &mut ids);
        self.ids.extend(ids);
        words
    }

    fn heading(&mut self, level: usize, title: &str, style: &Style, is_document: bool) {
        let (title, own) = own_id(title);
        let words = self.words(title).replace('`', "");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let offset: i64 =
            self.attributes.get("leveloffset").and_then(|offset| offset.parse().ok()).unwrap_or(0);
        let level = (level as i64).saturating_add(offset).clamp(0, 5) as u8 + 1;
        let explicit = style.id.as_deref().or(own);
        let anchor = match explicit {
            Some(id) => {
                self.ids.insert(id.to_owned());
                Some(id.to_owned())
            }
            // The document title has no id on the published page.
            None if is_document => None,
            None => Some(self.generated(&words)),
        };
        if is_document {
            self.attributes.set("doctitle", &words);
        }
        if self.title.is_none() && level == 1 {
            self.title = Some(words.clone());
        }
        self.output.heading(level, &words, anchor);
    }

    /// The id that Asciidoctor generates for a title; with `_2` and so on if it is already used.
    fn generated(&mut self, title: &str) -> String {
        let prefix = self.attributes.get("idprefix").unwrap_or("_").to_owned();
        let separator: String = self.attributes.get("idseparator").unwrap_or("_").chars().take(1).collect();
        let id = slug(title, &prefix, separator.chars().next());
        let mut unique = id.clone();
        // Ids are never freed, so the search continues where the last one ended.
        let stem = format!("{id}{separator}");
        let next = self.numbers.entry(stem.clone()).or_insert(2);
        while self.ids.contains(&unique) {
            unique = format!("{stem}{next}");
            *next += 1;
        }
        self.ids.insert(unique.clone());
        unique
    }

    /// Adds a warning once.
    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// Splits `Title [[id]]` or `[[id]]Title`.
fn own_id(title: &str) -> (&str, Option<&str>) {
    if let Some((id, rest)) = title.strip_prefix("[[").and_then(|rest| rest.split_once("]]")) {
        return (rest.trim(), id.split(',').next());
    }
    match title.strip_suffix("]]").and_then(|rest| rest.rsplit_once("[[")) {
        Some((rest, id)) => (rest.trim(), id.split(',').next()),
        None => (title, None),
    }
}

/// Keeps word characters, turns runs of spaces, dots and hyphens into one separator, and drops the rest.
fn slug(title: &str, prefix: &str, separator: Option<char>) -> String {
    // Dashes and ellipses are replaced by typographic characters and are not separators.
    let title = title.to_lowercase().replace(" -- ", "").replace("--", "").replace("...", "");
    let is_word = |c: char| {
        c.is_alphabetic()
            || c.general_category_group() == GeneralCategoryGroup::Mark
            || matches!(
                c.general_category(),
                GeneralCategory::DecimalNumber | GeneralCategory::ConnectorPunctuation
            )
    };
    let mut id = String::new();
    for c in prefix.chars().chain(title.chars().filter(|c| is_word(*c) || matches!(c, ' ' | '-' | '.'))) {
        match separator {
            None if c == ' ' => {}
            Some(separator) if matches!(c, ' ' | '.' | '-') || c == separator => {
                if !id.ends_with(separator) {
                    id.push(separator);
                }
            }
            _ => id.push(c),
        }
    }
    if let Some(separator) = separator {
        if id.ends_with(separator) {
            id.pop();
        }
        if prefix.is_empty() && id.starts_with(separator) {
            id.remove(0);
        }
    }
    id
}

/// The sum of two level offsets; an offset without a sign is absolute.
fn shifted(before: &str, offset: &str) -> i64 {
    let number = |text: &str| text.trim_start_matches('+').parse::<i64>().unwrap_or(0).clamp(-6, 6);
    if offset.starts_with(['+', '-']) {
        (number(before) + number(offset)).clamp(-6, 6)
    } else {
        number(offset)
    }
}

/// Joins the lines of attribute values that end with a backslash.
fn joined_entries(lines: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    let mut open = false;
    for line in lines {
        match out.last_mut().filter(|_| open) {
            Some(last) => {
                last.truncate(last.trim_end_matches('\\').trim_end().len());
                last.push(' ');
                last.push_str(line.trim());
            }
            None => out.push(line),
        }
        open = out.last().is_some_and(|line| {
            line.starts_with(':') && line.ends_with(" \\") && line[1..].contains(": ") && line.len() < 4_096
        });
    }
    out
}

#[cfg(test)]
mod tests;
