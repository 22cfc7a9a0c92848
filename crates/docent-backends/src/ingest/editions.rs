//! Decides which versions and locales the book has, and which are the default.
//!
//! What was given for a source counts. What was found in folders and addresses counts if it tells at least two
//! versions, or two locales, of the same work apart.
//!
//! Invariant: a work with versions has exactly one default version, and likewise for locales.

use std::collections::HashMap;

use docent_core::edition::Edition;
use docent_parse::document::Document;

use super::volume::Volume;
use crate::source::Released;
use crate::source::edition::released;

/// The default versions and locales of all works.
#[derive(Debug, Default)]
pub(super) struct Editions {
    defaults: HashMap<Work, (Option<String>, Option<String>)>,
}

/// The name of the book and the name of the work.
type Work = (String, String);

/// The versions and locales of a work, in the order of its pages.
#[derive(Default)]
struct Found {
    versions: Vec<String>,
    locales: Vec<String>,
}

impl Editions {
    /// Removes versions and locales that tell nothing apart, and chooses the default ones. `told` is what the sources
    /// say about the default ones; the first one counts.
    pub(super) fn settle(volumes: &mut [Volume], told: &[Released]) -> Self {
        let mut works: HashMap<Work, Found> = HashMap::new();
        for (name, document) in all(volumes) {
            if document.version.is_none() && document.locale.is_none() {
                continue;
            }
            let found = works.entry((name.to_owned(), document.work.clone())).or_default();
            for (names, name) in
                [(&mut found.versions, &document.version), (&mut found.locales, &document.locale)]
            {
                names.extend(name.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
            }
        }
        for volume in volumes {
            for document in volume.documents.iter_mut().filter(|document| !document.work.is_empty()) {
                let Some(found) = works.get(&(volume.name.clone(), document.work.clone())) else { continue };
                if found.versions.len() < 2 {
                    document.version = None;
                }
                if found.locales.len() < 2 {
                    document.locale = None;
                }
            }
        }
        let defaults = works.into_iter().map(|(work, found)| {
            let told: Vec<&Released> = told.iter().filter(|told| told.work == work.1).collect();
            let chosen = |names: &[String], told: Option<&String>, otherwise: Option<&str>| {
                told.filter(|told| names.contains(told)).cloned().or_else(|| otherwise.map(str::to_owned))
            };
            let names: Vec<&str> = found.versions.iter().map(String::as_str).collect();
            let version = told.iter().find_map(|told| told.version.as_ref());
            let version = chosen(&found.versions, version, released(&names));
            let locale = told.iter().find_map(|told| told.locale.as_ref());
            let locale = chosen(&found.locales, locale, found.locales.first().map(String::as_str));
            (work, (version, locale))
        });
        Self { defaults: defaults.collect() }
    }

    /// The edition of a page.
    pub(super) fn of(&self, book: &str, document: &Document) -> Edition {
        let Document { version, locale, work, .. } = document;
        let none = (None, None);
        let (default_version, default_locale) =
            self.defaults.get(&(book.to_owned(), work.clone())).unwrap_or(&none);
        Edition {
            version: version.clone(),
            locale: locale.clone(),
            is_other_version: version.is_some() && version != default_version,
            is_other_locale: locale.is_some() && locale != default_locale,
        }
    }
}

fn all(volumes: &[Volume]) -> impl Iterator<Item = (&str, &Document)> {
    volumes.iter().flat_map(|volume| volume.documents.iter().map(|document| (volume.name.as_str(), document)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(work: &str, version: Option<&str>, locale: Option<&str>) -> Document {
        let mut page = Document::new("page", "https://x.org/", "Page");
        page.work = work.to_owned();
        page.version = version.map(str::to_owned);
        page.locale = locale.map(str::to_owned);
        page
    }

    /// The editions of pages that are given by work, version and locale; an asterisk marks those that are not the
    /// default.
    fn settled(pages: Vec<Document>, told: &[Released]) -> Vec<String> {
        let mut volumes = [Volume { name: String::new(), documents: pages }];
        let editions = Editions::settle(&mut volumes, told);
        let shown = |document: &Document| {
            let edition = editions.of("", document);
            let mark = |is_other| if is_other { "*" } else { "" };
            format!(
                "{}{} {}{}",
                edition.version.as_deref().unwrap_or("-"),
                mark(edition.is_other_version),
                edition.locale.as_deref().unwrap_or("-"),
                mark(edition.is_other_locale)
            )
        };
        volumes[0].documents.iter().map(shown).collect()
    }

    #[test]
    fn a_single_version_or_locale_that_was_found_does_not_count() {
        let found = || page("https://x.org", Some("latest"), Some("en"));
        assert_eq!(settled(vec![found(), page("", None, None)], &[]), ["- -", "- -"]);
        assert_eq!(
            settled(vec![found(), page("https://x.org", Some("1.0"), Some("en"))], &[]),
            ["latest -", "1.0* -"]
        );
        // Two works do not have each other's versions.
        assert_eq!(
            settled(vec![found(), page("https://y.org", Some("stable"), Some("en"))], &[]),
            ["- -", "- -"]
        );
        // A version that was given counts.
        assert_eq!(settled(vec![page("", Some("1.0"), None)], &[]), ["1.0 -"]);
    }

    #[test]
    fn the_source_chooses_the_default_and_the_first_locale_is_the_default_otherwise() {
        let pages = || {
            vec![
                page("p", Some("current"), Some("en")),
                page("p", Some("2.0"), Some("en")),
                page("p", Some("2.0"), Some("de")),
            ]
        };
        assert_eq!(settled(pages(), &[]), ["current* en", "2.0 en", "2.0 de*"]);
        let told = Released { work: "p".into(), version: Some("current".into()), locale: Some("de".into()) };
        assert_eq!(settled(pages(), &[told]), ["current en*", "2.0* en*", "2.0* de"]);
    }
}
