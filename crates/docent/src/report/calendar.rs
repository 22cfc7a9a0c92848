//! Dates, and the chart of questions over time.
//!
//! Invariant: days are in UTC, like the times of the questions, and days without questions are
//! drawn, too.

use std::ops::RangeInclusive;

use time::Date;
use time::format_description::well_known::Iso8601;

use super::{Outcome, Report};
use crate::plot::{self, Axis, Caption, Columns};

/// More days than this are shown as weeks.
const MOST_DAYS: i64 = 60;
/// The maximum number of days, so that a wrong clock does not draw a thousand years.
const LONGEST: i64 = 3660;

/// The Julian day of 1 January 1970.
const EPOCH: i64 = 2_440_588;

/// Questions by day or by week, stacked by outcome.
pub(super) fn over_time(report: &Report) -> String {
    let days: Vec<(i64, Outcome)> =
        report.asked.iter().filter_map(|asked| Some((day(&asked.at)?, asked.outcome))).collect();
    let range = range(report, &days);
    let weekly = range.end() - range.start() > MOST_DAYS;
    let (step, name) = if weekly { (7, "week, labeled by its Monday") } else { (1, "day") };
    let first = if weekly { monday(*range.start()) } else { *range.start() };
    let count = ((range.end() - first) / step + 1).max(0) as usize;
    let starts = (0..count).map(|column| first + step * column as i64);
    let one_year = date_of(first).year() == date_of(*range.end()).year();
    let labels: Vec<String> = starts.map(|start| label(start, one_year)).collect();
    let layers = Outcome::ALL.map(|outcome| {
        let mut heights = vec![0.0; count];
        for (day, _) in days.iter().filter(|(day, of)| *of == outcome && range.contains(day)) {
            heights[((day - first) / step) as usize] += 1.0;
        }
        (outcome.name(), heights)
    });
    let drawn = days.iter().filter(|(day, _)| range.contains(day)).count();
    let mut description = format!("Each column is a {name}, in UTC.");
    if drawn < report.asked.len() {
        let outside = report.asked.len() - drawn;
        description += &format!(" Not shown because their dates are outside this range: {outside}.");
    }
    plot::columns(&Columns {
        caption: Caption { title: "Questions over time", description: &description },
        // A range below five would put ticks at fractions of a question.
        y: Axis { label: "questions", range: Some((0.0, 5.0)), ..Axis::default() },
        labels: labels.iter().map(String::as_str).collect(),
        layers: layers.into(),
    })
}

/// `14 Nov 2025`; a time that is not RFC 3339 is shown as it is.
pub(super) fn shown(at: &str) -> String {
    day(at).map_or_else(|| at.to_owned(), date)
}

/// `2 Nov to 14 Nov 2025`, or a single date if both are the same.
pub(super) fn span(from: &str, to: &str) -> String {
    match (day(from), day(to)) {
        (Some(from), Some(to)) if from == to => date(to),
        (Some(from), Some(to)) if date_of(from).year() == date_of(to).year() => {
            format!("{} to {}", label(from, true), date(to))
        }
        _ => format!("{} to {}", shown(from), shown(to)),
    }
}

/// The days that the report covers. A long report starts with the first question.
fn range(report: &Report, days: &[(i64, Outcome)]) -> RangeInclusive<i64> {
    let asked = || days.iter().map(|(day, _)| *day);
    let last = day(&report.made).or_else(|| asked().max()).unwrap_or_default();
    // The period starts and ends within a day, so it touches `days + 1` days.
    let first = last - i64::from(report.days).min(LONGEST);
    let asked_first = asked().filter(|day| (first..=last).contains(day)).min().unwrap_or(last);
    if last - first > MOST_DAYS { asked_first..=last } else { first..=last }
}

/// Days since 1970 of a text that starts with a date, as RFC 3339 times do.
fn day(text: &str) -> Option<i64> {
    let date = Date::parse(text.get(..10)?, &Iso8601::DATE).ok()?;
    Some(i64::from(date.to_julian_day()) - EPOCH)
}

/// The date of a day.
fn date_of(day: i64) -> Date {
    i32::try_from(day + EPOCH).ok().and_then(|day| Date::from_julian_day(day).ok()).unwrap_or(Date::MIN)
}

/// The Monday of the week. 1 January 1970 was a Thursday.
fn monday(day: i64) -> i64 {
    day - (day + 3).rem_euclid(7)
}

/// `14 Nov 2025`
fn date(day: i64) -> String {
    format!("{} {}", label(day, true), date_of(day).year())
}

/// A short label for a column: `14 Nov`, or `14 Nov 25` if the chart spans several years.
fn label(day: i64, one_year: bool) -> String {
    let date = date_of(day);
    let short = format!("{} {:.3}", date.day(), date.month().to_string());
    if one_year { short } else { format!("{short} {:02}", date.year().rem_euclid(100)) }
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
    fn dates_convert_to_days_and_back() {
        for (text, days) in [("1970-01-01", 0), ("2000-02-29", 11_016), ("2025-11-14T23:59:59Z", 20_406)] {
            assert_eq!(day(text), Some(days));
        }
        for days in (-800_000..800_000).step_by(13) {
            let date = date_of(days);
            if (0..10_000).contains(&date.year()) {
                assert_eq!(day(&date.to_string()), Some(days));
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
        assert!(
            chart.contains("14 Nov</td><td>2</td><td>0</td><td>0") && !chart.contains("outside this range")
        );
    }

    #[test]
    fn a_long_period_is_drawn_by_week_from_the_first_question() {
        let asked =
            [asked("2025-07-02T10:00:00Z", Outcome::Low), asked("2025-11-16T10:00:00Z", Outcome::Low)];
        let chart = drawn("2025-11-16", 365, &asked);
        assert_eq!(chart.matches("<tr><td>").count(), 20);
        assert!(chart.contains("<td>30 Jun</td><td>0</td><td>1</td>"), "{chart}");
        assert!(chart.contains("<td>10 Nov</td><td>0</td><td>1</td>"));
    }

    #[test]
    fn dates_out_of_range_are_counted_but_not_drawn() {
        let asked = ["0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "?", "2025-11-16T00:00:00Z"]
            .map(|at| asked(at, Outcome::Answered));
        let chart = drawn("2025-11-16", u32::MAX, &asked);
        assert!(
            chart.contains("outside this range: 3.") && chart.matches("<tr><td>").count() == 1,
            "{chart}"
        );
        assert!(drawn("", 0, &[]).contains("1 Jan"));
    }
}
