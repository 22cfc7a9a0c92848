//! The answer to a question, the same object on every surface.
//!
//! Invariant: `grounded` holds exactly when there is a citation.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::retrieve::Confidence;
use crate::sources::SourceChunk;

/// `AgentResponse` of the contract.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentResponse {
    /// Names the turn.
    pub turn_id: Uuid,
    /// The session the turn belongs to.
    pub session_id: Option<Uuid>,
    /// The question, trimmed.
    pub query: String,
    /// Markdown, with the citations rendered in it.
    pub answer: String,
    /// The answer sentence by sentence, without rendered citations.
    pub sentences: Vec<Sentence>,
    /// The words the answer rests on.
    pub citations: Vec<Citation>,
    /// The passages retrieved; left out when the caller does not want them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<SourceChunk>>,
    /// Whether the answer rests on the book.
    pub grounded: bool,
    /// How well the book covers the question.
    pub confidence: Confidence,
    /// The same as a number.
    pub relevance: f32,
    /// What the answer rests on: what the reader selected, its section, or the whole book.
    #[serde(default)]
    pub scope: Scope,
    /// The model, or `extractive`.
    pub model_used: String,
    /// What the model used.
    pub tokens_used: u32,
    /// How many passages were retrieved.
    pub retrieval_count: usize,
    /// Whether a model should have written the answer and could not.
    pub degraded: bool,
    /// What went wrong, in words for the reader.
    pub error: Option<String>,
    /// When, RFC 3339, UTC.
    pub timestamp: String,
    /// Timings and such.
    pub metadata: Metadata,
}

/// One sentence of an answer.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sentence {
    /// Its words; a list or a code block may be one.
    pub text: String,
    /// The citations it carries, by id.
    pub citations: Vec<usize>,
    /// How well the cited passages support it, 0–1.
    pub support: f32,
    /// Whether that is enough.
    pub supported: bool,
    /// Whether it begins a new paragraph.
    #[serde(default)]
    pub new_paragraph: bool,
    /// Its words as safe HTML, for a page that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
}

/// The words in the book a sentence rests on.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Citation {
    /// From 1, in order of appearance.
    pub id: usize,
    /// The page.
    pub page_title: String,
    /// The nearest heading.
    pub heading: Option<String>,
    /// Page, anchor and, where a browser can find them, the words.
    pub url: String,
    /// The book, when an index has several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub book_name: String,
    /// The part of the book.
    pub module_name: String,
    /// The passage.
    pub chunk_id: String,
    /// The exact words relied on.
    pub quote: String,
    /// Where they begin in the passage, in bytes.
    pub start: usize,
    /// Where they end.
    pub end: usize,
}

/// Timings and such.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// From question to answer.
    pub response_time_ms: f64,
    /// For the question's vector.
    pub embedding_time_ms: f64,
    /// For finding and ranking.
    pub retrieval_time_ms: f64,
    /// For writing the answer.
    pub generation_time_ms: f64,
    /// Passages retrieved.
    pub chunk_count: usize,
    /// Whether the answer was given before.
    pub cache_hit: bool,
    /// The generation of the book.
    pub index_version: String,
    /// Pointers and addresses of the model that led nowhere and were taken out.
    #[serde(default)]
    pub removed_pointers: usize,
    /// What the reader should know about how the answer came about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What an answer rests on.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The whole book.
    #[default]
    Book,
    /// The section the reader's selection stands in.
    Section,
    /// The passages the reader selected.
    Selection,
}
