//! Finds out which version and locale each page of a site has: from what Docusaurus tells search engines, from addresses
//! such as those of Read the Docs (`/en/stable/`) and mike (`/1.2/`), and from the language of the page.
//!
//! Invariant: a folder is a version only if its pages are also in another version, and a locale only if its pages say
//! that they are in this language.

use std::collections::{BTreeMap, HashMap, HashSet};

use docent_parse::document::Document;
use docent_parse::html::Head;
use reqwest::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::scope::Scope;
use crate::source::Released;
use crate::source::edition::{in_address, is_locale, is_version};

/// Notes what a page itself and its address say.
pub fn note(document: &mut Document, head: &Head) {
    if let Some(version) = &head.version {
        document.work = work_of_tag(&document.url, head.version_tag.as_deref(), version);
        document.version = Some(version.clone());
        document.locale.clone_from(&head.locale);
    } else if let Some(found) = in_address(&document.url) {
        document.version = Some(found.version);
        document.locale = Some(found.locale);
        document.work = found.work;
    }
}

/// A site may have several docs with versions of their own: `docs-default-1.0`, `docs-api-3`.
fn work_of_tag(url: &str, tag: Option<&str>, version: &str) -> String {
    let host = url.split('/').take(3).collect::<Vec<_>>().join("/");
    format!("{host} {}", tag.and_then(|tag| tag.strip_suffix(version)).unwrap_or_default())
}

/// The folders of an address that may be versions or locales.
fn names(url: &Url) -> Vec<&str> {
    url.path_segments().into_iter().flatten().filter(|part| is_version(part) || is_locale(part)).collect()
}

/// Whether two addresses may be of the same version and locale.
pub fn are_same(a: &Url, b: &Url) -> bool {
    names(a) == names(b)
}

/// A hash of what may tell the version and locale of a page.
pub fn hash(url: &Url, document: &Document) -> u64 {
    let mut all = names(url);
    all.extend([&document.version, &document.locale].into_iter().flatten().map(String::as_str));
    if all.is_empty() { 0 } else { xxh3_64(all.join("\n").as_bytes()) }
}

/// Assigns versions and locales to the pages that do not tell them. Returns which ones are the default, as far as the
/// addresses show it.
pub fn assign(
    documents: &mut [Document],
    scope: &Scope,
    languages: &HashMap<String, String>,
) -> Vec<Released> {
    by_folder(documents, scope);
    let locale = by_language(documents, scope, languages);
    let mut released = without_a_folder(documents);
    released.extend(locale.map(|locale| Released {
        work: scope.folder.to_string(),
        locale: Some(locale),
        version: None,
    }));
    released
}

/// The first folder of a page below the site, and the rest.
fn first_folder(document: &Document, scope: &Scope) -> Option<(String, String)> {
    let url = Url::parse(&document.id).ok()?;
    let (first, rest) = scope.relative(&url)?.split_once('/')?;
    Some((first.to_owned(), rest.to_owned()))
}

/// The first folders are versions if they have the same pages.
fn by_folder(documents: &mut [Document], scope: &Scope) {
    let mut folders: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    for document in documents.iter().filter(|document| document.version.is_none()) {
        if let Some((first, rest)) = first_folder(document, scope).filter(|(first, _)| is_version(first)) {
            folders.entry(first).or_default().insert(rest);
        }
    }
    let shares_pages = |(name, pages): (&String, &HashSet<String>)| {
        folders.iter().filter(|(other, _)| *other != name).any(|(_, others)| {
            let shared = pages.iter().filter(|page| !page.is_empty() && others.contains(*page)).count();
            shared > 0 && 2 * shared + 1 >= pages.len().min(others.len())
        })
    };
    let versions: HashSet<String> =
        folders.iter().filter(|folder| shares_pages(*folder)).map(|(name, _)| name.clone()).collect();
    for document in documents.iter_mut().filter(|document| document.version.is_none()) {
        if let Some((first, _)) = first_folder(document, scope).filter(|(first, _)| versions.contains(first))
        {
            document.version = Some(first);
            document.work = scope.folder.to_string();
        }
    }
}

/// A first folder with the name of its pages' language is a locale; the pages without such a folder are in the default
/// one, which is returned.
fn by_language(
    documents: &mut [Document],
    scope: &Scope,
    languages: &HashMap<String, String>,
) -> Option<String> {
    let same = |name: &str, language: &str| {
        let primary = |text: &str| text.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
        primary(name) == primary(language)
    };
    let confirmed = |document: &Document| {
        let (first, _) = first_folder(document, scope).filter(|(first, _)| is_locale(first))?;
        languages.get(&document.id).filter(|language| same(&first, language))?;
        Some(first)
    };
    let is_open = |document: &Document| document.locale.is_none() && document.version.is_none();
    let locales: Vec<Option<String>> =
        documents.iter().map(|document| confirmed(document).filter(|_| is_open(document))).collect();
    if locales.iter().all(Option::is_none) {
        return None;
    }
    // The most common language of the other pages.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let others =
        documents.iter().zip(&locales).filter(|(document, locale)| locale.is_none() && is_open(document));
    for (document, _) in others {
        if let Some(language) = languages.get(&document.id) {
            *counts.entry(language).or_default() += 1;
        }
    }
    let default = counts.into_iter().max_by_key(|(_, count)| *count).map(|(language, _)| language.to_owned());
    for (document, locale) in documents.iter_mut().zip(locales).filter(|(document, _)| is_open(document)) {
        document.locale = locale.or_else(|| default.clone());
        document.work = scope.folder.to_string();
    }
    default
}

/// Of the versions that Docusaurus names, the default one has no folder of its own; the same goes for locales.
fn without_a_folder(documents: &[Document]) -> Vec<Released> {
    type Counts<'a> = BTreeMap<&'a str, [usize; 2]>;
    let mut works: BTreeMap<&str, (Counts<'_>, Counts<'_>)> = BTreeMap::new();
    for document in documents.iter().filter(|document| document.work.contains(' ')) {
        let (versions, locales) = works.entry(&document.work).or_default();
        let has = |folder: &str| document.url.split('/').any(|part| part == folder);
        if let Some(version) = &document.version {
            versions.entry(version).or_default()[usize::from(has(version) || has("next"))] += 1;
        }
        if let Some(locale) = &document.locale {
            locales.entry(locale).or_default()[usize::from(has(locale))] += 1;
        }
    }
    let most_often = |counts: &Counts<'_>| {
        let found = counts.iter().filter(|(_, [without, with])| without > with);
        found.max_by_key(|(_, [without, _])| *without).map(|(name, _)| (*name).to_owned())
    };
    let released = |(work, (versions, locales)): (&str, (Counts<'_>, Counts<'_>))| Released {
        work: work.to_owned(),
        version: most_often(&versions),
        locale: most_often(&locales),
    };
    works.into_iter().map(released).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::contents::SiteOptions;

    /// Version and locale of each page, which is given by its path and its language, and what is released.
    fn assigned(pages: &[(&str, &str)]) -> (Vec<String>, Vec<Released>) {
        let scope = Scope::new(&Url::parse("https://x.org/").unwrap(), &SiteOptions::default()).unwrap();
        let mut languages = HashMap::new();
        let mut documents: Vec<Document> = Vec::new();
        for (path, language) in pages {
            let url = format!("https://x.org/{path}");
            let mut document = Document::new(&url, &url, "");
            note(&mut document, &Head::default());
            languages.insert(url, (*language).to_owned());
            documents.push(document);
        }
        let released = assign(&mut documents, &scope, &languages);
        let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
        let shown = documents
            .iter()
            .map(|document| format!("{} {}", name(&document.version), name(&document.locale)));
        (shown.collect(), released)
    }

    #[test]
    fn folders_with_the_same_pages_are_versions() {
        let (found, _) =
            assigned(&[("1.0/a/", "en"), ("1.0/b/", "en"), ("2.0/a/", "en"), ("2.0/c/", "en"), ("", "en")]);
        assert_eq!(found, ["1.0 -", "1.0 -", "2.0 -", "2.0 -", "- -"]);
        let (found, _) =
            assigned(&[("2019/a/", "en"), ("2020/b/", "en"), ("2020/c/", "en"), ("news/1.2", "en")]);
        assert_eq!(found, ["- -"; 4]);
    }

    #[test]
    fn read_the_docs_names_both_in_the_address() {
        let (found, _) = assigned(&[("en/latest/a.html", "en"), ("de/stable/", "de"), ("about/", "en")]);
        assert_eq!(found, ["latest en", "stable de", "- -"]);
    }

    #[test]
    fn a_folder_is_a_locale_if_its_pages_are_in_that_language() {
        let (found, released) = assigned(&[("a", "en"), ("de/a", "de-DE"), ("it/a", "en")]);
        assert_eq!(found, ["- en", "- de", "- en"]);
        assert_eq!(released.last().unwrap().locale.as_deref(), Some("en"));
    }

    #[test]
    fn docusaurus_names_the_version_on_each_page() {
        let page = |path: &str, version: &str, locale: &str| {
            let url = format!("https://x.org/{path}");
            let mut head = Head::default();
            head.version = Some(version.to_owned());
            head.locale = Some(locale.to_owned());
            head.version_tag = Some(format!("docs-default-{version}"));
            let mut document = Document::new(&url, &url, "");
            note(&mut document, &head);
            document
        };
        let pages = [
            page("docs/a", "2.0", "en"),
            page("docs/next/a", "current", "en"),
            page("docs/1.0/a", "1.0", "en"),
            page("de/docs/a", "2.0", "de"),
        ];
        let released = without_a_folder(&pages);
        assert_eq!(released.len(), 1, "{released:?}");
        assert_eq!(
            (released[0].version.as_deref(), released[0].locale.as_deref()),
            (Some("2.0"), Some("en"))
        );
    }

    #[test]
    fn a_page_of_another_version_is_not_a_duplicate() {
        let url = |path: &str| Url::parse(&format!("https://x.org/{path}")).unwrap();
        assert!(
            !are_same(&url("en/stable/a"), &url("en/1.2/a"))
                && are_same(&url("en/stable/a"), &url("en/stable/b"))
        );
        let plain = Document::new("", "", "");
        assert_eq!(hash(&url("guide/a"), &plain), hash(&url("guide/b"), &plain));
        assert_ne!(hash(&url("1.0/a"), &plain), hash(&url("2.0/a"), &plain));
    }
}
