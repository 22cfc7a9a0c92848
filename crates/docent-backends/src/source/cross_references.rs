//! References between the pages of a folder: included files, and the titles that links show.
//!
//! Invariant: if files include each other in a cycle, one of them stays a page.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use docent_parse::path::resolve;
use docent_parse::references::Titles;
use docent_parse::{Format, asciidoc};
use rayon::prelude::*;

/// AsciiDoc files that another page includes as a whole, each with the first such page. `load` reads a file
/// that a page names.
pub(super) fn included<'a>(
    root: &Path,
    files: &'a [String],
    load: impl Fn(&Path, &str) -> Option<String> + Sync,
) -> HashMap<String, &'a str> {
    let pages: Vec<&str> =
        files.iter().map(String::as_str).filter(|file| Format::of(file) == Some(Format::AsciiDoc)).collect();
    let shows: Vec<BTreeSet<String>> = pages
        .par_iter()
        .map(|page| {
            let path = root.join(page);
            let source = text(&path);
            let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
            let names = asciidoc::included(&source, &mut |name| load(&path, name));
            let from = |name: &str| if name.starts_with('/') { "" } else { folder };
            let paths = names.iter().map(|name| resolve(from(name), name));
            paths.filter(|path| path != page).collect()
        })
        .collect();
    let mut found = HashMap::new();
    let is_shown = |page: &str| shows.iter().any(|shown| shown.contains(page));
    // Start with the pages that no other page includes; the rest is part of a cycle.
    let (inner, outer): (Vec<usize>, Vec<usize>) = (0..pages.len()).partition(|at| is_shown(pages[*at]));
    for at in outer.into_iter().chain(inner) {
        if !found.contains_key(pages[at]) {
            for shown in shows[at].iter().filter(|shown| pages.contains(&shown.as_str())) {
                found.entry(shown.clone()).or_insert(pages[at]);
            }
        }
    }
    found
}

/// The titles of the pages and labels of a folder, for references without link text.
pub(super) fn titles(root: &Path, files: &[String]) -> Titles {
    let mut titles = Titles::default();
    let has_labels = |file: &String| matches!(Format::of(file), Some(Format::Rst | Format::AsciiDoc));
    let is_sphinx = ["conf.py", "_toc.yml", "myst.yml"].iter().any(|name| root.join(name).is_file());
    if !is_sphinx && !files.iter().any(has_labels) {
        return titles;
    }
    let pages = files.iter().filter(|file| has_labels(file) || Format::of(file) == Some(Format::Markdown));
    for page in pages {
        titles.add(page, &text(&root.join(page)));
    }
    titles
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).replace("\r\n", "\n")
}
