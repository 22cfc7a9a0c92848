//! Renders a table as Markdown, one line per row.
//!
//! Invariant: a cell is one line, and cells that span rows or columns do not shift the others out of their
//! column.

use scraper::ElementRef;

use super::element;
use super::line::one_line;
use crate::table::rendered as as_markdown;

/// Limit on `colspan` and `rowspan`; wider tables are not readable anyway.
const WIDEST_SPAN: usize = 64;

/// Beyond this column, spans are ignored.
const WIDEST: usize = 128;

/// The rows of a table as Markdown; empty if no cell has text.
pub(super) fn rendered(table: ElementRef<'_>) -> String {
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut headers = 0;
    let mut spans = Vec::new();
    for (row, in_head) in rows(table) {
        let is_header = in_head || (found.is_empty() && is_header(row));
        let cells = cells(row, &mut spans);
        if cells.iter().all(String::is_empty) {
            continue;
        }
        headers += usize::from(is_header);
        found.push(cells);
    }
    as_markdown(&found, headers)
}

/// The caption of a table.
pub(super) fn caption(table: ElementRef<'_>) -> String {
    let caption = table.child_elements().find(|child| child.value().name() == "caption");
    caption.map(one_line).unwrap_or_default()
}

/// Whether a table is only used for layout: code next to its line numbers, or next to other code.
pub(super) fn is_layout(table: ElementRef<'_>) -> bool {
    if element::has_any_class(table, &["highlighttable", "lntable", "rouge-table"]) {
        return true;
    }
    let mut has_code = false;
    for inside in table.descendent_elements() {
        match inside.value().name() {
            "th" => return false,
            "pre" => has_code = true,
            _ => {}
        }
    }
    has_code
}

/// The rows of a table, with whether they are in its head. Rows of nested tables are not included.
fn rows(table: ElementRef<'_>) -> impl Iterator<Item = (ElementRef<'_>, bool)> {
    table.child_elements().flat_map(|part| {
        let is_row = part.value().name() == "tr";
        let is_head = part.value().name() == "thead";
        let inside = part.child_elements().filter(move |child| !is_row && child.value().name() == "tr");
        is_row.then_some(part).into_iter().chain(inside).map(move |row| (row, is_head))
    })
}

fn is_header(row: ElementRef<'_>) -> bool {
    let mut cells = row.child_elements().peekable();
    cells.peek().is_some() && cells.all(|cell| cell.value().name() == "th")
}

/// The cells of a row. `spans` holds, for each column, how many more rows a cell above covers.
fn cells(row: ElementRef<'_>, spans: &mut Vec<usize>) -> Vec<String> {
    let mut cells = Vec::new();
    for cell in row.child_elements().filter(|child| matches!(child.value().name(), "td" | "th")) {
        fill(&mut cells, spans);
        let mut text = if element::is_left_out(cell) { String::new() } else { one_line(cell) };
        let room = WIDEST.saturating_sub(cells.len()).max(1);
        for _ in 0..span(cell, "colspan").min(room) {
            if cells.len() < WIDEST {
                if spans.len() <= cells.len() {
                    spans.resize(cells.len() + 1, 0);
                }
                spans[cells.len()] = span(cell, "rowspan") - 1;
            }
            cells.push(std::mem::take(&mut text));
        }
    }
    fill(&mut cells, spans);
    cells
}

/// Adds empty cells for the columns covered by a cell above.
fn fill(cells: &mut Vec<String>, spans: &mut [usize]) {
    while let Some(rows) = spans.get_mut(cells.len()).filter(|rows| **rows > 0) {
        *rows -= 1;
        cells.push(String::new());
    }
}

fn span(cell: ElementRef<'_>, name: &str) -> usize {
    cell.attr(name).and_then(|number| number.trim().parse().ok()).unwrap_or(1).clamp(1, WIDEST_SPAN)
}
