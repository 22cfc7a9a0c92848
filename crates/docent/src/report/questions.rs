//! Lists of questions: unanswered, marked down, repeated and slow ones.
//!
//! Invariant: a truncated list says how many entries are left out.

use std::cmp::Reverse;

use super::gaps::{plain, repeats};
use super::sections::Names;
use super::{
    Asked, Gap, Outcome, Report, calendar, counted, duration, folded, gaps, left_out, link, thousands,
};
use crate::plot::escape;

/// How many of each are shown.
const GAPS: usize = 50;
const LONE: usize = 200;
const MARKED_DOWN: usize = 100;
const ASKED: usize = 20;
const SLOW: usize = 20;
/// The first gaps are unfolded, because they are the most important part of the page.
const OPEN: usize = 3;

/// The gaps in the book, most asked first.
pub(super) fn unanswered(asked: &[Asked]) -> String {
    let gaps = gaps(asked);
    let (several, lone): (Vec<&Gap>, Vec<&Gap>) = gaps.iter().partition(|gap| gap.questions.len() > 1);
    let told = if gaps.is_empty() {
        "The book answered every question, and no answer was marked down."
    } else {
        "Questions that the book could not answer or whose answer was marked down, grouped by similarity. \
         The nearest section is where an answer might belong."
    };
    let shown = several.iter().take(GAPS).enumerate();
    let shown: String = shown.map(|(rank, gap)| gap_details(asked, gap, rank < OPEN)).collect();
    let mut page = format!("<h2>Gaps in the book</h2>\n<p class=\"quiet\">{told}</p>\n{shown}");
    page += &left_out(several.len(), GAPS);
    if !lone.is_empty() {
        let items: String = lone.iter().take(LONE).map(|gap| lone_item(asked, gap)).collect();
        let summary = format!("Asked only once: {}", counted(lone.len(), "question"));
        let list = format!("<ul>\n{items}</ul>\n{}", left_out(lone.len(), LONE));
        page += &folded(several.is_empty(), &summary, &list);
    }
    page
}

/// Answers that were marked down, and other comments of users.
pub(super) fn marked_down(report: &Report) -> String {
    let chosen = |down: bool, with_comment: bool| -> Vec<&Asked> {
        let wanted = |asked: &&Asked| {
            (asked.rating == Some(false)) == down && comment(asked).is_empty() != with_comment
        };
        report.asked.iter().filter(wanted).collect()
    };
    let names = Names::new(report.sections);
    let mut page = "<h2>Answers marked down</h2>\n".to_owned();
    if report.asked.iter().all(|asked| asked.rating != Some(false)) {
        page += "<p class=\"quiet\">No answer was marked down.</p>\n";
    }
    let lists = [
        (chosen(true, true), "Marked down with a comment", true),
        (chosen(true, false), "Marked down without a comment", false),
        (chosen(false, true), "Other comments", false),
    ];
    for (answers, name, open) in lists.into_iter().filter(|(answers, _, _)| !answers.is_empty()) {
        let summary = format!("{name}: {}", counted(answers.len(), "answer"));
        page += &folded(open, &summary, &newest_first(answers, &names));
    }
    page
}

/// Questions that were asked repeatedly, ignoring case and punctuation.
pub(super) fn most_asked(asked: &[Asked]) -> String {
    let mut repeats = repeats(asked, 0..asked.len());
    repeats.retain(|(_, numbers)| numbers.len() > 1);
    repeats.sort_by_key(|(_, numbers)| Reverse(numbers.len()));
    let items = repeats.iter().take(ASKED).map(|(_, numbers)| {
        let turns: Vec<&Asked> = numbers.iter().map(|number| &asked[*number]).collect();
        let answered = match turns.iter().filter(|asked| asked.outcome == Outcome::Answered).count() {
            0 => "never answered".to_owned(),
            all if all == turns.len() => "always answered".to_owned(),
            some => format!("answered {}", counted(some, "time")),
        };
        let [when, _] = when_and_how(&turns);
        format!("<li>{}</li>\n", with_facts(&turns[0].question, &[when, answered]))
    });
    let list = match repeats.len() {
        0 => "<p class=\"quiet\">No question was asked twice.</p>\n".to_owned(),
        all => format!("<ol>\n{}</ol>\n{}", items.collect::<String>(), left_out(all, ASKED)),
    };
    format!("<h2>Most asked questions</h2>\n{list}")
}

/// The slowest turns.
pub(super) fn slowest(asked: &[Asked]) -> String {
    let mut slow: Vec<&Asked> = asked.iter().filter(|asked| asked.milliseconds.is_finite()).collect();
    slow.sort_by(|a, b| {
        b.milliseconds
            .total_cmp(&a.milliseconds)
            .then_with(|| (&a.at, &a.question).cmp(&(&b.at, &b.question)))
    });
    if slow.is_empty() {
        return String::new();
    }
    let items = slow.iter().take(SLOW).map(|asked| {
        let [when, how] = when_and_how(&[asked]);
        let tokens = counted(asked.tokens as usize, "token");
        let facts = [duration(asked.milliseconds), tokens, when, how];
        format!("<li>{}</li>\n", with_facts(&asked.question, &facts))
    });
    let list = format!("<ol>\n{}</ol>\n", items.collect::<String>());
    let summary = format!("The slowest {}", slow.len().min(SLOW));
    format!("<h2>Slow answers</h2>\n{}", folded(false, &summary, &list))
}

fn newest_first(mut answers: Vec<&Asked>, names: &Names) -> String {
    answers.sort_by_key(|asked| (Reverse(&asked.at), &asked.question));
    let items = answers.iter().take(MARKED_DOWN).map(|asked| {
        let cited: String =
            asked.cited.iter().map(|url| format!("<br>cites {}", link(names.of(url), url))).collect();
        let question = with_facts(&asked.question, &when_and_how(&[asked]));
        format!("<li>{question}{cited}{}</li>\n", comment(asked))
    });
    format!("<ul>\n{}</ul>\n{}", items.collect::<String>(), left_out(answers.len(), MARKED_DOWN))
}

fn gap_details(asked: &[Asked], gap: &Gap, open: bool) -> String {
    let mut count = counted(gap.questions.len(), "question");
    if gap.downs > 0 {
        count += &format!(", {} marked down", thousands(gap.downs as u64));
    }
    let name = escape(&asked[gap.questions[0]].question);
    let summary = format!("<span class=\"kind s1\">{count}</span><bdi>{name}</bdi>");
    let repeats = gap.questions.chunk_by(|a, b| plain(&asked[*a].question) == plain(&asked[*b].question));
    let items = repeats.map(|numbers| {
        let comments: String = numbers.iter().map(|number| comment(&asked[*number])).collect();
        let turns: Vec<&Asked> = numbers.iter().map(|number| &asked[*number]).collect();
        format!("<li>{}{comments}</li>\n", with_facts(&turns[0].question, &when_and_how(&turns)))
    });
    let nearest = gap.nearest.as_ref().map_or_else(String::new, |(breadcrumb, url)| {
        format!("<dt>Nearest section</dt><dd>{}</dd>\n", link(breadcrumb, url))
    });
    let items: String = items.collect();
    let list = format!("<dl>{nearest}<dt>Asked</dt><dd><ul>\n{items}</ul></dd></dl>\n");
    folded(open, &summary, &list)
}

fn lone_item(asked: &[Asked], gap: &Gap) -> String {
    let asked = &asked[gap.questions[0]];
    let nearest =
        asked.nearest.as_ref().map(|(breadcrumb, url)| format!("<br>near {}", link(breadcrumb, url)));
    let question = with_facts(&asked.question, &when_and_how(&[asked]));
    format!("<li>{question}{}{}</li>\n", nearest.unwrap_or_default(), comment(asked))
}

/// A question with its details in small print.
fn with_facts(question: &str, facts: &[String]) -> String {
    let facts: Vec<String> = facts.iter().map(|fact| escape(fact)).collect();
    format!("<bdi>{}</bdi><br>\n<span class=\"quiet\">{}</span>", escape(question), facts.join(" · "))
}

/// When the turns took place and their outcome; `turns` is sorted by time.
fn when_and_how(turns: &[&Asked]) -> [String; 2] {
    let (first, last) = (&turns[0].at, &turns[turns.len() - 1].at);
    let when = match turns.len() {
        1 => calendar::shown(first),
        count => format!("{}, {}", counted(count, "time"), calendar::span(first, last)),
    };
    let happened = |outcome: &Outcome| turns.iter().any(|asked| asked.outcome == *outcome);
    let outcomes: Vec<&str> = Outcome::ALL.into_iter().filter(happened).map(Outcome::name).collect();
    let mut how = outcomes.join(" or ");
    for (name, count) in [
        ("marked down", turns.iter().filter(|asked| asked.rating == Some(false)).count()),
        ("degraded", turns.iter().filter(|asked| asked.degraded).count()),
    ] {
        match count {
            0 => {}
            all if all == turns.len() => how += &format!(", {name}"),
            some => how += &format!(", {} {name}", thousands(some as u64)),
        }
    }
    // The last turn is closest to the current state of the book.
    let relevance = turns[turns.len() - 1].relevance;
    if relevance.is_finite() {
        how += &format!(" · relevance {relevance:.2}");
    }
    [when, how]
}

/// The user's comment, if there is one.
fn comment(asked: &Asked) -> String {
    match asked.comment.as_deref().map(str::trim) {
        None | Some("") => String::new(),
        Some(comment) => format!("<blockquote dir=\"auto\">{}</blockquote>", escape(comment)),
    }
}
