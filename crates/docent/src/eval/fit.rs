//! Logistic regression for the models of relevance and of support.
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

/// The coefficients that best tell covered questions from others.
pub fn fit(examples: &[Example]) -> Coefficients {
    let examples: Vec<([f64; 5], bool)> =
        examples.iter().map(|example| (inputs(&example.signals), example.covered)).collect();
    let [intercept, dense_best, margin, lexical_best, coverage] = weights(&examples, PENALTY);
    Coefficients { intercept, dense_best, margin, lexical_best, coverage }
}

/// The weights that best tell the examples that hold from those that do not; the first input
/// is the constant. `penalty` keeps weights small, and lets inputs that tell the same share
/// the work. Both kinds weigh the same in total, whatever their numbers, so that 0.5
/// means even odds.
pub fn weights<const N: usize>(examples: &[([f64; N], bool)], penalty: f64) -> [f64; N] {
    let holding = examples.iter().filter(|(_, holds)| *holds).count().max(1) as f64;
    let others = examples.iter().filter(|(_, holds)| !holds).count().max(1) as f64;
    let mut weights = [0.0f64; N];
    for _ in 0..STEPS {
        let mut gradient = [0.0f64; N];
        for (inputs, holds) in examples {
            let sum: f64 = weights.iter().zip(inputs).map(|(weight, input)| weight * input).sum();
            let target = if *holds { 1.0 } else { 0.0 };
            let share = 0.5 / if *holds { holding } else { others };
            let error = share * (1.0 / (1.0 + (-sum).exp()) - target);
            gradient.iter_mut().zip(inputs).for_each(|(slope, input)| *slope += error * input);
        }
        for (number, (weight, slope)) in weights.iter_mut().zip(gradient).enumerate() {
            *weight -= RATE * (slope + penalty * *weight);
            if number > 0 {
                *weight = weight.max(0.0);
            }
        }
    }
    weights.map(|weight| (weight * 1000.0).round() / 1000.0)
}

/// The chance that one that holds scores higher than one that does not.
pub fn auc(holding: &[f32], others: &[f32]) -> f64 {
    let wins: f64 = holding
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
    wins / (holding.len() * others.len()).max(1) as f64
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
    format!(
        "AUC {:.3}; at {threshold} it answers {:.1} % of the covered and abstains from {:.1} % of the others",
        auc(&covered, &others),
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
