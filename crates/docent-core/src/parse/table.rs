//! Tables of any markup, as Markdown writes them.
//!
//! Invariant: a row is a line.

/// Records of comma-separated values.
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

/// A row a line, with a rule below the headers.
pub(super) fn rendered(rows: &[Vec<String>], headers: usize) -> String {
    let mut lines = Vec::with_capacity(rows.len() + 1);
    for (number, row) in rows.iter().enumerate() {
        if row.iter().all(String::is_empty) {
            continue;
        }
        lines.push(format!("| {} |", row.join(" | ")));
        if number + 1 == headers {
            lines.push(format!("|{}", " --- |".repeat(row.len())));
        }
    }
    lines.join("\n")
}
