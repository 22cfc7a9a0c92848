//! Fit the weights of the statement model to questions with known answers.
//!
//! The loss is the negative log of the total probability of all statements that answer: if the book says
//! something twice, either one is correct.
//!
//! Invariant: the same questions give the same weights.

/// The statements for one question: the signals of each, and whether it answers.
pub type Example<const N: usize> = Vec<([f32; N], bool)>;

/// Number of gradient descent steps, more than enough to converge.
const STEPS: usize = 400;
const RATE: f64 = 0.05;
/// L2 regularization, which keeps the weights of rare signals small.
const SHRINKAGE: f64 = 5.0;

/// Fits the weights.
pub fn fit<const N: usize>(examples: &[Example<N>]) -> [f32; N] {
    let (mean, deviation) = spread(examples);
    let scaled: Vec<Vec<([f64; N], bool)>> = examples
        .iter()
        .filter(|example| example.iter().any(|(_, answers)| *answers))
        .map(|example| {
            let scale = |signals: &[f32; N]| {
                std::array::from_fn(|at| (f64::from(signals[at]) - mean[at]) / deviation[at])
            };
            example.iter().map(|(signals, answers)| (scale(signals), *answers)).collect()
        })
        .collect();
    let count = scaled.len().max(1) as f64;
    let (mut weights, mut first, mut second) = ([0.0; N], [0.0; N], [0.0; N]);
    for step in 1..=STEPS {
        let mut gradient: [f64; N] = std::array::from_fn(|at| SHRINKAGE * weights[at] / count);
        for example in &scaled {
            add_gradient(example, &weights, count, &mut gradient);
        }
        // Adam: step sizes do not depend on the scale of a signal.
        for at in 0..N {
            first[at] = 0.9 * first[at] + 0.1 * gradient[at];
            second[at] = 0.999 * second[at] + 0.001 * gradient[at] * gradient[at];
            let (m, v) = (
                first[at] / (1.0 - 0.9f64.powi(step as i32)),
                second[at] / (1.0 - 0.999f64.powi(step as i32)),
            );
            weights[at] -= RATE * m / (v.sqrt() + 1e-8);
        }
    }
    std::array::from_fn(|at| (weights[at] / deviation[at]) as f32)
}

/// Adds the gradient of the loss of one example.
fn add_gradient<const N: usize>(
    example: &[([f64; N], bool)],
    weights: &[f64; N],
    count: f64,
    gradient: &mut [f64; N],
) {
    let scores: Vec<f64> = example
        .iter()
        .map(|(signals, _)| signals.iter().zip(weights).map(|(signal, weight)| signal * weight).sum())
        .collect();
    let most = scores.iter().copied().fold(f64::MIN, f64::max);
    let chances: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
    let total: f64 = chances.iter().sum();
    let right: f64 =
        chances.iter().zip(example).filter(|(_, (_, answers))| *answers).map(|(chance, _)| chance).sum();
    for (chance, (signals, answers)) in chances.iter().zip(example) {
        let wanted = if *answers { chance / right.max(1e-12) } else { 0.0 };
        let error = chance / total - wanted;
        for at in 0..N {
            gradient[at] += error * signals[at] / count;
        }
    }
}

fn spread<const N: usize>(examples: &[Example<N>]) -> ([f64; N], [f64; N]) {
    let all: Vec<&[f32; N]> = examples.iter().flatten().map(|(signals, _)| signals).collect();
    let count = all.len().max(1) as f64;
    let mean: [f64; N] =
        std::array::from_fn(|at| all.iter().map(|signals| f64::from(signals[at])).sum::<f64>() / count);
    let deviation = std::array::from_fn(|at| {
        let squares: f64 = all.iter().map(|signals| (f64::from(signals[at]) - mean[at]).powi(2)).sum();
        (squares / count).sqrt().max(1e-6)
    });
    (mean, deviation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_informative_signal_gets_weight_and_noise_does_not() {
        let statement = |signal: f32, noise: f32| {
            let mut signals = [0.0; 3];
            (signals[0], signals[1]) = (signal, noise);
            signals
        };
        let examples: Vec<Example<3>> = (0..40u8)
            .map(|number| {
                let noise = f32::from(number % 2);
                vec![
                    (statement(0.9, noise), true),
                    (statement(0.2, noise), false),
                    (statement(0.1, 1.0 - noise), false),
                ]
            })
            .collect();
        let weights = fit(&examples);
        assert!(weights[0] > 1.0, "{weights:?}");
        assert!(weights[1].abs() < weights[0] / 4.0, "{weights:?}");
        assert_eq!(weights[2], 0.0);
    }
}
