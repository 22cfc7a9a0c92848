//! The language of a book, which determines stemming, stop words, and the words that refer back or negate.
//!
//! Invariant: the language is a property of the index. It is decided once, at ingest, and questions are
//! analyzed by the same rules as the book.

mod function_words;

use std::fmt;
use std::str::FromStr;

use frostem::Algorithm;
pub use function_words::FunctionWords;
use serde::{Deserialize, Serialize};

/// A supported language. The default is English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Language(&'static Entry);

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    code: &'static str,
    /// ISO 639-3 code, as returned by whatlang.
    detected_as: &'static str,
    stemmer: Option<Algorithm>,
}

const fn entry(code: &'static str, detected_as: &'static str, stemmer: Option<Algorithm>) -> Entry {
    Entry { code, detected_as, stemmer }
}

/// The supported languages. The first one is the default.
static LANGUAGES: &[Entry] = &[
    entry("en", "eng", Some(Algorithm::English)),
    entry("ar", "ara", Some(Algorithm::Arabic)),
    entry("ca", "cat", Some(Algorithm::Catalan)),
    entry("cs", "ces", Some(Algorithm::Czech)),
    entry("da", "dan", Some(Algorithm::Danish)),
    entry("de", "deu", Some(Algorithm::German)),
    entry("el", "ell", Some(Algorithm::Greek)),
    entry("es", "spa", Some(Algorithm::Spanish)),
    entry("et", "est", Some(Algorithm::Estonian)),
    entry("fi", "fin", Some(Algorithm::Finnish)),
    entry("fr", "fra", Some(Algorithm::French)),
    entry("hi", "hin", Some(Algorithm::Hindi)),
    entry("hu", "hun", Some(Algorithm::Hungarian)),
    entry("id", "ind", Some(Algorithm::Indonesian)),
    entry("it", "ita", Some(Algorithm::Italian)),
    entry("ja", "jpn", None),
    entry("ko", "kor", None),
    entry("lt", "lit", Some(Algorithm::Lithuanian)),
    entry("nl", "nld", Some(Algorithm::Dutch)),
    entry("no", "nob", Some(Algorithm::Norwegian)),
    entry("pl", "pol", Some(Algorithm::Polish)),
    entry("pt", "por", Some(Algorithm::Portuguese)),
    entry("ro", "ron", Some(Algorithm::Romanian)),
    entry("ru", "rus", Some(Algorithm::Russian)),
    entry("sv", "swe", Some(Algorithm::Swedish)),
    entry("ta", "tam", Some(Algorithm::Tamil)),
    entry("tr", "tur", Some(Algorithm::Turkish)),
    entry("uk", "ukr", Some(Algorithm::Ukrainian)),
    entry("zh", "cmn", None),
];

impl Language {
    /// Detects the language of `sample`; English if that is unclear.
    pub fn detect(sample: &str) -> Self {
        whatlang::detect(sample)
            .filter(whatlang::Info::is_reliable)
            .and_then(|info| LANGUAGES.iter().find(|entry| entry.detected_as == info.lang().code()))
            .map_or_else(Self::default, Self)
    }

    /// Whether a text is reliably detected as another language.
    pub fn differs_from(self, text: &str) -> bool {
        whatlang::detect(text)
            .filter(whatlang::Info::is_reliable)
            .is_some_and(|info| info.lang().code() != self.0.detected_as)
    }

    /// ISO 639-1 code of the language.
    pub fn code(self) -> &'static str {
        self.0.code
    }

    /// The words that refer back, continue, ask or negate; none for languages without such lists.
    pub fn function_words(self) -> Option<&'static FunctionWords> {
        FunctionWords::of(self.0.code)
    }

    pub(crate) fn stemmer(self) -> Option<Algorithm> {
        self.0.stemmer
    }
}

impl Default for Language {
    fn default() -> Self {
        Self(&LANGUAGES[0])
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.code)
    }
}

/// The language is not supported.
#[derive(Debug, Clone, thiserror::Error)]
#[error("unknown language `{0}`; supported languages: {known}", known = known_codes())]
pub struct UnknownLanguage(String);

fn known_codes() -> String {
    LANGUAGES.iter().map(|entry| entry.code).collect::<Vec<_>>().join(", ")
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(code: &str) -> Result<Self, Self::Err> {
        let wanted = code.to_lowercase();
        LANGUAGES.iter().find(|entry| entry.code == wanted).map(Self).ok_or(UnknownLanguage(wanted))
    }
}

impl TryFrom<String> for Language {
    type Error = UnknownLanguage;

    fn try_from(code: String) -> Result<Self, Self::Error> {
        code.parse()
    }
}

impl From<Language> for String {
    fn from(language: Language) -> Self {
        language.0.code.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn german_text_is_detected() {
        let text = "Ein Knoten ist ein Programm, das über Themen mit anderen Knoten Nachrichten austauscht. \
                    Jeder Knoten hat einen Namen und gehört zu einem Graphen.";
        assert_eq!(Language::detect(text).code(), "de");
    }

    #[test]
    fn short_text_defaults_to_english() {
        assert_eq!(Language::detect("ROS").code(), "en");
    }

    #[test]
    fn the_error_for_an_unknown_code_lists_the_supported_ones() {
        let message = "xx".parse::<Language>().unwrap_err().to_string();
        assert!(message.contains("unknown language `xx`") && message.contains("en"), "{message}");
    }
}
