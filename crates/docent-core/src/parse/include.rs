//! Files that a page shows in place of a line that names them.
//!
//! Invariant: no page gets bigger or deeper than the bounds here, however its files name
//! each other; what is left out is a warning.

/// Includes inside includes; deeper is a cycle.
const DEEPEST: usize = 8;

/// All includes of one page, so that files including each other twice do not explode.
const MOST: usize = 256;

/// The text that one page may include, in bytes.
const MOST_BYTES: usize = 8 << 20;

/// The files under way, and what they came to.
#[derive(Debug, Default)]
pub(super) struct Includes {
    /// Each is included by the one before.
    open: Vec<String>,
    count: usize,
    bytes: usize,
}

impl Includes {
    /// The path and the text of the file `name`, or a warning that says why there is none.
    pub(super) fn load(
        &mut self,
        name: &str,
        load: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<(String, String), String> {
        let path = self.resolved(name);
        if self.open.contains(&path) {
            return Err(format!("included file includes itself: {name}"));
        }
        if self.open.len() >= DEEPEST || self.count >= MOST || self.bytes >= MOST_BYTES {
            return Err(format!("included too deeply: {name}"));
        }
        self.count += 1;
        let text = load(&path).ok_or_else(|| format!("included file not found: {name}"))?;
        self.bytes += text.len();
        Ok((path, text))
    }

    /// Names are relative to this file from here on.
    pub(super) fn enter(&mut self, path: String) {
        self.open.push(path);
    }

    /// Ends the file last entered.
    pub(super) fn leave(&mut self) {
        self.open.pop();
    }

    /// A name inside an included file is relative to that file, unless it begins at the top of
    /// the site: `/a`, `@site/a`. One file has one path, or a cycle would not be noticed.
    fn resolved(&self, name: &str) -> String {
        let path = match self.open.last().and_then(|file| file.rsplit_once('/')) {
            Some((folder, _)) if !name.starts_with(['/', '@']) => format!("{folder}/{name}"),
            _ => name.to_owned(),
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
            match parts.last() {
                Some(last) if part == ".." && *last != ".." => drop(parts.pop()),
                _ => parts.push(part),
            }
        }
        format!("{}{}", if path.starts_with('/') { "/" } else { "" }, parts.join("/"))
    }
}
