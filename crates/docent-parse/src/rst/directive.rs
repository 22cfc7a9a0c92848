//! Explicit markup, which starts with two dots: directives, targets, footnotes and comments.
//!
//! Invariant: the name and options of a directive are never shown; its argument is shown only where the
//! published page shows it.

use super::lines::{self, dedented, indented_end};
use super::{Parser, Place, block};
use crate::fence::code;
use crate::table::records;

/// A directive as written.
struct Directive<'a> {
    argument: &'a str,
    /// Lines directly below the name, before any option.
    head: Vec<&'a str>,
    options: Vec<(&'a str, &'a str)>,
    content: Vec<&'a str>,
}

impl<'a> Directive<'a> {
    fn new(argument: &'a str, below: &[&'a str]) -> Self {
        let below = dedented(below);
        let end = block::paragraph_end(&below, 0);
        // A directive directly below the name is content.
        let end = below[..end].iter().position(|line| lines::is_directive(line)).unwrap_or(end);
        let options = below[..end].iter().position(|line| lines::field(line).is_some()).unwrap_or(end);
        Self {
            argument,
            head: below[..options].to_vec(),
            options: below[options..end].iter().filter_map(|line| lines::field(line)).collect(),
            content: below[end..].to_vec(),
        }
    }

    fn option(&self, name: &str) -> Option<&'a str> {
        self.options.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    /// The argument, joined across its lines.
    fn title(&self) -> String {
        let mut lines = vec![self.argument];
        lines.extend(&self.head);
        block::joined(&lines)
    }

    /// The content of a directive without an argument: the text after the name belongs to it.
    fn whole(&self) -> Vec<&'a str> {
        let mut lines = vec![self.argument];
        lines.extend(&self.head);
        lines.extend(&self.content);
        lines
    }

    /// The content of a directive whose argument is one word.
    fn body(&self) -> Vec<&'a str> {
        let mut lines = self.head.clone();
        lines.extend(&self.content);
        lines
    }
}

/// Directives that show no text on the page.
const SHOWS_NOTHING: [&str; 33] = [
    "toctree",
    "raw",
    "image",
    "meta",
    "index",
    "default-role",
    "role",
    "title",
    "sectnum",
    "tabularcolumns",
    "redirect-from",
    "sectionauthor",
    "codeauthor",
    "program",
    "currentmodule",
    "py:currentmodule",
    "graphviz",
    "digraph",
    "uml",
    "plantuml",
    "todo",
    "todolist",
    "testsetup",
    "testcleanup",
    "namespace",
    "cpp:namespace",
    "unicode",
    "date",
    "header",
    "footer",
    "target-notes",
    "video",
    "youtube",
];

impl Parser<'_> {
    /// Parses the explicit markup that starts at `at`; returns where it ends.
    pub(super) fn explicit(&mut self, lines: &[&str], at: usize, place: Place) -> usize {
        let text = lines[at][2..].trim_start();
        if text.is_empty() && lines.get(at + 1).is_none_or(|next| next.is_empty()) {
            return at + 1;
        }
        let end = indented_end(lines, at + 1);
        let below = &lines[at + 1..end];
        if let Some(target) = text.strip_prefix('_') {
            self.target(target);
        } else if let Some((label, note)) = text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            self.footnote(label, note, below, place);
            self.label = None;
        } else if let Some((name, argument)) = lines::directive(text) {
            self.directive(&name.to_lowercase(), &Directive::new(argument, below), place);
            self.label = None;
        }
        // Anything else is a comment or a substitution definition.
        end
    }

    /// A target shows nothing but gets an id, so that a heading with the same text gets a numbered one.
    fn target(&mut self, text: &str) {
        let name = match text.strip_prefix('`') {
            Some(quoted) => quoted.split_once('`').map(|(name, _)| name),
            None => text.split_once(": ").map(|(name, _)| name).or_else(|| text.strip_suffix(':')),
        };
        let Some(name) = name else { return };
        let id = self.anchors.next(name.trim_matches('_'), None);
        // A target without an address refers to what follows it.
        self.label = text.ends_with(':').then_some(id);
    }

    fn footnote(&mut self, label: &str, note: &str, below: &[&str], place: Place) {
        let is_citation = label.starts_with(|c: char| c.is_alphabetic());
        self.anchors.next(if is_citation { label } else { "" }, None);
        let mut body = vec![note];
        body.extend(dedented(below));
        if !label.starts_with(['#', '*']) {
            self.output.label(&format!("[{label}] "));
        }
        self.blocks(&body, place.inside());
        self.output.close_term();
    }

    fn directive(&mut self, name: &str, directive: &Directive<'_>, place: Place) {
        match name {
            name if SHOWS_NOTHING.contains(&name) => {}
            "contents" => {
                let title = directive.title();
                self.anchors.next(if title.is_empty() { "contents" } else { &title }, None);
            }
            "highlight" => self.highlight = language(directive.argument).to_owned(),
            "include" => self.include(directive, place),
            "literalinclude" => self.literal_include(directive),
            "code-block" | "code" | "sourcecode" | "code-cell" | "jupyter-execute" | "highlightlang" => {
                self.code(directive.argument, directive);
            }
            "console" | "prompt" | "bash" => self.code(name, directive),
            "doctest" | "testcode" | "ipython" => self.code("python", directive),
            "parsed-literal" | "testoutput" | "productionlist" => self.literal(directive),
            "math" => self.output.code("", &dedented(&directive.whole())),
            "code-tab" => {
                let (language, title) =
                    directive.argument.split_once(' ').unwrap_or((directive.argument, ""));
                self.add_label(title);
                self.code(language, directive);
            }
            "list-table" => self.list_table(directive, place),
            "csv-table" => self.csv_table(directive, place),
            "figure" => self.figure(directive, place),
            // The source of a diagram, since only a script can draw it.
            "mermaid" => self.code("mermaid", directive),
            "only" | "ifconfig" => self.blocks(&directive.content, place.through()),
            "container" | "tabs" | "tab-set" | "compound" | "hlist" | "grid" | "rst-class" | "cssclass"
            | "glossary" | "autosummary" | "tab-set-code" => self.blocks(&directive.content, place.inside()),
            "epigraph" | "highlights" | "pull-quote" | "centered" | "rubric" => {
                self.blocks(&directive.whole(), place.inside());
            }
            "tab" | "group-tab" | "tab-item" | "dropdown" | "details" | "collapse" | "topic" | "sidebar"
            | "table" | "grid-item-card" | "card" => {
                self.add_label(&directive.title());
                self.blocks(&directive.content, place.inside());
            }
            "versionadded" => self.version("New in version", directive, place),
            "versionchanged" => self.version("Changed in version", directive, place),
            "versionremoved" => self.version("Removed in version", directive, place),
            "deprecated" => self.version("Deprecated since version", directive, place),
            "admonition" => {
                let title = self.words(&directive.title());
                self.note(&title, &directive.content, place);
            }
            name if let Some(title) = note_title(name) => self.note(title, &directive.whole(), place),
            // Code that an extension also runs, such as `click:example`; `click:run` shows only what it prints.
            name if name.ends_with(":example") => self.code(directive.argument, directive),
            name if name.ends_with(":run") => {}
            name if is_signature(name) => self.signature(directive, place),
            // Without content, it only marks a place for references: `.. setting:: NAME` above a heading.
            _ if directive.body().iter().all(|line| line.is_empty()) => {}
            _ => {
                self.warn(format!("unknown directive; only its text is kept: {name}"));
                let argument = self.words(&directive.title());
                self.output.paragraph(&argument);
                self.blocks(&directive.content, place.inside());
            }
        }
    }

    /// An image with its caption, which is the first paragraph of the content; without one, its description.
    fn figure(&mut self, directive: &Directive<'_>, place: Place) {
        let described = self.words(directive.option("alt").unwrap_or_default());
        let lines = &directive.content;
        let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
        let caption = self.words(&block::joined(&lines[first..block::paragraph_end(lines, first)]));
        if caption.is_empty() {
            self.output.paragraph(&described);
        }
        self.blocks(&directive.content, place.inside());
        self.output.figure(if caption.is_empty() { &described } else { &caption }, directive.argument.trim());
    }

    /// Adds a line that labels what follows, such as `Linux:`.
    fn add_label(&mut self, title: &str) {
        let words = self.words(title);
        if !words.is_empty() {
            self.output.paragraph(&format!("{}:", words.trim_end_matches(':')));
        }
    }

    fn note(&mut self, title: &str, body: &[&str], place: Place) {
        let lists = self.output.open_note(title);
        self.blocks(body, place.inside());
        self.output.close_note(lists);
    }

    fn version(&mut self, said: &str, directive: &Directive<'_>, place: Place) {
        let (version, text) = directive.argument.split_once(' ').unwrap_or((directive.argument, ""));
        let mut body = vec![text];
        body.extend(directive.body());
        self.output.term(&format!("{said} {version}"));
        self.blocks(&body, place.inside());
        self.output.close_term();
    }

    /// The names of an API, each on its own line, and their description.
    fn signature(&mut self, directive: &Directive<'_>, place: Place) {
        let names = [directive.argument].into_iter().chain(directive.head.iter().copied());
        for name in names.map(str::trim).filter(|name| !name.is_empty()) {
            self.output.paragraph(&code(name));
        }
        self.blocks(&directive.content, place.inside());
    }

    fn code(&mut self, written: &str, directive: &Directive<'_>) {
        if let Some(caption) = directive.option("caption") {
            self.add_label(caption);
        }
        let language = if written.is_empty() { self.highlight.clone() } else { language(written).to_owned() };
        self.output.code(&language, &dedented(&directive.body()));
    }

    /// Code in which substitutions are applied.
    fn literal(&mut self, directive: &Directive<'_>) {
        let mut text = dedented(&directive.whole()).join("\n");
        for (name, value) in &self.substitutions {
            text = text.replace(&format!("|{name}|"), value);
        }
        self.output.code("", &text.lines().collect::<Vec<_>>());
    }

    fn include(&mut self, directive: &Directive<'_>, place: Place) {
        let name = directive.argument;
        // Files that come with docutils only define characters.
        if name.starts_with('<') {
            return;
        }
        let Some((path, text)) = self.loaded(name) else { return };
        let text = selected(&text, directive);
        if directive.option("literal").is_some() || directive.option("code").is_some() {
            let language = language(directive.option("code").unwrap_or_default());
            return self.output.code(language, &text.lines().collect::<Vec<_>>());
        }
        self.includes.enter(path);
        self.text(&text, place.through());
        self.includes.leave();
    }

    fn literal_include(&mut self, directive: &Directive<'_>) {
        let Some((_, text)) = self.loaded(directive.argument) else { return };
        if let Some(caption) = directive.option("caption") {
            self.add_label(caption);
        }
        let text = lines::spaced(&selected(&text, directive)).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let language = language(directive.option("language").unwrap_or_default()).to_owned();
        self.output.code(&language, &dedented(&lines));
    }

    fn loaded(&mut self, name: &str) -> Option<(String, String)> {
        match self.includes.load(name, self.load) {
            Ok(found) => Some(found),
            Err(reason) => {
                self.warn(reason.to_string());
                None
            }
        }
    }

    /// Adds a warning once.
    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// A table written as a list of rows, each a list of cells.
    fn list_table(&mut self, directive: &Directive<'_>, place: Place) {
        self.add_label(&directive.title());
        let owned = |cell: Vec<&str>| cell.into_iter().map(str::to_owned).collect();
        let rows =
            items(&directive.content).iter().map(|row| items(row).into_iter().map(owned).collect()).collect();
        self.table(rows, headers(directive), place);
    }

    fn csv_table(&mut self, directive: &Directive<'_>, place: Place) {
        self.add_label(&directive.title());
        let text = match directive.option("file") {
            Some(file) => self.loaded(file).map(|(_, text)| text).unwrap_or_default(),
            None => directive.content.join("\n"),
        };
        let separator = match directive.option("delim") {
            Some("tab") => '\t',
            Some("space") => ' ',
            delimiter => delimiter.and_then(|text| text.chars().next()).unwrap_or(','),
        };
        let mut rows = records(&text, separator);
        let mut headers = headers(directive);
        if let Some(header) = directive.option("header") {
            let mut titles = records(header, separator);
            headers += titles.len();
            titles.append(&mut rows);
            rows = titles;
        }
        let cell = |value: String| value.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
        let rows = rows.into_iter().map(|record| record.into_iter().map(cell).collect()).collect();
        self.table(rows, headers, place);
    }
}

/// The lines of each item of a bullet list.
fn items<'a>(lines: &[&'a str]) -> Vec<Vec<&'a str>> {
    let lines = dedented(lines);
    let mut items = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some((_, text)) = lines::bullet(lines[at]) else {
            at += 1;
            continue;
        };
        let (body, end) = lines::item(&lines, at, text);
        items.push(body);
        at = end;
    }
    items
}

fn headers(directive: &Directive<'_>) -> usize {
    directive.option("header-rows").and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The part of an included file that the options select.
fn selected(text: &str, directive: &Directive<'_>) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let mark = |name: &str| directive.option(name).filter(|mark| !mark.is_empty());
    let place = |name: &str, length: usize| {
        let number: isize = directive.option(name)?.parse().ok()?;
        let from_end = length.saturating_sub(number.unsigned_abs());
        Some(if number < 0 { from_end } else { number.unsigned_abs().min(length) })
    };
    let (first, last) = (place("start-line", lines.len()), place("end-line", lines.len()));
    lines.truncate(last.unwrap_or(lines.len()));
    lines.drain(..first.unwrap_or(0).min(lines.len()));
    if let Some(name) = mark("pyobject") {
        lines = python_object(&lines, name);
    }
    for (name, is_shown) in [("start-at", true), ("start-after", false)] {
        if let Some(at) = mark(name).and_then(|mark| lines.iter().position(|line| line.contains(mark))) {
            lines.drain(..if is_shown { at } else { at + 1 });
        }
    }
    for (name, is_shown) in [("end-at", true), ("end-before", false)] {
        if let Some(at) = mark(name).and_then(|mark| lines.iter().position(|line| line.contains(mark))) {
            lines.truncate(if is_shown { at + 1 } else { at });
        }
    }
    let Some(wanted) = directive.option("lines") else { return lines.join("\n") };
    let mut out: Vec<&str> = Vec::new();
    for part in wanted.split(',') {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let first = first.trim().parse().unwrap_or(1_usize).max(1);
        let last = last.trim().parse().unwrap_or(lines.len()).min(lines.len());
        if out.len() < lines.len() {
            out.extend(lines.get(first - 1..last).unwrap_or_default());
        }
    }
    out.join("\n")
}

/// The lines of `Class.method` in a Python file, with its decorators; empty if it is not found.
fn python_object<'a>(lines: &[&'a str], name: &str) -> Vec<&'a str> {
    let mut found = lines.to_vec();
    for part in name.split('.') {
        let is_definition = |line: &str| {
            let rest = line.trim_start();
            let rest = rest.strip_prefix("async ").unwrap_or(rest);
            let named = rest.strip_prefix("def ").or_else(|| rest.strip_prefix("class "));
            let after = named.and_then(|named| named.trim_start().strip_prefix(part));
            after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        };
        let Some(at) = found.iter().position(|line| is_definition(line)) else { return Vec::new() };
        let depth = lines::indent(found[at]);
        let above = found[..at].iter().rev().take_while(|line| line.trim_start().starts_with('@')).count();
        let inside = |line: &&&str| line.trim().is_empty() || lines::indent(line) > depth;
        let below = found[at + 1..].iter().take_while(inside).count();
        found = found[at - above..at + 1 + below].to_vec();
    }
    while found.last().is_some_and(|line| line.trim().is_empty()) {
        found.pop();
    }
    found
}

fn language(written: &str) -> &str {
    match written.split_whitespace().next().unwrap_or_default() {
        "none" | "default" => "",
        name => name,
    }
}

fn note_title(name: &str) -> Option<&'static str> {
    Some(match name {
        "note" => "Note",
        "warning" => "Warning",
        "tip" => "Tip",
        "important" => "Important",
        "caution" => "Caution",
        "danger" => "Danger",
        "error" => "Error",
        "attention" => "Attention",
        "hint" => "Hint",
        "seealso" => "See also",
        _ => return None,
    })
}

/// Whether a directive describes part of an API.
fn is_signature(name: &str) -> bool {
    let (domain, name) = name.rsplit_once(':').unwrap_or(("", name));
    const NAMES: [&str; 27] = [
        "function",
        "class",
        "method",
        "classmethod",
        "staticmethod",
        "attribute",
        "property",
        "data",
        "exception",
        "decorator",
        "decoratormethod",
        "module",
        "option",
        "cmdoption",
        "envvar",
        "describe",
        "object",
        "confval",
        "macro",
        "type",
        "struct",
        "union",
        "enum",
        "enumerator",
        "var",
        "member",
        "concept",
    ];
    !domain.is_empty() || NAMES.contains(&name) || name.starts_with("auto") || name.starts_with("doxygen")
}
