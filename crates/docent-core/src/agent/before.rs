//! What a turn takes from the turns before it: the question made to stand alone, and the
//! passages that were cited.
//!
//! Invariant: a passage taken along is one the index has now.

use std::time::Duration;

use futures_util::StreamExt;

use super::model::{spoken, within};
use super::settings::Rewrite;
use super::{Agent, Ask, AskError, NO_INFORMATION};
use crate::followup;
use crate::generate::{GenerateEvent, GenerateRequest, Generator, Message, Role, Usage};
use crate::index::Filter;
use crate::prompt;
use crate::query::{LONGEST_QUESTION, Question};
use crate::retrieve::{Hit, Retrieved};
use crate::session::Turn;

/// The longest a model may take to rewrite a question; the rule is always there.
const REWRITING_TIME: Duration = Duration::from_secs(3);

/// Turns a rewriting model is shown, and turns whose citations stay candidates.
const RECENT_TURNS: usize = 3;

/// Passages taken along at most, beside those found.
const MOST_KEPT: usize = 2;

/// A question that stands alone.
pub struct Rewritten {
    /// What to search for; none when the question already stood alone.
    pub text: Option<String>,
    /// What the model used to write it.
    pub usage: Usage,
}

impl Agent {
    pub(super) async fn history(&self, ask: &Ask) -> Result<Vec<Turn>, AskError> {
        match (&self.sessions, ask.session_id) {
            // A turn is two messages.
            (Some(sessions), Some(id)) => {
                Ok(sessions.turns(id, self.settings.max_history.div_ceil(2)).await?)
            }
            _ => Ok(ask.earlier.clone()),
        }
    }

    /// Makes a follow-up stand alone: by the model when there is one, else by rule.
    pub(super) async fn rewrite(&self, asked: &Question, history: &[Turn]) -> Rewritten {
        let before = history.last().map(|turn| turn.rewritten_query.as_deref().unwrap_or(&turn.query));
        let by_rule = followup::rewrite(asked.text(), before, self.retriever.analyzer());
        let mut rewritten = Rewritten { text: by_rule, usage: Usage::default() };
        // The rule also knows which questions need it; the others cost no call.
        if let (Some(generator), Some(_), Rewrite::Model) =
            (&self.generator, &rewritten.text, self.settings.rewrite)
        {
            let time = REWRITING_TIME.min(self.settings.deadline / 3);
            let asking = rewrite_by_model(generator.as_ref(), asked.text(), history);
            if let Some(Some((text, usage))) = within(self.clock.as_ref(), time, asking).await {
                rewritten = Rewritten { text: Some(text), usage };
            }
        }
        rewritten
    }

    /// Adds passages cited in recent turns, behind those found: the subject may still be theirs.
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
            // A page that changed meanwhile no longer has the passage; it is not missed.
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
) -> Option<(String, Usage)> {
    let recent = &history[history.len().saturating_sub(RECENT_TURNS)..];
    let conversation: Vec<String> = recent
        .iter()
        .map(|turn| format!("Reader: {}\nTutor: {}", turn.query, shortened(&said(turn), 400)))
        .collect();
    let request = GenerateRequest {
        messages: vec![Message::text(Role::User, prompt::rewrite(&conversation.join("\n"), question))],
        tools: Vec::new(),
        must_use_tool: false,
        temperature: 0.0,
        max_output_tokens: Some(150),
    };
    let mut stream = generator.generate(&request).await.ok()?;
    let (mut text, mut usage) = (String::new(), Usage::default());
    while let Some(event) = stream.next().await {
        match event.ok()? {
            GenerateEvent::Text(more) => text.push_str(&more),
            GenerateEvent::ToolCalls(_) => {}
            GenerateEvent::Done(used) => usage = used,
        }
    }
    let line = spoken(&text).lines().map(str::trim).find(|line| !line.is_empty())?.to_owned();
    let line = line.trim_matches(['"', '“', '”']).to_owned();
    // A model that answers instead of rewriting says too much or the wrong thing.
    let usable = line.chars().any(char::is_alphanumeric)
        && line.chars().count() <= LONGEST_QUESTION
        && !line.contains(NO_INFORMATION);
    usable.then_some((line, usage))
}

/// What was answered, without citations.
pub fn said(turn: &Turn) -> String {
    let sentences: Vec<&str> =
        turn.response.sentences.iter().map(|sentence| sentence.text.as_str()).collect();
    if sentences.is_empty() { format!("{NO_INFORMATION}.") } else { sentences.join(" ") }
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}
