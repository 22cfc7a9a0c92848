//! Test doubles for the seams, and one contract suite per seam.
//!
//! Invariant: a suite does not depend on the implementation it tests.

mod editions;
pub mod generations;
pub mod turn_log;
pub mod sessions;

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

pub use generations::{Counting, Published, decorator_contract};

use crate::chunk::Chunk;
use crate::clock::Clock;
use crate::edition::{Edition, variants};
use crate::embed::{EmbedError, Embedder, EmbedderId, Purpose, Vector};
use crate::index::{
    Candidate, Candidates, Description, Filter, Identity, Index, IndexError, IndexQuery, Module, Modules,
    PageOutline, RowId,
};
use crate::language::Language;
use crate::reader::{Entailment, Judgement, Passage, Reader, ReaderError};
use crate::rerank::{RerankError, Reranker};
use crate::terms::Analyzer;

/// A chunk on `page` at `index`, in module `m`.
pub fn chunk(page: &str, index: u32, content: &str) -> Chunk {
    Chunk {
        id: Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("{page}/{index}").as_bytes()),
        document_id: page.to_owned(),
        index,
        section: index,
        url: format!("https://x.org/{page}#s{index}"),
        page_title: page.to_owned(),
        heading: None,
        heading_hierarchy: Vec::new(),
        book_name: String::new(),
        module_name: "m".to_owned(),
        edition: Edition::default(),
        content: content.to_owned(),
        token_count: content.split_whitespace().count() as u32,
        section_kind: crate::section_kind::SectionKind::default(),
        continues: false,
        breaks_off: false,
        figures: Vec::new(),
        pdf: None,
    }
}

/// A clock that stands still; sleeping never ends.
#[derive(Debug)]
pub struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn timestamp(&self) -> String {
        "2026-01-01T00:00:00Z".to_owned()
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }

    fn new_id(&self) -> Uuid {
        Uuid::nil()
    }
}

/// An embedder without a model: texts with similar letters have similar vectors.
#[derive(Debug)]
pub struct LetterEmbedder {
    id: EmbedderId,
}

impl Default for LetterEmbedder {
    fn default() -> Self {
        Self { id: EmbedderId { name: "test/letters".to_owned(), width: 26 } }
    }
}

impl LetterEmbedder {
    /// The vector of a text.
    pub fn vector(text: &str) -> Vector {
        let mut counts = vec![0f32; 26];
        for letter in text.bytes().filter(u8::is_ascii_alphabetic) {
            counts[usize::from(letter.to_ascii_lowercase() - b'a')] += 1.0;
        }
        let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt().max(1e-9);
        counts.into_iter().map(|count| count / length).collect()
    }
}

#[async_trait]
impl Embedder for LetterEmbedder {
    fn id(&self) -> &EmbedderId {
        &self.id
    }

    fn max_tokens(&self) -> usize {
        64
    }

    fn batch_size(&self) -> usize {
        4
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    async fn embed(&self, texts: &[&str], _: Purpose) -> Result<Vec<Vector>, EmbedError> {
        Ok(texts.iter().map(|text| Self::vector(text)).collect())
    }
}

/// A simple in-memory index that scans every chunk.
#[derive(Debug)]
pub struct MemoryIndex {
    chunks: Vec<(Arc<Chunk>, Vector)>,
    analyzer: Analyzer,
}

impl MemoryIndex {
    /// An index of these chunks and their vectors.
    pub fn new(chunks: Vec<(Chunk, Vector)>) -> Self {
        let chunks = chunks.into_iter().map(|(chunk, vector)| (Arc::new(chunk), vector)).collect();
        Self { chunks, analyzer: Analyzer::new(Language::default()) }
    }

    fn ranked(&self, filter: &Filter, depth: usize, score: impl Fn(&Chunk, &[f32]) -> f32) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> = (0..)
            .zip(&self.chunks)
            .filter(|(_, (chunk, _))| filter.admits(chunk))
            .map(|(row, (chunk, vector))| Candidate {
                row: RowId::Number(row),
                page: self.page_number(&chunk.document_id),
                score: score(chunk, vector),
            })
            .collect();
        candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
        candidates.truncate(depth);
        candidates
    }

    /// The number of the first chunk of a page.
    fn page_number(&self, document_id: &str) -> u32 {
        let first = self.chunks.iter().position(|(chunk, _)| chunk.document_id == document_id);
        first.unwrap_or_default() as u32
    }
}

#[async_trait]
impl Index for MemoryIndex {
    async fn search(&self, query: &IndexQuery<'_>) -> Result<Candidates, IndexError> {
        let terms = query.terms(&self.analyzer);
        let width = self.chunks.first().map_or(0, |(_, vector)| vector.len());
        if let Some(vector) = query.vector.filter(|vector| vector.len() != width) {
            return Err(IndexError::WrongWidth { expected: width, actual: vector.len() });
        }
        let terms_of = |chunk: &Chunk| self.analyzer.distinct(&chunk.embedded_text());
        let mut lexical = self.ranked(query.filter, query.depth, |chunk, _| {
            let found = terms_of(chunk);
            terms.iter().filter(|term| found.contains(term)).count() as f32
        });
        lexical.retain(|candidate| candidate.score > 0.0);
        let dense = query.vector.map_or_else(Vec::new, |query_vector| {
            self.ranked(query.filter, query.depth, |_, vector| {
                vector.iter().zip(query_vector).map(|(a, b)| a * b).sum()
            })
        });
        let known: HashSet<String> = self.chunks.iter().flat_map(|(chunk, _)| terms_of(chunk)).collect();
        let absent = terms.iter().filter(|term| !known.contains(*term)).cloned().collect();
        let terms = terms.into_iter().map(|term| (term, 1.0)).collect();
        Ok(Candidates { lexical, dense, terms, absent, version: "memory".to_owned() })
    }

    async fn chunks(&self, rows: &[RowId]) -> Result<Vec<Option<Arc<Chunk>>>, IndexError> {
        let chunk = |row: &RowId| match row {
            RowId::Number(row) => self.chunks.get(*row as usize).map(|(chunk, _)| chunk.clone()),
            RowId::Uuid(_) => None,
        };
        Ok(rows.iter().map(chunk).collect())
    }

    async fn page(&self, document_id: &str) -> Result<Vec<Arc<Chunk>>, IndexError> {
        let chunks = self.chunks.iter().map(|(chunk, _)| chunk.clone());
        Ok(chunks.filter(|chunk| chunk.document_id == document_id).collect())
    }

    async fn outline(&self) -> Result<Vec<PageOutline>, IndexError> {
        Ok(PageOutline::of(self.chunks.iter().map(|(chunk, _)| chunk.as_ref())))
    }

    async fn vocabulary(&self) -> Result<Vec<(String, u32)>, IndexError> {
        let mut counts = std::collections::BTreeMap::<String, u32>::new();
        for term in self.chunks.iter().flat_map(|(chunk, _)| self.analyzer.distinct(&chunk.embedded_text())) {
            *counts.entry(term).or_default() += 1;
        }
        Ok(counts.into_iter().collect())
    }

    async fn identity(&self) -> Result<Identity, IndexError> {
        Ok(Identity {
            version: "memory".to_owned(),
            embedder: LetterEmbedder::default().id,
            language: Language::default(),
        })
    }

    async fn pinned(self: Arc<Self>) -> Result<Arc<dyn Index>, IndexError> {
        Ok(self)
    }

    async fn describe(&self) -> Result<Description, IndexError> {
        let mut modules = Modules::new();
        let mut books = std::collections::BTreeMap::<String, Modules>::new();
        let mut pages = std::collections::BTreeSet::new();
        let mut editions = Vec::new();
        for (chunk, _) in &self.chunks {
            let is_new = pages.insert(&chunk.document_id);
            if is_new {
                editions.push((chunk.book_name.as_str(), &chunk.edition));
            }
            let book =
                (!chunk.book_name.is_empty()).then(|| books.entry(chunk.book_name.clone()).or_default());
            for modules in book.into_iter().chain([&mut modules]) {
                let size = modules.entry(chunk.module_name.clone()).or_default();
                size.chunks += 1;
                size.pages += usize::from(is_new);
            }
        }
        let (versions, locales) = variants(editions);
        Ok(Description {
            version: "memory".to_owned(),
            embedder: LetterEmbedder::default().id,
            language: Language::default(),
            pages: pages.len(),
            chunks: self.chunks.len(),
            modules,
            books,
            versions,
            locales,
            sources: Vec::new(),
            created_at: String::new(),
        })
    }
}

/// The chunks of these candidates, in order; those that no longer exist are left out.
pub async fn load(index: &dyn Index, candidates: &[Candidate]) -> Result<Vec<Arc<Chunk>>, IndexError> {
    let rows: Vec<RowId> = candidates.iter().map(|candidate| candidate.row).collect();
    Ok(index.chunks(&rows).await?.into_iter().flatten().collect())
}

/// Checks what every [`Index`] must do. `make` builds an index of the given chunks and their
/// [`LetterEmbedder`] vectors, in the given order.
pub async fn index_contract(make: impl AsyncFn(Vec<(Chunk, Vector)>) -> Arc<dyn Index>) {
    let mut chunks = [
        chunk("nodes", 0, "A node is a participant in the graph."),
        chunk("nodes", 1, "Create one with rclpy.create_node in Python."),
        chunk("topics", 0, "A topic carries messages; see /cmd_vel."),
        chunk("pasta", 0, "Boil the water, add salt."),
    ];
    chunks[3].module_name = "kitchen".to_owned();
    chunks[2].book_name = "robots".to_owned();
    chunks[3].book_name = "food".to_owned();
    let with_vectors = |chunk: &Chunk| (chunk.clone(), LetterEmbedder::vector(&chunk.embedded_text()));
    let index = make(chunks.iter().map(with_vectors).collect()).await;
    let everything = Filter::default();
    let search = async |text: &str, vector: Option<&[f32]>, filter: &Filter, depth: usize| {
        index.search(&IndexQuery { text, vector, filter, depth, analyzed: false }).await
    };
    let pages = async |candidates: &[Candidate]| -> Vec<String> {
        let chunks = load(&*index, candidates).await.unwrap();
        chunks.iter().map(|chunk| format!("{}/{}", chunk.document_id, chunk.index)).collect()
    };

    // Keywords: the chunk with the words comes first; chunks without any are not returned.
    let found = search("participant graph", None, &everything, 10).await.unwrap();
    assert_eq!(pages(&found.lexical).await, ["nodes/0"]);
    assert!(found.dense.is_empty(), "no vector was given");

    // Identifiers are found whole and by part.
    for (text, page) in [("rclpy.create_node", "nodes/1"), ("cmd_vel", "topics/0"), ("/cmd_vel", "topics/0")]
    {
        let found = search(text, None, &everything, 10).await.unwrap();
        assert_eq!(pages(&found.lexical).await[0], page, "{text}");
    }

    // Vectors: every chunk is ranked. The one with the same text comes first, with cosine similarity 1.
    let vector = LetterEmbedder::vector(&chunks[2].embedded_text());
    let found = search("zzz", Some(&vector), &everything, 10).await.unwrap();
    assert_eq!(pages(&found.dense).await[0], "topics/0");
    assert!((found.dense[0].score - 1.0).abs() < 1e-3, "{}", found.dense[0].score);
    assert_eq!(found.dense.len(), 4);
    assert!(found.dense.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert!(found.lexical.is_empty(), "no chunk has the word");

    // Candidates have the same page number exactly if they are on the same page.
    let found_chunks = load(&*index, &found.dense).await.unwrap();
    for (candidate, chunk) in found.dense.iter().zip(&found_chunks) {
        for (other, other_chunk) in found.dense.iter().zip(&found_chunks) {
            let same_page = chunk.document_id == other_chunk.document_id;
            assert_eq!(candidate.page == other.page, same_page, "{candidate:?} {other:?}");
        }
    }

    // Chunks are returned unchanged and in the requested order; rows that do not exist are left empty.
    assert_eq!(*found_chunks[0], chunks[2]);
    let (best, worst) = (found.dense[0].row, found.dense[3].row);
    let loaded = index.chunks(&[worst, RowId::Uuid(Uuid::nil()), best, worst]).await.unwrap();
    let expected = [3, 0, 3].map(|place| Some(found_chunks[place].clone()));
    assert_eq!(loaded, [expected[0].clone(), None, expected[1].clone(), expected[2].clone()]);
    assert!(index.chunks(&[]).await.unwrap().is_empty());

    // Depth and filter apply to both rankings.
    let found = search("a node or a topic", Some(&vector), &everything, 1).await.unwrap();
    assert_eq!((found.lexical.len(), found.dense.len()), (1, 1));
    let kitchen = Filter::of_module(Some("kitchen".to_owned()));
    let found = search("water node", Some(&vector), &kitchen, 10).await.unwrap();
    assert_eq!(
        (pages(&found.lexical).await, pages(&found.dense).await),
        (vec!["pasta/0".to_owned()], vec!["pasta/0".to_owned()])
    );
    let books = [("robots", None, 1), ("robots", Some("m"), 1), ("food", Some("m"), 0), ("nowhere", None, 0)];
    for (book, module, expected) in books {
        let filter = Filter::requested(Some(book.to_owned()), module.map(str::to_owned), None, None);
        let found = search("node topic", Some(&vector), &filter, 10).await.unwrap();
        assert_eq!((found.lexical.len(), found.dense.len()), (expected, expected), "{filter:?}");
    }
    let nowhere = Filter::of_module(Some("nowhere".to_owned()));
    let found = search("node", Some(&vector), &nowhere, 10).await.unwrap();
    assert!(found.lexical.is_empty() && found.dense.is_empty());

    // A row is the same in both rankings.
    let found = search("cmd_vel", Some(&vector), &everything, 10).await.unwrap();
    assert_eq!(found.lexical[0].row, found.dense[0].row);

    // All terms of the query are returned, and which of them no chunk contains, whatever the filter.
    let found = search("node zebra", None, &everything, 10).await.unwrap();
    let terms: Vec<&str> = found.terms.iter().map(|(term, _)| term.as_str()).collect();
    assert_eq!(terms, ["node", "zebra"]);
    for filter in [&everything, &kitchen, &everything] {
        let found = search("node zebra", None, filter, 10).await.unwrap();
        assert_eq!(found.absent, HashSet::from(["zebra".to_owned()]));
    }

    // A vector of another width is an error.
    let refused = search("node", Some(&[1.0, 0.0]), &everything, 10).await;
    assert!(matches!(refused, Err(IndexError::WrongWidth { .. })));

    // A page is returned whole.
    let page = index.page("nodes").await.unwrap();
    assert_eq!(page.iter().map(|chunk| (**chunk).clone()).collect::<Vec<_>>(), chunks[..2]);
    assert!(index.page("nowhere").await.unwrap().is_empty());

    // The outline contains every page and its sections once.
    let outline = index.outline().await.unwrap();
    let pages: Vec<(&str, &str, usize)> =
        outline.iter().map(|page| (&*page.document_id, &*page.url, page.sections.len())).collect();
    assert_eq!(
        pages,
        [
            ("nodes", "https://x.org/nodes", 2),
            ("topics", "https://x.org/topics", 1),
            ("pasta", "https://x.org/pasta", 1)
        ]
    );

    // The description and the identity agree, and pinning does not change them.
    let description = index.describe().await.unwrap();
    assert_eq!(index.identity().await.unwrap(), description.identity());
    let pinned = index.clone().pinned().await.unwrap();
    assert_eq!(pinned.describe().await.unwrap(), description);
    assert_eq!(pinned.identity().await.unwrap(), description.identity());
    assert_eq!((description.pages, description.chunks), (3, 4));
    let kitchen = Module { label: None, pages: 1, chunks: 1 };
    assert_eq!(description.modules["kitchen"], kitchen);
    let books: Vec<_> = description.books.into_iter().collect();
    assert_eq!(books[0], ("food".to_owned(), Modules::from([("kitchen".to_owned(), kitchen)])));
    assert_eq!((books.len(), &*books[1].0, books[1].1["m"].pages), (2, "robots", 1));
    assert!(description.versions.is_empty() && description.locales.is_empty());
    editions::contract(&make).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_memory_index_fulfills_the_contract() {
        index_contract(async |chunks| Arc::new(MemoryIndex::new(chunks)) as Arc<dyn Index>).await;
    }
}

/// A reranker that scores passages with a given word 0.9, and others 0.1.
#[derive(Debug)]
pub struct WordReranker(pub &'static str);

#[async_trait]
impl Reranker for WordReranker {
    fn name(&self) -> &str {
        "test/word"
    }

    async fn rerank(&self, _: &str, passages: &[&str]) -> Result<Vec<f32>, RerankError> {
        Ok(passages.iter().map(|passage| if passage.contains(self.0) { 0.9 } else { 0.1 }).collect())
    }
}

/// A reader for which passages and pieces with a given word answer every question and support every claim.
#[derive(Debug)]
pub struct WordReader(pub &'static str);

#[async_trait]
impl Reader for WordReader {
    fn name(&self) -> &str {
        "test/word"
    }

    async fn read(&self, _: &str, passages: &[Passage<'_>]) -> Result<Vec<Judgement>, ReaderError> {
        let judge = |passage: &Passage<'_>| {
            let likes = |has: bool| if has { 15.0 } else { -15.0 };
            let has = passage.pieces.iter().any(|piece| piece.contains(self.0));
            let supported = if has { 0.98 } else { 0.01 };
            Judgement {
                relevance: likes(has),
                answers: likes(has),
                pieces: passage.pieces.iter().map(|piece| Some(likes(piece.contains(self.0)))).collect(),
                verdict: Entailment { supported, contradicted: 0.01, not_mentioned: 0.99 - supported },
            }
        };
        Ok(passages.iter().map(judge).collect())
    }
}

/// A reader that is always busy.
#[derive(Debug)]
pub struct BusyReader;

#[async_trait]
impl Reader for BusyReader {
    fn name(&self) -> &str {
        "test/busy"
    }

    async fn read(&self, _: &str, _: &[Passage<'_>]) -> Result<Vec<Judgement>, ReaderError> {
        Err(ReaderError::Busy)
    }
}

/// Checks what every trained [`Reader`] must do: return one judgement per passage, in order, with one number
/// per piece, the same every time; and judge a passage that answers the question as more relevant than
/// others.
pub async fn reader_contract(reader: &dyn Reader) {
    assert!(!reader.name().is_empty());
    let passage = |pieces: &[&'static str]| Passage { heading: "Book".to_owned(), pieces: pieces.to_vec() };
    let passages = [
        passage(&["Boil the water and add salt.", "Serve the pasta hot."]),
        passage(&["Robots are fun.", "A node is a process that takes part in the graph.", "It rains."]),
    ];
    let query = "What is a node?";
    let judged = reader.read(query, &passages).await.unwrap();
    assert_eq!(judged.len(), passages.len());
    assert!(judged[1].relevance > judged[0].relevance && judged[1].answers > judged[0].answers, "{judged:?}");
    for (judgement, passage) in judged.iter().zip(&passages) {
        assert_eq!(judgement.pieces.len(), passage.pieces.len());
        let Entailment { supported, contradicted, not_mentioned } = judgement.verdict;
        assert!((supported + contradicted + not_mentioned - 1.0).abs() < 1e-3, "{judgement:?}");
    }
    let best = judged[1].pieces.iter().enumerate().max_by(|(_, a), (_, b)| a.unwrap().total_cmp(&b.unwrap()));
    assert_eq!(best.map(|(number, _)| number), Some(1), "{judged:?}");
    assert_eq!(reader.read(query, &passages).await.unwrap(), judged);
    assert!(reader.read(query, &[]).await.unwrap().is_empty());
}

/// Checks what every [`Reranker`] must do: return one score per passage, in order, in 0–1, the same every
/// time; and score a passage that answers the question best.
pub async fn reranker_contract(reranker: &dyn Reranker) {
    assert!(!reranker.name().is_empty());
    let query = "what is a node";
    let passages = ["boil the water and add salt", "a node is what takes part in the graph", "pasta"];
    let scores = reranker.rerank(query, &passages).await.unwrap();
    assert_eq!(scores.len(), passages.len());
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    assert!(scores[1] > scores[0] && scores[1] > scores[2], "{scores:?}");
    assert_eq!(reranker.rerank(query, &passages).await.unwrap(), scores);
    let reordered = [passages[1], passages[2], passages[0]];
    let after = reranker.rerank(query, &reordered).await.unwrap();
    let close = |a: f32, b: f32| (a - b).abs() < 1e-4;
    assert!(close(after[0], scores[1]) && close(after[2], scores[0]), "{after:?}");
}
