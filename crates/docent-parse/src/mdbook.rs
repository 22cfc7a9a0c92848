//! Features specific to mdBook: the table of contents in `SUMMARY.md`, and included files.
//!
//! Invariant: if an included file is missing, only its lines are lost, and a warning is produced.

use super::include::Includes;

/// A chapter listed in `SUMMARY.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chapter {
    /// The title in the table of contents.
    pub title: String,
    /// The file, relative to `SUMMARY.md`.
    pub path: String,
    /// The path of the top-level chapter that contains this one, or its own path at the top level.
    pub top: String,
}

/// The chapters of a book in reading order, without drafts that have no file.
pub fn parse_summary(source: &str) -> Vec<Chapter> {
    let mut chapters: Vec<Chapter> = Vec::new();
    let mut base_indent = None;
    for line in source.lines() {
        let indent = line.len() - line.trim_start().len();
        let Some((title, path)) = link(line) else { continue };
        let listed = line.trim_start().starts_with(['-', '*', '+']);
        let nested = listed && indent > *base_indent.get_or_insert(indent);
        let top = match chapters.last() {
            Some(previous) if nested => previous.top.clone(),
            _ => path.clone(),
        };
        chapters.push(Chapter { title, path, top });
    }
    chapters
}

/// Parses `[Title](path.md)` in a line of the summary.
fn link(line: &str) -> Option<(String, String)> {
    let open = line.find('[')?;
    let close = open + line[open..].find("](")?;
    let end = close + line[close..].find(')')?;
    let path = line[close + 2..end].trim().trim_start_matches("./");
    let title = line[open + 1..close].replace('`', "");
    (!path.is_empty() && !path.contains("://")).then(|| (title, path.to_owned()))
}

/// Replaces `{{#include file}}` and related directives with the file's lines; `load` returns the file.
pub fn expand_includes(
    source: &str,
    load: &mut dyn FnMut(&str) -> Option<String>,
    warnings: &mut Vec<String>,
) -> String {
    let mut expansion = Expansion { load, includes: Includes::default(), left_out: Vec::new() };
    let text = expansion.text(source);
    match expansion.left_out.as_slice() {
        [] => {}
        [one] => warnings.push(one.clone()),
        [first, rest @ ..] => warnings.push(format!("{first}, and {} more", rest.len())),
    }
    text
}

/// The state of an expansion.
struct Expansion<'load> {
    load: &'load mut dyn FnMut(&str) -> Option<String>,
    includes: Includes,
    /// Why files were not included.
    left_out: Vec<String>,
}

impl Expansion<'_> {
    fn text(&mut self, source: &str) -> String {
        let mut out = String::with_capacity(source.len());
        let mut rest = source;
        while let Some(at) = rest.find("{{#") {
            let Some(end) = rest[at..].find("}}").map(|end| at + end) else { break };
            // A backslash escapes the directive: it is shown, not expanded.
            if rest[..at].ends_with('\\') {
                out.push_str(&rest[..at - 1]);
                out.push_str(&rest[at..end + 2]);
            } else {
                out.push_str(&rest[..at]);
                out.push_str(&self.directive(rest[at + 3..end].trim()));
            }
            rest = &rest[end + 2..];
        }
        out.push_str(rest);
        out
    }

    fn directive(&mut self, directive: &str) -> String {
        let (name, argument) = directive.split_once(char::is_whitespace).unwrap_or((directive, ""));
        if !matches!(name, "include" | "rustdoc_include" | "playground") {
            return String::new(); // {{#title}} and others add no text.
        }
        let target = argument.split_whitespace().next().unwrap_or_default();
        let mut parts = target.split(':');
        let (path, text) = match self.includes.load(parts.next().unwrap_or_default(), self.load) {
            Ok(found) => found,
            Err(reason) => {
                self.left_out.push(reason.to_string());
                return String::new();
            }
        };
        let range: Vec<_> = parts.collect();
        let text = cut(&text, &range);
        if !path.ends_with(".md") {
            return text;
        }
        self.includes.enter(path);
        let text = self.text(&text);
        self.includes.leave();
        text
    }
}

/// Selects lines: `:5`, `:5:10`, `::10`, `:5:` by number, `:name` by `ANCHOR: name` comments.
fn cut(text: &str, range: &[&str]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let number = |text: &str| text.parse::<usize>().ok();
    let chosen: Vec<&str> = match range {
        [] => lines,
        [name] if !name.is_empty() && number(name).is_none() => anchored(&lines, name),
        [line] => {
            number(line).and_then(|line| lines.get(line.saturating_sub(1)).copied()).into_iter().collect()
        }
        [from, to, ..] => {
            let from = number(from).unwrap_or(1).saturating_sub(1).min(lines.len());
            let to = number(to).unwrap_or(lines.len()).clamp(from, lines.len());
            lines[from..to].to_vec()
        }
    };
    let is_marker = |line: &&str| !line.contains("ANCHOR: ") && !line.contains("ANCHOR_END: ");
    chosen.into_iter().filter(is_marker).collect::<Vec<_>>().join("\n")
}

fn anchored<'a>(lines: &[&'a str], name: &str) -> Vec<&'a str> {
    let ends = |line: &&&str, marker: &str| {
        line.split_once(marker).is_some_and(|(_, found)| found.split_whitespace().next() == Some(name))
    };
    lines
        .iter()
        .skip_while(|line| !ends(line, "ANCHOR: "))
        .skip(1)
        .take_while(|line| !ends(line, "ANCHOR_END: "))
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_gives_order_titles_and_top_level_chapters() {
        let chapters = parse_summary(
            "# Summary\n\n[Title](title.md)\n\n- [One `a`](one.md)\n    - [Deep](one/deep.md)\n- [Draft]()\n- [Two](two.md)\n",
        );
        let shown: Vec<_> = chapters.iter().map(|c| format!("{} {} {}", c.title, c.path, c.top)).collect();
        assert_eq!(
            shown,
            [
                "Title title.md title.md",
                "One a one.md one.md",
                "Deep one/deep.md one.md",
                "Two two.md two.md"
            ]
        );
    }

    fn include(source: &str) -> (String, Vec<String>) {
        let mut warnings = Vec::new();
        let mut load = |path: &str| match path {
            "a.rs" => Some("one\n// ANCHOR: x\ntwo\n// ANCHOR_END: x\nthree".to_owned()),
            "loop.md" => Some("{{#include loop.md}}".to_owned()),
            "deep/b.md" => Some("b {{#include c.md}}".to_owned()),
            "deep/c.md" => Some("c".to_owned()),
            _ => None,
        };
        (expand_includes(source, &mut load, &mut warnings), warnings)
    }

    #[test]
    fn includes_support_whole_files_lines_and_anchors() {
        assert_eq!(include("{{#include a.rs}}").0, "one\ntwo\nthree");
        assert_eq!(include("{{#rustdoc_include a.rs:x}}").0, "two");
        assert_eq!(include("{{#include a.rs:1}}").0, "one");
        assert_eq!(include("{{#include a.rs:3:}}").0, "two\nthree");
        assert_eq!(include("\\{{#include a.rs}}").0, "{{#include a.rs}}");
    }

    #[test]
    fn missing_files_are_combined_into_one_warning() {
        let (text, warnings) = include("a {{#include b.rs}} c {{#include d.rs}}");
        assert_eq!(text, "a  c ");
        assert_eq!(warnings, ["included file not found: b.rs, and 1 more"]);
    }

    #[test]
    fn a_file_that_includes_itself_gives_a_warning() {
        assert_eq!(include("{{#include loop.md}}").1, ["included file includes itself: loop.md"]);
    }

    #[test]
    fn names_in_an_included_file_are_relative_to_it() {
        assert_eq!(include("{{#include deep/b.md}}"), ("b c".to_owned(), Vec::new()));
    }

    #[test]
    fn files_that_include_each_other_many_times_do_not_explode() {
        // Ten files deep, a hundred includes each.
        let mut load = |path: &str| {
            let next = path.trim_end_matches(".md").parse::<usize>().unwrap_or_default() + 1;
            Some(format!("words {{{{#include {next}.md}}}} ").repeat(100))
        };
        let mut warnings = Vec::new();
        let text = expand_includes("{{#include 1.md}}", &mut load, &mut warnings);
        assert!(text.contains("words") && text.len() < 1 << 20, "{} bytes", text.len());
        assert!(warnings[0].starts_with("too many or too deeply nested includes"), "{warnings:?}");
    }
}
