//! Shorten a long list or table to its introduction, its header, and the items or rows that match the
//! question.
//!
//! Invariant: items and rows are shown whole and in order.

use std::ops::Range;

use super::{count, is_block};
use crate::question_kind::QuestionKind;
use crate::read::Read;
use crate::statement::StatementKind;
use crate::terms::Analyzer;
use crate::unit::is_item;

/// Lists and tables up to this many words are shown whole if the question asks for several things …
const WHOLE: usize = 120;

/// … up to this many if it asks for a list, or if the items are numbered, because then none may be missing …
const WHOLE_LIST: usize = 200;

/// … and up to this many otherwise.
const WHOLE_FOR_ONE: usize = 80;

/// An item or row is shown if its score is at least this share of the best score.
const LEAST_SHARE: f32 = 0.7;

/// Maximum number of items or rows of a shortened list or table.
const MOST_LINES: usize = 4;

/// The shortened text and the span it quotes; none if the whole statement should be shown.
pub fn shortened(
    content: &str,
    read: &Read,
    asked: &QuestionKind,
    terms: &[(String, f32)],
    analyzer: &Analyzer,
) -> Option<(String, Range<usize>)> {
    let text = &content[read.span.clone()];
    let several = asked.list || asked.how_to || asked.comparison || asked.trouble;
    let is_numbered = content[read.block..].starts_with(|c: char| c.is_ascii_digit());
    let is_list = read.kind == StatementKind::List && (asked.list || is_numbered);
    let whole = match () {
        () if is_list => WHOLE_LIST,
        () if several => WHOLE,
        () => WHOLE_FOR_ONE,
    };
    if !is_block(read.kind) || read.kind == StatementKind::Code || count(text) <= whole {
        return None;
    }
    let lead = content[read.span.start..read.block].trim_end();
    let mut parts = parts(content, read);
    let header = match read.kind {
        StatementKind::Table if parts.len() > 2 => parts.drain(..2).collect(),
        _ => Vec::new(),
    };
    let scores: Vec<f32> = parts.iter().map(|part| score(&content[part.clone()], terms, analyzer)).collect();
    let best = scores.iter().copied().fold(0.0, f32::max);
    if best <= 0.0 {
        return None;
    }
    let mut order: Vec<usize> =
        (0..parts.len()).filter(|number| scores[*number] >= best * LEAST_SHARE).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    order.truncate(MOST_LINES);
    order.sort_unstable();
    let mut shown = String::new();
    if !lead.is_empty() {
        shown.push_str(lead);
        shown.push_str("\n\n");
    }
    let lines = header.iter().chain(order.iter().map(|number| &parts[*number]));
    shown.push_str(&lines.map(|line| content[line.clone()].trim_end()).collect::<Vec<_>>().join("\n"));
    let (first, last) = (*order.first()?, *order.last()?);
    Some((shown, parts[first].start..content[..parts[last].end].trim_end().len()))
}

/// The rows of a table or the items of a list, each with its continuation lines.
fn parts(content: &str, read: &Read) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut at = read.block;
    for line in content[read.block..read.span.end].split_inclusive('\n') {
        let end = at + line.len();
        let opens = parts.is_empty()
            || read.kind == StatementKind::Table
            || (is_item(line) && !line.starts_with(' '));
        match parts.last_mut() {
            Some(open) if !opens => open.end = end,
            _ => parts.push(at..end),
        }
        at = end;
    }
    parts
}

fn score(text: &str, terms: &[(String, f32)], analyzer: &Analyzer) -> f32 {
    let words = analyzer.distinct(text);
    terms.iter().filter(|(term, _)| words.contains(term)).map(|(_, weight)| weight).sum()
}
