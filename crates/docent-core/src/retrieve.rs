//! A question becomes the passages that may answer it, and a judgement of how well.
//!
//! Embeds the question, asks the index, fuses the two rankings, takes out repetitions, and
//! lets a reranker put the best in order if there is one.
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
use crate::index::{Candidates, Description, Filter, Index, IndexError, IndexQuery, NoSuchPart, PageOutline};
use crate::language::Language;
use crate::query::Question;
use crate::relevance::{Calibration, Signals};
use crate::rerank::{Placed, Reranker, Reranking, unplaced};
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
    /// What a reranker says of it, 0–1; none if none was asked.
    pub rerank_score: Option<f32>,
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
    reranking: Option<Reranking>,
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
        let analyzer = Arc::new(Analyzer::new(language));
        Self { index, embedder, analyzer, settings, clock, reranking: None }
    }

    /// The same book, searched with other settings.
    pub fn with_settings(&self, settings: Settings) -> Self {
        Self { settings, ..self.clone() }
    }

    /// The same book, its best `candidates` put in order by `reranker`.
    pub fn with_reranker(self, reranker: Arc<dyn Reranker>, candidates: usize) -> Self {
        Self { reranking: Some(Reranking { reranker, candidates }), ..self }
    }

    /// The passages for a question.
    pub async fn search(&self, question: &Question) -> Result<Retrieved, RetrieveError> {
        let start = self.clock.now();
        let vector = self.embed(question).await?;
        let embedded = self.clock.now();
        let candidates = self.candidates(question, vector.as_deref()).await?;
        let mut retrieved = self.rank(question, candidates).await;
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

    /// Whether there is what a filter asks for.
    pub async fn check(&self, filter: &Filter) -> Result<Result<(), NoSuchPart>, RetrieveError> {
        if filter.is_open() {
            return Ok(Ok(()));
        }
        Ok(self.describe().await?.check(filter))
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
        let fused = fuse(&candidates, self.settings.weights);
        Ok(self.place(question, fused).await.into_iter().map(|placed| placed.fused).collect())
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
        let filter = question.filter();
        let depth = self.settings.depth.max(question.top_k());
        Ok(self.index.search(&IndexQuery { text: question.text(), vector, filter, depth }).await?)
    }

    async fn place(&self, question: &Question, ranking: Vec<Fused>) -> Vec<Placed> {
        match &self.reranking {
            Some(reranking) => reranking.place(question.text(), ranking).await,
            None => unplaced(ranking),
        }
    }

    async fn rank(&self, question: &Question, candidates: Candidates) -> Retrieved {
        let fused = fuse(&candidates, self.settings.weights);
        let total_found = fused.len();
        let judged = self.reranking.as_ref().map_or(0, |reranking| reranking.candidates);
        let distinct = without_repetitions(fused, question.top_k().max(judged));
        // Relevance is calibrated on the fused order, whoever changes it afterwards.
        let best = distinct.iter().take(question.top_k());
        let texts: Vec<String> = best.map(|hit| hit.chunk.embedded_text()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let signals = Signals::measure(&candidates, &texts, &self.analyzer);
        let relevance = if total_found == 0 { 0.0 } else { Calibration::shipped().relevance(&signals) };
        let placed = self.place(question, distinct).await;
        let hits: Vec<Hit> = placed
            .into_iter()
            .take(question.top_k())
            .map(|Placed { fused, rerank_score }| Hit {
                score: (fused.score * relevance).clamp(0.0, 1.0),
                chunk: fused.chunk,
                rerank_score,
            })
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
    use crate::testing::{LetterEmbedder, MemoryIndex, WordReranker, chunk};

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
        retriever.search(&Question::new(text, top_k, threshold, Filter::default()).unwrap()).await.unwrap()
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

    fn four_pages() -> Retriever {
        book(vec![
            chunk("a", 0, "node graph"),
            chunk("b", 0, "node graph and more about it"),
            chunk("c", 0, "graph of pasta"),
            chunk("d", 0, "node salt"),
        ])
    }

    #[tokio::test]
    async fn a_reranker_changes_places_and_says_why() {
        let plain = found(&four_pages(), "node graph", 4, 0.0).await;
        let reranked = four_pages().with_reranker(Arc::new(WordReranker("pasta")), 30);
        let reranked = found(&reranked, "node graph", 4, 0.0).await;
        assert_eq!(names(&plain)[0], "a/0");
        assert_eq!(names(&reranked)[..3], ["c/0", "a/0", "b/0"], "then the order from before");
        let said: Vec<Option<f32>> = reranked.hits.iter().map(|hit| hit.rerank_score).collect();
        assert_eq!(said, [Some(0.9), Some(0.1), Some(0.1), Some(0.1)]);
        // What is told of the whole, and the scores of the places, are as before.
        assert_eq!((plain.relevance, plain.confidence), (reranked.relevance, reranked.confidence));
        let scores = |retrieved: &Retrieved| retrieved.hits.iter().map(|hit| hit.score).collect::<Vec<_>>();
        assert_eq!(scores(&plain), scores(&reranked));
    }

    #[tokio::test]
    async fn a_reranker_finds_what_would_not_have_been_shown() {
        let retriever = four_pages().with_reranker(Arc::new(WordReranker("salt")), 30);
        assert_eq!(names(&found(&retriever, "node graph", 1, 0.0).await), ["d/0"]);
    }

    #[tokio::test]
    async fn a_reranker_sees_no_more_than_it_may() {
        let plain = names(&found(&four_pages(), "node graph", 4, 0.0).await);
        let retriever = four_pages().with_reranker(Arc::new(WordReranker("pasta")), 2);
        let reranked = found(&retriever, "node graph", 4, 0.0).await;
        assert_eq!(names(&reranked), plain, "neither of the first two has the word");
        let asked: Vec<bool> = reranked.hits.iter().map(|hit| hit.rerank_score.is_some()).collect();
        assert_eq!(asked, [true, true, false, false]);
    }

    /// Gives these scores, or fails when there are none.
    struct Odd(Vec<f32>);

    #[async_trait::async_trait]
    impl Reranker for Odd {
        fn name(&self) -> &str {
            "test/odd"
        }

        async fn rerank(&self, _: &str, _: &[&str]) -> Result<Vec<f32>, crate::rerank::RerankError> {
            match self.0.as_slice() {
                [] => Err(crate::rerank::RerankError::Unavailable("down".to_owned())),
                scores => Ok(scores.to_vec()),
            }
        }
    }

    #[tokio::test]
    async fn without_a_judgement_the_fused_order_stands() {
        let plain = names(&found(&four_pages(), "node graph", 4, 0.0).await);
        for scores in [vec![], vec![0.5], vec![0.1, f32::NAN, 0.3, 0.4]] {
            let retriever = four_pages().with_reranker(Arc::new(Odd(scores)), 30);
            let found = found(&retriever, "node graph", 4, 0.0).await;
            assert_eq!(names(&found), plain);
            assert!(found.hits.iter().all(|hit| hit.rerank_score.is_none()));
        }
    }
}
