//! Build the response of a turn, as every interface returns it.
//!
//! Invariant: a response without citations is an abstention or small talk.

use std::time::Duration;

use super::writer::{Written, abstention, different_versions, not_covered};
use super::{Draft, EXTRACTIVE, PinnedAgent};
use crate::answer::{AgentResponse, AnswerStatus, Metadata, ResponseKind, Sentence, Verdict};
use crate::query::Question;
use crate::retrieve::{Confidence, Hit, Retrieved};
use crate::search_response::SourceChunk;
use crate::session::ToolRecord;

/// A response, and what is stored with it.
#[derive(Debug, Clone)]
pub struct Answered {
    pub response: AgentResponse,
    pub sources: Vec<SourceChunk>,
    pub tool_calls: Vec<ToolRecord>,
}

impl PinnedAgent {
    /// An answer if there are citations; otherwise an abstention.
    pub(super) fn respond(
        &self,
        asked: &Question,
        retrieved: &Retrieved,
        drafted: Option<(Draft, Written)>,
        contents: &[String],
    ) -> Answered {
        match drafted {
            Some((draft, written)) if !written.citations.is_empty() => {
                let mut response = self.blank(asked, retrieved);
                response.metadata.rejected_sentences = written.rejected;
                response.answer = written.answer(&self.parts.settings);
                let notes = [not_covered(retrieved), different_versions(&written.citations)];
                for note in notes.into_iter().flatten() {
                    response.answer.push_str(&format!("\n\n{note}"));
                    response.metadata.warnings.push(note);
                }
                response.sentences = written.sentences;
                response.citations = written.citations;
                response.grounded = true;
                response.missing.clone_from(&retrieved.uncovered);
                if !response.missing.is_empty() {
                    response.answer_status = AnswerStatus::Partial;
                }
                let sources = source_chunks(&draft.hits);
                Answered { tool_calls: draft.fill(&mut response), sources, response }
            }
            drafted => {
                let written = drafted.as_ref().map(|(_, written)| written);
                let rejected =
                    written.filter(|written| !written.declined).map_or(0, |written| written.unsupported());
                let draft = drafted.map(|(draft, _)| draft);
                let mut answered = self.abstain(asked, retrieved, draft, contents);
                answered.response.metadata.rejected_sentences = rejected;
                answered
            }
        }
    }

    /// A reply to small talk, without citations.
    pub(super) fn converse(&self, asked: &Question, retrieved: &Retrieved, words: String) -> Answered {
        let mut response = self.blank(asked, retrieved);
        response.kind = ResponseKind::Conversation;
        response.sentences.push(Sentence {
            text: words.clone(),
            citations: Vec::new(),
            support: 1.0,
            supported: false,
            verdict: Verdict::None,
            new_paragraph: true,
            separator: String::new(),
            html: None,
        });
        response.answer = words;
        response.confidence = Confidence::None;
        Answered { response, sources: Vec::new(), tool_calls: Vec::new() }
    }

    /// An abstention that names the closest sections.
    fn abstain(
        &self,
        asked: &Question,
        retrieved: &Retrieved,
        draft: Option<Draft>,
        contents: &[String],
    ) -> Answered {
        let sources = source_chunks(&retrieved.hits);
        let mut response = self.blank(asked, retrieved);
        response.answer = abstention(retrieved, &sources, contents);
        response.kind = ResponseKind::Abstention;
        response.answer_status = AnswerStatus::Declined;
        response.missing = retrieved.unmentioned.iter().map(|missing| missing.word.clone()).collect();
        response.confidence = if retrieved.hits.is_empty() { Confidence::None } else { Confidence::Low };
        let mut tool_calls = Vec::new();
        if let Some(draft) = draft {
            tool_calls = Draft { hits: retrieved.hits.clone(), ..draft }.fill(&mut response);
        }
        Answered { response, sources, tool_calls }
    }

    /// A response with all fields that do not depend on the answer.
    fn blank(&self, asked: &Question, retrieved: &Retrieved) -> AgentResponse {
        AgentResponse {
            turn_id: self.parts.clock.new_id(),
            session_id: None,
            query: asked.text().to_owned(),
            rewritten_query: None,
            kind: ResponseKind::default(),
            answer: String::new(),
            sentences: Vec::new(),
            citations: Vec::new(),
            sources: None,
            grounded: false,
            answer_status: AnswerStatus::default(),
            missing: Vec::new(),
            confidence: retrieved.confidence,
            relevance: retrieved.relevance,
            scope: crate::answer::Scope::default(),
            model_used: EXTRACTIVE.to_owned(),
            tokens_used: 0,
            retrieval_count: retrieved.hits.len(),
            degraded: false,
            error: None,
            timestamp: self.parts.clock.timestamp(),
            metadata: Metadata {
                embedding_time_ms: milliseconds(retrieved.embedding_time),
                retrieval_time_ms: milliseconds(retrieved.retrieval_time),
                chunk_count: retrieved.hits.len(),
                passages_read: retrieved.passages_judged,
                reader_busy: retrieved.reader_busy,
                index_version: retrieved.version.clone(),
                ..Metadata::default()
            },
        }
    }
}

impl Draft {
    /// Copies the draft into the response and returns the tool calls, which are stored with the turn.
    fn fill(self, response: &mut AgentResponse) -> Vec<ToolRecord> {
        response.model_used = self.model;
        response.charge(self.usage);
        response.degraded = self.degraded;
        response.error = self.error;
        response.retrieval_count = self.hits.len();
        response.metadata.chunk_count = self.hits.len();
        response.metadata.removed_pointers = self.removed_pointers;
        response.metadata.warnings.extend(self.warnings);
        self.tool_calls
    }
}

/// Milliseconds, rounded down to whole microseconds so that a stored number reads back unchanged.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

/// Converts hits into the form that responses contain.
pub fn source_chunks(hits: &[Hit]) -> Vec<SourceChunk> {
    hits.iter().zip(1..).map(|(hit, position)| SourceChunk::new(position, hit)).collect()
}
