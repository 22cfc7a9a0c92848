//! A table as Markdown writes it, one row a line.
//!
//! Invariant: a cell is one line, and cells that span rows or columns keep the others in
//! their column.

use scraper::ElementRef;

use super::element;
use super::line::one_line;

/// More columns than any table that can be read.
const WIDEST_SPAN: usize = 64;

/// Columns beyond this are not kept in line: a cell is what it is, however many it wants to span.
const WIDEST: usize = 128;

/// The rows of a table; empty when no cell has text.
pub(super) fn rendered(table: ElementRef<'_>) -> String {
    let mut lines = Vec::new();
    let mut open_header = false;
    let mut spans = Vec::new();
    for (row, in_head) in rows(table) {
        let is_header = in_head || (lines.is_empty() && is_header(row));
        let cells = cells(row, &mut spans);
        if cells.iter().all(String::is_empty) {
            continue;
        }
        if open_header && !is_header {
            lines.push(rule(cells.len()));
        }
        open_header = is_header;
        lines.push(format!("| {} |", cells.join(" | ")));
    }
    lines.join("\n")
}

/// What stands above a table.
pub(super) fn caption(table: ElementRef<'_>) -> String {
    let caption = table.child_elements().find(|child| child.value().name() == "caption");
    caption.map(one_line).unwrap_or_default()
}

/// Tables that only place code beside its line numbers, or one piece of code beside another.
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

/// The rows, and whether they stand in the head; those of tables inside are not among them.
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

/// The cells of a row. `spans` holds, for each column, how many rows a cell above still fills.
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

/// Leaves the columns empty that a cell above fills.
fn fill(cells: &mut Vec<String>, spans: &mut [usize]) {
    while let Some(rows) = spans.get_mut(cells.len()).filter(|rows| **rows > 0) {
        *rows -= 1;
        cells.push(String::new());
    }
}

fn span(cell: ElementRef<'_>, name: &str) -> usize {
    cell.attr(name).and_then(|number| number.trim().parse().ok()).unwrap_or(1).clamp(1, WIDEST_SPAN)
}

fn rule(columns: usize) -> String {
    format!("|{}", " --- |".repeat(columns))
}
