//! Reorder the best passages by their probability to answer, based on signals and on the reader if there is
//! one.
//!
//! A section that is too long for one passage often raises a matter in one and answers in the next, so the neighbors of the
//! best passage are read as well.
//!
//! Invariant: passages are reordered, and none is dropped; at most the neighbors of the best one are added. Without a reader,
//! the signals decide.

use uuid::Uuid;

use super::{RetrieveError, Retriever};
use crate::fuse::Fused;
use crate::query::Question;
use crate::read::{Judged, PASSAGES_READ, Read, passage_chances, read, weigh_judgements};
use crate::reader::{Passage, ReaderError, pieces};

/// Maximum number of passages the reader judges unless set otherwise. With six instead of four, the right passage is among
/// the first five for two more questions in a hundred, and an answer takes a quarter longer (`docs/quality.md`).
pub const PASSAGES_JUDGED: usize = 6;

/// Number of passages the reader judges in one call …
const READ_AT_ONCE: usize = 2;

/// … until one of them reaches this logit and thus is likely to answer. The value belongs to the bundled reader: of the
/// passages at or above it, 60 % contain the answer (44 % at 0), on questions about books the reader was not trained on.
pub(super) const SURE: f32 = 3.0;

/// The neighbors of the best passage are read if it reaches this logit; below, it hardly ever has anything to do with the question.
const RELATED: f32 = -3.0;

/// A ranking after close reading.
pub struct CloselyRead {
    /// All passages, and the neighbors of the best; those that were read are ordered by their probability to answer.
    pub ordered: Vec<Fused>,
    /// The statements, each with the id of its passage.
    pub statements: Vec<(Uuid, Read)>,
    /// The reader's judgements, each with the id of its passage.
    pub judged: Vec<(Uuid, Judged)>,
    /// Whether the reader was too busy.
    pub busy: bool,
}

impl CloselyRead {
    /// The highest logit that a passage answers the question; none without a reader.
    pub fn answers(&self) -> Option<f32> {
        self.judged.iter().map(|(_, judged)| judged.judgement.answers).reduce(f32::max)
    }
}

impl Retriever {
    /// Reads the best passages of a ranking. Scores belong to positions and are not moved, so that they still
    /// descend.
    pub(super) async fn read_closely(
        &self,
        question: &Question,
        terms: &[(String, f32)],
        ranking: Vec<Fused>,
    ) -> Result<CloselyRead, RetrieveError> {
        let mut ranking = ranking;
        let rest = ranking.split_off(ranking.len().min(PASSAGES_READ));
        let mut best = ranking;
        let mut statements = read(question.text(), terms, &best, &self.analyzer);
        let (mut judged, mut busy) = match self.judge(question.text(), &best, &statements).await {
            Ok(judged) => (judged, false),
            Err(error) => (Vec::new(), matches!(error, ReaderError::Busy)),
        };
        let beside = self.beside(&mut best, &judged).await?;
        if !beside.is_empty() {
            statements = read(question.text(), terms, &best, &self.analyzer);
            match self.judge_these(question.text(), &best, &beside).await {
                Ok(more) => judged.extend(more),
                Err(error) => busy |= matches!(error, ReaderError::Busy),
            }
        }
        weigh_judgements(&mut statements, &judged);
        let order = by_chance(&statements, best.len());
        let moved = order
            .into_iter()
            .zip(&best)
            .map(|(from, place)| Fused { score: place.score, ..best[from].clone() });
        let ordered = moved.chain(rest).collect();
        let id = |passage: usize| best[passage].chunk.id;
        Ok(CloselyRead {
            ordered,
            statements: statements.into_iter().map(|read| (id(read.passage), read)).collect(),
            judged: judged.into_iter().map(|judged| (id(judged.passage), judged)).collect(),
            busy,
        })
    }

    /// The unread passages directly after and before the one that answers best, in the same section, as numbers in
    /// `passages`. Those that the search did not find are added.
    async fn beside(
        &self,
        passages: &mut Vec<Fused>,
        judged: &[Judged],
    ) -> Result<Vec<usize>, RetrieveError> {
        let answers = |judged: &&Judged| judged.judgement.answers;
        let best = judged.iter().max_by(|a, b| answers(a).total_cmp(&answers(b)));
        let Some(best) = best.filter(|best| answers(best) >= RELATED) else { return Ok(Vec::new()) };
        let from = passages[best.passage].clone();
        let page = self.index.page(&from.chunk.document_id).await?;
        let mut found = Vec::new();
        for chunk in page.into_iter().rev().filter(|chunk| chunk.is_beside(&from.chunk)) {
            let known = passages.iter().position(|passage| passage.chunk.id == chunk.id);
            let number = known.unwrap_or_else(|| {
                let score = passages.last().map_or(from.score, |last| last.score);
                passages.push(Fused { chunk, score, ..from.clone() });
                passages.len() - 1
            });
            if !judged.iter().any(|judged| judged.passage == number) {
                found.push(number);
            }
        }
        Ok(found)
    }

    /// The reader's judgements of the passages that are most likely by their signals; empty without a reader.
    pub(super) async fn judge(
        &self,
        question: &str,
        passages: &[Fused],
        statements: &[Read],
    ) -> Result<Vec<Judged>, ReaderError> {
        let mut chosen = by_chance(statements, passages.len());
        chosen.truncate(self.passages_judged);
        self.judge_these(question, passages, &chosen).await
    }

    /// The reader's judgements of these passages, until one of them is sure to answer; empty without a reader.
    async fn judge_these(
        &self,
        question: &str,
        passages: &[Fused],
        chosen: &[usize],
    ) -> Result<Vec<Judged>, ReaderError> {
        let Some(reader) = &self.reader else { return Ok(Vec::new()) };
        let mut judged: Vec<Judged> = Vec::new();
        for few in chosen.chunks(READ_AT_ONCE) {
            let cuts: Vec<_> = few.iter().map(|passage| pieces(&passages[*passage].chunk.content)).collect();
            let inputs: Vec<Passage<'_>> = few
                .iter()
                .zip(&cuts)
                .map(|(passage, cut)| {
                    let chunk = &passages[*passage].chunk;
                    let pieces = cut.iter().map(|span| &chunk.content[span.clone()]).collect();
                    Passage { heading: chunk.breadcrumb(), pieces }
                })
                .collect();
            let judgements = match reader.read(question, &inputs).await {
                // Use the judgements so far.
                Err(ReaderError::Busy) if !judged.is_empty() => break,
                judgements => judgements?,
            };
            let read = few.iter().zip(cuts).zip(judgements);
            judged.extend(read.map(|((passage, pieces), judgement)| Judged {
                passage: *passage,
                pieces,
                judgement,
            }));
            if judged.iter().any(|judged| judged.judgement.answers >= SURE) {
                break;
            }
        }
        Ok(judged)
    }
}

/// The passages ordered by their probability to answer; equal ones keep their order.
fn by_chance(statements: &[Read], passages: usize) -> Vec<usize> {
    let chances = passage_chances(statements, passages);
    let mut order: Vec<usize> = (0..passages).collect();
    order.sort_by(|a, b| chances[*b].total_cmp(&chances[*a]));
    order
}
