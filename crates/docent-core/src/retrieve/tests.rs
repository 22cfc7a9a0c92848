//! Test searching and ranking.

use std::collections::HashSet;

use super::*;
use crate::testing::{BusyReader, Counting, LetterEmbedder, MemoryIndex, WordReader, WordReranker, chunk};

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
async fn adjacent_passages_can_both_be_hits() {
    let mut chunks =
        vec![chunk("a", 0, "node graph"), chunk("a", 1, "node graph too"), chunk("b", 0, "pasta")];
    chunks[1].section = 0;
    let found = names(&found(&book(chunks), "node graph", 5, 0.0).await);
    assert!(found.contains(&"a/0".to_owned()) && found.contains(&"a/1".to_owned()), "{found:?}");
}

#[tokio::test]
async fn the_subject_added_to_a_follow_up_is_searched_with_every_part() {
    let retriever = four_pages();
    let one = found(&retriever, "Can I stop it again? (salt pasta node)", 4, 0.0).await;
    assert_eq!(one.parts, 1);
    assert_eq!(
        one.terms.iter().filter(|(term, _)| ["salt", "pasta", "node"].contains(&term.as_str())).count(),
        3
    );
    let two = found(&retriever, "How do I start it, and how do I stop it? (salt pasta node)", 4, 0.0).await;
    assert_eq!(two.parts, 2);
    assert!(names(&two).contains(&"d/0".to_owned()), "{:?}", names(&two));
    assert!(two.uncovered.iter().all(|part| !part.contains("salt")), "{:?}", two.uncovered);
}

#[tokio::test]
async fn passages_with_the_same_text_are_one_hit() {
    let chunks = vec![chunk("a", 0, "node graph"), chunk("b", 0, "node graph")];
    assert_eq!(names(&found(&book(chunks), "node graph", 5, 0.0).await).len(), 1);
}

#[tokio::test]
async fn repetitions_do_not_take_the_places_of_other_passages() {
    let mut chunks: Vec<Chunk> =
        (0..200).map(|number| chunk(&format!("copy{number}"), 0, "node graph")).collect();
    chunks.extend((0..9).map(|number| chunk(&format!("p{number}"), 0, &format!("node number {number}"))));
    let found = found(&book(chunks), "node graph", 10, 0.0).await;
    let texts: HashSet<&str> = found.hits.iter().map(|hit| hit.chunk.content.as_str()).collect();
    assert_eq!((found.hits.len(), texts.len(), found.total_found), (10, 10, 209));
}

#[tokio::test]
async fn only_the_best_passages_are_loaded() {
    let chunks = (0..300)
        .map(|number| {
            let chunk = chunk(&format!("p{number}"), 0, &format!("node number {number}"));
            let vector = LetterEmbedder::vector(&chunk.embedded_text());
            (chunk, vector)
        })
        .collect();
    let index = Arc::new(Counting::new(MemoryIndex::new(chunks)));
    let clock = Arc::new(crate::testing::StoppedClock);
    let retriever = Retriever::new(index.clone(), None, Language::default(), Settings::default(), clock);
    let found = found(&retriever, "How do I find the node I want?", 5, 0.0).await;
    assert_eq!((found.hits.len(), found.total_found, index.rows_loaded()), (5, 300, PASSAGES_READ));
}

#[tokio::test]
async fn a_key_term_may_be_mentioned_elsewhere_in_the_book() {
    let mut chunks: Vec<Chunk> = (0..5)
        .map(|number| chunk(&format!("p{number}"), 0, &format!("Connect a node, way {number}.")))
        .collect();
    chunks.push(chunk("robots", 0, "Webots simulates wheels, motors, sensors and cameras."));
    let retriever = book(chunks);
    for (name, is_elsewhere) in [("Webots", true), ("Gazebo", false)] {
        let text = format!("connect a node, way {name}");
        let found = found(&retriever, &text, 1, 0.0).await;
        let expected = Unmentioned { word: name.to_owned(), is_elsewhere };
        assert_eq!(found.unmentioned, [expected], "{:?}", names(&found));
    }
}

#[tokio::test]
async fn a_removal_that_no_passage_mentions_is_a_false_premise() {
    let retriever = book(vec![
        chunk("a", 0, "A node joins the graph. Messages are dropped if the queue is full."),
        chunk("b", 0, "The old graph viewer was removed, because nobody used it."),
    ]);
    let ask = async |text: &str| found(&retriever, text, 1, 0.0).await.unmentioned;
    assert_eq!(ask("Why was the old graph viewer removed?").await, []);
    let expected = Unmentioned { word: "removed".to_owned(), is_elsewhere: true };
    assert_eq!(ask("Why was the node that joins removed?").await, [expected]);
}

#[tokio::test]
async fn the_threshold_removes_hits_and_without_hits_confidence_is_none() {
    let retriever = book(vec![chunk("a", 0, "node graph")]);
    let all = found(&retriever, "node graph", 5, 0.0).await;
    assert_eq!((all.hits.len(), all.confidence), (1, Confidence::High));
    let none = found(&retriever, "node graph", 5, 1.0).await;
    assert_eq!((none.hits.len(), none.confidence), (0, Confidence::None));
}

#[tokio::test]
async fn scores_descend_and_do_not_exceed_the_relevance() {
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
async fn a_reranker_changes_the_order_and_reports_its_scores() {
    let plain = found(&four_pages(), "node graph", 4, 0.0).await;
    let reranked = four_pages().with_reranker(Arc::new(WordReranker("pasta")), 30);
    let reranked = found(&reranked, "node graph", 4, 0.0).await;
    assert_eq!(names(&plain)[0], "a/0");
    assert_eq!(names(&reranked)[..3], ["c/0", "a/0", "b/0"], "the others keep their order");
    let said: Vec<Option<f32>> = reranked.hits.iter().map(|hit| hit.rerank_score).collect();
    assert_eq!(said, [Some(0.9), Some(0.1), Some(0.1), Some(0.1)]);
    // Relevance, confidence and the scores of the positions do not change.
    assert_eq!((plain.relevance, plain.confidence), (reranked.relevance, reranked.confidence));
    let scores = |retrieved: &Retrieved| retrieved.hits.iter().map(|hit| hit.score).collect::<Vec<_>>();
    assert_eq!(scores(&plain), scores(&reranked));
}

#[tokio::test]
async fn a_reranker_can_promote_a_passage_into_the_hits() {
    let retriever = four_pages().with_reranker(Arc::new(WordReranker("salt")), 30);
    assert_eq!(names(&found(&retriever, "node graph", 1, 0.0).await), ["d/0"]);
}

#[tokio::test]
async fn a_reranker_gets_only_its_number_of_candidates() {
    let plain = names(&found(&four_pages(), "node graph", 4, 0.0).await);
    let retriever = four_pages().with_reranker(Arc::new(WordReranker("pasta")), 2);
    let reranked = found(&retriever, "node graph", 4, 0.0).await;
    assert_eq!(names(&reranked), plain, "neither of the first two has the word");
    let asked: Vec<bool> = reranked.hits.iter().map(|hit| hit.rerank_score.is_some()).collect();
    assert_eq!(asked, [true, true, false, false]);
}

#[tokio::test]
async fn a_reader_changes_order_and_relevance() {
    let plain = found(&four_pages(), "node graph", 4, 0.0).await;
    assert_eq!((plain.passages_judged, plain.answers), (0, None));
    let read = found(&four_pages().with_reader(Arc::new(WordReader("pasta"))), "node graph", 4, 0.0).await;
    assert_eq!(names(&read)[0], "c/0");
    assert_eq!(read.passages_judged, 4, "the word is in the third");
    assert!(read.hits[0].rerank_score > read.hits[1].rerank_score);
    assert!(read.read.iter().max_by(|a, b| a.chance.total_cmp(&b.chance)).unwrap().passage == 0);
    let silent = found(&four_pages().with_reader(Arc::new(WordReader("absent"))), "node graph", 4, 0.0).await;
    assert!(silent.relevance < plain.relevance && silent.relevance < read.relevance);
}

#[tokio::test]
async fn the_neighbors_of_the_best_passage_in_its_section_are_read() {
    let judged = async |sections: [u32; 3]| {
        let texts = ["Before all nodes.", "A node joins the graph.", "Its pasta is boiled."];
        let page = (0..).zip(texts).zip(sections);
        let mut chunks: Vec<Chunk> =
            page.map(|((index, text), section)| Chunk { section, ..chunk("page", index, text) }).collect();
        let others =
            (0..30).map(|number| chunk(&format!("p{number}"), 0, &format!("The graph, node {number}.")));
        chunks.extend(others);
        let retriever = book(chunks).with_reader(Arc::new(WordReader("joins")));
        found(&retriever, "node graph joins", 5, 0.0).await.passages_judged
    };
    // The first two are always read, and one of them is sure to answer.
    assert_eq!(judged([0, 1, 2]).await, 2);
    assert_eq!(judged([0, 1, 1]).await, 3);
}

#[tokio::test]
async fn a_busy_reader_does_not_affect_the_rest() {
    let plain = found(&four_pages(), "node graph", 4, 0.0).await;
    let busy = found(&four_pages().with_reader(Arc::new(BusyReader)), "node graph", 4, 0.0).await;
    assert_eq!(names(&busy), names(&plain));
    assert_eq!(busy.relevance, plain.relevance);
    assert_eq!((plain.reader_busy, busy.reader_busy), (false, true));
}

/// A reranker that returns these scores, or fails if there are none.
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
async fn the_merged_order_is_kept_when_reranking_fails() {
    let plain = names(&found(&four_pages(), "node graph", 4, 0.0).await);
    for scores in [vec![], vec![0.5], vec![0.1, f32::NAN, 0.3, 0.4]] {
        let retriever = four_pages().with_reranker(Arc::new(Odd(scores)), 30);
        let found = found(&retriever, "node graph", 4, 0.0).await;
        assert_eq!(names(&found), plain);
        assert!(found.hits.iter().all(|hit| hit.rerank_score.is_none()));
    }
}
