//! A question becomes the passages that may answer it, and a judgement of how well.
//!
//! Embeds the question, asks the index, fuses the two rankings, takes out repetitions.
//!
//! Invariant: hits are in descending order of score, and no two are neighbours in one
//! section or the same words twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::chunk::Chunk;
use crate::clock::Clock;
use crate::embed::{EmbedError, Embedder, Purpose, Vector};
use crate::fuse::{Fused, Weights, fuse};
use crate::index::{Candidates, Description, Filter, Index, IndexError, IndexQuery, PageOutline};
use crate::language::Language;
use crate::query::Question;
use crate::relevance::{Calibration, Signals};
use crate::terms::Analyzer;

/// How well the book covers a question.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Relevance at or above the threshold.
    High,
    /// Below it.
    Low,
    /// Nothing was found.
    None,
}

/// A passage found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The passage.
    pub chunk: Arc<Chunk>,
    /// Its place in the ranking scaled by the relevance of the whole: 0–1.
    pub score: f32,
}

/// What was found for a question.
#[derive(Debug, Clone)]
pub struct Retrieved {
    /// Best first.
    pub hits: Vec<Hit>,
    /// How many chunks were candidates.
    pub total_found: usize,
    /// The probability that the book covers the question.
    pub relevance: f32,
    /// The relevance in a word.
    pub confidence: Confidence,
    /// The question's terms with their weights.
    pub terms: Vec<(String, f32)>,
    /// What the relevance was computed from.
    pub signals: Signals,
    /// The generation that answered.
    pub version: String,
    /// Time spent on the question's vector.
    pub embedding_time: Duration,
    /// Time spent on finding and ranking.
    pub retrieval_time: Duration,
}

/// The settings of retrieval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// How rankings are fused.
    pub weights: Weights,
    /// Candidates asked of each ranking.
    pub depth: usize,
    /// Where high confidence begins.
    pub min_relevance: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { weights: Weights::default(), depth: 400, min_relevance: 0.3 }
    }
}

/// Why nothing could be retrieved.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RetrieveError {
    /// The question could not be embedded.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The index could not be searched.
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl RetrieveError {
    /// What readers and models are told, without its insides.
    pub fn told(&self) -> &'static str {
        match self {
            Self::Embed(_) => "Embedding generation failed",
            Self::Index(_) => "Textbook search unavailable",
        }
    }
}

/// Searches a book.
#[derive(Clone)]
pub struct Retriever {
    index: Arc<dyn Index>,
    embedder: Option<Arc<dyn Embedder>>,
    analyzer: Arc<Analyzer>,
    settings: Settings,
    clock: Arc<dyn Clock>,
}

impl Retriever {
    /// Puts the parts together; without an embedder the search is by keywords alone.
    pub fn new(
        index: Arc<dyn Index>,
        embedder: Option<Arc<dyn Embedder>>,
        language: Language,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { index, embedder, analyzer: Arc::new(Analyzer::new(language)), settings, clock }
    }

    /// The same book, searched with other settings.
    pub fn with_settings(&self, settings: Settings) -> Self {
        Self { settings, ..self.clone() }
    }

    /// The passages for a question.
    pub async fn search(&self, question: &Question) -> Result<Retrieved, RetrieveError> {
        let start = self.clock.now();
        let vector = self.embed(question).await?;
        let embedded = self.clock.now();
        let candidates = self.candidates(question, vector.as_deref()).await?;
        let mut retrieved = self.rank(question, candidates);
        retrieved.embedding_time = embedded.saturating_sub(start);
        retrieved.retrieval_time = self.clock.now().saturating_sub(embedded);
        Ok(retrieved)
    }

    /// Cuts text as the index does.
    pub fn analyzer(&self) -> &Analyzer {
        &self.analyzer
    }

    /// The same, to keep.
    pub fn shared_analyzer(&self) -> Arc<Analyzer> {
        self.analyzer.clone()
    }

    /// What the book holds now.
    pub async fn describe(&self) -> Result<Description, RetrieveError> {
        Ok(self.index.describe().await?)
    }

    /// Which generation of the book answers now.
    pub async fn version(&self) -> Result<String, RetrieveError> {
        Ok(self.index.version().await?)
    }

    /// Whether the book has a module of this name.
    pub async fn has_module(&self, name: &str) -> Result<bool, RetrieveError> {
        Ok(self.describe().await?.modules.contains_key(name))
    }

    /// Every page with its sections.
    pub async fn outline(&self) -> Result<Vec<PageOutline>, RetrieveError> {
        Ok(self.index.outline().await?)
    }

    /// All chunks of a page, in order.
    pub async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, RetrieveError> {
        Ok(self.index.page(document_id).await?)
    }

    /// Every candidate in its final order, repetitions included; for measuring.
    pub async fn ranking(&self, question: &Question) -> Result<Vec<Fused>, RetrieveError> {
        let vector = self.embed(question).await?;
        let candidates = self.candidates(question, vector.as_deref()).await?;
        Ok(fuse(&candidates, self.settings.weights))
    }

    async fn embed(&self, question: &Question) -> Result<Option<Vector>, RetrieveError> {
        match &self.embedder {
            Some(embedder) => Ok(embedder.embed(&[question.text()], Purpose::Query).await?.pop()),
            None => Ok(None),
        }
    }

    async fn candidates(
        &self,
        question: &Question,
        vector: Option<&[f32]>,
    ) -> Result<Candidates, RetrieveError> {
        let filter = Filter { module: question.module().map(str::to_owned) };
        let depth = self.settings.depth.max(question.top_k());
        Ok(self.index.search(&IndexQuery { text: question.text(), vector, filter: &filter, depth }).await?)
    }

    fn rank(&self, question: &Question, candidates: Candidates) -> Retrieved {
        let fused = fuse(&candidates, self.settings.weights);
        let total_found = fused.len();
        let distinct = without_repetitions(fused, question.top_k());
        let texts: Vec<String> = distinct.iter().map(|hit| hit.chunk.embedded_text()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let signals = Signals::measure(&candidates, &texts, &self.analyzer);
        let relevance = if total_found == 0 { 0.0 } else { Calibration::shipped().relevance(&signals) };
        let hits: Vec<Hit> = distinct
            .into_iter()
            .map(|hit| Hit { score: (hit.score * relevance).clamp(0.0, 1.0), chunk: hit.chunk })
            .filter(|hit| hit.score >= question.threshold())
            .collect();
        let confidence = match relevance {
            _ if hits.is_empty() => Confidence::None,
            relevance if relevance >= self.settings.min_relevance => Confidence::High,
            _ => Confidence::Low,
        };
        Retrieved {
            hits,
            total_found,
            relevance,
            confidence,
            signals,
            terms: candidates.terms,
            version: candidates.version,
            embedding_time: Duration::ZERO,
            retrieval_time: Duration::ZERO,
        }
    }
}

/// Keeps the best of neighbours in one section and of passages with the same words.
fn without_repetitions(fused: Vec<Fused>, most: usize) -> Vec<Fused> {
    let mut kept: Vec<Fused> = Vec::with_capacity(most);
    let mut words = HashSet::new();
    for hit in fused {
        if kept.len() == most {
            break;
        }
        let neighbour = kept.iter().any(|other| are_neighbours(&other.chunk, &hit.chunk));
        if !neighbour && words.insert(hit.chunk.content.clone()) {
            kept.push(hit);
        }
    }
    kept
}

fn are_neighbours(a: &Chunk, b: &Chunk) -> bool {
    a.document_id == b.document_id && a.section == b.section && a.index.abs_diff(b.index) == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LetterEmbedder, MemoryIndex, chunk};

    fn book(chunks: Vec<Chunk>) -> Retriever {
        let chunks = chunks
            .into_iter()
            .map(|chunk| {
                let vector = LetterEmbedder::vector(&chunk.embedded_text());
                (chunk, vector)
            })
            .collect();
        let embedder: Arc<dyn Embedder> = Arc::new(LetterEmbedder::default());
        let settings = Settings::default();
        Retriever::new(
            Arc::new(MemoryIndex::new(chunks)),
            Some(embedder),
            Language::default(),
            settings,
            Arc::new(crate::testing::StoppedClock),
        )
    }

    async fn found(retriever: &Retriever, text: &str, top_k: usize, threshold: f32) -> Retrieved {
        retriever.search(&Question::new(text, top_k, threshold, None).unwrap()).await.unwrap()
    }

    fn names(retrieved: &Retrieved) -> Vec<String> {
        retrieved.hits.iter().map(|hit| format!("{}/{}", hit.chunk.document_id, hit.chunk.index)).collect()
    }

    #[tokio::test]
    async fn neighbours_in_a_section_are_one_hit() {
        let mut chunks =
            vec![chunk("a", 0, "node graph"), chunk("a", 1, "node graph too"), chunk("b", 0, "pasta")];
        chunks[1].section = 0;
        assert_eq!(names(&found(&book(chunks), "node graph", 5, 0.0).await), ["a/0", "b/0"]);
    }

    #[tokio::test]
    async fn the_same_words_twice_are_one_hit() {
        let chunks = vec![chunk("a", 0, "node graph"), chunk("b", 0, "node graph")];
        assert_eq!(names(&found(&book(chunks), "node graph", 5, 0.0).await).len(), 1);
    }

    #[tokio::test]
    async fn the_threshold_cuts_and_nothing_left_is_no_confidence() {
        let retriever = book(vec![chunk("a", 0, "node graph")]);
        let all = found(&retriever, "node graph", 5, 0.0).await;
        assert_eq!((all.hits.len(), all.confidence), (1, Confidence::High));
        let none = found(&retriever, "node graph", 5, 1.0).await;
        assert_eq!((none.hits.len(), none.confidence), (0, Confidence::None));
    }

    #[tokio::test]
    async fn scores_descend_from_the_relevance_of_the_whole() {
        let chunks =
            (0..9).map(|number| chunk(&format!("p{number}"), 0, &"node graph ".repeat(number + 1))).collect();
        let retrieved = found(&book(chunks), "what is a graph", 5, 0.0).await;
        assert_eq!(retrieved.hits.len(), 5);
        assert!(retrieved.hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
        assert!(retrieved.hits[0].score <= retrieved.relevance);
    }
}
