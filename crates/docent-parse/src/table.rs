//! Renders tables of any markup as Markdown.
//!
//! Invariant: every row is one line.

/// Parses comma-separated values into records.
pub(super) fn records(text: &str, separator: char) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut value = String::new();
    let mut quoted = false;
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '"' if quoted && signs.peek() == Some(&'"') => {
                signs.next();
                value.push('"');
            }
            '"' if quoted || value.trim().is_empty() => quoted = !quoted,
            '\n' if !quoted => {
                record.push(std::mem::take(&mut value));
                records.push(std::mem::take(&mut record));
            }
            sign if sign == separator && !quoted => record.push(std::mem::take(&mut value)),
            sign => value.push(sign),
        }
    }
    record.push(value);
    records.push(record);
    records.retain(|record| record.iter().any(|value| !value.trim().is_empty()));
    records
}

/// Renders one line per row, with the delimiter row (`| --- |`) as the second line.
///
/// Code that splits long tables repeats the first two lines, and Markdown renderers expect the delimiter row
/// there. So a table without headers starts with an empty row, and of several header rows only the first is
/// above the delimiter row. A bar inside a cell is escaped so that it does not split the cell.
pub(super) fn rendered(rows: &[Vec<String>], headers: usize) -> String {
    let has_words = |row: &&Vec<String>| row.iter().any(|cell| !cell.trim().is_empty());
    let Some(columns) = rows.iter().find(has_words).map(Vec::len) else { return String::new() };
    let (header, rest) = rows.split_at(headers.min(1));
    let header = header.iter().find(has_words);
    let mut lines = Vec::with_capacity(rows.len() + 2);
    lines.push(header.map_or_else(|| format!("|{}", "  |".repeat(columns)), |row| line(row)));
    lines.push(format!("|{}", " --- |".repeat(columns)));
    lines.extend(rest.iter().filter(has_words).map(|row| line(row)));
    lines.join("\n")
}

fn line(row: &[String]) -> String {
    let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[&[&str]], headers: usize, expected: &str) {
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| cell.to_string()).collect()).collect();
        assert_eq!(rendered(&rows, headers), expected);
    }

    #[test]
    fn the_delimiter_row_is_always_the_second_line() {
        check(&[&["a", "b"], &["1", "2"]], 1, "| a | b |\n| --- | --- |\n| 1 | 2 |");
        check(&[&["a"], &["b"], &["1"]], 2, "| a |\n| --- |\n| b |\n| 1 |");
    }

    #[test]
    fn a_data_row_is_never_a_header() {
        check(&[&["1", "2"]], 0, "|  |  |\n| --- | --- |\n| 1 | 2 |");
        check(&[&["", ""], &["1", "2"]], 1, "|  |  |\n| --- | --- |\n| 1 | 2 |");
        check(&[&["", ""]], 1, "");
    }
}
