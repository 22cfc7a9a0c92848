//! What an evaluation found, as one page to read and keep.
//!
//! Figures say how good the answers are; the curve says what another threshold would have given; the
//! worst cases say what to mend next.
//!
//! Invariant: cases of the same relevance are answered together or not at all, for no threshold can
//! tell them apart.

use crate::plot::{self, Axis, Caption, Chart, Histogram, Marker, Series, Unit, escape};

/// An evaluation, ready to be shown.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The name of the question set.
    pub set: String,
    /// When it was made.
    pub made: String,
    /// Of the program.
    pub version: String,
    /// Of the index that was asked.
    pub index_version: String,
    /// How many pages the index holds.
    pub pages: usize,
    /// How many chunks the index holds.
    pub chunks: usize,
    /// Names and values of the headline figures.
    pub figures: Vec<(String, String)>,
    /// The questions with what became of them.
    pub cases: Vec<Case>,
    /// The least relevance at which a question is answered.
    pub threshold: f32,
}

/// A question with what became of it.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// The question.
    pub question: String,
    /// Whether the book covers it.
    pub answerable: bool,
    /// Whether it was answered.
    pub grounded: bool,
    /// Whether the answer was right; none where nobody can tell.
    pub correct: Option<bool>,
    /// How likely the book covers the question, as retrieval saw it.
    pub relevance: f32,
    /// How well the passages hold up the answer.
    pub support: f32,
    /// What was answered.
    pub answer: String,
    /// What would have been right.
    pub gold: Vec<String>,
    /// Breadcrumb, score and content of each passage found.
    pub passages: Vec<(String, f32, String)>,
    /// How long it took.
    pub milliseconds: f64,
}

/// What answering everything from a threshold on would give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The share of questions answered.
    pub coverage: f64,
    /// Of those, the share answered wrongly.
    pub risk: f64,
    /// The least relevance among them.
    pub threshold: f32,
}

/// The report as a page that needs no other file.
pub fn html(report: &Report) -> String {
    let points = risk_coverage(&report.cases);
    let subtitle = format!(
        "{} · docent {} · index {} · {} pages, {} chunks · {} questions",
        report.made,
        report.version,
        report.index_version,
        report.pages,
        report.chunks,
        report.cases.len()
    );
    let body = [
        figures(report, &points),
        "<h2>When to answer</h2>\n".to_owned(),
        curve_chart(report, &points),
        relevance_chart(report),
        "<h2>Support and speed</h2>\n".to_owned(),
        support_chart(report),
        latency_chart(report),
        worst_section(report),
    ];
    plot::page(&format!("Evaluation: {}", report.set), &subtitle, &body.concat())
}

/// The risk and coverage of every threshold that makes a difference, from the strictest on. A case is
/// wrong if the book does not cover it, or if its answer is known to be wrong; an answer nobody judged
/// is given the benefit of the doubt. Cases without a finite relevance are left out.
pub fn risk_coverage(cases: &[Case]) -> Vec<Point> {
    let mut ranked: Vec<&Case> = cases.iter().filter(|case| case.relevance.is_finite()).collect();
    ranked.sort_by(|a, b| b.relevance.total_cmp(&a.relevance));
    let (mut answered, mut mistakes) = (0, 0);
    let same = ranked.chunk_by(|a, b| a.relevance == b.relevance).map(|tied| {
        answered += tied.len();
        mistakes += tied.iter().filter(|case| is_wrong(case)).count();
        Point {
            coverage: answered as f64 / ranked.len() as f64,
            risk: mistakes as f64 / answered as f64,
            threshold: tied[0].relevance,
        }
    });
    same.collect()
}

/// The area under the curve: the mean risk over all coverages, less is better. Between two thresholds
/// the risk is that of the laxer one, which without ties is the usual mean over all cases.
pub fn aurc(points: &[Point]) -> Option<f64> {
    let before = std::iter::once(0.0).chain(points.iter().map(|point| point.coverage));
    let area = points.iter().zip(before).map(|(point, before)| (point.coverage - before) * point.risk).sum();
    (!points.is_empty()).then_some(area)
}

/// The curve for a terminal: for each tenth of coverage the strictest threshold that reaches it, in as
/// few digits as still answer the same questions.
pub fn curve_text(points: &[Point]) -> String {
    if points.is_empty() {
        return "no questions, no curve\n".to_owned();
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

/// The cases to look at first, at most `count`, in three groups by the harm they do:
///
/// 1. the book covers the question and the answer is wrong, for the reader has no way to notice;
/// 2. the book does not cover the question and it was answered all the same;
/// 3. the book covers the question and it was not answered.
///
/// In the first two the most relevant come first, where the program was surest of itself; in the third
/// the least relevant, where retrieval was furthest off. Cases that went well are not among them.
pub fn worst(cases: &[Case], count: usize) -> Vec<&Case> {
    let mut flawed: Vec<(Flaw, &Case)> = cases.iter().filter_map(|case| Some((flaw(case)?, case))).collect();
    flawed.sort_by(|(a, first), (b, second)| {
        let ascending = *a == Flaw::Missed;
        let surprise = |case: &Case| match case.relevance {
            relevance if relevance.is_nan() => f32::NEG_INFINITY,
            relevance if ascending => -relevance,
            relevance => relevance,
        };
        a.cmp(b).then_with(|| surprise(second).total_cmp(&surprise(first)))
    });
    flawed.into_iter().map(|(_, case)| case).take(count).collect()
}

/// What went wrong, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Flaw {
    Wrong,
    Invented,
    Missed,
}

impl Flaw {
    fn name(self) -> &'static str {
        match self {
            Self::Wrong => "wrong answer",
            Self::Invented => "answered though not covered",
            Self::Missed => "covered but not answered",
        }
    }
}

fn flaw(case: &Case) -> Option<Flaw> {
    match (case.answerable, case.grounded) {
        (true, true) => (case.correct == Some(false)).then_some(Flaw::Wrong),
        (false, true) => Some(Flaw::Invented),
        (true, false) => Some(Flaw::Missed),
        (false, false) => None,
    }
}

fn is_wrong(case: &Case) -> bool {
    !case.answerable || case.correct == Some(false)
}

/// The laxest point that this threshold still allows; none if it allows no answer at all.
fn at_threshold(points: &[Point], threshold: f32) -> Option<&Point> {
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

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn figures(report: &Report, points: &[Point]) -> String {
    let mut figures = report.figures.clone();
    if let Some(area) = aurc(points) {
        let here = at_threshold(points, report.threshold);
        let threshold = report.threshold;
        let coverage = percent(here.map_or(0.0, |point| point.coverage));
        let risk = here.map_or_else(|| "–".to_owned(), |point| percent(point.risk));
        figures.push(("Area under the risk–coverage curve (AURC)".to_owned(), format!("{area:.4}")));
        figures.push((format!("Coverage at the threshold of {threshold}"), coverage));
        figures.push((format!("Risk at the threshold of {threshold}"), risk));
    }
    let row = |(name, value): &(String, String)| {
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(value))
    };
    let rows: String = figures.iter().map(row).collect();
    if rows.is_empty() { rows } else { format!("<table class=\"figures\"><tbody>\n{rows}</tbody></table>\n") }
}

fn curve_chart(report: &Report, points: &[Point]) -> String {
    let coverage = at_threshold(points, report.threshold).map_or(0.0, |point| point.coverage);
    let label = format!("threshold {}: {} answered", report.threshold, percent(coverage));
    // Half a percent of coverage is about three units on the page; finer steps only bloat the table.
    let mut drawn: Vec<(f64, f64)> = Vec::new();
    for (number, point) in points.iter().enumerate() {
        let far = drawn.last().is_none_or(|(before, _)| point.coverage - before >= 0.005);
        if far || number + 1 == points.len() {
            drawn.push((point.coverage, point.risk));
        }
    }
    plot::line(&Chart {
        caption: Caption {
            title: "Risk and coverage",
            description: "If only the most relevant share of all questions were answered, how many of those \
                          answers would be wrong? Every question that the book does not cover counts as \
                          wrong. Lower is better.",
        },
        x: Axis { label: "coverage: questions answered", unit: Unit::Share, range: Some((0.0, 1.0)) },
        y: Axis { label: "risk: wrong among them", unit: Unit::Share, range: Some((0.0, 0.05)) },
        series: vec![Series { name: "risk", points: drawn }],
        markers: vec![Marker { at: coverage, label: &label }],
    })
}

fn relevance_chart(report: &Report) -> String {
    let of = |answerable: bool| -> Vec<f64> {
        let kind = report.cases.iter().filter(|case| case.answerable == answerable);
        kind.map(|case| case.relevance.into()).collect()
    };
    let label = format!("threshold {}", report.threshold);
    plot::histogram(&Histogram {
        caption: Caption {
            title: "Relevance of covered and other questions",
            description: "The further apart the two lie, the easier it is to know when to be silent. Covered \
                          questions left of the threshold are missed; others right of it are answered.",
        },
        x: Axis { label: "relevance", range: Some((0.0, 1.0)), ..Axis::default() },
        bins: 20,
        groups: vec![("covered by the book", of(true)), ("not covered", of(false))],
        markers: vec![Marker { at: report.threshold.into(), label: &label }],
    })
}

fn support_chart(report: &Report) -> String {
    let of = |wrong: bool| -> Vec<f64> {
        let kind = report.cases.iter().filter(|case| is_wrong(case) == wrong);
        kind.map(|case| case.support.into()).collect()
    };
    plot::histogram(&Histogram {
        caption: Caption {
            title: "Support",
            description: "How well the passages hold up the answer, for questions where answering is right \
                          and where it is wrong.",
        },
        x: Axis { label: "support", range: Some((0.0, 1.0)), ..Axis::default() },
        bins: 20,
        groups: vec![("right if answered", of(false)), ("wrong if answered", of(true))],
        markers: Vec::new(),
    })
}

fn latency_chart(report: &Report) -> String {
    let mut times: Vec<f64> = report.cases.iter().map(|case| case.milliseconds).collect();
    times.retain(|time| time.is_finite());
    times.sort_by(f64::total_cmp);
    let time = |quantile: f64| times.get(((times.len() as f64 - 1.0) * quantile) as usize).copied();
    let (middle, late) = (time(0.5), time(0.95));
    let labels = [("p50", middle), ("p95", late)]
        .map(|(name, time)| (time, format!("{name} {:.0} ms", time.unwrap_or_default())));
    let markers = labels.iter().filter_map(|(time, label)| Some(Marker { at: (*time)?, label }));
    // One answer that took a minute would press all others into the first bin.
    let limit = 3.0 * late.unwrap_or_default();
    let slower = times.iter().filter(|time| **time > limit).count();
    let mut description = "How long an answer took.".to_owned();
    if slower > 0 {
        description += &format!(" Answers that took more than {limit:.0} ms are in the last bin: {slower}.");
    }
    plot::histogram(&Histogram {
        caption: Caption { title: "Response time", description: &description },
        x: Axis { label: "milliseconds", range: Some((0.0, 0.0)), ..Axis::default() },
        bins: 24,
        markers: markers.collect(),
        groups: vec![("answers", times.iter().map(|time| time.min(limit)).collect())],
    })
}

fn worst_section(report: &Report) -> String {
    let of = |wanted: Flaw| report.cases.iter().filter(|case| flaw(case) == Some(wanted)).count();
    let counts = [Flaw::Wrong, Flaw::Invented, Flaw::Missed]
        .map(|flaw| format!("<span class=\"kind s{}\">{}</span>: {}", colour(flaw), flaw.name(), of(flaw)));
    let shown = worst(&report.cases, 20);
    let told = match shown.len() {
        0 => "Nothing went wrong.".to_owned(),
        shown => format!("{}. The first {shown} are below, with their relevance.", counts.join(", ")),
    };
    let shown: String = shown.into_iter().map(case_details).collect();
    format!("<h2>The worst cases</h2>\n<p class=\"quiet\">{told}</p>\n{shown}")
}

/// Wrong and invented answers are worse than silence, and look it.
fn colour(flaw: Flaw) -> usize {
    match flaw {
        Flaw::Wrong => 1,
        Flaw::Invented => 3,
        Flaw::Missed => 0,
    }
}

fn case_details(case: &Case) -> String {
    let flaw = flaw(case).unwrap_or(Flaw::Missed);
    let gold: Vec<String> = case.gold.iter().map(|gold| escape(gold)).collect();
    let passages = case.passages.iter().map(|(breadcrumb, score, content)| {
        format!(
            "<li><strong>{}</strong> <span class=\"quiet\">{score:.3}</span>\n\
             <blockquote dir=\"auto\">{}</blockquote></li>\n",
            escape(breadcrumb),
            escape(content.trim())
        )
    });
    let passages: String = passages.collect();
    let list = if passages.is_empty() { passages } else { format!("<ol>\n{passages}</ol>") };
    let or_dash = |text: String| if text.trim().is_empty() { "–".to_owned() } else { text };
    format!(
        "<details class=\"case\"><summary><span class=\"kind s{}\">{}</span><bdi>{}</bdi> \
         <span class=\"quiet\">{:.3}</span></summary>\n\
         <dl><dt>Right would be</dt><dd dir=\"auto\">{}</dd>\n<dt>Answer</dt><dd dir=\"auto\">{}</dd>\n\
         <dt>Measured</dt><dd>relevance {:.3}, support {:.3}, {:.0} ms</dd>\n\
         <dt>Passages</dt><dd>{}</dd></dl></details>\n",
        colour(flaw),
        flaw.name(),
        escape(&case.question),
        case.relevance,
        or_dash(gold.join("<br>")),
        or_dash(escape(&case.answer)),
        case.relevance,
        case.support,
        case.milliseconds,
        or_dash(list),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A covered question, right or wrong.
    fn covered(relevance: f32, correct: bool) -> Case {
        Case { answerable: true, grounded: true, correct: Some(correct), relevance, ..Case::default() }
    }

    /// A question about something else.
    fn other(relevance: f32) -> Case {
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
    fn all_right_is_no_risk_and_the_unjudged_are_not_wrong() {
        let unjudged = Case { correct: None, ..covered(0.25, true) };
        let points = risk_coverage(&[covered(0.5, true), covered(0.75, true), unjudged]);
        assert!(points.iter().all(|point| point.risk == 0.0));
        assert_eq!((points.len(), aurc(&points)), (3, Some(0.0)));
    }

    #[test]
    fn nothing_gives_an_empty_curve_and_still_a_page() {
        assert_eq!((risk_coverage(&[]), aurc(&[])), (Vec::new(), None));
        assert_eq!(risk_coverage(&[other(f32::NAN)]), []);
        assert_eq!(curve_text(&[]), "no questions, no curve\n");
        assert!(worst(&[], 20).is_empty());
        let page = html(&Report::default());
        assert_eq!(page.matches(">no data<").count(), 4);
        assert!(page.contains("Nothing went wrong."));
    }

    #[test]
    fn the_threshold_answers_what_is_at_least_as_relevant() {
        let points = risk_coverage(&[covered(0.75, true), covered(0.5, true)]);
        let coverage = |threshold| at_threshold(&points, threshold).map(|point| point.coverage);
        assert_eq!(
            [coverage(0.8), coverage(0.75), coverage(0.6), coverage(0.0)],
            [None, Some(0.5), Some(0.5), Some(1.0)]
        );
    }

    #[test]
    fn the_text_names_the_strictest_threshold_for_each_tenth() {
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

    #[test]
    fn the_worst_are_wrong_answers_then_inventions_then_silence() {
        let silent = |case: Case| Case { grounded: false, ..case };
        let cases = [
            silent(covered(0.3, true)),
            silent(covered(0.1, true)),
            silent(covered(f32::NAN, true)),
            silent(other(0.9)),
            other(0.6),
            other(0.7),
            covered(0.4, false),
            covered(0.5, false),
            covered(0.99, true),
        ];
        let relevances: Vec<f32> = worst(&cases, 6).iter().map(|case| case.relevance).collect();
        assert_eq!(relevances, [0.5, 0.4, 0.7, 0.6, 0.1, 0.3]);
        assert_eq!(worst(&cases, 20).len(), 7);
    }

    #[test]
    fn texts_of_a_report_are_escaped() {
        let hostile = "<img src=x>".to_owned();
        let case = Case {
            question: hostile.clone(),
            answer: hostile.clone(),
            gold: vec![hostile.clone(), hostile.clone()],
            passages: vec![(hostile.clone(), 0.5, hostile.clone())],
            ..other(0.5)
        };
        let figures = vec![(hostile.clone(), hostile.clone())];
        let report =
            Report { set: hostile.clone(), made: hostile, figures, cases: vec![case], ..Report::default() };
        let page = html(&report);
        assert!(!page.contains("<img") && page.contains("&lt;img src=x&gt;<br>&lt;img"));
    }
}
