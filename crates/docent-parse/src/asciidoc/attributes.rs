//! Attributes: `{name}` and the values they stand for.
//!
//! Invariant: attributes cannot expand a page without limit: values are short, and after a total size they
//! are no longer substituted.

use std::collections::HashMap;

/// Longer values are cut off.
const LONGEST_VALUE: usize = 4_096;

/// The total size of substituted values per page, in bytes.
const MOST_SUBSTITUTED: usize = 1 << 20;

/// The attributes defined at the current position.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes {
    own: HashMap<String, String>,
    substituted: usize,
}

impl Attributes {
    /// Handles a line that sets or unsets an attribute; returns false for any other line.
    pub(super) fn entry(&mut self, line: &str) -> bool {
        let Some((name, value)) = entry(line) else { return false };
        match name.strip_prefix('!').or_else(|| name.strip_suffix('!')) {
            Some(name) => drop(self.own.remove(&name.to_lowercase())),
            None => {
                let value = self.substituted(value);
                let end = value.floor_char_boundary(LONGEST_VALUE);
                self.set(name, &value[..end]);
            }
        }
        true
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.own.insert(name.to_lowercase(), value.to_owned());
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.own.get(&name.to_lowercase()).map(String::as_str)
    }

    /// Whether an attribute is set, by the author or by default for HTML output.
    pub(super) fn is_set(&self, name: &str) -> bool {
        let name = name.trim().to_lowercase();
        matches!(
            name.as_str(),
            "asciidoctor"
                | "backend"
                | "backend-html5"
                | "basebackend"
                | "basebackend-html"
                | "asciidoctor-version"
        ) || self.own.contains_key(&name)
    }

    /// Substitutes attributes. Unknown ones are kept, as on the published page.
    pub(super) fn substituted(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let inside = &rest[at + 1..];
            let name_end =
                inside.find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')));
            let name =
                name_end.filter(|end| inside[*end..].starts_with('}')).map_or("", |end| &inside[..end]);
            out.push_str(&rest[..at]);
            let escaped = out.ends_with('\\');
            match self.value(name).filter(|_| !escaped && self.substituted < MOST_SUBSTITUTED) {
                Some(value) => {
                    self.substituted += value.len();
                    out.push_str(&value);
                    rest = &inside[name.len() + 1..];
                }
                None => {
                    if escaped && !name.is_empty() {
                        out.pop();
                    }
                    out.push('{');
                    rest = inside;
                }
            }
        }
        out.push_str(rest);
        out
    }

    fn value(&self, name: &str) -> Option<String> {
        if name.is_empty() {
            return None;
        }
        if name.starts_with("counter2:") || name.starts_with("set:") {
            return Some(String::new());
        }
        self.get(name).map(str::to_owned).or_else(|| built_in(name).map(str::to_owned))
    }
}

/// The name and the value of `:name: value`.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix(':')?.split_once(':')?;
    let is_name = !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '!'))
        && (value.is_empty() || value.starts_with(' '));
    is_name.then(|| (name, value.trim()))
}

fn built_in(name: &str) -> Option<&'static str> {
    Some(match name {
        "blank" | "empty" | "zwsp" | "wj" => "",
        "sp" | "nbsp" => " ",
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "plus" => "+",
        "pp" => "++",
        "cpp" => "C++",
        "cxx" => "C++",
        "vbar" => "|",
        "apos" => "'",
        "quot" => "\"",
        "lsquo" => "‘",
        "rsquo" => "’",
        "ldquo" => "“",
        "rdquo" => "”",
        "deg" => "°",
        "asterisk" => "*",
        "caret" => "^",
        "tilde" => "~",
        "backslash" => "\\",
        "backtick" => "`",
        "startsb" => "[",
        "endsb" => "]",
        "two-colons" => "::",
        "two-semicolons" => ";;",
        "backend" => "html5",
        "basebackend" => "html",
        _ => return None,
    })
}
