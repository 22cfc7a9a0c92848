//! Prefixes that tell a model whether a text is a question or a passage.
//!
//! Models are trained with these prefixes and retrieve worse without them. Servers such as Ollama do not add
//! them.
//!
//! Invariant: prefixes change vectors, so an embedder that uses them includes them in its id.

use docent_core::embed::Purpose;

/// The prefixes of questions and passages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefixes {
    /// The prefix of questions.
    pub query: String,
    /// The prefix of passages.
    pub passage: String,
}

const SEARCH: &str = "Represent this sentence for searching relevant passages: ";
const INSTRUCT: &str =
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ";

/// Model families by parts of their names. The first match is used.
const KNOWN: [(&[&str], &str, &str); 13] = [
    (&["e5", "instruct"], INSTRUCT, ""),
    (&["e5-"], "query: ", "passage: "),
    (&["bge-m3"], "", ""),
    (&["bge-", "-zh"], "为这个句子生成表示以用于检索相关文章：", ""),
    (&["bge-", "-en"], SEARCH, ""),
    (&["bge-large"], SEARCH, ""),
    (&["mxbai-embed"], SEARCH, ""),
    (&["arctic-embed", "v2"], "query: ", ""),
    (&["arctic-embed2"], "query: ", ""),
    (&["arctic-embed"], SEARCH, ""),
    (&["nomic-embed-text"], "search_query: ", "search_document: "),
    (&["embeddinggemma"], "task: search result | query: ", "title: none | text: "),
    (&["qwen3-embedding"], INSTRUCT, ""),
];

impl Prefixes {
    /// The prefixes that a model of this name was trained with; empty if unknown.
    pub fn known(model: &str) -> Self {
        let name = model.to_lowercase();
        let family = KNOWN.iter().find(|(parts, _, _)| parts.iter().all(|part| name.contains(part)));
        family.map_or_else(Self::default, |(_, query, passage)| Self {
            query: (*query).to_owned(),
            passage: (*passage).to_owned(),
        })
    }

    /// Replaces prefixes by those from the settings.
    pub fn or(self, query: Option<&str>, passage: Option<&str>) -> Self {
        Self {
            query: query.map_or(self.query, str::to_owned),
            passage: passage.map_or(self.passage, str::to_owned),
        }
    }

    /// The prefix for this purpose.
    pub fn of(&self, purpose: Purpose) -> &str {
        match purpose {
            Purpose::Query => &self.query,
            Purpose::Passage | Purpose::Sentence => &self.passage,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.query.is_empty() && self.passage.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_families_are_recognized_by_name() {
        let known = |name| {
            let Prefixes { query, passage } = Prefixes::known(name);
            (query.split(' ').next().unwrap_or_default().to_owned(), passage)
        };
        assert_eq!(known("intfloat/multilingual-e5-small"), ("query:".to_owned(), "passage: ".to_owned()));
        assert_eq!(known("multilingual-e5-large-instruct"), ("Instruct:".to_owned(), String::new()));
        assert_eq!(known("BAAI/bge-small-en-v1.5").0, "Represent");
        assert!(known("bge-base-zh-v1.5").0.starts_with('为'));
        assert!(Prefixes::known("bge-m3").is_empty());
        assert_eq!(known("nomic-embed-text:latest").1, "search_document: ");
        assert_eq!(known("snowflake-arctic-embed2").0, "query:");
        assert!(Prefixes::known("all-MiniLM-L6-v2").is_empty());
        assert!(Prefixes::known("text-embedding-3-small").is_empty());
    }

    #[test]
    fn settings_override_known_prefixes() {
        let prefixes = Prefixes::known("e5-small").or(Some("frage: "), None);
        assert_eq!((prefixes.of(Purpose::Query), prefixes.of(Purpose::Passage)), ("frage: ", "passage: "));
    }
}
