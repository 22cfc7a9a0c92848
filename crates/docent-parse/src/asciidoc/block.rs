//! Blocks: sections, paragraphs and delimited blocks.
//!
//! Invariant: every line belongs to exactly one element, and each element consumes at least one line.

use super::lines::{
    closing, is_delimiter, is_rule, marker, one_line_title, starts_block, table_separator, underlined,
};
use super::style::Style;
use super::{Parser, table};
use crate::document::BlockKind;
use crate::table::rendered;

/// Blocks nested more deeply are read as plain text, so that no page can overflow the stack.
const DEEPEST: usize = 32;

impl Parser<'_> {
    /// Parses a body, element by element.
    pub(super) fn blocks(&mut self, lines: &[String], depth: usize) {
        if depth > DEEPEST {
            let words = self.joined(lines, false);
            return self.output.paragraph(&words);
        }
        let mut at = 0;
        while at < lines.len() {
            let line = lines[at].as_str();
            if line.trim().is_empty() || self.described(line) {
                at += 1;
            } else {
                at = self.element(lines, at, depth).max(at + 1);
                self.style = Style::default();
            }
        }
    }

    /// Handles a line with attributes of the next block or of the document; it produces no text. Returns
    /// false for any other line.
    pub(super) fn described(&mut self, line: &str) -> bool {
        if self.attributes.entry(line) {
            return true;
        }
        if line.starts_with('[') {
            let line = self.attributes.substituted(line);
            return self.style.add(&line);
        }
        if let Some(title) = line.strip_prefix('.')
            && !title.starts_with(['.', ' ', '\t'])
            && !title.is_empty()
        {
            self.style.title = title.to_owned();
            return true;
        }
        false
    }

    /// Parses the element that starts at `at`; returns where it ends.
    pub(super) fn element(&mut self, lines: &[String], at: usize, depth: usize) -> usize {
        let style = std::mem::take(&mut self.style);
        if let Some(id) = &style.id {
            self.ids.insert(id.clone());
            if !style.title.is_empty() {
                let title = self.words(&style.title);
                self.captions.push((id.clone(), title));
            }
        }
        let line = lines[at].as_str();
        if let Some(end) = self.section(lines, at, &style) {
            return end;
        }
        if is_rule(line) {
            return at + 1;
        }
        if line.starts_with("//") && !line.starts_with("///") {
            return at + 1;
        }
        if let Some(separator) = table_separator(line) {
            let end = closing(lines, at);
            self.caption(&style);
            self.table(&lines[at + 1..end], separator, &style);
            return end + 1;
        }
        if is_delimiter(line) {
            return self.delimited(lines, at, &style, depth);
        }
        if let Some(end) = self.block_macro(lines, at, &style) {
            return end;
        }
        if marker(line).is_some() {
            self.caption(&style);
            return self.list(lines, at, depth);
        }
        self.paragraph(lines, at, &style)
    }

    /// `== Title`, or a title with an underline.
    fn section(&mut self, lines: &[String], at: usize, style: &Style) -> Option<usize> {
        let line = lines[at].as_str();
        let (level, title, end) = match one_line_title(line) {
            Some((level, title)) => (level, title, at + 1),
            None => {
                let level = underlined(line, lines.get(at + 1)?)?;
                (level, line.trim(), at + 2)
            }
        };
        let is_document = level == 0 && self.title.is_none() && self.output.is_empty();
        self.heading(level, title, style, is_document);
        Some(if is_document { self.header(lines, end) } else { end })
    }

    /// The author, the revision and attributes follow the title, up to a blank line.
    fn header(&mut self, lines: &[String], at: usize) -> usize {
        let end = (at..lines.len()).find(|next| lines[*next].trim().is_empty()).unwrap_or(lines.len());
        for (number, line) in lines[at..end].iter().enumerate() {
            let is_author = number < 2 && !line.starts_with([':', '[', '=']);
            if !self.attributes.entry(line) && !line.starts_with("//") && !is_author {
                return at + number;
            }
        }
        end
    }

    fn delimited(&mut self, lines: &[String], at: usize, style: &Style, depth: usize) -> usize {
        let line = lines[at].as_str();
        let end = closing(lines, at);
        let body = &lines[at + 1..end.min(lines.len())];
        let sign = line.chars().next().unwrap_or(' ');
        if sign == '/' {
            return end + 1;
        }
        if sign == '`' {
            self.caption(style);
            self.code(line.trim_matches('`').trim(), body, style);
            return end + 1;
        }
        if let Some(note) = note_title(&style.name) {
            let lists = self.output.open_note(note);
            self.caption(style);
            self.blocks(body, depth + 1);
            self.output.close_note(lists);
            return end + 1;
        }
        match (sign, style.name.as_str()) {
            ('+', "stem" | "latexmath" | "asciimath") => self.code("", body, style),
            // Raw HTML is skipped.
            ('+', _) => {}
            ('-' | '.', _) if line.len() >= 4 => {
                self.caption(style);
                self.code(self.language(style, sign).as_str(), body, style);
            }
            ('-', "source" | "listing") => self.code(self.language(style, '-').as_str(), body, style),
            ('_', "verse") => {
                self.caption(style);
                let text: Vec<String> = body.iter().map(|line| self.words(line)).collect();
                self.output.paragraph(&text.join("\n"));
            }
            _ => {
                self.caption(style);
                self.blocks(body, depth + 1);
                self.attribution(style);
            }
        }
        end + 1
    }

    fn attribution(&mut self, style: &Style) {
        if style.name == "quote" && !style.values.is_empty() {
            let who: Vec<String> = style.values.iter().map(|value| self.words(value)).collect();
            self.output.paragraph(&format!("— {}", who.join(", ")));
        }
    }

    /// Writes the title of a block as a label before it.
    fn caption(&mut self, style: &Style) {
        if !style.title.is_empty() {
            let words = self.words(&style.title);
            let sign = if words.ends_with(['.', ':', '?', '!']) { "" } else { ":" };
            self.output.paragraph(&format!("{words}{sign}"));
        }
    }

    fn language(&self, style: &Style, sign: char) -> String {
        let is_source = style.name == "source" || style.name.is_empty() && !style.values.is_empty();
        if is_source && sign == '-' || style.name == "source" {
            let own = style.values.first().map(String::as_str).or_else(|| style.get("language"));
            return own.or_else(|| self.attributes.get("source-language")).unwrap_or_default().to_owned();
        }
        String::new()
    }

    pub(super) fn code(&mut self, language: &str, body: &[String], style: &Style) {
        let substituted =
            style.get("subs").is_some_and(|subs| subs.contains("attributes") || subs == "normal");
        let lines: Vec<String> = body
            .iter()
            .map(|line| {
                let line = callouts(line);
                if substituted { self.attributes.substituted(&line) } else { line }
            })
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let language: String = language.chars().filter(|c| !c.is_whitespace() && *c != '`').collect();
        self.output.code(&language, &lines);
    }

    fn table(&mut self, lines: &[String], separator: char, style: &Style) {
        let (rows, headers) = table::rows(lines, separator, style);
        let cells: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| self.cell(cell)).collect()).collect();
        self.output.whole(BlockKind::Table, &rendered(&cells, headers));
    }

    fn cell(&mut self, text: &str) -> String {
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && *line != "+" && !is_delimiter(line));
        let text = lines.collect::<Vec<_>>().join(" ");
        self.words(&text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// `name::target[text]` on its own line.
    fn block_macro(&mut self, lines: &[String], at: usize, style: &Style) -> Option<usize> {
        let line = lines[at].as_str();
        let (name, rest) = line.split_once("::")?;
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let (_, text) =
            rest.strip_suffix(']').filter(|_| is_name && !rest.starts_with(' '))?.split_once('[')?;
        match name {
            // An image shows its title, or else its alt text.
            "image" if style.title.is_empty() => {
                let shown = text.split(',').next().unwrap_or_default().trim_matches('"');
                if !shown.contains('=') {
                    let words = self.words(shown);
                    self.output.paragraph(&words);
                    self.output.figure(&words, rest.split('[').next().unwrap_or_default());
                }
            }
            "image" => {
                self.caption(style);
                let words = self.words(&style.title);
                self.output.figure(&words, rest.split('[').next().unwrap_or_default());
            }
            "video" | "audio" => self.caption(style),
            "toc" => {}
            _ => self.warn(format!("unknown block macro: {name}")),
        }
        Some(at + 1)
    }

    fn paragraph(&mut self, lines: &[String], at: usize, style: &Style) -> usize {
        let end = (at + 1..lines.len())
            .find(|next| {
                let line = lines[*next].as_str();
                line.trim().is_empty() || starts_block(line) || (line == "+" && at > 0)
            })
            .unwrap_or(lines.len());
        let body = &lines[at..end];
        let is_literal = lines[at].starts_with([' ', '\t']) || style.name == "literal";
        if matches!(style.name.as_str(), "source" | "listing") || is_literal && style.name != "normal" {
            self.caption(style);
            let indent = body.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
            let body: Vec<String> =
                body.iter().map(|line| line.get(indent..).unwrap_or("").to_owned()).collect();
            self.code(self.language(style, '-').as_str(), &body, style);
            return end;
        }
        if matches!(style.name.as_str(), "comment" | "pass") {
            return end;
        }
        self.caption(style);
        let label = lines[at].split_once(": ").and_then(|(name, text)| Some((note_title(name)?, text)));
        let note = label.map(|(title, _)| title).or_else(|| note_title(&style.name));
        let mut body = body.to_vec();
        if let Some((_, text)) = label {
            body[0] = text.to_owned();
        }
        let breaks = style.has("hardbreaks") || style.name == "verse";
        let words = self.joined(&body, breaks);
        match note {
            Some(title) => {
                let lists = self.output.open_note(title);
                self.output.paragraph(&words);
                self.output.close_note(lists);
            }
            None => self.output.paragraph(&words),
        }
        self.attribution(style);
        end
    }

    /// The text of a paragraph. Lines that end with ` +` keep their line break; with `breaks`, all lines do.
    pub(super) fn joined(&mut self, lines: &[String], breaks: bool) -> String {
        let mut text = String::new();
        for line in lines
            .iter()
            .map(|line| line.trim())
            .filter(|line| !line.starts_with("//") || line.starts_with("///"))
        {
            let (line, ends) = line.strip_suffix(" +").map_or((line, breaks), |line| (line, true));
            text.push_str(line);
            text.push(if ends { '\n' } else { ' ' });
        }
        self.words(text.trim()).replace(" \n", "\n")
    }
}

fn note_title(name: &str) -> Option<&'static str> {
    Some(match name {
        "NOTE" => "Note",
        "TIP" => "Tip",
        "IMPORTANT" => "Important",
        "CAUTION" => "Caution",
        "WARNING" => "Warning",
        _ => return None,
    })
}

/// Shows `// <1>` at the end of a line of code as `(1)`.
fn callouts(line: &str) -> String {
    let mut rest = line;
    let mut numbers = Vec::new();
    while let Some(open) = rest.strip_suffix('>').and_then(|inside| Some((inside, inside.rfind('<')?))) {
        let number = open.0[open.1 + 1..].trim_matches(['!', '-']);
        if number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) || number.len() > 2 {
            break;
        }
        numbers.insert(0, format!("({number})"));
        rest = rest[..open.1].trim_end();
    }
    if numbers.is_empty() {
        return line.to_owned();
    }
    let code = ["//", "#", "--", ";;", "%"].iter().find_map(|sign| rest.strip_suffix(sign)).unwrap_or(rest);
    format!("{} {}", code.trim_end(), numbers.join(" "))
}
