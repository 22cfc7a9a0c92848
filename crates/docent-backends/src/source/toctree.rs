//! The order of Sphinx pages, as given by their `toctree` directives.
//!
//! Invariant: every page has one position, even if it is listed several times.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use docent_parse::path::resolve;
use docent_parse::rst::toctree;

/// The position of each page that can be reached from the first one.
pub(super) fn order(root: &Path, files: &[String]) -> HashMap<String, usize> {
    let mut reader =
        Reader { root, files: files.iter().map(String::as_str).collect(), order: HashMap::new() };
    for first in ["index", "contents"] {
        reader.visit(first);
    }
    reader.order
}

struct Reader<'a> {
    root: &'a Path,
    files: HashSet<&'a str>,
    order: HashMap<String, usize>,
}

impl Reader<'_> {
    /// Assigns a position to a page and then, depth first, to the pages it lists.
    fn visit(&mut self, first: &str) {
        let mut waiting = vec![first.to_owned()];
        while let Some(page) = waiting.pop() {
            let endings = [".rst", ".md", ".ipynb", ".txt"];
            let files = endings.map(|ending| format!("{page}{ending}"));
            let Some(file) = files.into_iter().find(|file| self.files.contains(file.as_str())) else {
                continue;
            };
            if self.order.contains_key(&file) {
                continue;
            }
            let source = std::fs::read(self.root.join(&file)).unwrap_or_default();
            self.order.insert(file, self.order.len());
            let mut named: Vec<String> = Vec::new();
            for entry in toctree(&String::from_utf8_lossy(&source)) {
                let name = resolved(&page, &entry);
                if name.contains('*') { named.extend(self.matching(&name)) } else { named.push(name) }
            }
            waiting.extend(named.into_iter().rev());
        }
    }

    /// The pages that match a glob, sorted by name. `*` matches anything within a folder.
    fn matching(&self, glob: &str) -> Vec<String> {
        let Some((before, after)) = glob.split_once('*') else { return Vec::new() };
        let mut found: Vec<String> = self
            .files
            .iter()
            .filter_map(|file| file.rsplit_once('.').map(|(stem, _)| stem))
            .filter(|stem| {
                let middle = stem.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                middle.is_some_and(|middle| !middle.contains('/'))
            })
            .map(str::to_owned)
            .collect();
        found.sort_unstable();
        found
    }
}

fn resolved(page: &str, entry: &str) -> String {
    if let Some(absolute) = entry.strip_prefix('/') {
        return absolute.to_owned();
    }
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    resolve(folder, entry)
}
