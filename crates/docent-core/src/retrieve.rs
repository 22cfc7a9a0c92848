//! Find the passages that may answer a question, and estimate whether the book covers it.
//!
//! A [`Retriever`] searches one generation with its embedder and its language, and caches what is computed
//! once per generation. [`crate::library`] provides the current one.
//!
//! A search embeds the question, queries the index, merges the two rankings, loads the best passages, of
//! those with the same text only the best, reads them (`close_reading`) and orders them by their probability
//! to answer, or by the reranker if there is one.
//!
//! Invariant: hits are in descending order of score, and no two have the same text.

mod close_reading;
mod respelled;
mod several;
mod suggest;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::cache::Once;
use crate::chunk::Chunk;
use crate::clock::Clock;
use crate::definition::Term;
use crate::embed::{EmbedError, Embedder, Purpose, Vector};
use crate::followup;
use crate::fuse::{Fused, FusedRow, Weights, fuse};
use crate::index::{
    Candidates, Description, Filter, Index, IndexError, IndexQuery, NoSuchPart, PageOutline, RowId,
};
use crate::key_term::{key_terms, words};
use crate::language::Language;
use crate::premise::Premise;
use crate::query::Question;
use crate::question_kind::{parts, remark};
use crate::read::{Judged, PASSAGES_READ, Read, read};
use crate::reader::Reader;
use crate::relevance::{Calibration, Signals};
use crate::rerank::{Placed, Reranker, Reranking, unplaced};
use crate::sentence::sentences;
use crate::terms::Analyzer;
use crate::typeahead::{PageMatch, Typeahead};
pub use close_reading::PASSAGES_JUDGED;
use close_reading::SURE;
use suggest::{Suggested, bare_url};

/// How likely it is that the book covers a question.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The relevance is at or above the threshold.
    High,
    /// The relevance is below the threshold.
    Low,
    /// No passage was found.
    None,
}

/// A passage that was found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The passage.
    pub chunk: Arc<Chunk>,
    /// Rank score multiplied by the relevance of the query, 0–1.
    pub score: f32,
    /// Score by the reranker or the reader, 0–1; none if neither scored the passage.
    pub rerank_score: Option<f32>,
}

/// The result of a search.
#[derive(Debug, Clone)]
pub struct Retrieved {
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// The scored statements of the hits; [`Read::passage`] is the index of the hit.
    pub read: Vec<Read>,
    /// If the user asked several questions at once: those that the book does not cover.
    pub uncovered: Vec<String>,
    /// Key terms of the question that no hit mentions.
    pub unmentioned: Vec<Unmentioned>,
    /// The question with misspelled words corrected; none if nothing was corrected.
    pub respelled: Option<String>,
    /// How many questions the user asked at once.
    pub parts: usize,
    /// Number of passages the reader judged; 0 without a reader or if it was busy.
    pub passages_judged: usize,
    /// Whether the reader was too busy.
    pub reader_busy: bool,
    /// The reader's highest logit that a passage answers the question; none without a reader.
    pub answers: Option<f32>,
    /// The relevance without the reader's judgement, 0–1.
    pub by_signals: f32,
    /// Number of candidates.
    pub total_found: usize,
    /// Estimated probability that the book covers the question, 0–1.
    pub relevance: f32,
    /// The relevance compared with the threshold.
    pub confidence: Confidence,
    /// The terms of the query with their weights.
    pub terms: Vec<(String, f32)>,
    /// The signals from which the relevance was computed.
    pub signals: Signals,
    /// The generation that was searched.
    pub version: String,
    /// Time to embed the query.
    pub embedding_time: Duration,
    /// Time to search and rank.
    pub retrieval_time: Duration,
}

impl Retrieved {
    /// An empty result for this generation.
    pub fn nothing(version: String) -> Self {
        Self {
            hits: Vec::new(),
            read: Vec::new(),
            uncovered: Vec::new(),
            unmentioned: Vec::new(),
            respelled: None,
            parts: 1,
            passages_judged: 0,
            reader_busy: false,
            answers: None,
            by_signals: 0.0,
            total_found: 0,
            relevance: 0.0,
            confidence: Confidence::None,
            terms: Vec::new(),
            signals: Signals::default(),
            version,
            embedding_time: Duration::ZERO,
            retrieval_time: Duration::ZERO,
        }
    }
}

/// A key term of a question that no hit mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmentioned {
    /// The word as the user wrote it.
    pub word: String,
    /// Whether other passages of the book mention it.
    pub is_elsewhere: bool,
}

/// The relevance is multiplied by this if a key term is not mentioned.
const UNMENTIONED: f32 = 0.25;

/// How far down the ranking definitions are looked for, how many are added at most, and how clear they must be
/// ([`Term::clarity`]).
const SEARCHED_FOR_DEFINITIONS: usize = 200;
const MOST_DEFINITIONS: usize = 4;
const CLEAR: f32 = 0.8;

/// The settings of retrieval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// How the rankings are merged.
    pub weights: Weights,
    /// Number of candidates in each ranking.
    pub depth: usize,
    /// Minimum relevance for high confidence, 0–1.
    pub min_relevance: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { weights: Weights::default(), depth: 400, min_relevance: 0.3 }
    }
}

/// Why a search failed.
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
    /// The message for users and models, without internal details.
    pub fn told(&self) -> &'static str {
        match self {
            Self::Embed(_) => "Embedding generation failed",
            Self::Index(IndexError::OtherEmbedder { .. }) => {
                "The book was ingested with another embedder than this server uses; the server must be restarted"
            }
            Self::Index(_) => "Textbook search unavailable",
        }
    }
}

/// The intermediate results of a search, for measuring.
#[derive(Debug, Clone)]
pub struct Examined {
    /// The best passages of the merged ranking.
    pub passages: Vec<Fused>,
    /// Their statements.
    pub statements: Vec<Read>,
    /// The reader's judgements of some of the passages.
    pub judged: Vec<Judged>,
}

/// Searches one generation of the index.
#[derive(Clone)]
pub struct Retriever {
    index: Arc<dyn Index>,
    embedder: Option<Arc<dyn Embedder>>,
    analyzer: Arc<Analyzer>,
    settings: Settings,
    clock: Arc<dyn Clock>,
    reranking: Option<Reranking>,
    reader: Option<Arc<dyn Reader>>,
    passages_judged: usize,
    kept: Arc<Kept>,
}

/// What is computed once per generation.
#[derive(Default)]
struct Kept {
    description: Once<Description>,
    outline: Once<Vec<PageOutline>>,
    suggested: Suggested,
    typeahead: Once<Typeahead>,
}

impl Retriever {
    /// Creates a retriever. Without an embedder, only keywords are searched. The index must be pinned (see
    /// [`Index::pinned`]).
    pub fn new(
        index: Arc<dyn Index>,
        embedder: Option<Arc<dyn Embedder>>,
        language: Language,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let analyzer = Arc::new(Analyzer::new(language));
        Self {
            index,
            embedder,
            analyzer,
            settings,
            clock,
            reranking: None,
            reader: None,
            passages_judged: PASSAGES_JUDGED,
            kept: Arc::default(),
        }
    }

    /// The same retriever with other settings.
    pub fn with_settings(&self, settings: Settings) -> Self {
        Self { settings, ..self.clone() }
    }

    /// Adds a reranker for the best `candidates`.
    pub fn with_reranker(self, reranker: Arc<dyn Reranker>, candidates: usize) -> Self {
        Self { reranking: Some(Reranking { reranker, candidates }), ..self }
    }

    /// Adds a reader for the best passages.
    pub fn with_reader(self, reader: Arc<dyn Reader>) -> Self {
        Self { reader: Some(reader), ..self }
    }

    /// The same retriever without its reader.
    pub fn without_reader(&self) -> Self {
        Self { reader: None, ..self.clone() }
    }

    /// The same retriever without its reader and its reranker.
    pub fn without_reranking(&self) -> Self {
        Self { reranking: None, ..self.without_reader() }
    }

    /// Changes how many passages the reader judges at most; by default [`PASSAGES_JUDGED`].
    pub fn with_passages_judged(self, passages: usize) -> Self {
        Self { passages_judged: passages, ..self }
    }

    /// The reader, if there is one.
    pub fn reader(&self) -> Option<&Arc<dyn Reader>> {
        self.reader.as_ref()
    }

    /// Finds passages for a question. Several questions at once are searched one by one.
    pub async fn search(&self, question: &Question) -> Result<Retrieved, RetrieveError> {
        let Some(respelled) = self.respelled(question.text()).await? else {
            return self.search_parts(question).await;
        };
        let retrieved = self.search_parts(&question.reworded(&respelled)).await?;
        Ok(Retrieved { respelled: Some(respelled), ..retrieved })
    }

    async fn search_parts(&self, question: &Question) -> Result<Retrieved, RetrieveError> {
        let (text, remark) = remark(question.text());
        let parts = parts(text);
        if parts.len() < 2 {
            return self.search_one(question).await;
        }
        let mut found: Vec<(String, Retrieved)> = Vec::with_capacity(parts.len());
        for part in parts {
            // A later question may depend on the one before.
            let before = found.last().map(|(before, _)| before.as_str());
            let mut text = followup::rewrite(&part, before, &self.analyzer).unwrap_or_else(|| part.clone());
            if let Some(remark) = remark {
                text = format!("{text} {remark}");
            }
            found.push((part, self.search_one(&question.reworded(&text)).await?));
        }
        Ok(several::joined(found, question.top_k()))
    }

    async fn search_one(&self, question: &Question) -> Result<Retrieved, RetrieveError> {
        let start = self.clock.now();
        let vector = self.embed(question).await?;
        let embedded = self.clock.now();
        let candidates = self.candidates(question, vector.as_deref()).await?;
        let mut retrieved = self.rank(question, candidates).await?;
        retrieved.embedding_time = embedded.saturating_sub(start);
        retrieved.retrieval_time = self.clock.now().saturating_sub(embedded);
        Ok(retrieved)
    }

    /// Scores the statements again after hits were moved or added.
    pub fn read_again(&self, question: &str, retrieved: &mut Retrieved) {
        let fused = |hit: &Hit| Fused {
            chunk: hit.chunk.clone(),
            score: hit.score,
            lexical: hit.score,
            dense: hit.score,
            page: hit.score,
        };
        let passages: Vec<Fused> = retrieved.hits.iter().map(fused).collect();
        retrieved.read = read(question, &retrieved.terms, &passages, &self.analyzer);
    }

    /// Language of the book.
    pub fn language(&self) -> Language {
        self.analyzer.language()
    }

    /// The analyzer, which splits text into terms as the index does.
    pub fn analyzer(&self) -> &Analyzer {
        &self.analyzer
    }

    /// The analyzer, shared.
    pub fn shared_analyzer(&self) -> Arc<Analyzer> {
        self.analyzer.clone()
    }

    /// Describes the generation.
    pub async fn describe(&self) -> Result<Arc<Description>, RetrieveError> {
        Ok(self.kept.description.get_or_make(|| self.index.describe()).await?)
    }

    /// The name of the generation.
    pub async fn version(&self) -> Result<String, RetrieveError> {
        Ok(self.index.identity().await?.version)
    }

    /// Checks that everything a filter names exists.
    pub async fn check(&self, filter: &Filter) -> Result<Result<(), NoSuchPart>, RetrieveError> {
        if filter.is_default() {
            return Ok(Ok(()));
        }
        Ok(self.describe().await?.check(filter))
    }

    /// Every page with its sections.
    pub async fn outline(&self) -> Result<Arc<Vec<PageOutline>>, RetrieveError> {
        Ok(self.kept.outline.get_or_make(|| self.index.outline()).await?)
    }

    /// At most `limit` questions that a part of the book answers, generated from its headings. The filter names
    /// only what exists.
    pub async fn suggestions(&self, limit: usize, filter: &Filter) -> Result<Vec<String>, RetrieveError> {
        self.kept.suggested.up_to(limit, filter, self).await
    }

    /// At most `limit` questions that the page with this id or URL answers, generated from its headings; first from
    /// those after `heading`. `None` if there is no such page.
    pub async fn suggestions_near(
        &self,
        page: &str,
        heading: Option<&str>,
        limit: usize,
    ) -> Result<Option<Vec<String>>, RetrieveError> {
        let outline = self.outline().await?;
        let url = bare_url(page);
        let is_meant = |one: &&PageOutline| one.document_id == page || bare_url(&one.url) == url;
        let Some(page) = outline.iter().find(is_meant) else { return Ok(None) };
        Ok(Some(self.kept.suggested.near(page, heading, limit, self).await?))
    }

    /// At most `limit` pages for words that may be unfinished or misspelled, best first. Needs no embedder and no
    /// reader.
    pub async fn typeahead(
        &self,
        typed: &str,
        filter: &Filter,
        limit: usize,
    ) -> Result<Vec<PageMatch>, RetrieveError> {
        let make = || async {
            let words = self.index.vocabulary().await?;
            Ok::<_, RetrieveError>(Typeahead::new(self.outline().await?, words, &self.analyzer))
        };
        let typeahead = self.kept.typeahead.get_or_make(make).await?;
        Ok(typeahead.find(typed, filter, limit, &*self.index, &self.analyzer).await?)
    }

    /// All chunks of a page, in order.
    pub async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, RetrieveError> {
        Ok(self.index.page(document_id).await?)
    }

    /// Every candidate in its final order, including duplicates; for measuring.
    pub async fn ranking(&self, question: &Question) -> Result<Vec<Fused>, RetrieveError> {
        let vector = self.embed(question).await?;
        let candidates = self.candidates(question, vector.as_deref()).await?;
        let fused = self.load(&fuse(&candidates, self.settings.weights)).await?;
        let read = self.read_closely(question, &candidates.terms, fused).await?;
        Ok(self.place(question, read.ordered).await.into_iter().map(|placed| placed.fused).collect())
    }

    /// The best passages, their statements scored by signals only, and the reader's judgements; for
    /// measuring.
    pub async fn examine(&self, question: &Question) -> Result<Examined, RetrieveError> {
        let vector = self.embed(question).await?;
        let candidates = self.candidates(question, vector.as_deref()).await?;
        let ranking = fuse(&candidates, self.settings.weights);
        let mut passages = self.load_distinct(&ranking, PASSAGES_READ).await?;
        self.add_definitions(question, &ranking, &mut passages).await?;
        let statements = read(question.text(), &candidates.terms, &passages, &self.analyzer);
        let judged = self.judge(question.text(), &passages, &statements).await.unwrap_or_default();
        Ok(Examined { passages, statements, judged })
    }

    async fn embed(&self, question: &Question) -> Result<Option<Vector>, RetrieveError> {
        match &self.embedder {
            Some(embedder) => Ok(embedder.embed(&[&question.prose()], Purpose::Query).await?.pop()),
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
        Ok(self
            .index
            .search(&IndexQuery { text: question.text(), vector, filter, depth, analyzed: false })
            .await?)
    }

    /// Loads the chunks of these rows.
    async fn load(&self, ranking: &[FusedRow]) -> Result<Vec<Fused>, RetrieveError> {
        let rows: Vec<RowId> = ranking.iter().map(|hit| hit.row).collect();
        let chunks = self.index.chunks(&rows).await?;
        Ok(ranking.iter().zip(chunks).filter_map(|(hit, chunk)| Some(hit.with_chunk(chunk?))).collect())
    }

    /// Loads the best passages of a ranking: at most `most`, and none with the same text as a better one. If several
    /// versions have the same text, the default version stands for all of them.
    async fn load_distinct(&self, ranking: &[FusedRow], most: usize) -> Result<Vec<Fused>, RetrieveError> {
        let mut kept: Vec<Fused> = Vec::with_capacity(most);
        let mut texts: HashMap<String, usize> = HashMap::new();
        let mut loaded = 0;
        while kept.len() < most && loaded < ranking.len() {
            // Doubling what is loaded keeps the number of calls low in a book with many repetitions.
            let end = ranking.len().min(loaded + loaded.max(most));
            for hit in self.load(&ranking[loaded..end]).await? {
                match texts.get(&hit.chunk.content) {
                    Some(&known) => {
                        let known = &mut kept[known];
                        if hit.chunk.edition.is_default() && !known.chunk.edition.is_default() {
                            known.chunk = hit.chunk;
                        }
                    }
                    None if kept.len() < most => {
                        texts.insert(hit.chunk.content.clone(), kept.len());
                        kept.push(hit);
                    }
                    None => {}
                }
            }
            loaded = end;
        }
        Ok(kept)
    }

    /// If the question wants a term defined: replaces the last passages that are read by passages further down the
    /// ranking that define it.
    async fn add_definitions(
        &self,
        question: &Question,
        ranking: &[FusedRow],
        passages: &mut [Fused],
    ) -> Result<(), RetrieveError> {
        let Some(term) = Term::of(question.text()) else { return Ok(()) };
        if passages.len() < PASSAGES_READ {
            return Ok(());
        }
        let end = ranking.len().min(SEARCHED_FOR_DEFINITIONS);
        let mut defining: Vec<(f32, Fused)> = Vec::new();
        for hit in self.load(&ranking[PASSAGES_READ.min(end)..end]).await? {
            let content = &hit.chunk.content;
            let is_known = passages.iter().any(|known| known.chunk.content == *content);
            let clarity = sentences(content).into_iter().map(|span| term.clarity(&content[span]));
            let clarity = clarity.fold(0.0, f32::max);
            if clarity >= CLEAR && !is_known && hit.chunk.section_kind.is_sought(question.text()) {
                defining.push((clarity, hit));
            }
        }
        // The sort is stable: equally clear ones keep the order of the ranking.
        defining.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let (mut place, last) = (PASSAGES_READ, passages[PASSAGES_READ - 1].score);
        for (_, hit) in defining.into_iter().take(MOST_DEFINITIONS) {
            place -= 1;
            passages[place] = Fused { score: last, ..hit };
        }
        let mut least = f32::MAX;
        for passage in passages {
            least = least.min(passage.score);
            passage.score = least;
        }
        Ok(())
    }

    async fn place(&self, question: &Question, ranking: Vec<Fused>) -> Vec<Placed> {
        match &self.reranking {
            Some(reranking) => reranking.place(question.text(), ranking).await,
            None => unplaced(ranking),
        }
    }

    async fn rank(&self, question: &Question, candidates: Candidates) -> Result<Retrieved, RetrieveError> {
        let fused = fuse(&candidates, self.settings.weights);
        let total_found = fused.len();
        let judged = self.reranking.as_ref().map_or(0, |reranking| reranking.candidates);
        let mut distinct =
            self.load_distinct(&fused, question.top_k().max(judged).max(PASSAGES_READ)).await?;
        self.add_definitions(question, &fused, &mut distinct).await?;
        // Relevance is calibrated on the merged order, before reader and reranker change it.
        let best = distinct.iter().take(question.top_k());
        let texts: Vec<String> = best.map(|hit| hit.chunk.embedded_text()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let signals = Signals::measure(&candidates, &texts, &self.analyzer);
        let maker = self.embedder.as_ref().map_or("", |embedder| embedder.id().name.as_str());
        let by_signals =
            if total_found == 0 { 0.0 } else { Calibration::shipped().relevance(&signals, maker) };
        let mut read = self.read_closely(question, &candidates.terms, distinct).await?;
        let answers = read.answers();
        let relevance =
            answers.map_or(by_signals, |answers| Calibration::shipped().with_reader(by_signals, answers));
        let placed = self.place(question, std::mem::take(&mut read.ordered)).await;
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
        let unmentioned = self.unmentioned(question, &candidates, &hits, answers);
        let relevance = if unmentioned.is_empty() { relevance } else { relevance * UNMENTIONED };
        let mut hits: Vec<Hit> =
            hits.into_iter().map(|hit| Hit { score: hit.score.min(relevance), ..hit }).collect();
        let confidence = self.confidence(&hits, relevance);
        let statements = of_hits(read.statements, &hits);
        for hit in hits.iter_mut().filter(|hit| hit.rerank_score.is_none()) {
            let judged = read.judged.iter().find(|(chunk, _)| *chunk == hit.chunk.id);
            hit.rerank_score = judged.map(|(_, judged)| chance(judged.judgement.answers));
        }
        Ok(Retrieved {
            unmentioned,
            read: statements,
            passages_judged: read.judged.len(),
            reader_busy: read.busy,
            by_signals,
            answers,
            hits,
            uncovered: Vec::new(),
            respelled: None,
            parts: 1,
            total_found,
            relevance,
            confidence,
            signals,
            terms: candidates.terms,
            version: candidates.version,
            embedding_time: Duration::ZERO,
            retrieval_time: Duration::ZERO,
        })
    }

    /// The key terms and the premise of a question that none of its hits mentions.
    fn unmentioned(
        &self,
        question: &Question,
        candidates: &Candidates,
        hits: &[Hit],
        answers: Option<f32>,
    ) -> Vec<Unmentioned> {
        let is_common =
            |word: &str| self.embedder.as_ref().is_none_or(|embedder| embedder.is_common_word(word));
        let key_terms = key_terms(question.text(), &self.analyzer, &is_common);
        let premise = Some(&self.analyzer)
            .filter(|analyzer| analyzer.language() == Language::default())
            .and_then(|_| Premise::of(question.text()));
        if (key_terms.is_empty() && premise.is_none()) || hits.is_empty() {
            return Vec::new();
        }
        let texts: Vec<String> = hits.iter().map(|hit| hit.chunk.embedded_text()).collect();
        let passages: Vec<&str> = texts.iter().map(String::as_str).collect();
        let unsaid = premise.filter(|premise| !premise.is_in(&passages, &candidates.terms, &self.analyzer));
        let text = texts.join("\n");
        let terms = self.analyzer.terms(&text).into_iter().map(|term| term.text).collect();
        let words = words(&text);
        let is_sure = answers.is_some_and(|answers| answers >= SURE);
        let missing = key_terms
            .into_iter()
            .filter(|name| !name.is_in(&terms, &words) && (!is_sure || name.is_essential(question.text())))
            .filter(|name| name.matters(&candidates.absent));
        let names = missing
            .map(|name| Unmentioned { is_elsewhere: !name.is_absent(&candidates.absent), word: name.word });
        let is_elsewhere =
            |word: &str| !self.analyzer.distinct(word).iter().any(|term| candidates.absent.contains(term));
        names
            .chain(
                unsaid.map(|premise| Unmentioned {
                    is_elsewhere: is_elsewhere(&premise.word),
                    word: premise.word,
                }),
            )
            .collect()
    }

    fn confidence(&self, hits: &[Hit], relevance: f32) -> Confidence {
        match relevance {
            _ if hits.is_empty() => Confidence::None,
            relevance if relevance >= self.settings.min_relevance => Confidence::High,
            _ => Confidence::Low,
        }
    }
}

/// The statements of these hits. Their probabilities are multiplied by the score of the reranker, if there is
/// one.
fn of_hits(read: Vec<(Uuid, Read)>, hits: &[Hit]) -> Vec<Read> {
    let mut kept: Vec<Read> = Vec::new();
    for (passage, hit) in hits.iter().enumerate() {
        let judged = hit.rerank_score.map_or(1.0, |score| score.max(0.01));
        let own = read.iter().filter(|(chunk, _)| *chunk == hit.chunk.id);
        kept.extend(own.map(|(_, read)| Read { passage, chance: read.chance * judged, ..read.clone() }));
    }
    if hits.iter().any(|hit| hit.rerank_score.is_some()) {
        let total: f32 = kept.iter().map(|read| read.chance).sum::<f32>().max(f32::MIN_POSITIVE);
        kept.iter_mut().for_each(|read| read.chance /= total);
    }
    kept
}

/// Converts a logit to a probability.
fn chance(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}

#[cfg(test)]
mod tests;
