//! Loads the files that a page includes.
//!
//! Invariant: no page exceeds the limits on size and depth here, whatever its files include; every file that
//! is not included produces a warning.

use thiserror::Error;

/// Maximum depth of includes inside includes.
const DEEPEST: usize = 8;

/// Maximum number of includes per page, so that files that include each other repeatedly do not explode.
const MOST: usize = 256;

/// Maximum size of all included text of a page, in bytes.
const MOST_BYTES: usize = 8 << 20;

/// Why a file was not included.
#[derive(Debug, Error)]
pub(super) enum NotIncluded {
    /// The file is already being included.
    #[error("included file includes itself: {0}")]
    Itself(String),
    /// The page has reached one of the limits.
    #[error("too many or too deeply nested includes: {0}")]
    TooDeep(String),
    /// The file does not exist.
    #[error("included file not found: {0}")]
    Missing(String),
}

/// The files that are currently being included, and the totals so far.
#[derive(Debug, Default)]
pub(super) struct Includes {
    /// Each file is included by the one before it.
    open: Vec<String>,
    count: usize,
    bytes: usize,
}

impl Includes {
    /// Returns the path and the text of the file `name`, or why it is not included.
    pub(super) fn load(
        &mut self,
        name: &str,
        load: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<(String, String), NotIncluded> {
        let path = self.resolved(name);
        if self.open.contains(&path) {
            return Err(NotIncluded::Itself(name.to_owned()));
        }
        if self.open.len() >= DEEPEST || self.count >= MOST || self.bytes >= MOST_BYTES {
            return Err(NotIncluded::TooDeep(name.to_owned()));
        }
        self.count += 1;
        let text = load(&path).ok_or_else(|| NotIncluded::Missing(name.to_owned()))?;
        self.bytes += text.len();
        Ok((path, text))
    }

    /// From here on, names are relative to this file.
    pub(super) fn enter(&mut self, path: String) {
        self.open.push(path);
    }

    /// Leaves the file that was entered last.
    pub(super) fn leave(&mut self) {
        self.open.pop();
    }

    /// Names inside an included file are relative to that file, unless they start at the root of the site:
    /// `/a`, `@site/a`. The path is normalized so that cycles are detected.
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
