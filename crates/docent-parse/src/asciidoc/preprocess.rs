//! Expands included files and evaluates conditions before the lines are parsed.
//!
//! Invariant: afterwards no include directive is left, and the lines of conditions that are false are gone.

use super::attributes::Attributes;
use crate::include::Includes;

/// Expands includes and evaluates conditions.
pub(super) struct Preprocessor<'load> {
    pub(super) load: &'load mut dyn FnMut(&str) -> Option<String>,
    pub(super) attributes: Attributes,
    pub(super) includes: Includes,
    pub(super) warnings: Vec<String>,
    pub(super) lines: Vec<String>,
    /// Files that are included as content: as a whole, and not as code.
    pub(super) whole: Vec<String>,
    /// Whether each condition around the current line is true.
    conditions: Vec<bool>,
    /// The delimiter of the verbatim block around the line; inside it, `:name:` does not set an attribute.
    verbatim: Option<String>,
}

impl<'load> Preprocessor<'load> {
    pub(super) fn new(load: &'load mut dyn FnMut(&str) -> Option<String>) -> Self {
        Self {
            load,
            attributes: Attributes::default(),
            includes: Includes::default(),
            warnings: Vec::new(),
            lines: Vec::new(),
            whole: Vec::new(),
            conditions: Vec::new(),
            verbatim: None,
        }
    }

    /// Processes the lines of a file.
    pub(super) fn text(&mut self, source: &str) {
        let outside = self.conditions.len();
        for line in source.lines() {
            self.line(line.trim_end());
        }
        if self.conditions.len() > outside {
            self.warn("a conditional (ifdef, ifndef or ifeval) is never closed".to_owned());
        }
        self.conditions.truncate(outside);
    }

    fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix('\\')
            && (directive(rest).is_some_and(|(name, ..)| is_directive(name)))
        {
            return self.push(rest);
        }
        match directive(line) {
            Some(("endif", ..)) => drop(self.conditions.pop()),
            Some((name @ ("ifdef" | "ifndef" | "ifeval"), target, text)) => {
                let holds = match name {
                    "ifdef" => self.is_defined(target),
                    "ifndef" => !self.is_defined(target),
                    _ => self.evaluates(text),
                };
                match text {
                    // `ifdef::name[text]` is a single-line conditional.
                    text if !text.is_empty() && name != "ifeval" => {
                        if holds {
                            self.push(text);
                        }
                    }
                    _ => self.conditions.push(holds),
                }
            }
            Some(("include", target, options)) => {
                if self.shows() {
                    self.include(target, options);
                }
            }
            _ => self.push(line),
        }
    }

    fn shows(&self) -> bool {
        self.conditions.iter().all(|holds| *holds)
    }

    fn push(&mut self, line: &str) {
        if !self.shows() {
            return;
        }
        match &self.verbatim {
            Some(delimiter) if delimiter == line => self.verbatim = None,
            Some(_) => {}
            None if is_verbatim(line) => self.verbatim = Some(line.to_owned()),
            None => drop(self.attributes.entry(line)),
        }
        self.lines.push(line.to_owned());
    }

    fn is_defined(&self, target: &str) -> bool {
        if target.contains('+') {
            return target.split('+').all(|name| self.attributes.is_set(name));
        }
        target.split(',').any(|name| self.attributes.is_set(name))
    }

    /// Evaluates `"{a}" == "b"`. A comparison that cannot be parsed counts as true.
    fn evaluates(&mut self, text: &str) -> bool {
        let text = self.attributes.substituted(text);
        let found = ["==", "!=", ">=", "<=", ">", "<"]
            .into_iter()
            .find_map(|sign| text.split_once(sign).map(|(left, right)| (left, sign, right)));
        let Some((left, sign, right)) = found else { return true };
        let [left, right] = [left, right].map(|side| side.trim().trim_matches(['"', '\'']).to_owned());
        let order = match (left.parse::<f64>(), right.parse::<f64>()) {
            (Ok(left), Ok(right)) => left.total_cmp(&right),
            _ => left.cmp(&right),
        };
        match sign {
            "==" => order.is_eq(),
            "!=" => order.is_ne(),
            ">=" => order.is_ge(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            _ => order.is_lt(),
        }
    }

    fn include(&mut self, target: &str, options: &str) {
        let target = self.attributes.substituted(target);
        if target.contains("://") {
            return self.warn(format!("includes from URLs are not supported: {target}"));
        }
        let (path, text) = match self.includes.load(&target, self.load) {
            Ok(found) => found,
            Err(_) if options.contains("optional") => return,
            Err(reason) => return self.warn(reason.to_string()),
        };
        let is_part = ["tag", "tags", "lines"].iter().any(|name| option(options, name).is_some());
        if !is_part && self.verbatim.is_none() {
            self.whole.push(path.clone());
        }
        let text = selected(&text, options);
        let offset = option(options, "leveloffset").unwrap_or_default();
        let before = self.attributes.get("leveloffset").unwrap_or("0").to_owned();
        if !offset.is_empty() {
            let offset = super::shifted(&before, &offset);
            self.lines.push(format!(":leveloffset: {offset}"));
            self.attributes.set("leveloffset", &offset.to_string());
        }
        self.includes.enter(path);
        self.text(&text);
        self.includes.leave();
        if !offset.is_empty() {
            self.lines.push(format!(":leveloffset: {before}"));
            self.attributes.set("leveloffset", &before);
        }
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

fn is_directive(name: &str) -> bool {
    matches!(name, "include" | "ifdef" | "ifndef" | "ifeval" | "endif")
}

/// `name::target[text]`
fn directive(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.split_once("::")?;
    let (target, text) = rest.strip_suffix(']')?.split_once('[')?;
    is_directive(name).then(|| (name, target.trim(), text.trim()))
}

/// `----`, `....`, `++++`, `////` or a fence.
pub(super) fn is_verbatim(line: &str) -> bool {
    let Some(sign) = line.chars().next() else { return false };
    if sign == '`' {
        return line.starts_with("```");
    }
    matches!(sign, '-' | '.' | '+' | '/') && line.len() >= 4 && line.chars().all(|c| c == sign)
}

/// The value of `name=value` in the options of an include.
fn option(options: &str, name: &str) -> Option<String> {
    let start = options.match_indices(name).find(|(at, _)| {
        options[at + name.len()..].starts_with('=')
            && !options[..*at].ends_with(|c: char| c.is_alphanumeric())
    })?;
    let value = &options[start.0 + name.len() + 1..];
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => value.split(',').next(),
    };
    value.map(|value| value.trim().to_owned())
}

/// The lines that the options select, without tag directives.
fn selected(text: &str, options: &str) -> String {
    let tags = option(options, "tag").or_else(|| option(options, "tags"));
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<&str> = match (tags, option(options, "lines")) {
        (Some(tags), _) => tagged(&lines, &tags),
        (None, Some(wanted)) => numbered(&lines, &wanted),
        (None, None) => lines.into_iter().filter(|line| mark(line).is_none()).collect(),
    };
    if let Some(indent) = option(options, "indent").and_then(|indent| indent.parse::<usize>().ok()) {
        let common = out.iter().filter(|line| !line.trim().is_empty());
        let common = common.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
        let prefix = " ".repeat(indent.min(40));
        return out.iter().map(|line| format!("{prefix}{}\n", line.get(common..).unwrap_or(""))).collect();
    }
    out.push("");
    out.join("\n")
}

fn tagged<'a>(lines: &[&'a str], tags: &str) -> Vec<&'a str> {
    let wanted: Vec<&str> = tags.split([';', ',']).map(str::trim).collect();
    let mut open: Vec<&str> = Vec::new();
    let mut out = Vec::new();
    for line in lines {
        match mark(line) {
            Some((name, true)) => open.push(name),
            Some((name, false)) => open.retain(|own| *own != name),
            None => {
                let excluded =
                    open.iter().any(|name| wanted.iter().any(|own| own.strip_prefix('!') == Some(name)));
                let all =
                    wanted.iter().any(|own| own.starts_with('*') || *own == "!" || own.starts_with('!'));
                if !excluded && (all || open.iter().any(|name| wanted.contains(name))) {
                    out.push(*line);
                }
            }
        }
    }
    out
}

/// `tag::name[]` opens a tagged region of a file, `end::name[]` closes it.
fn mark(line: &str) -> Option<(&str, bool)> {
    let (rest, opens) = match line.find("tag::") {
        Some(at) => (&line[at + 5..], true),
        None => (&line[line.find("end::")? + 5..], false),
    };
    let (name, _) = rest.split_once("[]")?;
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, opens))
}

/// `1..3;7` or `5..-1`
fn numbered<'a>(lines: &[&'a str], wanted: &str) -> Vec<&'a str> {
    let mut out = Vec::new();
    for part in wanted.split([';', ',']) {
        let (first, last) = part.trim().split_once("..").unwrap_or((part.trim(), part.trim()));
        let first = first.parse::<usize>().unwrap_or(1).max(1);
        let last = last.parse::<usize>().unwrap_or(lines.len()).min(lines.len());
        if out.len() <= lines.len() {
            out.extend(lines.get(first - 1..last).unwrap_or_default());
        }
    }
    out
}
