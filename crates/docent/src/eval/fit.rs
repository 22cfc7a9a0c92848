//! Logistic regression for relevance and for support.
//!
//! Invariant: no weight is negative, so a higher signal never lowers the result.

use docent_core::relevance::{Coefficients, ReaderCoefficients, Signals, logit};

/// A question with its retrieval signals, and whether the book covers it.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// The retrieval signals.
    pub signals: Signals,
    /// The relevance before the reader is used.
    pub relevance: f32,
    /// The reader's highest logit that a passage answers the question.
    pub answers: f32,
    /// Whether the book covers the question.
    pub covered: bool,
}

const STEPS: usize = 20_000;
const RATE: f64 = 2.0;
/// Keeps weights small unless the examples need them large.
const PENALTY: f64 = 1e-4;

/// The share of covered questions that should be answered at the threshold: declining a question that the book covers
/// is worse than answering one too many.
const ANSWERED: f64 = 0.96;

/// The coefficients that best separate covered questions from the others, shifted so that at `threshold` the
/// share `ANSWERED` of the covered questions is answered.
pub fn fit(examples: &[Example], threshold: f32) -> Coefficients {
    let inputs: Vec<([f64; 5], bool)> =
        examples.iter().map(|example| (inputs(&example.signals), example.covered)).collect();
    let [intercept, dense_best, margin, lexical_best, coverage] = weights(&inputs, PENALTY);
    let fitted = Coefficients { intercept, dense_best, margin, lexical_best, coverage };
    let moved = shift(examples, threshold, |example| fitted.probability(&example.signals));
    Coefficients { intercept: ((intercept + moved) * 1000.0).round() / 1000.0, ..fitted }
}

/// The same for the model that also uses the reader.
pub fn fit_reader(examples: &[Example], threshold: f32) -> ReaderCoefficients {
    let inputs: Vec<([f64; 3], bool)> = examples
        .iter()
        // Scaled to similar sizes; otherwise gradient descent would not converge.
        .map(|example| {
            let inputs = [1.0, logit(example.relevance) / SCALE, f64::from(example.answers) / SCALE];
            (inputs, example.covered)
        })
        .collect();
    let [intercept, relevance, answers] = weights(&inputs, PENALTY);
    let fitted = ReaderCoefficients { intercept, relevance: relevance / SCALE, answers: answers / SCALE };
    let moved = shift(examples, threshold, |example| fitted.probability(example.relevance, example.answers));
    ReaderCoefficients { intercept: ((intercept + moved) * 1000.0).round() / 1000.0, ..fitted }
}

/// The typical size of logits.
const SCALE: f64 = 4.0;

/// How far to shift an intercept so that at `threshold` the share `ANSWERED` of the covered questions is answered.
fn shift(examples: &[Example], threshold: f32, probability: impl Fn(&Example) -> f32) -> f64 {
    let covered = examples.iter().filter(|example| example.covered);
    let mut covered: Vec<f64> = covered.map(|example| logit(probability(example))).collect();
    covered.sort_by(f64::total_cmp);
    let least = covered.get(((1.0 - ANSWERED) * covered.len() as f64) as usize).copied().unwrap_or_default();
    // Slightly more, so that the last of them is still answered after rounding.
    logit(threshold) - least + 0.01
}

/// The weights that best separate positive from negative examples; the first input is the constant.
/// `penalty` keeps weights small and spreads them over correlated inputs. Positive and negative examples
/// have the same total weight, whatever their numbers, so that 0.5 means even odds.
pub fn weights<const N: usize>(examples: &[([f64; N], bool)], penalty: f64) -> [f64; N] {
    let share = balanced(examples.iter().map(|(_, holds)| *holds));
    let mut weights = [0.0f64; N];
    for _ in 0..STEPS {
        let mut slope = [0.0f64; N];
        for (inputs, holds) in examples {
            let target = if *holds { 1.0 } else { 0.0 };
            add(&mut slope, share[usize::from(*holds)] * (logistic(&weights, inputs) - target), inputs);
        }
        descend(&mut weights, &slope, penalty);
    }
    weights.map(rounded)
}

/// An example for a product of two logistic models: the inputs of both, and whether it holds.
pub type Factored<const A: usize, const B: usize> = ([f64; A], [f64; B], bool);

/// The weights of two logistic models whose product best separates positive from negative examples. Every set has the
/// same total weight; in each, the negative examples together count `caution` times as much as the positive ones.
pub fn product_weights<const A: usize, const B: usize>(
    sets: &[Vec<Factored<A, B>>],
    caution: f64,
    penalty: f64,
) -> ([f64; A], [f64; B]) {
    let (mut first, mut second) = ([0.0; A], [0.0; B]);
    let shares: Vec<[f64; 2]> =
        sets.iter().map(|set| balanced(set.iter().map(|(.., holds)| *holds))).collect();
    for _ in 0..STEPS {
        let (mut slope, mut other_slope) = ([0.0; A], [0.0; B]);
        for (set, share) in sets.iter().zip(&shares) {
            for (inputs, other_inputs, holds) in set {
                let (one, other) = (logistic(&first, inputs), logistic(&second, other_inputs));
                let both = one * other;
                // The derivative of the log-likelihood is the same for both, except for the factor `1 - own`.
                let common = if *holds { -1.0 } else { caution * both / (1.0 - both).max(1e-9) };
                let common = common * share[usize::from(*holds)] / sets.len() as f64;
                add(&mut slope, common * (1.0 - one), inputs);
                add(&mut other_slope, common * (1.0 - other), other_inputs);
            }
        }
        descend(&mut first, &slope, penalty);
        descend(&mut second, &other_slope, penalty);
    }
    (first.map(rounded), second.map(rounded))
}

/// The weight of a negative and of a positive example, if both kinds have the same total weight.
fn balanced(holding: impl Iterator<Item = bool>) -> [f64; 2] {
    let mut counts = [0usize; 2];
    holding.for_each(|holds| counts[usize::from(holds)] += 1);
    counts.map(|count| 0.5 / count.max(1) as f64)
}

fn logistic(weights: &[f64], inputs: &[f64]) -> f64 {
    let sum: f64 = weights.iter().zip(inputs).map(|(weight, input)| weight * input).sum();
    1.0 / (1.0 + (-sum).exp())
}

fn add(slope: &mut [f64], error: f64, inputs: &[f64]) {
    slope.iter_mut().zip(inputs).for_each(|(slope, input)| *slope += error * input);
}

/// One step of gradient descent. Only the first weight, that of the constant, may become negative.
fn descend(weights: &mut [f64], slope: &[f64], penalty: f64) {
    for (number, (weight, slope)) in weights.iter_mut().zip(slope).enumerate() {
        *weight -= RATE * (slope + penalty * *weight);
        if number > 0 {
            *weight = weight.max(0.0);
        }
    }
}

fn rounded(weight: f64) -> f64 {
    (weight * 1000.0).round() / 1000.0
}

/// The probability that a positive example scores higher than a negative one.
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

/// How well a model separates covered questions from the others, in one line.
pub fn summary(model: &Coefficients, examples: &[Example], threshold: f32) -> String {
    told_apart(examples, threshold, |example| model.probability(&example.signals))
}

/// The same for the model that also uses the reader.
pub fn reader_summary(model: &ReaderCoefficients, examples: &[Example], threshold: f32) -> String {
    told_apart(examples, threshold, |example| model.probability(example.relevance, example.answers))
}

fn told_apart(examples: &[Example], threshold: f32, probability: impl Fn(&Example) -> f32) -> String {
    let scored = |covered: bool| -> Vec<f32> {
        examples.iter().filter(|example| example.covered == covered).map(&probability).collect()
    };
    let (covered, others) = (scored(true), scored(false));
    let share = |scores: &[f32], test: &dyn Fn(f32) -> bool| {
        100.0 * scores.iter().filter(|score| test(**score)).count() as f64 / scores.len().max(1) as f64
    };
    format!(
        "AUC {:.3}; at threshold {threshold} it answers {:.1} % of covered and declines {:.1} % of other questions",
        auc(&covered, &others),
        share(&covered, &|score| score >= threshold),
        share(&others, &|score| score < threshold),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_low_if_one_of_its_factors_is() {
        let examples = (0..100).map(|number| {
            let (first, second) = (number % 2 == 0, number % 3 == 0);
            let input = |high: bool| [1.0, if high { 1.0 } else { -1.0 }];
            (input(first), input(second), first && second)
        });
        let (one, other) = product_weights(&[examples.collect()], 1.0, PENALTY);
        let both = |a: f64, b: f64| logistic(&one, &[1.0, a]) * logistic(&other, &[1.0, b]);
        assert!(both(1.0, 1.0) > 0.9, "{one:?} {other:?}");
        for (a, b) in [(1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
            assert!(both(a, b) < 0.1, "{one:?} {other:?}");
        }
    }

    #[test]
    fn the_useful_signal_gets_weight_and_no_weight_is_negative() {
        let examples: Vec<Example> = (0..100)
            .map(|number| {
                let covered = number % 2 == 0;
                let dense_best = if covered { 0.7 } else { 0.3 };
                // Misleading: higher for questions that are not covered.
                let margin = if covered { 0.1 } else { 0.2 };
                let signals = Signals { dense_best, margin, lexical_best: 0.5, coverage: 0.5 };
                Example { signals, relevance: 0.5, answers: 0.0, covered }
            })
            .collect();
        let model = fit(&examples, 0.3);
        assert!(model.dense_best > 1.0 && model.margin == 0.0, "{model:?}");
        assert!(
            summary(&model, &examples, 0.3).starts_with("AUC 1.000; at threshold 0.3 it answers 100.0 %")
        );
    }
}
