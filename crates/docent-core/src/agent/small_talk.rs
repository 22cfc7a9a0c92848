//! Reply to small talk and to questions about the book as a whole.
//!
//! Invariant: what is said about the book is quoted from it; a greeting cites nothing.

use std::sync::Arc;

use super::response::{Answered, source_chunks};
use super::{AskError, Draft, EXTRACTIVE, Listener, PinnedAgent, State, TurnEvent};
use crate::chunk::Chunk;
use crate::index::{Filter, PageOutline};
use crate::query::Question;
use crate::read::{Read, SIGNALS, Signals};
use crate::retrieve::{Confidence, Hit, Retrieved};
use crate::small_talk::SmallTalk;
use crate::statement::{StatementKind, statements};

impl PinnedAgent {
    /// A reply to small talk; none if the book has no opening to quote.
    pub(super) async fn small_talk(
        &self,
        talk: SmallTalk,
        asked: &Question,
        listener: Listener<'_>,
    ) -> Result<Option<Answered>, AskError> {
        let version = self.retriever.version().await?;
        let nothing = Retrieved::nothing(version);
        let said = |words: &str| {
            let answered = self.converse(asked, &nothing, words.to_owned());
            answered
                .response
                .sentences
                .iter()
                .for_each(|sentence| listener(TurnEvent::Sentence(sentence.clone(), Vec::new())));
            Some(answered)
        };
        Ok(match talk {
            SmallTalk::Greeting => said(
                "Hello! Ask me anything about this book; I answer from its text and link to the sources.",
            ),
            SmallTalk::Thanks => said("You're welcome. Ask another question any time."),
            SmallTalk::AboutTheBook => self.about_the_book(asked, nothing.clone(), listener).await?,
        })
    }

    /// Quotes how the book begins.
    async fn about_the_book(
        &self,
        asked: &Question,
        mut retrieved: Retrieved,
        listener: Listener<'_>,
    ) -> Result<Option<Answered>, AskError> {
        let outline = self.retriever.outline().await?;
        let is_start = |page: &&PageOutline| {
            let name = page.document_id.rsplit('/').next().unwrap_or_default().to_lowercase();
            ["index.", "intro", "readme", "preface", "foreword"].iter().any(|start| name.starts_with(start))
        };
        let admitted = || outline.iter().filter(|page| asked.filter().admits_page(page));
        let first = admitted().find(is_start).or(admitted().next()).or(outline.first());
        let Some(first) = first else { return Ok(None) };
        let page = self.retriever.page(&first.document_id).await?;
        let is_told = |chunk: &&Arc<Chunk>| asked.filter().admits(chunk) && chunk.content.contains(". ");
        let Some(chunk) = page.iter().find(is_told).or(page.first()).cloned() else { return Ok(None) };
        retrieved.read = opening(&chunk);
        retrieved.hits = vec![Hit { chunk, score: 1.0, rerank_score: None }];
        (retrieved.relevance, retrieved.confidence) = (1.0, Confidence::High);
        listener(TurnEvent::Sources(source_chunks(&retrieved.hits)));
        listener(TurnEvent::State(State::Generating));
        let written = self.extract(asked, &retrieved, listener).await;
        let draft = Draft { hits: retrieved.hits.clone(), model: EXTRACTIVE.to_owned(), ..Draft::default() };
        Ok(Some(self.respond(asked, &retrieved, Some((draft, written)), &[])))
    }

    /// The labels of the book's modules. If a module has none, its name is only a folder's, so the titles of the
    /// pages tell more.
    pub(super) async fn contents(&self, filter: &Filter) -> Vec<String> {
        let Ok(description) = self.retriever.describe().await else { return Vec::new() };
        let labels: Option<Vec<String>> =
            description.modules.values().map(|module| module.label.clone()).collect();
        if let Some(labels) = labels.filter(|labels| labels.len() > 1) {
            return labels;
        }
        let pages = self.retriever.outline().await.unwrap_or_default();
        let admitted = pages.iter().filter(|page| filter.admits_edition(&page.edition));
        admitted.map(|page| page.title.clone()).collect()
    }
}

/// The first statements of a passage, with decreasing scores so that they stay in order.
fn opening(chunk: &Chunk) -> Vec<Read> {
    let statements =
        statements(&chunk.content).into_iter().filter(|statement| statement.kind == StatementKind::Sentence);
    statements
        .take(4)
        .zip([0.4, 0.3, 0.2, 0.1])
        .map(|(statement, chance)| Read {
            score: 0.0,
            passage: 0,
            span: statement.span,
            kind: statement.kind,
            block: statement.block,
            signals: Signals([0.0; SIGNALS]),
            part: 0,
            is_fragment: false,
            chance,
        })
        .collect()
}
