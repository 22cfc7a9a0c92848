//! Use earlier turns: rewrite a follow-up so that it can be searched alone, and keep passages that were
//! cited.
//!
//! Invariant: a passage kept from an earlier turn still exists in the current index.

use std::time::Duration;

use super::aside::reply;
use super::settings::Rewrite;
use super::window::said;
use super::{Ask, AskError, NO_INFORMATION, PinnedAgent};
use crate::clock::within;
use crate::followup;
use crate::generate::{Generator, Meter, Usage};
use crate::index::Filter;
use crate::prompt;
use crate::query::{LONGEST_QUESTION, Question};
use crate::retrieve::{Hit, Retrieved};
use crate::session::Turn;

/// Time limit for a model to rewrite a question; after it, the rule-based rewrite is used.
const REWRITING_TIME: Duration = Duration::from_secs(3);

/// How many turns the model sees when it rewrites a question, and from how many turns cited passages are
/// kept.
const RECENT_TURNS: usize = 3;

/// Maximum number of passages kept from earlier turns.
const MOST_KEPT: usize = 2;

/// The result of rewriting a question.
pub struct Rewritten {
    /// What to search for; none if the question does not depend on earlier turns.
    pub text: Option<String>,
    /// Tokens the model used for the rewrite.
    pub usage: Usage,
}

impl PinnedAgent {
    pub(super) async fn history(&self, ask: &Ask) -> Result<Vec<Turn>, AskError> {
        match (&self.parts.sessions, ask.session_id) {
            // A turn consists of two messages.
            (Some(sessions), Some(id)) => {
                Ok(sessions.turns(id, self.parts.settings.max_history.div_ceil(2)).await?)
            }
            _ => Ok(ask.earlier.clone()),
        }
    }

    /// Rewrites a follow-up so that it can be searched alone, with the model if there is one, else by rule.
    pub(super) async fn rewrite(&self, asked: &Question, history: &[Turn], meter: &Meter) -> Rewritten {
        let before = history.last().map(|turn| turn.rewritten_query.as_deref().unwrap_or(&turn.query));
        let by_rule = followup::rewrite(asked.text(), before, self.retriever.analyzer());
        let mut rewritten = Rewritten { text: by_rule, usage: Usage::default() };
        // The rule also decides which questions need a rewrite; the model is not called for the others.
        if let (Some(generator), Some(_), Rewrite::Model) =
            (&self.parts.generator, &rewritten.text, self.parts.settings.rewrite)
        {
            let time = REWRITING_TIME.min(self.parts.settings.deadline / 3);
            let asking = rewrite_by_model(generator.as_ref(), asked.text(), history, meter);
            if let Some(Some(text)) = within(self.parts.clock.as_ref(), time, asking).await {
                rewritten.text = Some(text);
            }
            // Tokens count even if the model was too slow or its rewrite was not usable.
            rewritten.usage = meter.usage();
        }
        rewritten
    }

    /// Appends passages cited in recent turns to the hits: a follow-up is often about the same passages.
    pub(super) async fn keep_cited(&self, retrieved: &mut Retrieved, history: &[Turn], filter: &Filter) {
        let last = retrieved.hits.last().map_or(0.0, |hit| hit.score);
        let mut kept = 0;
        for citation in history.iter().rev().take(RECENT_TURNS).flat_map(|turn| &turn.response.citations) {
            if kept == MOST_KEPT {
                break;
            }
            let is_known = |hit: &Hit| hit.chunk.id.to_string() == citation.chunk_id;
            if retrieved.hits.iter().any(is_known) {
                continue;
            }
            let sources = history.iter().filter_map(|turn| turn.response.sources.as_ref()).flatten();
            let Some(source) = sources.into_iter().find(|source| source.chunk_id == citation.chunk_id) else {
                continue;
            };
            // If the page has changed since, the passage may be gone; that is fine.
            let page = self.retriever.page(&source.document_id).await.unwrap_or_default();
            let found = page.into_iter().find(|chunk| chunk.id.to_string() == citation.chunk_id);
            if let Some(chunk) = found.filter(|chunk| filter.admits(chunk)) {
                retrieved.hits.push(Hit { chunk, score: last, rerank_score: None });
                kept += 1;
            }
        }
    }
}

async fn rewrite_by_model(
    generator: &dyn Generator,
    question: &str,
    history: &[Turn],
    meter: &Meter,
) -> Option<String> {
    let recent = &history[history.len().saturating_sub(RECENT_TURNS)..];
    let conversation: Vec<String> = recent
        .iter()
        .map(|turn| format!("Reader: {}\nTutor: {}", turn.query, shortened(&said(turn), 400)))
        .collect();
    let prompt = prompt::rewrite(&conversation.join("\n"), question);
    let text = reply(generator, prompt, 150, meter).await.ok()?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?.to_owned();
    let line = line.trim_matches(['"', '“', '”']).to_owned();
    // Reject output that is not a rewrite: too long, without words, or an abstention.
    let usable = line.chars().any(char::is_alphanumeric)
        && line.chars().count() <= LONGEST_QUESTION
        && !line.contains(NO_INFORMATION);
    usable.then_some(line)
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}
