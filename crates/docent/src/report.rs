//! What readers asked a book, as one page for those who write it.
//!
//! The gaps say what to write next, the sections nobody is led to what to look at again; the figures say
//! how the tutor fares.
//!
//! Invariant: the page holds what was asked and never who asked.

use std::collections::{BTreeSet, HashMap};

use crate::plot::{self, Axis, Bars, Caption, escape};

pub use gaps::{Gap, gaps};

mod gaps;
mod calendar;

/// What was asked of a book in some days.
#[derive(Debug, Clone)]
pub struct Report<'a> {
    /// The book's.
    pub title: &'a str,
    /// When it was made: RFC 3339, UTC.
    pub made: String,
    /// How many days back it looks.
    pub days: u32,
    /// The questions, in any order.
    pub asked: &'a [Asked],
    /// All sections, in the order of the book.
    pub sections: &'a [Section],
}

/// A question with what became of it.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// When: RFC 3339, UTC.
    pub at: String,
    /// The question.
    pub question: String,
    /// What became of it.
    pub outcome: Outcome,
    /// How likely the book covers it, as retrieval saw it.
    pub relevance: f32,
    /// Whether a model should have written the answer and could not.
    pub degraded: bool,
    /// From question to answer.
    pub milliseconds: f64,
    /// What the model used.
    pub tokens: u32,
    /// Addresses of the sections cited, with their anchors.
    pub cited: Vec<String>,
    /// Breadcrumb and address of the section that came nearest.
    pub nearest: Option<(String, String)>,
    /// Thumb up or down.
    pub rating: Option<bool>,
    /// What the reader wrote about the answer.
    pub comment: Option<String>,
    /// Of the question.
    pub vector: Option<Vec<f32>>,
}

/// What became of a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Answered from the book.
    #[default]
    Answered,
    /// The book hardly covers it.
    Low,
    /// Nothing was found.
    Abstained,
}

/// A section of the book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// `Title > Heading > Heading`.
    pub breadcrumb: String,
    /// Page and anchor.
    pub url: String,
}

/// The report as a page that needs no other file.
pub fn html(report: &Report) -> String {
    let title = format!("{}: what readers asked", report.title);
    let count = counted(report.asked.len(), "question");
    let subtitle = format!("{} · the last {} · {count}", report.made, counted(report.days as usize, "day"));
    let sections = if report.asked.is_empty() {
        "<p>Nobody has asked anything yet.</p>\n".to_owned()
    } else {
        [
            figures(report.asked),
            calendar::over_time(report),
            gaps_section(report.asked),
            readers_section(report.asked),
            repeats_section(report.asked),
            cited_section(report),
            never_cited_section(report),
            slow_section(report.asked),
        ]
        .concat()
    };
    let footer = "<footer><h2>Privacy</h2>\n<p class=\"quiet\">Docent keeps what was asked, not who asked: no \
                  names, addresses or other marks of readers are stored, so none are on this page. What \
                  readers wrote is shown in their own words; look it over before you pass the page \
                  on.</p></footer>";
    plot::page(&title, &subtitle, &(sections + footer))
}

impl Outcome {
    const ALL: [Self; 3] = [Self::Answered, Self::Low, Self::Abstained];

    fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Low => "hardly covered",
            Self::Abstained => "nothing found",
        }
    }

    fn count(self, asked: &[Asked]) -> usize {
        asked.iter().filter(|asked| asked.outcome == self).count()
    }
}

/// How many of each kind are shown; what is left out is counted.
const MOST_BARS: usize = 12;
const MOST_SHOWN: usize = 20;
const MOST_GAPS: usize = 50;
const MOST_LONE: usize = 200;
/// A list up to this long is not folded up.
const SHORT: usize = 12;

fn figures(asked: &[Asked]) -> String {
    let share = |count: usize| format!("{count} ({:.1} %)", 100.0 * count as f64 / asked.len().max(1) as f64);
    let rated = |up: bool| asked.iter().filter(|asked| asked.rating == Some(up)).count();
    let mut times: Vec<f64> = asked.iter().map(|asked| asked.milliseconds).collect();
    times.retain(|time| time.is_finite());
    times.sort_by(f64::total_cmp);
    // The least time within which that share of the answers came.
    let time = |share: f64| {
        let rank = (share * times.len() as f64).ceil() as usize;
        times.get(rank.saturating_sub(1)).map_or_else(|| "–".to_owned(), |time| duration(*time))
    };
    let degraded = asked.iter().filter(|asked| asked.degraded).count();
    let tokens: u64 = asked.iter().map(|asked| u64::from(asked.tokens)).sum();
    let rows = [
        ("Questions", thousands(asked.len() as u64)),
        ("Answered from the book", share(Outcome::Answered.count(asked))),
        ("Hardly covered by the book", share(Outcome::Low.count(asked))),
        ("Nothing found", share(Outcome::Abstained.count(asked))),
        ("Answered without the model, as it failed", share(degraded)),
        ("Thumbs up, thumbs down", format!("{}, {}", rated(true), rated(false))),
        ("Half of the answers came within", time(0.5)),
        ("95 % of the answers came within", time(0.95)),
        ("Tokens used by the model", thousands(tokens)),
    ];
    let row = |(name, value): (&str, String)| {
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(&value))
    };
    format!("<table class=\"figures\"><tbody>\n{}</tbody></table>\n", rows.map(row).concat())
}

fn gaps_section(asked: &[Asked]) -> String {
    let gaps = gaps(asked);
    let (several, lone): (Vec<&Gap>, Vec<&Gap>) = gaps.iter().partition(|gap| gap.questions.len() > 1);
    let told = match (several.len(), lone.len()) {
        (0, 0) => "The book answered everything, and nobody was unhappy with an answer.".to_owned(),
        _ => "Questions that the book could not answer or whose answer was marked down; those that ask the \
              same are put together. The section they came nearest to is where an answer might belong."
            .to_owned(),
    };
    let shown: String =
        several.iter().take(MOST_GAPS).enumerate().map(|(rank, gap)| gap_details(asked, gap, rank < 3)).collect();
    let shown = shown + &left_out(several.len(), MOST_GAPS);
    let lone_items: String = lone.iter().take(MOST_LONE).map(|gap| lone_item(asked, gap)).collect();
    let lone_items = match lone.len() {
        0 => lone_items,
        count => folded(
            count <= SHORT,
            &format!("{} nobody else asked", counted(count, "question")),
            &format!("<ul>\n{lone_items}</ul>\n{}", left_out(count, MOST_LONE)),
        ),
    };
    format!("<h2>Gaps in the book</h2>\n<p class=\"quiet\">{told}</p>\n{shown}{lone_items}")
}

fn gap_details(asked: &[Asked], gap: &Gap, open: bool) -> String {
    let downs = if gap.downs > 0 { format!(", {} marked down", gap.downs) } else { String::new() };
    let summary = format!(
        "<span class=\"kind s1\">{}{downs}</span><bdi>{}</bdi>",
        counted(gap.questions.len(), "question"),
        escape(&asked[gap.questions[0]].question)
    );
    let repeats = gap.questions.chunk_by(|a, b| plain(&asked[*a].question) == plain(&asked[*b].question));
    let questions: String = repeats
        .map(|repeats| {
            let last = &asked[repeats[repeats.len() - 1]];
            let comments = repeats.iter().map(|number| comment(&asked[*number])).collect::<String>();
            format!("<li>{}{comments}</li>\n", told(&last.question, &[&occasions(asked, repeats), &outcome(last)]))
        })
        .collect();
    let nearest = nearest(gap).map_or_else(|| "none".to_owned(), |link| link);
    let list = format!(
        "<dl><dt>Nearest section</dt><dd>{nearest}</dd>\n<dt>Asked</dt><dd><ul>\n{questions}</ul></dd></dl>"
    );
    let open = if open { " open=\"\"" } else { "" };
    format!("<details class=\"case\"{open}><summary>{summary}</summary>\n{list}</details>\n")
}
