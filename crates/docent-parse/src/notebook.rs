//! Jupyter notebooks: text from Markdown cells, code from code cells, and their text output.
//!
//! Images, HTML tables and other rich output are skipped; long text output is shortened.
//!
//! Invariant: a cell cannot affect the next one, whatever markup it leaves open.

use serde_json::Value;

use super::admonition::admonitions;
use super::fence::fenced;
use super::front_matter::{self, FrontMatter};
use super::markdown::{Flavor, Walker};
use super::myst;
use super::references::References;
use crate::document::{BlockKind, Parsed};

/// Maximum length of a cell's output; an answer needs its shape, not the whole log.
const LONGEST_OUTPUT: usize = 1_200;
const MOST_OUTPUT_LINES: usize = 20;

/// Parses a notebook of format 3 or 4.
pub fn parse_notebook(source: &str) -> (FrontMatter, Parsed) {
    let mut walker = Walker::new(Flavor::Jupyter);
    let mut front = FrontMatter::default();
    let notebook: Value = match serde_json::from_str(source) {
        Ok(notebook) => notebook,
        Err(error) => {
            walker.warn(format!("not a notebook: {error}"));
            return (front, walker.finish());
        }
    };
    let language = language(&notebook);
    let references = References::default();
    let cells = cells(&notebook);
    if cells.is_none() {
        walker.warn("not a notebook: it has no cells");
    }
    for (number, cell) in cells.into_iter().flatten().enumerate() {
        if is_removed(cell, "cell") {
            continue;
        }
        match cell["cell_type"].as_str() {
            Some("markdown") => {
                let text = myst::to_markdown(&joined(&cell["source"]), &references);
                walker.text(&admonitions(&text));
            }
            Some("heading") => walker.text(&old_heading(cell)),
            Some("code") => code_cell(&mut walker, cell, &language),
            // Quarto stores the front matter of a notebook in the first cell.
            Some("raw") if number == 0 && joined(&cell["source"]).starts_with("---") => {
                front = front_matter::split(&joined(&cell["source"])).0;
            }
            Some("raw")
                if cell["metadata"]["format"].as_str().is_none_or(|format| format == "text/plain") =>
            {
                walker.block(BlockKind::Text, &joined(&cell["source"]));
            }
            Some("raw") => {}
            _ => walker.warn(format!("cell {} has an unknown type", number + 1)),
        }
    }
    (front, walker.finish())
}

fn cells(notebook: &Value) -> Option<&Vec<Value>> {
    notebook["cells"].as_array().or_else(|| notebook["worksheets"][0]["cells"].as_array())
}

/// The language of the kernel, for code fences.
fn language(notebook: &Value) -> String {
    let metadata = &notebook["metadata"];
    let named =
        [&metadata["language_info"]["name"], &metadata["kernelspec"]["language"], &metadata["language"]];
    let name = named.into_iter().find_map(Value::as_str).unwrap_or("python");
    match name.to_lowercase().as_str() {
        "ipython" => "python".to_owned(),
        name => name.chars().filter(|c| !c.is_whitespace() && *c != '`').collect(),
    }
}

fn code_cell(walker: &mut Walker, cell: &Value, language: &str) {
    let source = if cell["source"].is_null() { &cell["input"] } else { &cell["source"] };
    let code = joined(source);
    let code = code.trim_matches('\n').trim_end();
    if !code.trim().is_empty() && !is_removed(cell, "input") {
        walker.block(BlockKind::Code, &fenced(magic(code).unwrap_or(language), code));
    }
    if is_removed(cell, "output") {
        return;
    }
    let outputs = cell["outputs"].as_array().into_iter().flatten();
    let printed: String =
        outputs.map(printed).filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n");
    let printed = shortened(&printed);
    if !printed.trim().is_empty() {
        walker.block(BlockKind::Code, &fenced("text", &printed));
    }
}

/// `%%bash` marks a cell in another language.
fn magic(code: &str) -> Option<&'static str> {
    let name = code.strip_prefix("%%")?.split_whitespace().next()?;
    ["bash", "sh", "html", "javascript", "js", "latex", "perl", "ruby", "sql", "r"]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(name))
}

/// The plain text of an output.
fn printed(output: &Value) -> String {
    let text = match output["output_type"].as_str() {
        Some("stream") => joined(&output["text"]),
        Some("execute_result" | "display_data" | "pyout") => {
            let data = output["data"].as_object();
            // The text of an image is only the name of the object that drew it.
            let is_picture = data.is_some_and(|data| data.keys().any(|kind| kind.starts_with("image/")));
            if is_picture || output["png"].is_string() {
                return String::new();
            }
            joined(data.map_or(&output["text"], |data| data.get("text/plain").unwrap_or(&Value::Null)))
        }
        Some("error" | "pyerr") => {
            let part = |name: &str| output[name].as_str().unwrap_or_default();
            format!("{}: {}", part("ename"), part("evalue"))
        }
        _ => String::new(),
    };
    without_colors(&text).trim_matches('\n').trim_end().to_owned()
}

/// Shortens long output to its first lines and `…`.
fn shortened(text: &str) -> String {
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        let room = LONGEST_OUTPUT.saturating_sub(out.len());
        if number == MOST_OUTPUT_LINES || room == 0 {
            out.push_str("…\n");
            break;
        }
        let end = line.floor_char_boundary(room);
        out.push_str(&line[..end]);
        out.push_str(if end < line.len() { "…\n" } else { "\n" });
    }
    out.trim_end().to_owned()
}

/// Removes the escape sequences for terminal colors.
fn without_colors(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        out.push_str(&rest[..at]);
        let sequence = &rest[at + 2..];
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).map_or(sequence.len(), |end| end + 1);
        rest = &sequence[end..];
    }
    out.push_str(rest);
    out
}

/// Whether Jupyter Book's tag `remove-<part>` is set, in either spelling (`-` or `_`).
fn is_removed(cell: &Value, part: &str) -> bool {
    let tags = cell["metadata"]["tags"].as_array().into_iter().flatten();
    tags.filter_map(Value::as_str).any(|tag| tag.replace('_', "-") == format!("remove-{part}"))
}

/// Text that may be stored as a list of lines.
fn joined(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

fn old_heading(cell: &Value) -> String {
    let level = cell["level"].as_u64().unwrap_or(1).clamp(1, 6);
    format!("{} {}", "#".repeat(level as usize), joined(&cell["source"]).replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(notebook: &Value, expected: &str) {
        let (_, mut parsed) = parse_notebook(&notebook.to_string());
        crate::keep_first_anchors(&mut parsed.sections);
        assert_eq!(crate::shown(&parsed), expected);
    }

    fn python(cells: Value) -> Value {
        json!({"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4})
    }

    #[test]
    fn text_code_and_output_are_read() {
        check(
            &python(json!([
                {"cell_type": "markdown", "source": ["# Load the Data\n", "\n", "First *read* it."]},
                {"cell_type": "code", "source": ["import csv\n", "if x:\n", "    read()"], "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["3 \u{1b}[31mrows\u{1b}[0m\n", "2 columns\n"]},
                    {"output_type": "execute_result", "data": {"text/html": "<table>", "text/plain": "42"}}
                ]},
                {"cell_type": "markdown", "source": "## Load the Data\n```\nleft open"},
                {"cell_type": "markdown", "source": "## What's next?\nMore."}
            ])),
            "# Load the Data #Load-the-Data\n\
             [Text] First read it.\n\
             [Code] ```python\nimport csv\nif x:\n    read()\n```\n\
             [Code] ```text\n3 rows\n2 columns\n42\n```\n\
             ## Load the Data\n\
             [Code] ```\nleft open\n```\n\
             ## What's next? #What's-next?\n\
             [Text] More.\n",
        );
    }

    #[test]
    fn images_and_removed_cells_are_skipped_and_errors_are_one_line() {
        check(
            &python(json!([
                {"cell_type": "markdown", "source": "![a](data:image/png;base64,AAAA) seen"},
                {"cell_type": "code", "source": "%%bash\nls", "outputs": [
                    {"output_type": "display_data", "data": {"image/png": "iVBOR", "text/plain": "<Figure>"}},
                    {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["long"]}
                ]},
                {"cell_type": "code", "source": "secret()", "metadata": {"tags": ["remove-cell"]}, "outputs": []},
                {"cell_type": "code", "source": "shown()", "metadata": {"tags": ["remove_output"]},
                 "outputs": [{"output_type": "stream", "text": "noise"}]}
            ])),
            "[Text] a seen\n[Code] ```bash\n%%bash\nls\n```\n[Code] ```text\nValueError: no\n```\n[Code] ```python\nshown()\n```\n",
        );
    }

    #[test]
    fn long_output_is_shortened() {
        let lines: String = (0..500).map(|number| format!("line {number}\n")).collect();
        let shown = shortened(&lines);
        assert!(shown.starts_with("line 0\n") && shown.ends_with("line 19\n…"), "{shown}");
        assert!(shortened(&"é".repeat(5_000)).len() < LONGEST_OUTPUT + 8);
    }

    #[test]
    fn old_notebooks_and_front_matter_are_read() {
        check(
            &json!({"worksheets": [{"cells": [
                {"cell_type": "heading", "level": 2, "source": ["Old"]},
                {"cell_type": "code", "input": "1", "language": "python", "outputs": [{"output_type": "pyout", "text": "1"}]}
            ]}], "nbformat": 3}),
            "## Old #Old\n[Code] ```python\n1\n```\n[Code] ```text\n1\n```\n",
        );
        let quarto = python(json!([{"cell_type": "raw", "source": "---\ntitle: Report\n---"}]));
        assert_eq!(parse_notebook(&quarto.to_string()).0.title.as_deref(), Some("Report"));
    }

    #[test]
    fn an_invalid_notebook_gives_a_warning() {
        for source in ["", "[]", "{\"cells\": 3}", "<html>", "{\"cells\": [{}, 1, null]}"] {
            let (_, parsed) = parse_notebook(source);
            assert!(parsed.sections.is_empty() && !parsed.warnings.is_empty(), "{source}");
        }
    }
}
