//! Reduces inline markup to text; code keeps its backticks.
//!
//! Invariant: the search for a closing mark is bounded, so that no paragraph takes quadratic time.

use crate::fence::code;
use crate::references::References;

/// Maximum distance between an opening and its closing mark.
const REACH: usize = 2_000;

/// The text of inline markup whose attributes are already substituted. Ids it defines are added to `ids`.
pub(super) fn words(text: &str, references: &References<'_>, ids: &mut Vec<String>) -> String {
    let out = String::with_capacity(text.len());
    let mut reader = Reader { text, at: 0, out, closers: Vec::new(), references, ids };
    while reader.at < text.len() {
        reader.step();
    }
    reader.out
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    out: String,
    /// The positions and lengths of the closing marks of open markup.
    closers: Vec<(usize, usize)>,
    references: &'a References<'a>,
    ids: &'a mut Vec<String>,
}

impl<'a> Reader<'a> {
    fn step(&mut self) {
        if let Some(found) = self.closers.iter().position(|(at, _)| *at == self.at) {
            self.at += self.closers.swap_remove(found).1;
            return;
        }
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return };
        let understood = match first {
            '\\' => self.escaped(rest),
            '[' => self.bracket(rest),
            '<' => self.reference(rest),
            '(' => self.index_term(rest),
            '+' => self.passed(rest),
            '`' => self.monospaced(rest),
            '*' | '_' | '#' => self.marked(rest, first),
            '^' | '~' => self.raised(rest, first),
            '"' | '\'' => self.quoted(rest, first),
            c if c.is_ascii_lowercase() && !self.is_in_word() => self.macro_call(rest),
            _ => false,
        };
        if !understood && !self.closers.iter().any(|(at, _)| *at == self.at) {
            self.out.push(first);
            self.at += first.len_utf8();
        }
    }

    fn is_in_word(&self) -> bool {
        self.text[..self.at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
    }

    /// The text up to `end`, if it occurs within the limit.
    fn until(&self, text: &'a str, end: &str) -> Option<&'a str> {
        let reach = &text[..text.floor_char_boundary(REACH)];
        reach.find(end).map(|at| &text[..at])
    }

    fn escaped(&mut self, rest: &str) -> bool {
        let Some(next) =
            rest[1..].chars().next().filter(|c| "*_`#^~[<{(+\\\"'".contains(*c) || c.is_alphabetic())
        else {
            return false;
        };
        // A backslash before a word escapes only macros.
        if next.is_alphabetic() && !starts_macro(&rest[1..]) {
            return false;
        }
        self.out.push(next);
        self.at += 1 + next.len_utf8();
        true
    }

    /// `[[id]]` defines an anchor; `[.role]#text#` styles a text.
    fn bracket(&mut self, rest: &'a str) -> bool {
        if let Some(inside) = rest.strip_prefix("[[")
            && let Some(id) = self.until(inside, "]]").filter(|id| !id.contains(['[', '\n']))
        {
            self.ids.push(id.split(',').next().unwrap_or(id).trim_start_matches('[').to_owned());
            self.at += id.len() + 4;
            return true;
        }
        let Some(inside) = self.until(&rest[1..], "]") else { return false };
        let after = &rest[inside.len() + 2..];
        let is_role = inside.starts_with(['.', '#']) && after.starts_with(['*', '_', '`', '#'])
            || after.starts_with('#') && !inside.is_empty() && !inside.contains(' ');
        if is_role {
            self.at += inside.len() + 2;
        }
        is_role
    }

    /// `<<id,text>>`
    fn reference(&mut self, rest: &'a str) -> bool {
        let Some(inside) = rest.strip_prefix("<<").and_then(|inside| self.until(inside, ">>")) else {
            return false;
        };
        let (id, text) = inside.split_once(',').unwrap_or((inside, ""));
        self.out.push_str(&target_words(id, text, self.references));
        self.at += inside.len() + 4;
        true
    }

    fn index_term(&mut self, rest: &'a str) -> bool {
        if let Some(inside) = rest.strip_prefix("(((").and_then(|inside| self.until(inside, ")))")) {
            self.at += inside.len() + 6;
            return true;
        }
        let Some(inside) = rest.strip_prefix("((").and_then(|inside| self.until(inside, "))")) else {
            return false;
        };
        self.out.push_str(inside);
        self.at += inside.len() + 4;
        true
    }

    /// Text between plus signs is taken literally.
    fn passed(&mut self, rest: &'a str) -> bool {
        for sign in ["+++", "++", "+"] {
            let Some(inside) = rest.strip_prefix(sign).and_then(|inside| self.until(inside, sign)) else {
                continue;
            };
            let after = &rest[inside.len() + 2 * sign.len()..];
            let single = sign.len() == 1;
            if inside.trim().len() != inside.len() || inside.is_empty() {
                continue;
            }
            if single && (self.is_in_word() || after.starts_with(char::is_alphanumeric)) {
                continue;
            }
            self.out.push_str(inside);
            self.at += inside.len() + 2 * sign.len();
            return true;
        }
        false
    }

    fn monospaced(&mut self, rest: &'a str) -> bool {
        for sign in ["``", "`"] {
            let Some(inside) = rest.strip_prefix(sign).and_then(|inside| self.until(inside, sign)) else {
                continue;
            };
            let after = &rest[inside.len() + 2 * sign.len()..];
            if inside.trim().is_empty()
                || sign.len() == 1 && (self.is_in_word() || after.starts_with(char::is_alphanumeric))
            {
                continue;
            }
            let passed = inside.strip_prefix('+').and_then(|inside| inside.strip_suffix('+'));
            let passed = passed.filter(|inside| !inside.is_empty()).map(str::to_owned);
            let text = passed.unwrap_or_else(|| inside.replace('\\', ""));
            self.out.push_str(&code(text.trim()));
            self.at += inside.len() + 2 * sign.len();
            return true;
        }
        false
    }

    /// `"`text`"` are typographic quotes, not code.
    fn quoted(&mut self, rest: &'a str, sign: char) -> bool {
        let Some(inside) = rest[1..].strip_prefix('`') else { return false };
        let Some(text) = self.until(inside, &format!("`{sign}")) else { return false };
        self.out.push(sign);
        self.closers.push((self.at + 2 + text.len(), 1));
        self.at += 2;
        true
    }

    /// `*bold*`, or `**b**old` inside a word.
    fn marked(&mut self, rest: &'a str, sign: char) -> bool {
        let double = format!("{sign}{sign}");
        if let Some(inside) = rest.strip_prefix(&double)
            && let Some(text) = self.until(inside, &double).filter(|text| !text.is_empty())
        {
            self.closers.push((self.at + 2 + text.len(), 2));
            self.at += 2;
            return true;
        }
        if self.is_in_word() || rest[1..].starts_with(char::is_whitespace) {
            return false;
        }
        let reach = &rest[..rest.floor_char_boundary(REACH)];
        let end = reach.match_indices(sign).map(|(at, _)| at).skip(1).find(|at| {
            !reach[..*at].ends_with(char::is_whitespace)
                && !reach[at + 1..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
                && *at > 1
        });
        let Some(end) = end else { return false };
        self.closers.push((self.at + end, 1));
        self.at += 1;
        true
    }

    fn raised(&mut self, rest: &'a str, sign: char) -> bool {
        let Some(text) = self.until(&rest[1..], &sign.to_string()) else { return false };
        if text.is_empty() || text.contains(char::is_whitespace) {
            return false;
        }
        self.closers.push((self.at + 1 + text.len(), 1));
        self.at += 1;
        true
    }

    /// `name:target[text]`, and URLs.
    fn macro_call(&mut self, rest: &'a str) -> bool {
        if !starts_macro(rest) {
            return false;
        }
        let reach = &rest[..rest.floor_char_boundary(REACH)];
        let target_end =
            reach.find(|c: char| c.is_whitespace() || matches!(c, '[' | '<' | '>')).unwrap_or(reach.len());
        let is_address = SCHEMES.iter().any(|scheme| rest.starts_with(scheme));
        let Some(inside) = reach[target_end..].strip_prefix('[').and_then(bracketed) else {
            if is_address {
                self.out.push_str(&rest[..target_end]);
                self.at += target_end;
            }
            return is_address && target_end > 0;
        };
        let (name, target) = if is_address {
            ("link", &rest[..target_end])
        } else {
            rest[..target_end].split_once(':').unwrap_or((rest, ""))
        };
        let text = inside.replace("\\]", "]");
        let shown = match name {
            "link" | "mailto" => {
                let text = link_text(&text);
                if text.is_empty() { target.to_owned() } else { words(&text, self.references, self.ids) }
            }
            "xref" => target_words(target, &link_text(&text), self.references),
            "kbd" | "btn" => code(&text),
            "menu" if text.is_empty() => target.to_owned(),
            "menu" => format!("{target} > {text}"),
            "footnote" | "footnoteref" => format!(" ({})", words(&text, self.references, self.ids)),
            "stem" | "latexmath" | "asciimath" => code(&text),
            "pass" | "indexterm2" => text,
            "anchor" => {
                self.ids.push(target.to_owned());
                String::new()
            }
            // Inline images and index terms have no text.
            _ => String::new(),
        };
        self.out.push_str(&shown);
        self.at += target_end + inside.len() + 2;
        true
    }
}

const SCHEMES: [&str; 4] = ["http://", "https://", "ftp://", "irc://"];

const MACROS: [&str; 17] = [
    "link:",
    "xref:",
    "mailto:",
    "image:",
    "icon:",
    "kbd:[",
    "btn:[",
    "menu:",
    "footnote:",
    "footnoteref:",
    "anchor:",
    "pass:",
    "stem:[",
    "latexmath:[",
    "asciimath:[",
    "indexterm:[",
    "indexterm2:[",
];

fn starts_macro(text: &str) -> bool {
    SCHEMES.iter().chain(&MACROS).any(|start| text.starts_with(start))
}

/// The text up to the bracket that closes it.
fn bracketed(text: &str) -> Option<&str> {
    let mut open = 0_usize;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => open += 1,
            ']' if open == 0 => return Some(&text[..at]),
            ']' => open -= 1,
            _ => {}
        }
    }
    None
}

/// The text of a link, without its attributes.
fn link_text(text: &str) -> String {
    if let Some(quoted) = text.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        return quoted.0.to_owned();
    }
    let text = if text.contains('=') { text.split(',').next().unwrap_or(text) } else { text };
    if text.contains('=') && !text.contains(' ') {
        String::new()
    } else {
        text.trim_end_matches('^').to_owned()
    }
}

/// The text of a reference without its own: the title of its target, or the name of the target as words.
fn target_words(target: &str, text: &str, references: &References<'_>) -> String {
    if !text.trim().is_empty() {
        return words(text.trim(), references, &mut Vec::new());
    }
    let (page, id) = match target.trim().split_once('#') {
        Some((page, id)) => (page, id),
        None if target.trim().ends_with(".adoc") => (target.trim(), ""),
        None => ("", target.trim()),
    };
    let title = match (page, id) {
        (page, "") => references.page(page),
        ("", id) => references.label(id),
        (page, id) => references.section(page, id),
    };
    match title {
        Some(title) => title.to_owned(),
        None if id.is_empty() => {
            page.trim_end_matches(".adoc").rsplit(['/', ':']).next().unwrap_or(page).to_owned()
        }
        None => id.trim_start_matches('_').replace('_', " "),
    }
}
