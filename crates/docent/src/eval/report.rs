//! The HTML report of an evaluation.
//!
//! The figures show how good the answers are, the curve shows the effect of other thresholds, and the
//! worst cases show what to improve next.
//!
//! Invariant: the page is a single file that loads nothing else.

use super::curve::{Case, Point, at_threshold, aurc, risk_coverage};
use crate::plot::{self, Axis, Caption, Chart, Histogram, Marker, Series, Unit, escape};

/// The results of an evaluation.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The name of the question set.
    pub set: String,
    /// When the report was made.
    pub made: String,
    /// The version of the program.
    pub version: String,
    /// The version of the index.
    pub index_version: String,
    /// The number of pages in the index.
    pub pages: usize,
    /// The number of chunks in the index.
    pub chunks: usize,
    /// Names and values of the headline figures.
    pub figures: Vec<(String, String)>,
    /// The questions with their answers.
    pub cases: Vec<Case>,
    /// The minimum relevance at which a question is answered.
    pub threshold: f32,
}

/// The report as a single HTML page.
pub fn html(report: &Report) -> String {
    let points = risk_coverage(&report.cases);
    let subtitle = format!(
        "{} · docent {} · index {} · {} pages, {} passages · {} questions",
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

/// The cases to look at first, at most `count`, in three groups, worst first:
///
/// 1. the book covers the question and the answer is wrong, which users cannot notice;
/// 2. the book does not cover the question, but it was answered;
/// 3. the book covers the question, but it was declined.
///
/// In the first two groups the most relevant cases come first, because the program was most confident there; in
/// the third the least relevant, because retrieval failed most clearly. Cases without a flaw are left out.
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

/// What went wrong, worst first.
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
            Self::Invented => "answered but not covered",
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
        figures.push((format!("Coverage at threshold {threshold}"), coverage));
        figures.push((format!("Risk at threshold {threshold}"), risk));
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
    // Half a percent of coverage is about three units in the chart; finer steps would only bloat the table.
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
            description: "If only the most relevant questions were answered, what share of the answers \
                          would be wrong? Every answer to a question that the book does not cover counts \
                          as wrong. Lower is better.",
        },
        x: Axis { label: "coverage: questions answered", unit: Unit::Share, range: Some((0.0, 1.0)) },
        y: Axis { label: "risk: wrong answers", unit: Unit::Share, range: Some((0.0, 0.05)) },
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
            description: "The further apart the two groups are, the easier it is to know when to decline. \
                          Covered questions left of the threshold are missed; other questions right of it \
                          are answered by mistake.",
        },
        x: Axis { label: "relevance", range: Some((0.0, 1.0)), ..Axis::default() },
        bins: 20,
        groups: vec![("covered by the book", of(true)), ("not covered", of(false))],
        markers: vec![Marker { at: report.threshold.into(), label: &label }],
    })
}

fn support_chart(report: &Report) -> String {
    let of = |wrong: bool| -> Vec<f64> {
        let kind = report.cases.iter().filter(|case| case.is_wrong() == wrong);
        kind.map(|case| case.support.into()).collect()
    };
    plot::histogram(&Histogram {
        caption: Caption {
            title: "Support",
            description: "How well the passages support the answer, for questions where answering is right \
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
    // A single very slow answer would squeeze all others into the first bin.
    let limit = 3.0 * late.unwrap_or_default();
    let slower = times.iter().filter(|time| **time > limit).count();
    let mut description = "How long the answers took.".to_owned();
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
        .map(|flaw| format!("<span class=\"kind s{}\">{}</span>: {}", color(flaw), flaw.name(), of(flaw)));
    let shown = worst(&report.cases, 20);
    let told = match shown.len() {
        0 => "Nothing went wrong.".to_owned(),
        shown => format!("{}. The {shown} worst are shown below, with their relevance.", counts.join(", ")),
    };
    let shown: String = shown.into_iter().map(case_details).collect();
    format!("<h2>The worst cases</h2>\n<p class=\"quiet\">{told}</p>\n{shown}")
}

/// The color of a flaw: wrong and invented answers stand out more than missed ones.
fn color(flaw: Flaw) -> usize {
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
         <dl><dt>Expected answer</dt><dd dir=\"auto\">{}</dd>\n<dt>Answer</dt><dd dir=\"auto\">{}</dd>\n\
         <dt>Measured</dt><dd>relevance {:.3}, support {:.3}, {:.0} ms</dd>\n\
         <dt>Passages</dt><dd>{}</dd></dl></details>\n",
        color(flaw),
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
    use crate::eval::curve::tests::{covered, other};

    #[test]
    fn an_empty_report_is_still_a_page() {
        assert!(worst(&[], 20).is_empty());
        let page = html(&Report::default());
        assert_eq!(page.matches(">no data<").count(), 4);
        assert!(page.contains("Nothing went wrong."));
    }

    #[test]
    fn the_worst_are_wrong_answers_then_inventions_then_missed_questions() {
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
