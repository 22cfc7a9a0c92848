//! Search results as the CLI, the HTTP API and stored turns contain them.

use serde::{Deserialize, Serialize};

use crate::retrieve::{Confidence, Hit, Retrieved};

/// A passage that was found.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SourceChunk {
    /// Rank of the passage, from 1.
    pub position: usize,
    /// Rank score multiplied by the relevance of the query, 0–1; descends with the rank.
    pub similarity_score: f32,
    /// Score by the reranker or the reader model, 0–1; null if neither scored the passage.
    pub rerank_score: Option<f32>,
    /// Text of the passage, as Markdown.
    pub content: String,
    /// URL of the page with the anchor of the section.
    pub url: String,
    /// Title of the page, or its id if it has none.
    pub page_title: String,
    /// The closest heading above the passage; null above the first heading.
    pub heading: Option<String>,
    /// The headings above the passage, outermost first.
    pub heading_hierarchy: Vec<String>,
    /// Title and headings in one line: `Title > Heading > Heading`.
    pub breadcrumb: String,
    /// Name of the book; omitted if the index has only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub book_name: String,
    /// Name of the module.
    pub module_name: String,
    /// Name of the version; null if the book has no versions.
    #[serde(default)]
    pub version: Option<String>,
    /// Code of the locale; null if the book has only one.
    #[serde(default)]
    pub locale: Option<String>,
    /// Id of the page without its file extension.
    pub chapter_id: String,
    /// Id of the passage.
    pub chunk_id: String,
    /// Id of the page.
    pub document_id: String,
    /// Position of the passage on the page, from 0.
    pub chunk_index: u32,
    /// Length in tokens of the embedder, including the title line.
    pub token_count: u32,
    /// Purpose of its section: `body`, `exercise`, `glossary`, `changelog` or `navigation`.
    #[serde(default)]
    pub role: String,
}

impl SourceChunk {
    /// Converts the hit at `position`, counted from 1.
    pub fn new(position: usize, hit: &Hit) -> Self {
        let chunk = &hit.chunk;
        Self {
            position,
            similarity_score: hit.score,
            rerank_score: hit.rerank_score,
            content: chunk.content.clone(),
            url: chunk.url.clone(),
            page_title: chunk.title().to_owned(),
            heading: chunk.heading.clone(),
            heading_hierarchy: chunk.heading_hierarchy.clone(),
            breadcrumb: chunk.breadcrumb(),
            book_name: chunk.book_name.clone(),
            module_name: chunk.module_name.clone(),
            version: chunk.edition.version.clone(),
            locale: chunk.edition.locale.clone(),
            chapter_id: chapter_id(&chunk.document_id).to_owned(),
            chunk_id: chunk.id.to_string(),
            document_id: chunk.document_id.clone(),
            chunk_index: chunk.index,
            token_count: chunk.token_count,
            role: chunk.section_kind.role().to_owned(),
        }
    }

    /// The name of its module, with its book, its version and its locale if there are several.
    pub fn part(&self) -> String {
        let mut part = match self.book_name.as_str() {
            "" => self.module_name.clone(),
            book => format!("{book}: {}", self.module_name),
        };
        for name in [&self.version, &self.locale].into_iter().flatten() {
            part.push_str(", ");
            part.push_str(name);
        }
        part
    }
}

fn chapter_id(document_id: &str) -> &str {
    match document_id.rsplit_once('.') {
        Some((stem, extension)) if !extension.contains('/') => stem,
        _ => document_id,
    }
}

/// The response to a search.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SearchResponse {
    /// The query, without surrounding white space.
    pub query: String,
    /// The passages, best first.
    pub chunks: Vec<SourceChunk>,
    /// Number of passages in `chunks`.
    pub total_found: usize,
    /// Time to embed the query, search and rank, in milliseconds.
    pub query_time_ms: f64,
    /// Whether `confidence` is `high`: the book seems to cover the query.
    pub has_relevant_results: bool,
    /// Estimated probability that the book covers the query, 0–1.
    pub relevance: f32,
    /// How likely it is that the book covers the query: `high`, `low` or `none`.
    pub confidence: Confidence,
    /// Version of the index that was searched.
    pub index_version: String,
}

impl SearchResponse {
    /// Builds the response from the result of a search.
    pub fn new(query: &str, retrieved: &Retrieved) -> Self {
        let time = retrieved.embedding_time + retrieved.retrieval_time;
        Self {
            query: query.to_owned(),
            chunks: retrieved
                .hits
                .iter()
                .zip(1..)
                .map(|(hit, position)| SourceChunk::new(position, hit))
                .collect(),
            total_found: retrieved.hits.len(),
            query_time_ms: time.as_secs_f64() * 1000.0,
            has_relevant_results: retrieved.confidence == Confidence::High,
            relevance: retrieved.relevance,
            confidence: retrieved.confidence,
            index_version: retrieved.version.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::chunk;
    use std::sync::Arc;

    #[test]
    fn a_chapter_id_is_a_page_id_without_extension() {
        assert_eq!(chapter_id("m1/ch1.md"), "m1/ch1");
        assert_eq!(chapter_id("v1.2/intro"), "v1.2/intro");
    }

    #[test]
    fn a_page_without_a_title_is_named_after_its_file() {
        let mut untitled = chunk("guide/start.md", 0, "Begin here.");
        untitled.page_title = String::new();
        let source = SourceChunk::new(1, &Hit { chunk: Arc::new(untitled), score: 0.5, rerank_score: None });
        assert_eq!(
            (source.page_title.as_str(), source.breadcrumb.as_str()),
            ("guide/start.md", "guide/start.md")
        );
    }
}
