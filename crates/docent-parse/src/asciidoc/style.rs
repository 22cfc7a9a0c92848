//! Block attributes: the line in brackets above a block.
//!
//! Invariant: such a line is never shown.

/// Attributes of the next block.
#[derive(Debug, Default, Clone)]
pub(super) struct Style {
    /// `source`, `NOTE`, `quote`.
    pub(super) name: String,
    /// The positional values after the first.
    pub(super) values: Vec<String>,
    pub(super) id: Option<String>,
    pub(super) options: Vec<String>,
    named: Vec<(String, String)>,
    /// The title, from a line that starts with a dot.
    pub(super) title: String,
}

impl Style {
    /// Adds the attributes of a line; returns false if the line has none.
    pub(super) fn add(&mut self, line: &str) -> bool {
        let Some(inside) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
            return false;
        };
        if let Some(anchor) = inside.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let id = anchor.split(',').next().unwrap_or_default().trim();
            let is_id = !id.is_empty() && !id.contains(char::is_whitespace);
            if is_id {
                self.id = Some(id.to_owned());
            }
            return is_id;
        }
        let starts_well = inside.chars().next().is_none_or(|c| c.is_alphanumeric() || ".#%,\"_{".contains(c));
        if !starts_well || inside.contains(['[', ']']) && !inside.contains('"') {
            return false;
        }
        for (number, part) in parts(inside).iter().enumerate() {
            match part.split_once('=').filter(|(name, _)| is_name(name.trim())) {
                Some((name, value)) => self.set(name.trim(), value.trim().trim_matches(['"', '\''])),
                None if number == 0 => self.shorthand(part.trim().trim_matches('"')),
                None => self.values.push(part.trim().trim_matches('"').to_owned()),
            }
        }
        true
    }

    /// The value of `name=value`.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.named.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|own| own == option)
    }

    fn set(&mut self, name: &str, value: &str) {
        match name {
            "id" => self.id = Some(value.to_owned()),
            "options" | "opts" => {
                self.options.extend(value.split(',').map(|option| option.trim().to_owned()))
            }
            _ => self.named.push((name.to_owned(), value.to_owned())),
        }
    }

    /// `style#id.role%option`
    fn shorthand(&mut self, text: &str) {
        let mut rest = text;
        let end = rest.find(['#', '.', '%']).unwrap_or(rest.len());
        if end > 0 {
            self.name = rest[..end].to_owned();
        }
        rest = &rest[end..];
        while let Some(sign) = rest.chars().next() {
            let end = rest[1..].find(['#', '.', '%']).map_or(rest.len(), |end| end + 1);
            let value = rest[1..end].to_owned();
            match sign {
                '#' if !value.is_empty() => self.id = Some(value),
                '%' => self.options.push(value),
                _ => {}
            }
            rest = &rest[end..];
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}

/// Splits at commas outside of quotes.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}
