//! Logistic regression for the relevance model.
//!
//! Invariant: no weight is negative, so more of any signal is never less relevant.

use docent_core::relevance::{Coefficients, Signals};

/// A question with what retrieval saw, and whether the book covers it.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// What retrieval saw.
    pub signals: Signals,
    /// Whether the book covers the question.
    pub covered: bool,
}

const STEPS: usize = 20_000;
const RATE: f64 = 2.0;
/// Keeps weights small where the examples do not need them large.
const PENALTY: f64 = 1e-4;

/// The coefficients that best tell covered questions from others. Both kinds weigh the same
/// in total, whatever their numbers, so that 0.5 means even odds.
pub fn fit(examples: &[Example]) -> Coefficients {
    let covered = examples.iter().filter(|example| example.covered).count().max(1) as f64;
    let others = examples.iter().filter(|example| !example.covered).count().max(1) as f64;
    let mut weights = [0.0f64; 5];
    for _ in 0..STEPS {
        let mut gradient = [0.0f64; 5];
        for example in examples {
            let inputs = inputs(&example.signals);
            let sum: f64 = weights.iter().zip(inputs).map(|(weight, input)| weight * input).sum();
            let target = if example.covered { 1.0 } else { 0.0 };
            let share = 0.5 / if example.covered { covered } else { others };
            let error = share * (1.0 / (1.0 + (-sum).exp()) - target);
            gradient.iter_mut().zip(inputs).for_each(|(slope, input)| *slope += error * input);
        }
        for (number, (weight, slope)) in weights.iter_mut().zip(gradient).enumerate() {
            *weight -= RATE * (slope + PENALTY * *weight);
            if number > 0 {
                *weight = weight.max(0.0);
            }
        }
    }
    let rounded = weights.map(|weight| (weight * 1000.0).round() / 1000.0);
    let [intercept, dense_best, margin, lexical_best, coverage] = rounded;
    Coefficients { intercept, dense_best, margin, lexical_best, coverage }
}

fn inputs(signals: &Signals) -> [f64; 5] {
    [
        1.0,
        signals.dense_best.into(),
        signals.margin.into(),
        signals.lexical_best.into(),
        signals.coverage.into(),
    ]
}

/// How well a model tells the two apart, in one line.
pub fn summary(model: &Coefficients, examples: &[Example], threshold: f32) -> String {
    let scored = |covered: bool| -> Vec<f32> {
        examples
            .iter()
            .filter(|example| example.covered == covered)
            .map(|example| model.probability(&example.signals))
            .collect()
    };
    let (covered, others) = (scored(true), scored(false));
    let share = |scores: &[f32], test: &dyn Fn(f32) -> bool| {
        100.0 * scores.iter().filter(|score| test(**score)).count() as f64 / scores.len().max(1) as f64
    };
    let wins: f64 = covered
        .iter()
        .flat_map(|a| {
            others.iter().map(move |b| {
                if a > b {
                    1.0
                } else if a == b {
                    0.5
                } else {
                    0.0
                }
            })
        })
        .sum();
    format!(
        "AUC {:.3}; at {threshold} it answers {:.1} % of the covered and abstains from {:.1} % of the others",
        wins / (covered.len() * others.len()).max(1) as f64,
        share(&covered, &|score| score >= threshold),
        share(&others, &|score| score < threshold),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns_which_signal_tells_and_no_weight_is_negative() {
        let examples: Vec<Example> = (0..100)
            .map(|number| {
                let covered = number % 2 == 0;
                let dense_best = if covered { 0.7 } else { 0.3 };
                // Misleading: higher for questions that are not covered.
                let margin = if covered { 0.1 } else { 0.2 };
                Example { signals: Signals { dense_best, margin, lexical_best: 0.5, coverage: 0.5 }, covered }
            })
            .collect();
        let model = fit(&examples);
        assert!(model.dense_best > 1.0 && model.margin == 0.0, "{model:?}");
        assert!(summary(&model, &examples, 0.5).starts_with("AUC 1.000; at 0.5 it answers 100.0 %"));
    }
}
