//! Questions about tables: a cell by its row and column, or a row by one of its cells.
//!
//! Invariant: the row is found by its first cell, which no other row has, and the quote is the row.

use std::ops::Range;

use super::QuizKind;
use super::finish::Draft;
use super::passage::Passage;
use super::wording::{given_away, has, is_clean, length, words};
use crate::statement::StatementKind;

/// Maximum number of questions about a table.
const MOST_PER_TABLE: usize = 2;

/// Maximum number of words in a cell that is asked for or quoted.
const LONGEST_CELL: usize = 16;

struct Row<'a> {
    span: Range<usize>,
    cells: Vec<&'a str>,
}

pub(super) fn drafts(passage: &Passage<'_>, drafts: &mut Vec<Draft>) {
    for table in passage.introduced(StatementKind::Table) {
        let rows = rows(passage, table.block);
        let [header, rows @ ..] = rows.as_slice() else { continue };
        let columns = header.cells.len();
        if !(2..=6).contains(&columns)
            || rows.len() < 2
            || header.cells[1..].iter().any(|cell| cell.is_empty())
        {
            continue;
        }
        let keys: Vec<&str> = rows.iter().filter_map(|row| row.cells.first().copied()).collect();
        if keys.iter().enumerate().any(|(place, key)| keys[..place].contains(key)) {
            continue;
        }
        let mut made = 0;
        for place in spread(rows.len()) {
            let row = &rows[place];
            if made == MOST_PER_TABLE || row.cells.len() != columns || !is_key(row.cells[0]) {
                continue;
            }
            // Different columns for different rows.
            let order = (0..columns - 1).map(|number| 1 + (place + number) % (columns - 1));
            let by_cell = (made + passage.place) % 2 == 1;
            let row_wanted =
                by_cell.then(|| order.clone().find_map(|column| row_of(passage, header, rows, row, column)));
            let usable = row_wanted
                .flatten()
                .or_else(|| order.clone().find_map(|column| cell_of(passage, header, row, column)));
            if let Some(draft) = usable {
                drafts.push(draft);
                made += 1;
            }
        }
    }
}

/// The rows from different parts of the table, the second one first.
fn spread(count: usize) -> impl Iterator<Item = usize> {
    let first = count / 3;
    (0..count)
        .map(move |number| (first + number * 2) % count)
        .chain((0..count).map(move |number| (first + number * 2 + 1) % count))
}

/// The rows of a table without the line below the header.
fn rows<'a>(passage: &Passage<'a>, table: Range<usize>) -> Vec<Row<'a>> {
    let mut at = table.start;
    let mut found = Vec::new();
    for line in passage.text(table).split_inclusive('\n') {
        let row = line.trim();
        let start = at + (line.len() - line.trim_start().len());
        at += line.len();
        let is_rule = row.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
        if row.starts_with('|') && row.ends_with('|') && !is_rule {
            found.push(Row { span: start..start + row.len(), cells: cells(row) });
        }
    }
    found
}

/// The cells of a row; a bar in code or after a backslash does not end a cell.
fn cells(row: &str) -> Vec<&str> {
    let inner = &row[1..row.len().max(2) - 1];
    let (mut found, mut start, mut in_code, mut before) = (Vec::new(), 0, false, ' ');
    for (at, character) in inner.char_indices() {
        match character {
            '`' => in_code = !in_code,
            '|' if !in_code && before != '\\' => {
                found.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = character;
    }
    found.push(inner[start..].trim());
    found
}

fn is_key(cell: &str) -> bool {
    is_clean(cell) && (1..=6).contains(&length(cell)) && cell.chars().any(char::is_alphabetic)
}

/// Whether a cell says something that can be asked for.
fn is_telling(cell: &str) -> bool {
    let lower = cell.trim_matches('`').to_lowercase();
    is_clean(cell)
        && !cell.contains("\\|")
        && !lower.starts_with("see ")
        && !cell.starts_with(['✅', '❌', '✔', '✓', '✗'])
        && (1..=LONGEST_CELL).contains(&length(cell))
        && cell.chars().any(char::is_alphanumeric)
        && !has(
            "yes no none n/a x true false any same required optional undefined null string boolean number int bool str \
            object function array",
            &lower,
        )
        && !cell.ends_with('?')
}

/// Whether the cells of a column are links, or values that are not worth asking about.
fn is_not_worth_asking(header: &str) -> bool {
    const ELSEWHERE: &str =
        "link see page chapter section docs read more reference url week type note comment remark";
    let lower = header.to_lowercase();
    let mut parts = lower.split(|c: char| !c.is_alphanumeric());
    lower == "start here"
        || parts
            .any(|part| has(ELSEWHERE, part) || part.strip_suffix('s').is_some_and(|one| has(ELSEWHERE, one)))
}

/// Nouns that can follow "what is the".
const NOUNS: &str = "default type meaning description purpose task job unit units value command role version rate range example \
    advantage drawback idea function effect behavior behaviour equivalent formula symbol size limit format name message cause \
    remedy fix solution result output input action tool package language license port frequency reliability \
    durability property disadvantage timing cost accuracy interface method class event operator precedence extension status \
    notes explanation usage use";

/// "The default of `port`", as far as the header is a noun.
fn is_noun(header: &str) -> bool {
    let found = words(header);
    (1..=3).contains(&found.len())
        && found.last().is_some_and(|last| has(NOUNS, &last.text.to_lowercase()))
        && !header.ends_with('?')
}

/// Headers of a first column whose cells are properties, so that the other columns are the subjects.
fn names_properties(header: &str) -> bool {
    header.is_empty()
        || has("property question feature aspect criterion attribute characteristic", &header.to_lowercase())
}

fn cell_of(passage: &Passage<'_>, header: &Row<'_>, row: &Row<'_>, column: usize) -> Option<Draft> {
    let (key, name, cell) = (row.cells[0], header.cells[column], row.cells[column]);
    if !is_telling(cell)
        || is_not_worth_asking(name)
        || !is_clean(name)
        || key == name
        || given_away(key, cell) > 0.4
    {
        return None;
    }
    let (place, columns) = (passage.place_name(), header.cells.len());
    let question = if names_properties(header.cells[0]) && columns > 2 {
        format!("In the table under {place}, what does the row “{key}” say about “{name}”?")
    } else if is_noun(name) {
        let verb =
            if name.ends_with('s') && !name.ends_with("ss") && name != "Status" { "are" } else { "is" };
        format!("In the table under {place}, what {verb} the {} of {}?", lowered_header(name), quoted(key))
    } else {
        format!("In the table under {place}, what does the column “{name}” say about {}?", quoted(key))
    };
    Some(Draft { kind: QuizKind::Table, question, answer: vec![cell.to_owned()], quote: row.span.clone() })
}

/// Asks for the row with a cell that no other row has.
fn row_of(
    passage: &Passage<'_>,
    header: &Row<'_>,
    rows: &[Row<'_>],
    row: &Row<'_>,
    column: usize,
) -> Option<Draft> {
    let (key, kind, name, cell) = (row.cells[0], header.cells[0], header.cells[column], row.cells[column]);
    let is_unique = rows.iter().filter(|other| other.cells.get(column) == Some(&cell)).count() == 1;
    let is_kind =
        (1..=2).contains(&length(kind)) && !kind.ends_with('s') && !names_properties(kind) && is_clean(kind);
    if !is_unique
        || !is_kind
        || !is_telling(cell)
        || length(cell) < 2
        || is_not_worth_asking(name)
        || !is_clean(name)
    {
        return None;
    }
    if given_away(cell, key) > 0.0 {
        return None;
    }
    let question = format!(
        "In the table under {}, which {} has “{cell}” in the column “{name}”?",
        passage.place_name(),
        lowered_header(kind)
    );
    Some(Draft { kind: QuizKind::Table, question, answer: vec![key.to_owned()], quote: row.span.clone() })
}

/// A header in the middle of a sentence; "ROS 2 message" stays as it is.
fn lowered_header(header: &str) -> String {
    let mut letters = header.chars();
    match letters.next() {
        Some(first) if !letters.as_str().starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => header.to_owned(),
    }
}

fn quoted(key: &str) -> String {
    if key.contains('`') { key.to_owned() } else { format!("“{key}”") }
}
