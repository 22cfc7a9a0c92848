//! A hit as every surface shows it: command line, HTTP, stored turns.

use serde::{Deserialize, Serialize};

use crate::retrieve::{Confidence, Hit, Retrieved};

/// `SourceChunk` of the contract.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceChunk {
    /// Rank, from 1.
    pub position: usize,
    /// 0–1, descending.
    pub similarity_score: f32,
    /// Null when no reranker ran.
    pub rerank_score: Option<f32>,
    /// The passage.
    pub content: String,
    /// The page with the section's anchor.
    pub url: String,
    /// The page's title.
    pub page_title: String,
    /// The nearest heading.
    pub heading: Option<String>,
    /// The headings above the passage, outermost first.
    pub heading_hierarchy: Vec<String>,
    /// Title and headings in one line.
    pub breadcrumb: String,
    /// The book, when an index has several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub book_name: String,
    /// The part of the book.
    pub module_name: String,
    /// The page without its extension.
    pub chapter_id: String,
    /// Names the passage.
    pub chunk_id: String,
    /// Names the page.
    pub document_id: String,
    /// The passage's place on the page, from 0.
    pub chunk_index: u32,
    /// Its length as the embedder counts it.
    pub token_count: u32,
}

impl SourceChunk {
    /// The hit at `position`, counted from 1.
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
            chapter_id: chapter_id(&chunk.document_id).to_owned(),
            chunk_id: chunk.id.to_string(),
            document_id: chunk.document_id.clone(),
            chunk_index: chunk.index,
            token_count: chunk.token_count,
        }
    }
}

fn chapter_id(document_id: &str) -> &str {
    match document_id.rsplit_once('.') {
        Some((stem, extension)) if !extension.contains('/') => stem,
        _ => document_id,
    }
}

/// What a search answers, on every surface.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchResponse {
    /// The question, trimmed.
    pub query: String,
    /// The passages, best first.
    pub chunks: Vec<SourceChunk>,
    /// How many passages are returned.
    pub total_found: usize,
    /// From the question to the answer.
    pub query_time_ms: f64,
    /// Whether the book seems to cover the question.
    pub has_relevant_results: bool,
    /// The probability that it does.
    pub relevance: f32,
    /// The same in a word.
    pub confidence: Confidence,
    /// The generation that answered.
    pub index_version: String,
}

impl SearchResponse {
    /// The response for what was retrieved.
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
    fn a_chapter_is_a_page_without_its_extension() {
        assert_eq!(chapter_id("m1/ch1.md"), "m1/ch1");
        assert_eq!(chapter_id("v1.2/intro"), "v1.2/intro");
    }

    #[test]
    fn a_page_without_a_title_is_called_after_its_file() {
        let mut untitled = chunk("guide/start.md", 0, "Begin here.");
        untitled.page_title = String::new();
        let source = SourceChunk::new(1, &Hit { chunk: Arc::new(untitled), score: 0.5, rerank_score: None });
        assert_eq!(
            (source.page_title.as_str(), source.breadcrumb.as_str()),
            ("guide/start.md", "guide/start.md")
        );
    }
}
