//! The risk–coverage curve: which questions each threshold answers, and how many of them wrongly.
//!
//! Invariant: cases of the same relevance are answered together or not at all, because no threshold can
//! separate them.

/// A question with its answer.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// The question.
    pub question: String,
    /// Whether the book covers it.
    pub answerable: bool,
    /// Whether it was answered.
    pub grounded: bool,
    /// Whether the answer was correct; `None` if unknown.
    pub correct: Option<bool>,
    /// The estimated probability that the book covers the question.
    pub relevance: f32,
    /// How well the passages support the answer.
    pub support: f32,
    /// The answer.
    pub answer: String,
    /// The expected answers.
    pub gold: Vec<String>,
    /// Breadcrumb, score and content of each passage found.
    pub passages: Vec<(String, f32, String)>,
    /// The response time.
    pub milliseconds: f64,
}

impl Case {
    /// Whether an answer to it would be wrong.
    pub fn is_wrong(&self) -> bool {
        !self.answerable || self.correct == Some(false)
    }
}

/// The coverage and risk of a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The share of questions answered.
    pub coverage: f64,
    /// Of those, the share answered wrongly.
    pub risk: f64,
    /// The lowest relevance among them.
    pub threshold: f32,
}

/// The risk and coverage of every threshold that makes a difference, strictest first. A case is wrong if
/// the book does not cover it, or if its answer is known to be wrong; answers of unknown correctness count
/// as correct. Cases without a finite relevance are left out.
pub fn risk_coverage(cases: &[Case]) -> Vec<Point> {
    let mut ranked: Vec<&Case> = cases.iter().filter(|case| case.relevance.is_finite()).collect();
    ranked.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    let (mut answered, mut mistakes) = (0, 0);
    let same = ranked.chunk_by(|a, b| a.relevance == b.relevance).map(|tied| {
        answered += tied.len();
        mistakes += tied.iter().filter(|case| case.is_wrong()).count();
        Point {
            coverage: answered as f64 / ranked.len() as f64,
            risk: mistakes as f64 / answered as f64,
            threshold: tied[0].relevance,
        }
    });
    same.collect()
}

/// The area under the curve: the mean risk over all coverages; lower is better. Between two thresholds
/// the risk is that of the lower one; without ties this is the usual mean over all cases.
pub fn aurc(points: &[Point]) -> Option<f64> {
    let before = std::iter::once(0.0).chain(points.iter().map(|point| point.coverage));
    let area = points.iter().zip(before).map(|(point, before)| (point.coverage - before) * point.risk).sum();
    (!points.is_empty()).then_some(area)
}

/// The curve as text: for each 10 % of coverage the strictest threshold that reaches it, with just enough
/// digits to answer the same questions.
pub fn curve_text(points: &[Point]) -> String {
    if points.is_empty() {
        return "no questions\n".to_owned();
    }
    let mut table = "coverage  answered    risk  threshold\n".to_owned();
    for tenth in 1..=10 {
        let wanted = f64::from(tenth) / 10.0;
        let Some(number) = points.iter().position(|point| point.coverage >= wanted - 1e-9) else { continue };
        let (point, next) = (&points[number], points.get(number + 1));
        table += &format!(
            "{:>6} %  {:>6.1} %  {:>4.1} %  {}\n",
            10 * tenth,
            100.0 * point.coverage,
            100.0 * point.risk,
            short_threshold(point.threshold, next.map(|next| next.threshold))
        );
    }
    table
}

/// The point with the highest coverage at this threshold; `None` if it answers nothing.
pub fn at_threshold(points: &[Point], threshold: f32) -> Option<&Point> {
    points.iter().take_while(|point| point.threshold >= threshold).last()
}

fn short_threshold(threshold: f32, next: Option<f32>) -> String {
    let apart = |short: f32| short <= threshold && next.is_none_or(|next| short > next);
    let shorter = (2..8usize).find_map(|decimals| {
        let scale = 10f64.powi(decimals as i32);
        let scaled = f64::from(threshold) * scale;
        let mut candidates = [scaled.round(), scaled.floor()].map(|scaled| scaled / scale).into_iter();
        candidates.find(|short| apart(*short as f32)).map(|short| format!("{short:.decimals$}"))
    });
    shorter.unwrap_or_else(|| threshold.to_string())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A covered question, answered correctly or not.
    pub fn covered(relevance: f32, correct: bool) -> Case {
        Case { answerable: true, grounded: true, correct: Some(correct), relevance, ..Case::default() }
    }

    /// An out-of-scope question.
    pub fn other(relevance: f32) -> Case {
        Case { grounded: true, relevance, ..Case::default() }
    }

    fn point(coverage: f64, risk: f64, threshold: f32) -> Point {
        Point { coverage, risk, threshold }
    }

    #[test]
    fn risk_is_the_share_of_wrong_among_the_answered() {
        let cases = [other(0.25), covered(1.0, true), covered(0.5, true), covered(0.75, false)];
        let points = risk_coverage(&cases);
        let expected = [
            point(0.25, 0.0, 1.0),
            point(0.5, 0.5, 0.75),
            point(0.75, 1.0 / 3.0, 0.5),
            point(1.0, 0.5, 0.25),
        ];
        assert_eq!(points, expected);
        let area = (0.0 + 0.5 + 1.0 / 3.0 + 0.5) / 4.0;
        assert!((aurc(&points).unwrap() - area).abs() < 1e-12);
    }

    #[test]
    fn cases_of_the_same_relevance_move_together() {
        let cases = [covered(0.5, true), other(0.5), covered(0.75, true), other(0.0), other(-0.0)];
        let points = risk_coverage(&cases);
        assert_eq!(points, [point(0.2, 0.0, 0.75), point(0.6, 1.0 / 3.0, 0.5), point(1.0, 0.6, 0.0)]);
        let backwards: Vec<Case> = cases.into_iter().rev().collect();
        assert_eq!(risk_coverage(&backwards), points);
        assert!((aurc(&points).unwrap() - (0.4 / 3.0 + 0.4 * 0.6)).abs() < 1e-12);
    }

    #[test]
    fn correct_and_unjudged_answers_have_no_risk() {
        let unjudged = Case { correct: None, ..covered(0.25, true) };
        let points = risk_coverage(&[covered(0.5, true), covered(0.75, true), unjudged]);
        assert!(points.iter().all(|point| point.risk == 0.0));
        assert_eq!((points.len(), aurc(&points)), (3, Some(0.0)));
    }

    #[test]
    fn no_cases_give_an_empty_curve() {
        assert_eq!((risk_coverage(&[]), aurc(&[])), (Vec::new(), None));
        assert_eq!(risk_coverage(&[other(f32::NAN)]), []);
        assert_eq!(curve_text(&[]), "no questions\n");
    }

    #[test]
    fn a_threshold_answers_all_cases_that_reach_it() {
        let points = risk_coverage(&[covered(0.75, true), covered(0.5, true)]);
        let coverage = |threshold| at_threshold(&points, threshold).map(|point| point.coverage);
        assert_eq!(
            [coverage(0.8), coverage(0.75), coverage(0.6), coverage(0.0)],
            [None, Some(0.5), Some(0.5), Some(1.0)]
        );
    }

    #[test]
    fn the_text_lists_the_strictest_threshold_for_each_tenth() {
        let cases = [covered(0.9, true), covered(0.812_34, false), covered(0.812_31, true), other(0.1)];
        let text = curve_text(&risk_coverage(&cases));
        let expected = [
            "coverage  answered    risk  threshold",
            "    10 %    25.0 %   0.0 %  0.90",
            "    20 %    25.0 %   0.0 %  0.90",
            "    30 %    50.0 %  50.0 %  0.81234",
            "    40 %    50.0 %  50.0 %  0.81234",
            "    50 %    50.0 %  50.0 %  0.81234",
            "    60 %    75.0 %  33.3 %  0.81",
            "    70 %    75.0 %  33.3 %  0.81",
            "    80 %   100.0 %  50.0 %  0.10",
            "    90 %   100.0 %  50.0 %  0.10",
            "   100 %   100.0 %  50.0 %  0.10",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_printed_threshold_answers_the_same_questions() {
        let mut state = 7u32;
        let cases: Vec<Case> = (0..300)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                other((state >> 8) as f32 / (1u32 << 24) as f32)
            })
            .collect();
        let points = risk_coverage(&cases);
        for (number, point) in points.iter().enumerate() {
            let next = points.get(number + 1).map(|next| next.threshold);
            let printed: f32 = short_threshold(point.threshold, next).parse().unwrap();
            let answered = cases.iter().filter(|case| case.relevance >= printed).count();
            assert_eq!(answered as f64 / 300.0, point.coverage);
        }
    }
}
