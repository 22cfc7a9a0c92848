//! Metrics for rankings.
//!
//! Invariant: a judged question missing from the run scores 0.

use serde::Serialize;

use super::{Judgements, Ranking};

/// Means over all judged questions.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Normalized discounted cumulative gain of the top 10.
    pub ndcg_at_10: f64,
    /// The share of relevant documents that are in the top 5.
    pub recall_at_5: f64,
    /// How often the first document is relevant.
    pub hit_at_1: f64,
    /// The reciprocal rank of the first relevant document in the top 10.
    pub mrr_at_10: f64,
    /// The number of judged questions.
    pub queries: usize,
}

/// Scores rankings against the judgements.
pub fn score(judged: &Judgements, rankings: &[Ranking]) -> Score {
    let mut score = Score { queries: judged.len(), ..Score::default() };
    for (query, grades) in judged {
        let Some(ranking) = rankings.iter().find(|ranking| ranking.query == *query) else { continue };
        let grade = |position: usize| {
            ranking
                .documents
                .get(position)
                .and_then(|(document, _)| grades.get(document))
                .copied()
                .unwrap_or(0.0)
        };
        let gain: f64 = (0..10).map(|position| grade(position) * discount(position)).sum();
        let mut ideal: Vec<f64> = grades.values().copied().collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        let best: f64 =
            ideal.iter().take(10).enumerate().map(|(position, grade)| grade * discount(position)).sum();
        score.ndcg_at_10 += gain / best;
        score.recall_at_5 +=
            (0..5).filter(|position| grade(*position) > 0.0).count() as f64 / grades.len() as f64;
        score.hit_at_1 += f64::from(grade(0) > 0.0);
        score.mrr_at_10 += (0..10)
            .find(|position| grade(*position) > 0.0)
            .map_or(0.0, |position| 1.0 / (position + 1) as f64);
    }
    let count = judged.len().max(1) as f64;
    for mean in [&mut score.ndcg_at_10, &mut score.recall_at_5, &mut score.hit_at_1, &mut score.mrr_at_10] {
        *mean /= count;
    }
    score
}

fn discount(position: usize) -> f64 {
    1.0 / ((position + 2) as f64).log2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(entries: &[(&str, &str, f64)]) -> Judgements {
        let mut judged = Judgements::new();
        for (query, document, grade) in entries {
            judged.entry((*query).to_owned()).or_default().insert((*document).to_owned(), *grade);
        }
        judged
    }

    fn ranking(query: &str, documents: &[&str]) -> Ranking {
        Ranking {
            query: query.to_owned(),
            documents: documents.iter().map(|name| ((*name).to_owned(), 1.0)).collect(),
        }
    }

    #[test]
    fn a_perfect_ranking_scores_one() {
        let score = score(&judged(&[("q", "a", 1.0), ("q", "b", 1.0)]), &[ranking("q", &["b", "a", "c"])]);
        assert_eq!(
            (score.ndcg_at_10, score.recall_at_5, score.hit_at_1, score.mrr_at_10),
            (1.0, 1.0, 1.0, 1.0)
        );
    }

    #[test]
    fn the_second_place_is_discounted() {
        let score = score(&judged(&[("q", "a", 1.0)]), &[ranking("q", &["x", "a"])]);
        assert!((score.ndcg_at_10 - 1.0 / 3f64.log2()).abs() < 1e-9);
        assert_eq!((score.hit_at_1, score.mrr_at_10), (0.0, 0.5));
    }

    #[test]
    fn a_question_without_a_ranking_scores_zero() {
        let score = score(&judged(&[("q", "a", 1.0), ("r", "a", 1.0)]), &[ranking("q", &["a"])]);
        assert_eq!((score.ndcg_at_10, score.queries), (0.5, 2));
    }
}
