//! The HTML report about what users asked, for authors and operators.
//!
//! Gaps show what to write next, sections that are never cited show what to revise, and figures show how
//! well the tutor does.
//!
//! Invariant: the page contains what was asked, never who asked.

use crate::plot::{self, escape};

pub use gaps::{Gap, gaps, is_missed};

mod gaps;
mod calendar;
mod questions;
mod sections;

/// The questions that were asked in a number of days.
#[derive(Debug, Clone)]
pub struct Report<'a> {
    /// The title of the book.
    pub title: &'a str,
    /// When the report was made: RFC 3339, UTC.
    pub made: String,
    /// The number of days it covers.
    pub days: u32,
    /// The questions, in any order.
    pub asked: &'a [Asked],
    /// All sections, in the order of the book.
    pub sections: &'a [Section],
}

/// A question and its outcome.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// When it was asked: RFC 3339, UTC.
    pub at: String,
    /// The question.
    pub question: String,
    /// How it was answered.
    pub outcome: Outcome,
    /// The estimated probability that the book covers it.
    pub relevance: f32,
    /// Whether the model failed and the book was quoted instead.
    pub degraded: bool,
    /// The response time.
    pub milliseconds: f64,
    /// The tokens that the model used.
    pub tokens: u32,
    /// URLs of the cited sections, with their anchors.
    pub cited: Vec<String>,
    /// Breadcrumb and URL of the nearest section.
    pub nearest: Option<(String, String)>,
    /// Thumbs up (true) or down (false).
    pub rating: Option<bool>,
    /// The user's comment about the answer.
    pub comment: Option<String>,
    /// The vector of the question.
    pub vector: Option<Vec<f32>>,
}

/// How a question was answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Answered from the book.
    #[default]
    Answered,
    /// The book hardly covers it.
    Low,
    /// Nothing was found.
    Abstained,
    /// The model wrote an answer, but the book supports no sentence of it. That says nothing about the book.
    Unverified,
}

/// A section of the book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// `Title > Heading > Heading`.
    pub breadcrumb: String,
    /// The URL of the page, with the anchor.
    pub url: String,
}

/// The report as a single HTML page.
pub fn html(report: &Report) -> String {
    let title = format!("{}: what users asked", report.title);
    let count = counted(report.asked.len(), "question");
    let (made, days) = (calendar::shown(&report.made), counted(report.days as usize, "day"));
    let subtitle = format!("{made} · {count} in {days}");
    let sections = if report.asked.is_empty() {
        "<p>No questions have been asked yet.</p>\n".to_owned()
    } else {
        [
            figures(report.asked),
            calendar::over_time(report),
            questions::unanswered(report.asked),
            questions::marked_down(report),
            questions::most_asked(report.asked),
            sections::most_cited(report),
            sections::never_cited(report),
            questions::slowest(report.asked),
        ]
        .concat()
    };
    let footer = "<footer><h2>Privacy</h2>\n<p class=\"quiet\">Docent stores what was asked, not who asked: no \
                  names, addresses or other identifiers of users, so none are on this page. Questions and \
                  comments are shown as users wrote them; review them before you share this page.</p></footer>";
    plot::page(&title, &subtitle, &(sections + footer))
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Answered, Self::Low, Self::Abstained, Self::Unverified];

    fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Low => "hardly covered",
            Self::Abstained => "nothing found",
            Self::Unverified => "not verified",
        }
    }

    fn count(self, asked: &[Asked]) -> usize {
        asked.iter().filter(|asked| asked.outcome == self).count()
    }
}

fn figures(asked: &[Asked]) -> String {
    let share = |count: usize| {
        let percent = 100.0 * count as f64 / asked.len().max(1) as f64;
        format!("{} ({percent:.1}\u{a0}%)", thousands(count as u64))
    };
    let rated = |up: bool| asked.iter().filter(|asked| asked.rating == Some(up)).count();
    let mut times: Vec<f64> = asked.iter().map(|asked| asked.milliseconds).collect();
    times.retain(|time| time.is_finite());
    times.sort_by(f64::total_cmp);
    // The shortest time within which this share of the answers was complete.
    let time = |share: f64| {
        let rank = (share * times.len() as f64).ceil() as usize;
        duration(times.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN))
    };
    let degraded = asked.iter().filter(|asked| asked.degraded).count();
    let tokens = asked.iter().map(|asked| u64::from(asked.tokens)).sum();
    let rows = [
        ("Questions", thousands(asked.len() as u64)),
        ("Answered from the book", share(Outcome::Answered.count(asked))),
        (
            "Declined because the model's answer could not be verified",
            share(Outcome::Unverified.count(asked)),
        ),
        ("Hardly covered by the book", share(Outcome::Low.count(asked))),
        ("Nothing found in the book", share(Outcome::Abstained.count(asked))),
        ("Degraded: the model failed, the book was quoted instead", share(degraded)),
        ("Thumbs up · thumbs down", format!("{} · {}", rated(true), rated(false))),
        ("Response time, p50", time(0.5)),
        ("Response time, p95", time(0.95)),
        ("Tokens used by the model", thousands(tokens)),
    ];
    let row = |(name, value): (&str, String)| {
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(&value))
    };
    format!("<table class=\"figures\"><tbody>\n{}</tbody></table>\n", rows.map(row).concat())
}

/// `1 question`, `2 questions`.
fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count as u64), if count == 1 { "" } else { "s" })
}

/// A number with thin spaces between groups of three digits.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut spaced = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            spaced.push('\u{202f}');
        }
        spaced.push(digit);
    }
    spaced
}

fn duration(milliseconds: f64) -> String {
    match milliseconds {
        time if !time.is_finite() => "–".to_owned(),
        time if time < 999.5 => format!("{time:.0} ms"),
        time => format!("{:.1} s", time / 1000.0),
    }
}

/// A section as a link, or as text if its URL is not HTTP or HTTPS.
fn link(breadcrumb: &str, url: &str) -> String {
    let text = escape(&breadcrumb.replace(" > ", " › "));
    let scheme = url.split("://").next().unwrap_or_default();
    let web = url.contains("://") && ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    if web {
        format!("<a href=\"{}\"><bdi>{text}</bdi></a>", escape(url))
    } else {
        format!("<bdi>{text}</bdi>")
    }
}

/// A collapsible block; `summary` and `content` are HTML.
fn folded(open: bool, summary: &str, content: &str) -> String {
    let open = if open { " open=\"\"" } else { "" };
    format!("<details class=\"case\"{open}><summary>{summary}</summary>\n{content}</details>\n")
}

/// The note below a list that is not shown in full.
fn left_out(all: usize, shown: usize) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => format!("<p class=\"quiet\">And {} more.</p>\n", thousands(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "<img src=x onerror='a'>\"&";

    fn asked(question: &str, outcome: Outcome) -> Asked {
        Asked {
            at: "2025-11-14T10:00:00Z".to_owned(),
            question: question.to_owned(),
            outcome,
            ..Asked::default()
        }
    }

    fn page(asked: &[Asked], sections: &[Section]) -> String {
        html(&Report { title: "Robots", made: "2025-11-15T00:00:00Z".to_owned(), days: 30, asked, sections })
    }

    /// The value of a headline figure.
    fn figure<'a>(page: &'a str, name: &str) -> &'a str {
        let (_, after) = page.split_once(&format!("<th scope=\"row\">{name}</th><td>")).expect(name);
        after.split_once('<').unwrap().0
    }

    #[test]
    fn outcomes_thumbs_times_and_tokens_are_counted() {
        let mut all: Vec<Asked> =
            (1..=20).map(|number| asked(&format!("q{number}"), Outcome::Answered)).collect();
        for (number, asked) in all.iter_mut().enumerate() {
            asked.milliseconds = 100.0 * (20 - number) as f64;
            asked.tokens = 1000;
            asked.rating = [Some(true), Some(true), Some(false), None][number % 4];
        }
        all[..3].iter_mut().for_each(|asked| asked.outcome = Outcome::Low);
        all[3..5].iter_mut().for_each(|asked| asked.outcome = Outcome::Abstained);
        all[5].outcome = Outcome::Unverified;
        all[9].degraded = true;
        all[0].milliseconds = f64::NAN;
        let page = page(&all, &[]);
        for (name, value) in [
            ("Questions", "20"),
            ("Answered from the book", "14 (70.0\u{a0}%)"),
            ("Declined because the model&#39;s answer could not be verified", "1 (5.0\u{a0}%)"),
            ("Hardly covered by the book", "3 (15.0\u{a0}%)"),
            ("Nothing found in the book", "2 (10.0\u{a0}%)"),
            ("Degraded: the model failed, the book was quoted instead", "1 (5.0\u{a0}%)"),
            ("Thumbs up · thumbs down", "10 · 5"),
            // Nineteen times are known: 100 to 1900 ms.
            ("Response time, p50", "1.0 s"),
            ("Response time, p95", "1.9 s"),
            ("Tokens used by the model", "20\u{202f}000"),
        ] {
            assert_eq!(figure(&page, name), value, "{name}");
        }
        assert!(page.contains("The slowest 19"), "a turn without a time is not slow");
    }

    #[test]
    fn without_questions_the_page_says_so() {
        let section = Section { breadcrumb: "Nodes".to_owned(), url: "https://b.org/nodes".to_owned() };
        let page = page(&[], &[section]);
        assert!(page.contains("No questions have been asked yet.") && page.contains("not who asked"));
        assert!(!page.contains("<table") && !page.contains("<svg") && !page.contains("<h2>Gaps"));
    }

    #[test]
    fn a_question_without_any_details_still_gives_a_page() {
        let mut bare = Asked { milliseconds: f64::NAN, relevance: f32::NAN, ..Asked::default() };
        bare.outcome = Outcome::Abstained;
        let page = page(&[bare], &[]);
        assert_eq!(figure(&page, "Response time, p50"), "–");
        assert!(page.contains("Asked only once: 1 question") && !page.contains("NaN"));
    }

    #[test]
    fn texts_are_escaped_and_only_web_addresses_are_links() {
        let hostile = HOSTILE.to_owned();
        let mut all = Vec::new();
        for outcome in Outcome::ALL {
            for rating in [None, Some(true), Some(false)] {
                all.push(Asked {
                    at: hostile.clone(),
                    cited: vec![
                        hostile.clone(),
                        format!("https://b.org/{HOSTILE}"),
                        "javascript:a()".to_owned(),
                    ],
                    nearest: Some((hostile.clone(), "JavaScript://%0aa()".to_owned())),
                    comment: Some(hostile.clone()),
                    rating,
                    ..asked(HOSTILE, outcome)
                });
            }
        }
        let sections = ["javascript:b()", "data:text/html,x", "HTTP://b.org/x", HOSTILE]
            .map(|url| Section { breadcrumb: hostile.clone(), url: url.to_owned() });
        let page = html(&Report { title: HOSTILE, made: hostile, days: 1, asked: &all, sections: &sections });
        assert!(!page.contains("<img") && !page.contains("onerror='") && page.contains("&lt;img src=x"));
        let links: Vec<&str> = page.split("<a href=\"").skip(1).map(|rest| &rest[..12]).collect();
        assert!(links.len() > 3 && links.iter().all(|link| ["HTTP://b.org", "https://b.or"].contains(link)));
    }

    #[test]
    fn a_gap_shows_its_questions_with_dates_repeats_and_comments() {
        let nearest = Some(("Nodes > Names".to_owned(), "https://b.org/nodes#names".to_owned()));
        let at = |day: u32, question: &str| Asked {
            at: format!("2025-11-{day:02}T08:00:00Z"),
            nearest: nearest.clone(),
            ..asked(question, Outcome::Low)
        };
        let mut all =
            [at(9, "How do I rename a node?"), at(3, "how do i rename a node"), at(5, "Rename node")];
        all[2].rating = Some(false);
        all[2].comment = Some("It only tells me what a name is.".to_owned());
        let page = page(&all, &[]);
        for text in [
            "<span class=\"kind s1\">3 questions, 1 marked down</span><bdi>how do i rename a node</bdi>",
            "<a href=\"https://b.org/nodes#names\"><bdi>Nodes › Names</bdi></a>",
            "2 times, 3 Nov to 9 Nov 2025 · hardly covered",
            "5 Nov 2025 · hardly covered, marked down",
            "<blockquote dir=\"auto\">It only tells me what a name is.</blockquote>",
        ] {
            assert!(page.contains(text), "{text} in {page}");
        }
        let repeated = page.split_once("<h2>Most asked questions</h2>").unwrap().1;
        assert!(repeated.contains("2 times, 3 Nov to 9 Nov 2025 · never answered"));
    }

    #[test]
    fn a_truncated_list_says_so() {
        let all: Vec<Asked> = (0..230).map(|number| asked(&format!("word{number}"), Outcome::Low)).collect();
        assert!(page(&all, &[]).contains("<p class=\"quiet\">And 30 more.</p>"));
    }

    #[test]
    fn numbers_and_times_are_formatted_for_people() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(thousands),
            ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]
        );
        assert_eq!([0.4, 999.4, 999.6, 61_000.0].map(duration), ["0 ms", "999 ms", "1.0 s", "61.0 s"]);
        assert_eq!((counted(1, "day"), counted(0, "day")), ("1 day".to_owned(), "0 days".to_owned()));
    }
}
