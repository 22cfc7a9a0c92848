//! Grid tables and simple tables.
//!
//! Invariant: cells are cut at the columns of the border above, counted in characters.

/// A row of cells, each with its lines.
pub(super) type Row = Vec<Vec<String>>;

/// `+---+---+`
pub(super) fn is_grid_border(line: &str) -> bool {
    line.len() > 2
        && line.starts_with('+')
        && line.ends_with('+')
        && line.contains(['-', '='])
        && line.bytes().all(|c| matches!(c, b'+' | b'-' | b'='))
}

/// `====  ====`
pub(super) fn is_simple_border(line: &str) -> bool {
    line.starts_with('=') && line.trim_end().contains(' ') && line.bytes().all(|c| matches!(c, b'=' | b' '))
}

/// Where the table that starts at `at` ends: after the border that is followed by a blank line.
pub(super) fn simple_end(lines: &[&str], at: usize) -> Option<usize> {
    let mut borders = 0;
    for (number, line) in lines.iter().enumerate().skip(at) {
        if is_simple_border(line) {
            borders += 1;
            let ends = lines.get(number + 1).is_none_or(|next| next.is_empty());
            if borders >= 3 || (borders == 2 && ends) {
                return Some(number + 1);
            }
        }
    }
    None
}

/// The rows between borders, and the number of header rows.
pub(super) fn grid(lines: &[&str]) -> (Vec<Row>, usize) {
    let columns: Vec<usize> = match lines.first() {
        Some(border) => border.match_indices('+').map(|(at, _)| at).collect(),
        None => return (Vec::new(), 0),
    };
    let mut rows = Vec::new();
    let mut headers = 0;
    let mut row: Row = Vec::new();
    for line in lines.iter().skip(1) {
        let signs: Vec<char> = line.chars().collect();
        if line.starts_with('+') || line.contains("+--") || line.contains("+==") {
            if row.iter().flatten().any(|text| !text.trim().is_empty()) {
                rows.push(std::mem::take(&mut row));
            }
            row.clear();
            if line.contains("==") {
                headers = rows.len();
            }
            if is_grid_border(line) {
                continue;
            }
        }
        row.resize(columns.len().saturating_sub(1), Vec::new());
        let mut start = 0;
        for (number, pair) in columns.windows(2).enumerate() {
            // There is no border at this column: the cell spans into the next one.
            if number + 2 < columns.len() && !matches!(signs.get(pair[1]), Some('|' | '+') | None) {
                continue;
            }
            let text: String = signs.iter().take(pair[1]).skip(columns[start] + 1).collect();
            if !text.trim().chars().all(|c| matches!(c, '-' | '=' | '+')) || text.trim().len() < 3 {
                row[start].push(text.trim_end().to_owned());
            }
            start = number + 1;
        }
    }
    if row.iter().flatten().any(|text| !text.trim().is_empty()) {
        rows.push(row);
    }
    (rows, headers)
}

/// The rows of a table whose columns are defined by its first line.
pub(super) fn simple(lines: &[&str]) -> (Vec<Row>, usize) {
    let starts: Vec<usize> = match lines.first() {
        Some(border) => starts_of_runs(border),
        None => return (Vec::new(), 0),
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut headers = 0;
    let mut borders = 0;
    for line in lines {
        if is_simple_border(line) {
            borders += 1;
            if borders == 2 {
                headers = rows.len();
            }
            continue;
        }
        // Lines of hyphens mark column spans, blank lines separate rows.
        if line.is_empty() || line.bytes().all(|c| matches!(c, b'-' | b' ')) {
            continue;
        }
        let signs: Vec<char> = line.chars().collect();
        // A word that crosses the gap between two columns belongs to the first one.
        let start_of = |column: usize| -> usize {
            let Some(start) = starts.get(column) else { return signs.len() };
            let is_space = |at: usize| signs.get(at).is_none_or(|c| c.is_whitespace());
            if column == 0 || is_space(*start) || is_space(start - 1) {
                return *start;
            }
            (*start..signs.len()).find(|at| is_space(*at)).unwrap_or(signs.len())
        };
        let cell = |column: usize| -> String {
            let (start, end) = (start_of(column), start_of(column + 1));
            signs.iter().take(end).skip(start).collect::<String>().trim_end().to_owned()
        };
        let cells: Vec<String> = (0..starts.len()).map(cell).collect();
        // The first row below the headers does not continue them.
        let is_first = borders == 2 && rows.len() == headers;
        match rows.last_mut().filter(|_| !is_first && cells[0].trim().is_empty()) {
            // A row whose first cell is empty continues the row above.
            Some(above) => above.iter_mut().zip(cells).for_each(|(above, cell)| above.push(cell)),
            None => rows.push(cells.into_iter().map(|cell| vec![cell]).collect()),
        }
    }
    (rows, if borders > 2 { headers } else { 0 })
}

fn starts_of_runs(border: &str) -> Vec<usize> {
    let signs = border.as_bytes();
    (0..signs.len()).filter(|at| signs[*at] == b'=' && (*at == 0 || signs[at - 1] != b'=')).collect()
}
