//! What came of a turn becomes the answer every surface shows.

use std::time::Duration;

use super::compose::{Written, abstention};
use super::{Agent, Draft, EXTRACTIVE};
use crate::answer::{AgentResponse, Metadata};
use crate::query::Question;
use crate::retrieve::{Confidence, Hit, Retrieved};
use crate::session::ToolRecord;
use crate::sources::SourceChunk;

/// A response, and what the store keeps beside it.
#[derive(Debug, Clone)]
pub struct Answered {
    pub response: AgentResponse,
    pub sources: Vec<SourceChunk>,
    pub tool_calls: Vec<ToolRecord>,
}

impl Agent {
    /// An answer when something was written that rests on the book; else an abstention.
    pub(super) fn respond(
        &self,
        asked: &Question,
        retrieved: &Retrieved,
        drafted: Option<(Draft, Written)>,
    ) -> Answered {
        match drafted {
            Some((draft, written)) if !written.citations.is_empty() => {
                let mut response = self.blank(asked, retrieved);
                response.answer = written.answer(&self.settings);
                response.sentences = written.sentences;
                response.citations = written.citations;
                response.grounded = true;
                let sources = source_chunks(&draft.hits);
                Answered { tool_calls: draft.fill(&mut response), sources, response }
            }
            drafted => self.abstain(asked, retrieved, drafted.map(|(draft, _)| draft)),
        }
    }

    /// Says that the book does not cover the question, and where to look.
    fn abstain(&self, asked: &Question, retrieved: &Retrieved, draft: Option<Draft>) -> Answered {
        let sources = source_chunks(&retrieved.hits);
        let mut response = self.blank(asked, retrieved);
        response.answer = abstention(&sources);
        response.confidence = if retrieved.hits.is_empty() { Confidence::None } else { Confidence::Low };
        let mut tool_calls = Vec::new();
        if let Some(draft) = draft {
            tool_calls = Draft { hits: retrieved.hits.clone(), ..draft }.fill(&mut response);
        }
        Answered { response, sources, tool_calls }
    }

    /// A response with everything that does not depend on the answer.
    fn blank(&self, asked: &Question, retrieved: &Retrieved) -> AgentResponse {
        AgentResponse {
            turn_id: self.clock.new_id(),
            session_id: None,
            query: asked.text().to_owned(),
            answer: String::new(),
            sentences: Vec::new(),
            citations: Vec::new(),
            sources: None,
            grounded: false,
            confidence: retrieved.confidence,
            relevance: retrieved.relevance,
            scope: crate::answer::Scope::default(),
            model_used: EXTRACTIVE.to_owned(),
            tokens_used: 0,
            retrieval_count: retrieved.hits.len(),
            degraded: false,
            error: None,
            timestamp: self.clock.timestamp(),
            metadata: Metadata {
                embedding_time_ms: milliseconds(retrieved.embedding_time),
                retrieval_time_ms: milliseconds(retrieved.retrieval_time),
                chunk_count: retrieved.hits.len(),
                index_version: retrieved.version.clone(),
                ..Metadata::default()
            },
        }
    }
}

impl Draft {
    /// Enters how the answer came about; returns the tool calls, which the store keeps.
    fn fill(self, response: &mut AgentResponse) -> Vec<ToolRecord> {
        response.model_used = self.model;
        response.tokens_used = self.usage.total();
        response.degraded = self.degraded;
        response.error = self.error;
        response.retrieval_count = self.hits.len();
        response.metadata.chunk_count = self.hits.len();
        response.metadata.removed_pointers = self.removed_pointers;
        response.metadata.warnings = self.warnings;
        self.tool_calls
    }
}

/// Whole microseconds, so that a stored number reads back as it was.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

/// Hits as every surface shows them.
pub fn source_chunks(hits: &[Hit]) -> Vec<SourceChunk> {
    hits.iter().zip(1..).map(|(hit, position)| SourceChunk::new(position, hit)).collect()
}
