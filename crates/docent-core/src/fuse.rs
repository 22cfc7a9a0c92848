//! Merge the keyword ranking and the vector ranking into one.
//!
//! Each ranking is scaled to 0–1 (min–max over its candidates), and the weighted scores are added. A chunk
//! also gets part of the score of its page, which is that of the page's best chunk in each ranking. A page
//! that is strong in both rankings thus rises even if no single chunk is.
//!
//! Invariant: scores are in 0–1. Equal scores keep the order of the rankings, so that the same question always
//! gives the same list.

use std::collections::HashMap;
use std::sync::Arc;

use crate::chunk::Chunk;
use crate::index::{Candidate, Candidates, RowId};

/// The weights of the rankings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Weight of the keyword ranking, 0–1; the rest is the weight of the vector ranking.
    pub lexical: f32,
    /// Share of a chunk's score that comes from its page, 0–1.
    pub page: f32,
}

impl Default for Weights {
    fn default() -> Self {
        Self { lexical: 0.4, page: 0.4 }
    }
}

/// A row of the merged ranking; its chunk is not loaded yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FusedRow {
    /// The row of the chunk.
    pub row: RowId,
    /// Merged score, 0–1; 1 for the best chunk of both rankings.
    pub score: f32,
    /// Keyword score, scaled to 0–1 over the candidates; 0 if it is not in the keyword ranking.
    pub lexical: f32,
    /// Vector score, scaled to 0–1 over the candidates; 0 if it is not in the vector ranking.
    pub dense: f32,
    /// Score of its page over both rankings, 0–1.
    pub page: f32,
}

impl FusedRow {
    /// The row with its chunk.
    pub fn with_chunk(self, chunk: Arc<Chunk>) -> Fused {
        let Self { score, lexical, dense, page, .. } = self;
        Fused { chunk, score, lexical, dense, page }
    }
}

/// A chunk of the merged ranking, with the scores of its [`FusedRow`].
#[derive(Debug, Clone)]
pub struct Fused {
    /// The passage.
    pub chunk: Arc<Chunk>,
    /// Merged score, 0–1.
    pub score: f32,
    /// Keyword score, 0–1.
    pub lexical: f32,
    /// Vector score, 0–1.
    pub dense: f32,
    /// Score of its page, 0–1.
    pub page: f32,
}

/// Merges all candidates into one ranking, best first.
pub fn fuse(candidates: &Candidates, weights: Weights) -> Vec<FusedRow> {
    // A single ranking gets all the weight.
    let lexical_share = match (candidates.lexical.is_empty(), candidates.dense.is_empty()) {
        (false, true) => 1.0,
        (true, false) => 0.0,
        _ => weights.lexical.clamp(0.0, 1.0),
    };
    let rankings = [(&candidates.lexical, lexical_share), (&candidates.dense, 1.0 - lexical_share)];
    let mut places: HashMap<RowId, usize> = HashMap::new();
    let mut merged: Vec<(Candidate, [f32; 2])> = Vec::new();
    let mut pages: HashMap<u32, f32> = HashMap::new();
    for (number, (ranking, share)) in rankings.into_iter().enumerate() {
        if share == 0.0 {
            continue;
        }
        let mut best_of_page: HashMap<u32, f32> = HashMap::new();
        for (candidate, scaled) in scaled(ranking) {
            let place = *places.entry(candidate.row).or_insert_with(|| {
                merged.push((*candidate, [0.0; 2]));
                merged.len() - 1
            });
            merged[place].1[number] = scaled;
            let best = best_of_page.entry(candidate.page).or_default();
            *best = best.max(scaled);
        }
        for (page, best) in best_of_page {
            *pages.entry(page).or_default() += share * best;
        }
    }
    let mut fused: Vec<FusedRow> = merged
        .into_iter()
        .map(|(candidate, [lexical, dense])| {
            let own = lexical_share * lexical + (1.0 - lexical_share) * dense;
            let page = pages.get(&candidate.page).copied().unwrap_or_default();
            let score = (1.0 - weights.page) * own + weights.page * page;
            FusedRow { row: candidate.row, score, lexical, dense, page }
        })
        .collect();
    // The sort is stable: equal scores keep their order.
    fused.sort_by(|a, b| b.score.total_cmp(&a.score));
    fused
}

/// Min–max scaling; if all scores are equal, they are scaled to 1.
fn scaled(ranking: &[Candidate]) -> impl Iterator<Item = (&Candidate, f32)> {
    let scores = ranking.iter().map(|candidate| candidate.score);
    let (least, most) =
        scores.fold((f32::MAX, f32::MIN), |(least, most), score| (least.min(score), most.max(score)));
    let range = most - least;
    ranking
        .iter()
        .map(move |candidate| (candidate, if range > 0.0 { (candidate.score - least) / range } else { 1.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(page: u32, index: u32) -> RowId {
        RowId::Number(u64::from(page) * 100 + u64::from(index))
    }

    fn candidate(page: u32, index: u32, score: f32) -> Candidate {
        Candidate { row: row(page, index), page, score }
    }

    fn order(candidates: &Candidates, weights: Weights) -> Vec<RowId> {
        fuse(candidates, weights).iter().map(|hit| hit.row).collect()
    }

    #[test]
    fn the_best_chunk_of_both_rankings_has_score_one() {
        let candidates = Candidates {
            lexical: vec![candidate(1, 0, 9.0), candidate(2, 0, 3.0)],
            dense: vec![candidate(1, 0, 0.8), candidate(3, 0, 0.2)],
            ..Candidates::default()
        };
        let fused = fuse(&candidates, Weights::default());
        assert_eq!((fused[0].row, fused[0].score), (row(1, 0), 1.0));
    }

    #[test]
    fn a_page_strong_in_both_rankings_beats_one_strong_in_one() {
        let candidates = Candidates {
            lexical: vec![candidate(2, 0, 10.0), candidate(1, 0, 9.0), candidate(3, 0, 0.0)],
            dense: vec![candidate(1, 5, 0.9), candidate(3, 0, 0.1)],
            ..Candidates::default()
        };
        assert_eq!(order(&candidates, Weights { lexical: 0.5, page: 0.5 })[0], row(1, 5));
        assert_eq!(order(&candidates, Weights { lexical: 0.6, page: 0.0 })[0], row(2, 0));
    }

    #[test]
    fn equal_scores_keep_the_order_of_the_rankings() {
        let candidates = Candidates {
            lexical: vec![candidate(3, 0, 5.0), candidate(1, 0, 5.0), candidate(2, 0, 5.0)],
            ..Candidates::default()
        };
        assert_eq!(order(&candidates, Weights::default()), [row(3, 0), row(1, 0), row(2, 0)]);
    }

    #[test]
    fn a_single_ranking_has_full_weight() {
        let candidates =
            Candidates { lexical: vec![candidate(1, 0, 4.0), candidate(2, 0, 2.0)], ..Candidates::default() };
        assert_eq!(fuse(&candidates, Weights::default())[0].score, 1.0);
    }

    proptest! {
        #[test]
        fn scores_stay_between_zero_and_one(
            lexical in prop::collection::vec((0u32..9, 0u32..4, 0f32..50.0), 0..20),
            dense in prop::collection::vec((0u32..9, 0u32..4, -1f32..1.0), 0..20),
            share in 0f32..=1.0, page in 0f32..=1.0,
        ) {
            let list = |raw: Vec<(u32, u32, f32)>| {
                let mut seen = std::collections::HashSet::new();
                raw.into_iter().filter(|(p, i, _)| seen.insert((*p, *i))).map(|(p, i, s)| candidate(p, i, s)).collect()
            };
            let candidates = Candidates { lexical: list(lexical), dense: list(dense), ..Candidates::default() };
            let fused = fuse(&candidates, Weights { lexical: share, page });
            prop_assert!(fused.iter().all(|hit| (-1e-6..=1.0 + 1e-6).contains(&hit.score)));
            prop_assert!(fused.windows(2).all(|pair| pair[0].score >= pair[1].score));
        }
    }
}
