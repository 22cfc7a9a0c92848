//! Assigns pages of a site to modules: the module is the first folder below that of the site.
//!
//! Invariant: every page has a module, and it does not depend on the order of the pages.

use std::collections::HashSet;

use docent_parse::document::Document;
use reqwest::Url;

use super::scope::Scope;

/// Assigns a module to every page that does not name one.
pub fn assign(documents: &mut [Document], scope: &Scope) {
    let paths: Vec<Vec<String>> = documents.iter().map(|document| path(document, scope)).collect();
    let shared = shared_prefix(&paths);
    let root = root(scope);
    let folders: HashSet<String> =
        paths.iter().filter(|path| path.len() > shared + 1).map(|path| path[shared].clone()).collect();
    for (document, path) in documents.iter_mut().zip(&paths) {
        if !document.module.trim().is_empty() {
            continue;
        }
        // The last part is the page itself, unless it is the index page of a folder.
        let first = path.get(shared).filter(|first| path.len() > shared + 1 || folders.contains(*first));
        document.module = first.cloned().unwrap_or_else(|| root.clone());
    }
}

/// The folders of a page and its name; the name of a folder's index page is empty.
fn path(document: &Document, scope: &Scope) -> Vec<String> {
    let url = Url::parse(&document.id).ok();
    let relative = url.as_ref().and_then(|url| scope.relative(url)).unwrap_or_default();
    let parts = relative.split('/').map(|part| part.strip_suffix(".html").unwrap_or(part).to_owned());
    let is_edition =
        |part: &String| [&document.version, &document.locale].into_iter().flatten().any(|name| name == part);
    // The folders of versions and locales are not modules.
    let (editions, others): (Vec<String>, Vec<String>) = parts.partition(is_edition);
    if others.is_empty() { editions } else { others }
}

/// The number of leading folders that all pages share and that name a language or a version.
fn shared_prefix(paths: &[Vec<String>]) -> usize {
    let Some(longest) = paths.iter().max_by_key(|path| path.len()) else { return 0 };
    let is_shared = |at: usize| {
        // The start page of the site may be above them.
        paths.iter().all(|path| path.get(at) == longest.get(at) || path.iter().all(String::is_empty))
    };
    (0..longest.len().saturating_sub(1))
        .take_while(|at| is_shared(*at) && names_language_or_version(&longest[*at]))
        .count()
}

fn names_language_or_version(folder: &str) -> bool {
    let is_version = folder.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit())
        && folder.trim_start_matches('v').chars().all(|c| c.is_ascii_digit() || c == '.' || c == 'x');
    let (language, region) = folder.split_once(['-', '_']).unwrap_or((folder, "us"));
    let is_code = |code: &str| code.len() == 2 && code.chars().all(|c| c.is_ascii_alphabetic());
    is_version
        || ["latest", "stable", "main", "master", "dev", "next", "current"].contains(&folder)
        || (is_code(language) && is_code(region))
}

/// The site's own folder, or its host.
fn root(scope: &Scope) -> String {
    let last = scope.folder.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if last.is_empty() { scope.folder.host_str().unwrap_or("site").to_owned() } else { last.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::contents::SiteOptions;

    fn modules(start: &str, pages: &[&str]) -> Vec<String> {
        let start = Url::parse(start).unwrap();
        let scope = Scope::new(&start, &SiteOptions::default()).unwrap();
        let document = |page: &&str| Document::new(scope.folder.join(page).unwrap(), "", "");
        let mut documents: Vec<Document> = pages.iter().map(document).collect();
        assign(&mut documents, &scope);
        documents.into_iter().map(|document| document.module).collect()
    }

    #[test]
    fn a_module_is_the_first_folder_below_the_site() {
        let pages = ["", "intro", "ros2/nodes", "ros2/topics/a", "ros2", "sim/"];
        assert_eq!(modules("https://x.org/docs", &pages), ["docs", "docs", "ros2", "ros2", "ros2", "sim"]);
        assert_eq!(modules("https://x.org", &["a.html", "b/c.html"]), ["x.org", "b"]);
    }

    #[test]
    fn shared_languages_and_versions_are_not_modules() {
        let pages = ["", "en/latest/", "en/latest/intro.html", "en/latest/howto/a.html"];
        assert_eq!(modules("https://x.org/", &pages), ["x.org", "x.org", "x.org", "howto"]);
        assert_eq!(modules("https://x.org/", &["en/a", "de/a"]), ["en", "de"]);
        assert_eq!(modules("https://x.org/", &["guide/a", "guide/b"]), ["guide", "guide"]);
    }
}
