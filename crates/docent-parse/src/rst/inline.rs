//! Reduces inline markup to text; literals and code names keep their backticks.
//!
//! Invariant: linear in the text. A delimiter that is never closed is searched for only once.

use std::collections::HashMap;

use crate::fence::push_code;
use crate::references::References;

/// What the text of inline markup may depend on.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) substitutions: &'a HashMap<String, String>,
    pub(super) references: &'a References<'a>,
}

/// The text of inline markup. Names that get an id on the page are added to `targets`, in order.
pub(super) fn words(text: &str, known: Known<'_>, targets: &mut Vec<String>) -> String {
    let mut reader =
        Reader { text, at: 0, out: String::with_capacity(text.len()), unclosed: Vec::new(), known, targets };
    reader.read();
    reader.out
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    out: String,
    /// Delimiters that do not occur in the rest of the text.
    unclosed: Vec<&'static str>,
    known: Known<'a>,
    targets: &'a mut Vec<String>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            let done = match next {
                '\\' => self.escape(),
                _ if !self.may_start() => false,
                '`' if self.rest().starts_with("``") => self.literal(),
                '`' => self.phrase(),
                ':' => self.role(),
                '*' => self.emphasis(),
                '|' => self.substitution(),
                '_' => self.inline_target(),
                '[' => self.footnote(),
                'h' if self.rest().starts_with("http://") || self.rest().starts_with("https://") => {
                    self.address()
                }
                next if next.is_alphanumeric() => self.reference(),
                _ => false,
            };
            if !done {
                self.out.push(next);
                self.at += next.len_utf8();
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Markup starts after white space or an opening character, not inside a word.
    fn may_start(&self) -> bool {
        let before = self.text[..self.at].chars().next_back();
        before.is_none_or(|c| match c {
            c if c.is_ascii() => c.is_ascii_whitespace() || "'\"([{<-/:".contains(c),
            c => !c.is_alphanumeric(),
        })
    }

    /// The text up to the next `end`, if markup can end there.
    fn enclosed(&mut self, skip: usize, end: &'static str) -> Option<&'a str> {
        if self.unclosed.contains(&end) {
            return None;
        }
        let start = self.at + skip;
        let inside = self.text.get(start..)?;
        let before = self.text[..self.at].chars().next_back();
        // A character in quotes or brackets is literal.
        let quoted = matches!(
            (before, inside.chars().next()),
            (Some('"'), Some('"'))
                | (Some('\''), Some('\''))
                | (Some('('), Some(')'))
                | (Some('['), Some(']'))
        );
        if quoted || inside.starts_with(char::is_whitespace) {
            return None;
        }
        for (found, _) in inside.match_indices(end) {
            let before = inside[..found].chars().next_back();
            let after = inside[found + end.len()..].chars().next();
            let escaped = end != "``" && inside[..found].ends_with('\\');
            let ends = before.is_some_and(|c| !c.is_whitespace()) && !escaped;
            let is_link = matches!(end, "`" | "|") && after == Some('_');
            if ends && (is_link || may_end_before(after)) {
                return Some(&inside[..found]);
            }
        }
        self.unclosed.push(end);
        None
    }

    /// A backslash escapes the next character; white space after it is removed.
    fn escape(&mut self) -> bool {
        self.at += 1;
        if let Some(next) = self.rest().chars().next() {
            self.at += next.len_utf8();
            if !next.is_whitespace() {
                self.out.push(next);
            }
        }
        true
    }

    fn literal(&mut self) -> bool {
        let Some(inside) = self.enclosed(2, "``") else { return false };
        self.push_code(inside);
        self.at += inside.len() + 4;
        true
    }

    /// `` `text <address>`_ ``, `` `text`_ ``, `` `text`:role: `` or `` `text` ``.
    fn phrase(&mut self) -> bool {
        let Some(inside) = self.enclosed(1, "`") else { return false };
        self.at += inside.len() + 2;
        let (title, target) = title_and_target(inside);
        let rest = self.rest();
        let anonymous = rest.starts_with("__");
        if anonymous || rest.starts_with('_') {
            self.at += if anonymous { 2 } else { 1 };
            self.out.push_str(&unescaped(title));
            if target.is_some() && !anonymous {
                self.targets.push(unescaped(title));
            }
        } else if let Some(role) =
            rest.strip_prefix(':').and_then(|rest| rest.split_once(':')).map(|(role, _)| role)
            && is_role_name(role)
        {
            self.at += role.len() + 2;
            self.push_role(role, inside);
        } else {
            self.out.push_str(&unescaped(inside));
        }
        true
    }

    fn role(&mut self) -> bool {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_role_sign(c)).unwrap_or(rest.len());
        let Some(role) = rest[1..end].strip_suffix(':').filter(|role| is_role_name(role)) else {
            return false;
        };
        if !rest[end..].starts_with('`') {
            return false;
        }
        // Accept a role in double backticks, a common mistake.
        let (ticks, end) = if rest[role.len() + 2..].starts_with("``") { (2, "``") } else { (1, "`") };
        let skip = role.len() + 2 + ticks;
        let Some(inside) = self.enclosed(skip, end) else { return false };
        self.at += skip + inside.len() + ticks;
        self.push_role(role, inside);
        true
    }

    fn push_role(&mut self, role: &str, inside: &str) {
        let role = role.rsplit(':').next().unwrap_or(role).to_ascii_lowercase();
        let (title, target) = title_and_target(inside);
        match role.as_str() {
            "code" | "kbd" | "samp" | "file" | "command" | "program" | "envvar" | "option" | "makevar"
            | "regexp" | "literal" => self.push_code(inside),
            "class" | "func" | "function" | "meth" | "method" | "mod" | "module" | "attr" | "attribute"
            | "obj" | "object" | "exc" | "data" | "const" | "constant" | "member" | "var" | "type"
            | "macro" | "struct" | "enum" | "enumerator" | "expr" | "texpr" | "decorator" | "property"
            | "concept" => {
                self.push_code(if target.is_some() { title } else { short_name(inside) });
            }
            "ref" | "any" | "numref" if target.is_none() && self.known.references.label(inside).is_some() => {
                self.out.push_str(self.known.references.label(inside).unwrap_or_default());
            }
            "doc" | "any" if target.is_none() && self.known.references.page(inside).is_some() => {
                self.out.push_str(self.known.references.page(inside).unwrap_or_default());
            }
            "ref" | "doc" | "any" | "numref" | "download" if target.is_none() => {
                let last = inside.trim_end_matches('/').rsplit('/').next().unwrap_or(inside);
                let last = gallery_example(last).unwrap_or(last);
                self.out.push_str(&unescaped(last.trim_start_matches('!')));
            }
            "pep" | "rfc" if target.is_none() => {
                self.out.push_str(&format!("{} {inside}", role.to_ascii_uppercase()));
            }
            "math" => self.out.push_str(inside),
            _ => self.out.push_str(&unescaped(title)),
        }
    }

    fn emphasis(&mut self) -> bool {
        let sign = if self.rest().starts_with("**") { "**" } else { "*" };
        let Some(inside) = self.enclosed(sign.len(), sign) else { return false };
        // The standard does not allow nesting, but literals inside are common and their markup is not text.
        let inside_words = if inside.contains(['`', '|']) && !inside.contains('*') {
            words(inside, self.known, self.targets)
        } else {
            unescaped(inside)
        };
        self.out.push_str(&inside_words);
        self.at += inside.len() + 2 * sign.len();
        true
    }

    fn substitution(&mut self) -> bool {
        let Some(inside) = self.enclosed(1, "|") else { return false };
        match self.known.substitutions.get(&inside.to_lowercase()) {
            // A definition may use other substitutions. They are not expanded further, because it might use
            // itself.
            Some(text) => {
                let known = Known { substitutions: &HashMap::new(), ..self.known };
                self.out.push_str(&words(text, known, self.targets));
            }
            None => self.out.push_str(inside),
        }
        self.at += inside.len() + 2;
        self.at += self.rest().len() - self.rest().trim_start_matches('_').len();
        true
    }

    fn inline_target(&mut self) -> bool {
        if !self.rest().starts_with("_`") {
            return false;
        }
        let Some(inside) = self.enclosed(2, "`") else { return false };
        self.out.push_str(&unescaped(inside));
        self.targets.push(unescaped(inside));
        self.at += inside.len() + 3;
        true
    }

    /// `[1]_` keeps its number; auto-numbered references are removed.
    fn footnote(&mut self) -> bool {
        let rest = &self.rest()[1..];
        let is_sign = |c: char| c.is_alphanumeric() || matches!(c, '#' | '*' | '-' | '_' | '.' | ':' | '+');
        let label = &rest[..rest.find(|c| !is_sign(c)).unwrap_or(rest.len())];
        if label.is_empty() || !rest[label.len()..].starts_with("]_") {
            return false;
        }
        if !label.starts_with(['#', '*']) {
            self.out.push_str(&format!("[{label}]"));
        }
        self.targets.push(String::new());
        self.at += label.len() + 3;
        true
    }

    /// Characters inside a URL are not markup.
    fn address(&mut self) -> bool {
        let rest = self.rest();
        let end = rest
            .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '`' | '"'))
            .unwrap_or(rest.len());
        self.out.push_str(&unescaped(&rest[..end]));
        self.at += end;
        true
    }

    /// `word_` is a reference; any other word is copied to its end.
    fn reference(&mut self) -> bool {
        let rest = self.rest();
        let mut end = 0;
        let mut inside = rest.char_indices().peekable();
        while let Some((at, c)) = inside.next() {
            let joins = matches!(c, '-' | '.' | '+' | ':' | '_')
                && at > 0
                && inside.peek().is_some_and(|(_, next)| next.is_alphanumeric());
            if !c.is_alphanumeric() && !joins {
                break;
            }
            end = at + c.len_utf8();
        }
        self.out.push_str(&rest[..end]);
        self.at += end;
        let after = self.rest();
        let signs = after.len() - after.trim_start_matches('_').len();
        if matches!(signs, 1 | 2) && may_end_before(after[signs..].chars().next()) {
            self.at += signs;
        }
        true
    }

    fn push_code(&mut self, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        push_code(&mut self.out, &text);
    }
}

/// Markup ends before white space or a closing character.
fn may_end_before(next: Option<char>) -> bool {
    next.is_none_or(|c| match c {
        c if c.is_ascii() => c.is_ascii_whitespace() || "-/:.,;!?\\'\")]}>".contains(c),
        c => !c.is_alphanumeric(),
    })
}

fn is_role_name(name: &str) -> bool {
    !name.is_empty() && name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_role_sign)
}

fn is_role_sign(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '+' | '.')
}

/// `title <target>`
fn title_and_target(text: &str) -> (&str, Option<&str>) {
    match text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
        Some((title, target)) if !title.ends_with('\\') => {
            let title = title.trim();
            (if title.is_empty() { target } else { title }, Some(target))
        }
        _ => (text, None),
    }
}

/// The file of an example in a gallery: `sphx_glr_auto_examples_svm_plot_iris.py` is `plot_iris.py`.
fn gallery_example(label: &str) -> Option<&str> {
    let path = label.strip_prefix("sphx_glr_")?;
    path.find("_plot_").map(|at| &path[at + 1..])
}

/// `~package.module.Name` is shown as `Name`.
fn short_name(name: &str) -> &str {
    let name = name.trim_start_matches('!');
    match name.strip_prefix('~') {
        Some(path) => {
            let last = path.rsplit("::").next().unwrap_or(path);
            let end = last.find('(').unwrap_or(last.len());
            &last[last[..end].rfind('.').map_or(0, |dot| dot + 1)..]
        }
        None => name.trim_start_matches('.'),
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next().filter(|next| !next.is_whitespace())),
            c => out.push(c),
        }
    }
    out
}
