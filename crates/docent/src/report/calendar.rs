//! Days, and how many questions fell on each.
//!
//! Invariant: days are counted in UTC, as the questions' times are, and no day between two others is
//! left out.

use std::ops::RangeInclusive;

use super::{Outcome, Report};
use crate::plot::{self, Axis, Caption, Columns};

/// More days than this are shown as weeks.
const MOST_DAYS: i64 = 60;
/// A clock that went wrong must not draw a thousand years.
const LONGEST: i64 = 3660;

/// Questions by day or by week, stacked by what became of them.
pub(super) fn over_time(report: &Report) -> String {
    let days: Vec<(i64, Outcome)> =
        report.asked.iter().filter_map(|asked| Some((day(&asked.at)?, asked.outcome))).collect();
    let range = range(report, &days);
    let weekly = range.end() - range.start() > MOST_DAYS;
    let (step, name) = if weekly { (7, "week, named by its Monday") } else { (1, "day") };
    let first = if weekly { monday(*range.start()) } else { *range.start() };
    let count = ((range.end() - first) / step + 1).max(0) as usize;
    let starts = (0..count).map(|column| first + step * column as i64);
    let one_year = civil(first).0 == civil(*range.end()).0;
    let labels: Vec<String> = starts.map(|start| label(start, one_year)).collect();
    let layers = Outcome::ALL.map(|outcome| {
        let mut heights = vec![0.0; count];
        for (day, _) in days.iter().filter(|(day, of)| *of == outcome && range.contains(day)) {
            heights[((day - first) / step) as usize] += 1.0;
        }
        (outcome.name(), heights)
    });
    let drawn = days.iter().filter(|(day, _)| range.contains(day)).count();
    let mut description = format!("A column is a {name}, in UTC.");
    if drawn < report.asked.len() {
        description += &format!(" Not drawn, as their dates lie outside: {}.", report.asked.len() - drawn);
    }
    plot::columns(&Columns {
        caption: Caption { title: "Questions over time", description: &description },
        // Fewer than five would give ticks between whole questions.
        y: Axis { label: "questions", range: Some((0.0, 5.0)), ..Axis::default() },
        labels: labels.iter().map(String::as_str).collect(),
        layers: layers.into(),
    })
}

/// `14 Nov 2025`; a time that is none of RFC 3339 is shown as it is.
pub(super) fn shown(at: &str) -> String {
    day(at).map_or_else(|| at.to_owned(), date)
}

/// `2 Nov to 14 Nov 2025`, or one day if both are the same.
pub(super) fn span(from: &str, to: &str) -> String {
    match (day(from), day(to)) {
        (Some(from), Some(to)) if from == to => date(to),
        (Some(from), Some(to)) if civil(from).0 == civil(to).0 => {
            format!("{} to {}", label(from, true), date(to))
        }
        _ => format!("{} to {}", shown(from), shown(to)),
    }
}

/// The days the report is about. Before the first question a long one has nothing to show.
fn range(report: &Report, days: &[(i64, Outcome)]) -> RangeInclusive<i64> {
    let asked = || days.iter().map(|(day, _)| *day);
    let last = day(&report.made).or_else(|| asked().max()).unwrap_or_default();
    // Counted back from the middle of a day, they begin in the middle of a day.
    let first = last - i64::from(report.days).min(LONGEST);
    let asked_first = asked().filter(|day| (first..=last).contains(day)).min().unwrap_or(last);
    if last - first > MOST_DAYS { asked_first..=last } else { first..=last }
}

/// Days since 1970 of a text that begins with a date, as RFC 3339 does.
fn day(text: &str) -> Option<i64> {
    let mut parts = text.get(..10)?.splitn(3, '-').map(|part| part.parse::<u16>().ok().map(i64::from));
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    // Years begin in March here, so that the leap day is the last of its year.
    let shifted = if month > 2 { year } else { year - 1 };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days =
        365 * shifted + shifted.div_euclid(4) - shifted.div_euclid(100) + shifted.div_euclid(400) + of_year
            - 719_468;
    // What is not a date of the calendar comes back as another, or is written otherwise.
    let (year, month, day) = civil(days);
    text.starts_with(&format!("{year:04}-{month:02}-{day:02}")).then_some(days)
}

/// Year, month and day.
fn civil(day: i64) -> (i64, i64, i64) {
    let from_start = day + 719_468;
    let era = from_start.div_euclid(146_097);
    let of_era = from_start.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = (shifted + 2) % 12 + 1;
    let year = 400 * era + year_of_era + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// 1970 began on a Thursday.
fn monday(day: i64) -> i64 {
    day - (day + 3).rem_euclid(7)
}

/// `14 Nov 2025`
fn date(day: i64) -> String {
    format!("{} {}", label(day, true), civil(day).0)
}

/// Short enough to stand below a column: `14 Nov`, or `14 Nov 25` where years differ.
fn label(day: i64, one_year: bool) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day) = civil(day);
    let short = format!("{day} {}", MONTHS[month as usize - 1]);
    if one_year { short } else { format!("{short} {:02}", year.rem_euclid(100)) }
}

#[cfg(test)]
mod tests {
    use super::super::Asked;
    use super::*;

    fn asked(at: &str, outcome: Outcome) -> Asked {
        Asked { at: at.to_owned(), outcome, ..Asked::default() }
    }

    fn drawn(made: &str, days: u32, asked: &[Asked]) -> String {
        over_time(&Report { title: "", made: made.to_owned(), days, asked, sections: &[] })
    }

    #[test]
    fn dates_are_days_and_back() {
        for (text, days) in [("1970-01-01", 0), ("2000-02-29", 11_016), ("2025-11-14T23:59:59Z", 20_406)] {
            assert_eq!(day(text), Some(days));
        }
        for days in (-800_000..800_000).step_by(13) {
            let (year, month, of_month) = civil(days);
            if (0..10_000).contains(&year) {
                assert_eq!(day(&format!("{year:04}-{month:02}-{of_month:02}")), Some(days));
            }
        }
        for text in ["", "yesterday!", "2025-02-29", "2025-13-01", "2025-00-10", "2025-1-001", "２０２５-11"]
        {
            assert_eq!(day(text), None, "{text}");
        }
        assert_eq!(
            (shown("2025-11-04T08:00:00Z"), shown("soon")),
            ("4 Nov 2025".to_owned(), "soon".to_owned())
        );
        assert_eq!(label(monday(20_406), false), "10 Nov 25");
        assert_eq!(span("2025-11-02", "2025-11-14"), "2 Nov to 14 Nov 2025");
        assert_eq!(span("2025-11-14T01", "2025-11-14T02"), "14 Nov 2025");
        assert_eq!(span("2024-12-31", "2025-01-01"), "31 Dec 2024 to 1 Jan 2025");
    }

    #[test]
    fn days_without_questions_have_a_column_too() {
        let asked = [
            asked("2025-11-14T23:59:59Z", Outcome::Answered),
            asked("2025-11-14T10:00:00Z", Outcome::Answered),
            asked("2025-11-12T10:00:00Z", Outcome::Abstained),
        ];
        let chart = drawn("2025-11-15T00:00:00Z", 5, &asked);
        assert_eq!(chart.matches("<tr><td>").count(), 6);
        for row in ["11 Nov</td><td>0</td><td>0</td><td>0", "12 Nov</td><td>0</td><td>0</td><td>1"] {
            assert!(chart.contains(row), "{chart}");
        }
        assert!(chart.contains("14 Nov</td><td>2</td><td>0</td><td>0") && !chart.contains("Not drawn"));
    }

    #[test]
    fn many_days_are_weeks_from_the_first_question_on() {
        let asked =
            [asked("2025-07-02T10:00:00Z", Outcome::Low), asked("2025-11-16T10:00:00Z", Outcome::Low)];
        let chart = drawn("2025-11-16", 365, &asked);
        assert_eq!(chart.matches("<tr><td>").count(), 20);
        assert!(chart.contains("<td>30 Jun</td><td>0</td><td>1</td>"), "{chart}");
        assert!(chart.contains("<td>10 Nov</td><td>0</td><td>1</td>"));
    }

    #[test]
    fn dates_out_of_the_ordinary_are_counted_but_not_drawn() {
        let asked = ["0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "?", "2025-11-16T00:00:00Z"]
            .map(|at| asked(at, Outcome::Answered));
        let chart = drawn("2025-11-16", u32::MAX, &asked);
        assert!(chart.contains("outside: 3.") && chart.matches("<tr><td>").count() == 1, "{chart}");
        assert!(drawn("", 0, &[]).contains("1 Jan"));
    }
}
