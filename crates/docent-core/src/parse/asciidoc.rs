//! AsciiDoc as Asciidoctor publishes it becomes sections.
//!
//! Lines are read twice: `preprocess.rs` carries out includes and conditions, `block.rs` and
//! `list.rs` read what is left, `inline.rs` the words of it.
//!
//! Invariant: the anchor of a heading is the id Asciidoctor gives it: the author's own, or one
//! made of the title with the page's prefix and separator.

mod attributes;
mod block;
mod inline;
mod list;
mod preprocess;
mod style;
mod table;

use std::collections::{HashMap, HashSet};

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::output::Output;
use crate::document::Parsed;
use attributes::Attributes;
use preprocess::Preprocessor;
use style::Style;

/// The sections of a page. `load` returns the text of a file named by an include, relative to
/// this page.
pub fn parse_asciidoc(source: &str, load: &mut dyn FnMut(&str) -> Option<String>) -> Parsed {
    let mut preprocessor = Preprocessor::new(load);
    preprocessor.text(source.strip_prefix('\u{feff}').unwrap_or(source));
    let lines = joined_entries(preprocessor.lines);
    let mut parser = Parser {
        output: Output::default(),
        attributes: Attributes::default(),
        style: Style::default(),
        ids: HashSet::new(),
        numbers: HashMap::new(),
        title: None,
        warnings: preprocessor.warnings,
    };
    parser.blocks(&lines, 0);
    Parsed { title: parser.title, sections: parser.output.finish(), warnings: parser.warnings }
}

/// What is known while a page is read.
struct Parser {
    output: Output,
    attributes: Attributes,
    /// What was said about the next block.
    style: Style,
    /// The ids given so far.
    ids: HashSet<String>,
    /// The number to try next for an id that is taken.
    numbers: HashMap<String, usize>,
    title: Option<String>,
    warnings: Vec<String>,
}

impl Parser {
    /// The words of a text; the places it names take their ids.
    fn words(&mut self, text: &str) -> String {
        let text = self.attributes.substituted(text);
        let mut ids = Vec::new();
        let words = inline::words(&text, &mut ids);
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
            // The title of the document is published without an id.
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

    /// Asciidoctor's id for a title; `_2` and so on when it is taken.
    fn generated(&mut self, title: &str) -> String {
        let prefix = self.attributes.get("idprefix").unwrap_or("_").to_owned();
        let separator: String = self.attributes.get("idseparator").unwrap_or("_").chars().take(1).collect();
        let id = slug(title, &prefix, separator.chars().next());
        let mut unique = id.clone();
        // Ids are never given back, so the search goes on where the last one ended.
        let stem = format!("{id}{separator}");
        let next = self.numbers.entry(stem.clone()).or_insert(2);
        while self.ids.contains(&unique) {
            unique = format!("{stem}{next}");
            *next += 1;
        }
        self.ids.insert(unique.clone());
        unique
    }

    /// The same problem twice is one warning.
    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// `Title [[id]]` and `[[id]]Title`
fn own_id(title: &str) -> (&str, Option<&str>) {
    if let Some((id, rest)) = title.strip_prefix("[[").and_then(|rest| rest.split_once("]]")) {
        return (rest.trim(), id.split(',').next());
    }
    match title.strip_suffix("]]").and_then(|rest| rest.rsplit_once("[[")) {
        Some((rest, id)) => (rest.trim(), id.split(',').next()),
        None => (title, None),
    }
}

/// Word characters stay; spaces, dots and hyphens become one separator; the rest goes.
fn slug(title: &str, prefix: &str, separator: Option<char>) -> String {
    // Dashes and dots that become signs of their own are no separators.
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

/// The sum of two level offsets; one without a sign stands for itself.
fn shifted(before: &str, offset: &str) -> i64 {
    let number = |text: &str| text.trim_start_matches('+').parse::<i64>().unwrap_or(0).clamp(-6, 6);
    if offset.starts_with(['+', '-']) {
        (number(before) + number(offset)).clamp(-6, 6)
    } else {
        number(offset)
    }
}

/// A value may go on below when its line ends with a backslash.
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
