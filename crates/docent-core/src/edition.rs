//! The versions and locales of a book, and which of them a search uses.
//!
//! A page has a version and a locale only if its book has several. One version and one locale are the default: a
//! question that names none is answered from them. Which ones those are is decided when the book is ingested.
//!
//! Invariant: a page without a version belongs to every version, and likewise for locales.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Named in a request, this stands for all versions or all locales.
pub const ALL: &str = "all";

/// The version and the locale of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Edition {
    /// Name of the version; none if the book has no versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Code of the locale; none if the book has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// Whether another version is the default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_other_version: bool,
    /// Whether another locale is the default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_other_locale: bool,
}

impl Edition {
    /// Whether the book has neither versions nor locales.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a question without a version and a locale is answered from this edition.
    pub fn is_default(&self) -> bool {
        !self.is_other_version && !self.is_other_locale
    }

    /// The version and the locale for users, such as `2.4, de`; empty if there are none.
    pub fn label(&self) -> String {
        let parts: Vec<&str> =
            [&self.version, &self.locale].into_iter().flatten().map(String::as_str).collect();
        parts.join(", ")
    }
}

/// Which versions, or which locales, a search uses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The default one.
    #[default]
    Default,
    /// All of them.
    All,
    /// The one with this name.
    Named(String),
}

impl Choice {
    /// Whether it admits a page: its version or locale, and whether another one is the default.
    pub fn admits(&self, name: Option<&str>, is_other: bool) -> bool {
        match self {
            Self::Default => !is_other,
            Self::All => true,
            Self::Named(wanted) => name.is_none_or(|name| name == wanted),
        }
    }

    /// The name, if one was chosen.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Default | Self::All => None,
        }
    }

    /// The same, except that no choice stands for all: for a page that was requested by its id.
    pub fn or_all(&self) -> Self {
        match self {
            Self::Default => Self::All,
            chosen => chosen.clone(),
        }
    }
}

impl From<Option<String>> for Choice {
    /// The choice of a request: the default without a name, all for [`ALL`].
    fn from(name: Option<String>) -> Self {
        match name {
            None => Self::Default,
            Some(name) if name == ALL => Self::All,
            Some(name) => Self::Named(name),
        }
    }
}

/// A version or a locale of a book.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The name to use in requests.
    pub name: String,
    /// The book it belongs to; omitted if the index has only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub book: String,
    /// Whether it is used for requests that name none.
    #[serde(default, rename = "default")]
    pub is_default: bool,
    /// Number of pages.
    pub pages: usize,
}

/// The versions and the locales among these pages, each given by its book and its edition; the default ones first,
/// then in the order of the pages.
pub fn variants<'a>(pages: impl IntoIterator<Item = (&'a str, &'a Edition)>) -> (Vec<Variant>, Vec<Variant>) {
    let (mut versions, mut locales) = (Counted::default(), Counted::default());
    for (book, edition) in pages {
        versions.count(book, edition.version.as_deref(), edition.is_other_version);
        locales.count(book, edition.locale.as_deref(), edition.is_other_locale);
    }
    (versions.finish(), locales.finish())
}

#[derive(Default)]
struct Counted<'a> {
    found: Vec<Variant>,
    places: BTreeMap<(&'a str, &'a str), usize>,
}

impl<'a> Counted<'a> {
    fn count(&mut self, book: &'a str, name: Option<&'a str>, is_other: bool) {
        let Some(name) = name else { return };
        let place = *self.places.entry((book, name)).or_insert_with(|| {
            let (name, book) = (name.to_owned(), book.to_owned());
            self.found.push(Variant { name, book, is_default: false, pages: 0 });
            self.found.len() - 1
        });
        self.found[place].pages += 1;
        self.found[place].is_default |= !is_other;
    }

    fn finish(mut self) -> Vec<Variant> {
        self.found.sort_by_key(|variant| !variant.is_default);
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edition(version: &str, is_other_version: bool) -> Edition {
        Edition { version: Some(version.to_owned()), is_other_version, ..Edition::default() }
    }

    #[test]
    fn a_choice_admits_its_own_pages_and_those_without_a_version() {
        let named = Choice::from(Some("1.0".to_owned()));
        assert!(
            named.admits(Some("1.0"), true) && named.admits(None, false) && !named.admits(Some("2.0"), false)
        );
        assert!(Choice::from(None).admits(Some("2.0"), false) && !Choice::Default.admits(Some("1.0"), true));
        assert!(Choice::from(Some("all".to_owned())).admits(Some("1.0"), true));
    }

    #[test]
    fn variants_are_counted_by_book_with_the_default_first() {
        let (old, new) = (edition("1.0", true), edition("2.0", false));
        let (versions, locales) = variants([("a", &old), ("a", &new), ("a", &new), ("b", &new)]);
        let shown: Vec<_> = versions.iter().map(|v| (&*v.book, &*v.name, v.is_default, v.pages)).collect();
        assert_eq!(shown, [("a", "2.0", true, 2), ("b", "2.0", true, 1), ("a", "1.0", false, 1)]);
        assert!(locales.is_empty());
    }
}
