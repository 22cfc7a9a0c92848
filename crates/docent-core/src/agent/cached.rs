//! Cache search results and answers across all users.
//!
//! Invariant: a key contains everything the cached value depends on, and nothing else. Settings and model are
//! not part of it because each agent has its own cache.

use std::time::Duration;

use xxhash_rust::xxh3::xxh3_128;

use super::response::Answered;
use super::window::Window;
use super::{AskError, Brief, Listener, PinnedAgent, State, TurnEvent};
use crate::answer::Verdict;
use crate::generate::Message;
use crate::index::Filter;
use crate::query::Question;
use crate::retrieve::Retrieved;
use uuid::Uuid;

/// What a search depends on. It includes the index version, so publishing a new generation invalidates the
/// cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SearchKey {
    text: String,
    top_k: usize,
    threshold: u32,
    filter: Filter,
    index_version: String,
}

/// What an answer depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AnswerKey {
    search: SearchKey,
    /// The passages used: a selection reorders them, and passages cited in earlier turns are added.
    passages: Vec<Uuid>,
    /// Hash of everything the model would be sent, including earlier turns; none without a model.
    sent: Option<u128>,
}

/// Whether an answer may be cached: every sentence is supported, and neither the model nor the reader was
/// unavailable.
pub fn may_recur(answered: &Answered, retrieved: &Retrieved) -> bool {
    let response = &answered.response;
    response.grounded
        && !response.degraded
        && !retrieved.reader_busy
        && response.sentences.iter().all(|sentence| sentence.verdict != Verdict::Unsupported)
}

impl PinnedAgent {
    /// The cache key of the answer.
    pub(super) fn answer_key(&self, search: SearchKey, brief: &Brief<'_>) -> AnswerKey {
        let hits = &brief.retrieved.hits;
        let sent = self.parts.generator.as_ref().map(|_| {
            let sent = brief.prefetched(&self.parts.settings);
            hash(&Window::new(brief.asked, &sent, brief.history, &self.parts.settings).messages)
        });
        AnswerKey { search, passages: hits.iter().map(|hit| hit.chunk.id).collect(), sent }
    }

    /// Searches, or returns the cached result.
    pub(super) async fn search(&self, question: &Question) -> Result<(SearchKey, Retrieved), AskError> {
        let key = SearchKey {
            text: question.text().to_owned(),
            top_k: question.top_k(),
            threshold: question.threshold().to_bits(),
            filter: question.filter().clone(),
            index_version: self.retriever.version().await?,
        };
        if let Some(known) = self.parts.searches.get(&key) {
            let known = Retrieved { embedding_time: Duration::ZERO, retrieval_time: Duration::ZERO, ..known };
            return Ok((key, known));
        }
        let retrieved = self.retriever.search(question).await?;
        // Do not cache a result that the reader was too busy to judge.
        if !retrieved.reader_busy {
            self.parts.searches.put(key.clone(), retrieved.clone());
        }
        Ok((key, retrieved))
    }

    /// Turns a cached answer into a new turn, which used no tokens.
    pub(super) fn again(&self, mut answered: Answered, asked: &Question, listener: Listener<'_>) -> Answered {
        let response = &mut answered.response;
        response.query = asked.text().to_owned();
        response.turn_id = self.parts.clock.new_id();
        response.timestamp = self.parts.clock.timestamp();
        response.charge_nothing();
        response.metadata.cache_hit = true;
        listener(TurnEvent::State(State::Generating));
        for sentence in &response.sentences {
            let cited =
                response.citations.iter().filter(|citation| sentence.citations.contains(&citation.id));
            listener(TurnEvent::Sentence(sentence.clone(), cited.cloned().collect()));
        }
        answered
    }
}

/// Hashes roles and texts. Lengths are included, so that the same text divided differently has another hash.
fn hash(messages: &[Message]) -> u128 {
    let mut bytes = Vec::new();
    for message in messages {
        bytes.extend(format!("{:?} {} ", message.role, message.content.len()).bytes());
        bytes.extend(message.content.bytes());
    }
    xxh3_128(&bytes)
}
