//! The response to a question: the same object in the CLI, the HTTP API and MCP.
//!
//! Invariant: `grounded` is true if and only if there is a citation.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::chunk::Chunk;
use crate::generate::Usage;
use crate::retrieve::Confidence;
use crate::search_response::SourceChunk;

/// The response to a question.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentResponse {
    /// Id of the turn.
    pub turn_id: Uuid,
    /// Id of the conversation the turn belongs to; null without one.
    pub session_id: Option<Uuid>,
    /// The question as asked, without surrounding white space.
    pub query: String,
    /// The query that was searched for, if it differs from the question: a follow-up that was completed, or a question with
    /// misspelled words that were corrected.
    #[serde(default)]
    pub rewritten_query: Option<String>,
    /// Whether this is an answer, an abstention, a reply to small talk, or an answer the user stopped.
    #[serde(default)]
    pub kind: ResponseKind,
    /// The answer as Markdown, including citations in the configured style.
    pub answer: String,
    /// The answer sentence by sentence, without citations in the text.
    pub sentences: Vec<Sentence>,
    /// The citations of the answer, in order of appearance.
    pub citations: Vec<Citation>,
    /// The passages that were retrieved, best first; omitted if the client did not request them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<SourceChunk>>,
    /// Whether the answer has at least one citation.
    pub grounded: bool,
    /// Whether the question was answered, partly answered, or declined.
    #[serde(default)]
    pub answer_status: AnswerStatus,
    /// Parts of the question, or words in it, that the book does not cover.
    #[serde(default)]
    pub missing: Vec<String>,
    /// How likely it is that the book covers the question: `high`, `low` or `none`.
    pub confidence: Confidence,
    /// Estimated probability that the book covers the question, 0–1.
    pub relevance: f32,
    /// Which part of the book the citations are from: the text the user selected, its section, or the whole
    /// book.
    #[serde(default)]
    pub scope: Scope,
    /// Name of the model that wrote the answer, or `extractive`.
    pub model_used: String,
    /// Total number of tokens the model used, input and output.
    pub tokens_used: u32,
    /// Number of passages that were retrieved.
    pub retrieval_count: usize,
    /// Whether the model failed and the answer is extractive instead.
    pub degraded: bool,
    /// Why the answer is `degraded`, in words for the user.
    pub error: Option<String>,
    /// Time of the answer, RFC 3339, UTC.
    pub timestamp: String,
    /// Timings, token counts and warnings.
    pub metadata: Metadata,
}

impl AgentResponse {
    /// Adds tokens that a model used for this answer.
    pub fn charge(&mut self, usage: Usage) {
        self.tokens_used = self.tokens_used.saturating_add(usage.total());
        self.metadata.prompt_tokens = self.metadata.prompt_tokens.saturating_add(usage.input_tokens);
        self.metadata.completion_tokens = self.metadata.completion_tokens.saturating_add(usage.output_tokens);
    }

    /// Resets the token counts, for an answer from the cache.
    pub fn charge_nothing(&mut self) {
        (self.tokens_used, self.metadata.prompt_tokens, self.metadata.completion_tokens) = (0, 0, 0);
    }
}

/// One sentence of an answer.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sentence {
    /// The text as Markdown. A list, a table or a code block counts as one sentence.
    pub text: String,
    /// Ids of the citations that support the sentence.
    pub citations: Vec<usize>,
    /// How well the passages support the sentence, 0–1; 1 if it claims nothing or verification is off.
    pub support: f32,
    /// Whether `verdict` is `supported`.
    pub supported: bool,
    /// The result of verifying the sentence.
    #[serde(default)]
    pub verdict: Verdict,
    /// Whether the sentence begins a new paragraph.
    #[serde(default)]
    pub new_paragraph: bool,
    /// The white space between the previous sentence and this one, exactly as in `answer`; empty for the
    /// first.
    #[serde(default)]
    pub separator: String,
    /// The text as sanitized HTML; only present if the client requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
}

/// A link from a sentence of an answer to the words of the book that support it.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Citation {
    /// Number of the citation, from 1, in order of appearance.
    pub id: usize,
    /// Title of the cited page.
    pub page_title: String,
    /// The closest heading above the quote; null above the first heading.
    pub heading: Option<String>,
    /// URL of the page with the anchor of the section and, if possible, a text fragment that highlights the
    /// quote.
    pub url: String,
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
    /// Id of the cited passage.
    pub chunk_id: String,
    /// The supporting words, exactly as they are in the passage.
    pub quote: String,
    /// The quote as sanitized HTML; only present if the client requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// Start of the quote in the passage's content, as a byte offset.
    pub start: usize,
    /// End of the quote in the passage's content, as a byte offset, exclusive.
    pub end: usize,
    /// The images whose captions are in the quote or directly after it; omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<CitedFigure>,
}

/// An image of the book that a citation shows.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CitedFigure {
    /// Its caption or description, exactly as it is in the passage.
    pub caption: String,
    /// URL of the image: of this server if it has a copy, otherwise where the book is published.
    pub image: String,
}

impl CitedFigure {
    /// The figures of a passage that belong to the quote at `span`.
    pub fn beside(chunk: &Chunk, span: &Range<usize>) -> Vec<Self> {
        let belongs = |caption: &str| {
            let mut places = chunk.content.match_indices(caption).map(|(at, _)| at);
            places.any(|at| {
                let overlaps = at < span.end && span.start < at + caption.len();
                let follows =
                    chunk.content.get(span.end..at).is_some_and(|between| between.trim().is_empty());
                overlaps || follows
            })
        };
        let own = chunk.figures.iter().filter(|figure| belongs(&figure.caption));
        own.map(|figure| Self { caption: figure.caption.clone(), image: figure.image.clone() }).collect()
    }
}

/// Timings, token counts and warnings of a response.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Metadata {
    /// Time from the question to the complete answer, in milliseconds.
    pub response_time_ms: f64,
    /// Time to embed the query, in milliseconds; 0 if the search was cached.
    pub embedding_time_ms: f64,
    /// Time to search and rank passages, in milliseconds; 0 if the search was cached.
    pub retrieval_time_ms: f64,
    /// Time to write and verify the answer, in milliseconds.
    pub generation_time_ms: f64,
    /// Number of passages that were retrieved.
    pub chunk_count: usize,
    /// Number of passages the reader model has read.
    #[serde(default)]
    pub passages_read: usize,
    /// Whether the reader model was too busy, so that passages were ranked without it.
    #[serde(default)]
    pub reader_busy: bool,
    /// Whether the answer came from the cache.
    pub cache_hit: bool,
    /// Input tokens: the part of `tokens_used` that was sent to the model.
    #[serde(default)]
    pub prompt_tokens: u32,
    /// Output tokens: the part of `tokens_used` that the model wrote.
    #[serde(default)]
    pub completion_tokens: u32,
    /// Version of the index that was used.
    pub index_version: String,
    /// Number of invalid passage numbers and unknown URLs that were removed from the model's text.
    #[serde(default)]
    pub removed_pointers: usize,
    /// Number of sentences of the model that are not in the answer because the book does not support them.
    #[serde(default)]
    pub rejected_sentences: usize,
    /// Warnings for the user, for example that the conversation was too long for the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// How much of a question was answered.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AnswerStatus {
    /// The whole question was answered.
    #[default]
    Answered,
    /// Part of the question was answered; `missing` names the rest.
    Partial,
    /// Nothing was answered: the book does not cover the question.
    Declined,
}

/// The result of verifying a sentence.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verdict {
    /// The cited passages support the sentence.
    Supported,
    /// No passage supports the sentence.
    Unsupported,
    /// The sentence was not verified, or cannot be, for example because it is in another language.
    #[default]
    Unverified,
    /// The sentence claims nothing, so there is nothing to verify.
    None,
}

/// The kind of a response.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResponseKind {
    /// An answer with citations.
    #[default]
    Answer,
    /// A reply that the book does not cover the question.
    Abstention,
    /// A reply to small talk, without citations.
    Conversation,
    /// The part of an answer that was written before the user stopped it.
    Stopped,
}

/// Which part of the book an answer cites.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scope {
    /// The whole book.
    #[default]
    Book,
    /// Only the section that contains the user's selection.
    Section,
    /// Only passages the user selected.
    Selection,
}
