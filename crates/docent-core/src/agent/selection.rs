//! Answer a question about text the user selected on a page.
//!
//! The selected text is searched in the index. Passages that contain it are moved to the front, followed by
//! the rest of their section. The `scope` of the answer says which of these it cites.
//!
//! Invariant: a selection only reorders passages of the index; the selected text itself is never cited.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use super::PinnedAgent;
use crate::answer::{AgentResponse, Scope};
use crate::chunk::Chunk;
use crate::index::Filter;
use crate::query::{MOST_AGENT_HITS, Question};
use crate::retrieve::{Confidence, Hit, Retrieved};
use crate::search_response::SourceChunk;

/// Text the user selected on a page.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Selection {
    /// The selected text.
    pub text: String,
    /// URL of the page the text was selected on.
    #[serde(default)]
    pub url: Option<String>,
}

/// Number of characters of a selection that are added to the query.
const SEARCHED: usize = 300;

/// Number of characters of a selection that are compared with passages; the rest is ignored.
const COMPARED: usize = 20_000;

/// Share of a selection's word runs that a passage must contain to count as selected.
const ALIKE: f32 = 0.6;

/// Where a selection was found.
pub struct Selected {
    passages: Vec<Uuid>,
    /// All passages of the same section.
    section: Vec<Uuid>,
}

impl Selection {
    /// Text selected on the page with this URL, if it is known.
    pub fn new(text: impl Into<String>, url: Option<String>) -> Self {
        Self { text: text.into(), url }
    }

    /// The question, followed by the selected text.
    pub fn about(&self, question: &str) -> String {
        let words: String = self.text.trim().chars().take(SEARCHED).collect();
        format!("{question} ({words})")
    }
}

impl Selected {
    /// The narrowest of selection, section and book that contains all cited passages.
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

impl PinnedAgent {
    /// Finds the selected text and moves its passages to the front. None if the book does not contain it;
    /// then the selection is only part of the query.
    pub(super) async fn bring_forward(
        &self,
        selection: &Selection,
        filter: &Filter,
        retrieved: &mut Retrieved,
    ) -> Option<Selected> {
        let words: String = selection.text.trim().chars().take(SEARCHED).collect();
        let question = Question::new(&words, 20, 0.0, filter.clone()).ok()?;
        let found = self.retriever.search(&question).await.ok()?;
        let compared: String = selection.text.chars().take(COMPARED).collect();
        let selected = Runs::of(&compared);
        let best = found
            .hits
            .iter()
            .map(|hit| (selected.share_in(&Runs::of(&hit.chunk.content)), &hit.chunk))
            .filter(|(share, _)| *share >= ALIKE)
            .max_by(|(a, one), (b, other)| {
                let here = |chunk: &Chunk| is_on_page(chunk, selection.url.as_deref());
                here(one).cmp(&here(other)).then(a.total_cmp(b))
            })
            .map(|(_, chunk)| chunk.clone())?;
        // A long selection may cover several passages of its section.
        let page = self.retriever.page(&best.document_id).await.ok()?;
        let section: Vec<Arc<Chunk>> =
            page.into_iter().filter(|chunk| chunk.section == best.section && filter.admits(chunk)).collect();
        let is_selected = |chunk: &&Arc<Chunk>| {
            chunk.id == best.id || Runs::of(&chunk.content).share_in(&selected) >= ALIKE
        };
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
        // The user selected text of the book, so the book covers it.
        retrieved.confidence = Confidence::High;
        Some(Selected { passages: selected, section: section.iter().map(|chunk| chunk.id).collect() })
    }
}

/// Hashes of all runs of up to three words, so that two texts can be compared in linear time.
struct Runs {
    /// Runs of one, two and three words.
    sets: [HashSet<u64>; LONGEST_RUN],
    /// The longest runs of the text, in order.
    runs: Vec<u64>,
    /// Words per run in `runs`; 0 for a text without words.
    width: usize,
}

const LONGEST_RUN: usize = 3;

impl Runs {
    fn of(text: &str) -> Self {
        let words: Vec<u64> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| xxh3_64(word.to_lowercase().as_bytes()))
            .collect();
        let runs = |width: usize| {
            words.windows(width).map(|run| run.iter().fold(0, |sum: u64, word| sum.rotate_left(21) ^ word))
        };
        let width = words.len().min(LONGEST_RUN);
        Self {
            sets: [runs(1).collect(), runs(2).collect(), runs(3).collect()],
            runs: if width == 0 { Vec::new() } else { runs(width).collect() },
            width,
        }
    }

    /// The share of these runs that also occur in `other`, 0–1.
    fn share_in(&self, other: &Self) -> f32 {
        if self.runs.is_empty() {
            return 0.0;
        }
        let set = &other.sets[self.width - 1];
        let found = self.runs.iter().filter(|run| set.contains(*run)).count();
        found as f32 / self.runs.len() as f32
    }
}

/// Whether a passage is on the page at `url`. Only paths are compared: a preview has another host than the
/// site.
fn is_on_page(chunk: &Chunk, url: Option<&str>) -> bool {
    let path = |url: &str| -> String {
        let url = url.split(['#', '?']).next().unwrap_or_default();
        let path =
            url.split_once("://").map_or(url, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
        path.trim_matches('/').trim_end_matches(".html").trim_end_matches("/index").to_owned()
    };
    url.is_some_and(|url| path(url) == path(&chunk.url))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(words: &str, passage: &str) -> f32 {
        Runs::of(words).share_in(&Runs::of(passage))
    }

    #[test]
    fn the_share_counts_runs_of_three_words() {
        assert_eq!(share("A node is small", "So: a node IS small, and more."), 1.0);
        assert_eq!(share("a b c d e f", "a b c d x e f"), 0.5);
        assert_eq!(share("small", "a small node"), 1.0);
        assert_eq!(share("is small", "small is"), 0.0);
        assert_eq!(share("", "a"), 0.0);
        assert_eq!(share("a", "…"), 0.0);
    }
}
