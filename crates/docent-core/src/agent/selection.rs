//! A question about words the reader selected on a page.
//!
//! The words are looked for in the index; the passages that hold them come first, with the
//! rest of their section. What the answer then rests on is its scope.
//!
//! Invariant: a selection only moves passages of the index; its own words are never cited.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Agent;
use crate::answer::{AgentResponse, Scope};
use crate::chunk::Chunk;
use crate::index::Filter;
use crate::query::{MOST_AGENT_HITS, Question};
use crate::retrieve::{Confidence, Hit, Retrieved};
use crate::sources::SourceChunk;

/// Words selected on a page.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// The words.
    pub text: String,
    /// Where the reader is.
    #[serde(default)]
    pub url: Option<String>,
}

/// Characters of a selection that take part in a search.
const SEARCHED: usize = 300;

/// Where a selection was found.
pub struct Selected {
    passages: Vec<Uuid>,
    /// All passages of their section.
    section: Vec<Uuid>,
}

impl Selection {
    /// A question with the words it is about.
    pub fn about(&self, question: &str) -> String {
        let words: String = self.text.trim().chars().take(SEARCHED).collect();
        format!("{question} ({words})")
    }
}

impl Selected {
    /// The narrowest of selection, section and book that holds all that was cited.
    pub fn scope(&self, response: &AgentResponse, sources: &[SourceChunk]) -> Scope {
        let cited = || {
            let cites = |source: &&SourceChunk| {
                response.citations.iter().any(|citation| citation.chunk_id == source.chunk_id)
            };
            sources.iter().filter(cites)
        };
        let within = |passages: &[Uuid]| {
            cited().all(|source| passages.iter().any(|passage| passage.to_string() == source.chunk_id))
        };
        match () {
            () if response.citations.is_empty() => Scope::Book,
            () if within(&self.passages) => Scope::Selection,
            () if within(&self.section) => Scope::Section,
            () => Scope::Book,
        }
    }
}

impl Agent {
    /// Finds the selected words and puts their passages first. None when the book does not
    /// have them: then the selection only helped the search.
    pub(super) async fn bring_forward(
        &self,
        selection: &Selection,
        retrieved: &mut Retrieved,
    ) -> Option<Selected> {
        let words: String = selection.text.trim().chars().take(SEARCHED).collect();
        let question = Question::new(&words, 20, 0.0, Filter::default()).ok()?;
        let found = self.retriever.search(&question).await.ok()?;
        let best = found
            .hits
            .iter()
            .map(|hit| (overlap(&selection.text, &hit.chunk.content), &hit.chunk))
            .filter(|(share, _)| *share >= 0.6)
            .max_by(|(a, one), (b, other)| {
                let here = |chunk: &Chunk| is_on_page(chunk, selection.url.as_deref());
                here(one).cmp(&here(other)).then(a.total_cmp(b))
            })
            .map(|(_, chunk)| chunk.clone())?;
        // A long selection runs over several passages of its section.
        let page = self.retriever.page(&best.document_id).await.ok()?;
        let section: Vec<Arc<Chunk>> =
            page.into_iter().filter(|chunk| chunk.section == best.section).collect();
        let is_selected =
            |chunk: &&Arc<Chunk>| chunk.id == best.id || overlap(&chunk.content, &selection.text) >= 0.6;
        let selected: Vec<Uuid> = section.iter().filter(is_selected).map(|chunk| chunk.id).collect();
        let score = retrieved.hits.first().map_or(retrieved.relevance, |hit| hit.score);
        let (first, rest): (Vec<_>, Vec<_>) =
            section.iter().cloned().partition(|chunk| selected.contains(&chunk.id));
        let mut hits: Vec<Hit> =
            first.into_iter().chain(rest).map(|chunk| Hit { chunk, score, rerank_score: None }).collect();
        hits.truncate(MOST_AGENT_HITS / 2);
        hits.extend(
            retrieved.hits.drain(..).filter(|hit| section.iter().all(|chunk| chunk.id != hit.chunk.id)),
        );
        hits.truncate(MOST_AGENT_HITS);
        retrieved.hits = hits;
        // The reader points at the book's own words: the book covers them.
        retrieved.confidence = Confidence::High;
        Some(Selected { passages: selected, section: section.iter().map(|chunk| chunk.id).collect() })
    }
}

/// The share of the words' runs of three that stand in the passage.
fn overlap(words: &str, passage: &str) -> f32 {
    let split = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (words, passage) = (split(words), split(passage));
    let width = words.len().clamp(1, 3);
    let runs: Vec<&[String]> = words.windows(width).collect();
    if runs.is_empty() {
        return 0.0;
    }
    let found = runs.iter().filter(|run| passage.windows(width).any(|part| part == **run)).count();
    found as f32 / runs.len() as f32
}

/// Whether a passage is of the page at `url`: hosts differ between a preview and the site.
fn is_on_page(chunk: &Chunk, url: Option<&str>) -> bool {
    let path = |url: &str| -> String {
        let url = url.split(['#', '?']).next().unwrap_or_default();
        let path =
            url.split_once("://").map_or(url, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
        path.trim_matches('/').trim_end_matches(".html").trim_end_matches("/index").to_owned()
    };
    url.is_some_and(|url| path(url) == path(&chunk.url))
}
