//! Writes inline code and code blocks, and finds code in Markdown.
//!
//! Invariant: a fence is longer than any run of backticks in the code, so the code cannot end it.

/// Inline code, with enough backticks around it.
pub(super) fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Appends inline code to a line. Code directly after code is merged with it: a space would split a word, and
/// two adjacent spans would parse as one span with double backticks.
pub(super) fn push_code(line: &mut String, text: &str) {
    if line.ends_with('`') {
        if !line.ends_with("``") && !text.contains('`') {
            line.pop();
            line.push_str(text);
            line.push('`');
            return;
        }
        line.push(' ');
    }
    line.push_str(&code(text));
}

/// `code` in a fence with its language.
pub(super) fn fenced(language: &str, code: &str) -> String {
    let fence = "`".repeat(longest_run(code).max(2) + 1);
    format!("{fence}{language}\n{code}\n{fence}")
}

/// The length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Calls `visit` for every line of `source`, with whether the line is part of a code fence.
pub(super) fn for_each_line(source: &str, mut visit: impl FnMut(&str, bool)) {
    let mut fence: Option<String> = None;
    for line in source.split_inclusive('\n') {
        let trimmed = line.trim_start().trim_start_matches("> ").trim_start();
        let marker = marker(trimmed);
        match (&fence, marker) {
            (None, Some(marker)) => {
                fence = Some(marker.to_owned());
                visit(line, true);
            }
            (Some(open), Some(marker))
                if marker.starts_with(open.as_str()) && trimmed.trim_end() == marker =>
            {
                fence = None;
                visit(line, true);
            }
            (open, _) => visit(line, open.is_some()),
        }
    }
}

/// The backticks or tildes that open or close a fence.
pub(super) fn marker(line: &str) -> Option<&str> {
    let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(sign).len();
    // The info string of a backtick fence contains no backticks; otherwise this is a code span.
    (length >= 3 && !(sign == '`' && line[length..].contains('`'))).then(|| &line[..length])
}

/// The length of the code span at the start of `text`, or of its opening backticks if it is never closed.
pub(super) fn code_span(text: &str) -> usize {
    let ticks = text.len() - text.trim_start_matches('`').len();
    let mut at = ticks;
    while let Some(found) = text[at..].find('`') {
        at += found;
        let run = text[at..].len() - text[at..].trim_start_matches('`').len();
        at += run;
        if run == ticks {
            return at;
        }
    }
    ticks
}
