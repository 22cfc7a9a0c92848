//! Which sections of the book are cited in answers, and which never are.
//!
//! Invariant: every section of the book is either cited or listed as never cited.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{Asked, Report, Section, counted, folded, left_out, link};
use crate::plot::{self, Axis, Bars, Caption};

/// How many of the most cited sections are drawn, and how many are listed.
const DRAWN: usize = 12;
const LISTED: usize = 30;
/// Up to this many sections that are never cited, the list is shown unfolded.
const SHORT: usize = 12;

/// The sections that answers cite most, as bars and as links.
pub(super) fn most_cited(report: &Report) -> String {
    let cited = cited(report.asked);
    if cited.is_empty() {
        return "<h2>Cited sections</h2>\n<p class=\"quiet\">No answer has cited a section yet.</p>\n"
            .to_owned();
    }
    let names = Names::new(report.sections);
    let drawn: Vec<&str> = cited.iter().take(DRAWN).map(|cited| names.of(cited.url)).collect();
    let labels: Vec<String> = drawn.iter().map(|name| label(name, &drawn)).collect();
    let rows = labels.iter().zip(&cited).map(|(label, cited)| (label.as_str(), cited.answers as f64));
    let chart = plot::bars(&Bars {
        caption: Caption { title: "Most cited", description: "How many answers cite a section." },
        x: Axis { label: "answers", ..Axis::default() },
        rows: rows.collect(),
    });
    let items = cited.iter().take(LISTED).map(|cited| {
        let mut facts = vec![counted(cited.answers, "answer")];
        facts.extend((cited.ups > 0).then(|| format!("{} up", counted(cited.ups, "thumb"))));
        facts.extend((cited.downs > 0).then(|| format!("{} down", counted(cited.downs, "thumb"))));
        facts.extend(names.is_gone(cited.url).then(|| "no longer in the book".to_owned()));
        let link = link(names.of(cited.url), cited.url);
        format!("<li>{link} <span class=\"quiet\">{}</span></li>\n", facts.join(" · "))
    });
    let list = format!("<ol>\n{}</ol>\n{}", items.collect::<String>(), left_out(cited.len(), LISTED));
    format!(
        "<h2>Cited sections</h2>\n{chart}{}",
        folded(false, "These and more, with links and ratings", &list)
    )
}

/// The sections that no answer cites, page by page.
pub(super) fn never_cited(report: &Report) -> String {
    let missing = uncited(report);
    let head = "<h2>Sections never cited</h2>\n";
    if report.sections.is_empty() || missing.is_empty() {
        let told =
            if report.sections.is_empty() { "The book has no sections." } else { "All sections were cited." };
        return format!("{head}<p class=\"quiet\">{told}</p>\n");
    }
    let mut sizes: HashMap<&str, usize> = HashMap::new();
    report.sections.iter().for_each(|section| *sizes.entry(page(&section.url)).or_default() += 1);
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut pages: Vec<Vec<&Section>> = Vec::new();
    for section in &missing {
        let place = *places.entry(page(&section.url)).or_insert(pages.len());
        pages.resize_with(pages.len().max(place + 1), Vec::new);
        pages[place].push(section);
    }
    let groups = pages.iter().map(|sections| {
        let first = sections[0];
        let (title, page) = (first.breadcrumb.split(" > ").next().unwrap_or_default(), page(&first.url));
        let count = match sizes.get(page) {
            Some(all) if *all > sections.len() => {
                format!("{} of {}", sections.len(), counted(*all, "section"))
            }
            _ => "the whole page".to_owned(),
        };
        let item = |section: &&Section| {
            let heading = section.breadcrumb.split_once(" > ").map_or(title, |(_, heading)| heading);
            format!("<li>{}</li>\n", link(heading, &section.url))
        };
        let items: String = sections.iter().map(item).collect();
        format!("<dt>{} · {count}</dt><dd><ul>\n{items}</ul></dd>\n", link(title, page))
    });
    let summary = format!(
        "{} of {}, on {}",
        missing.len(),
        counted(report.sections.len(), "section"),
        counted(pages.len(), "page")
    );
    let list = format!("<dl>\n{}</dl>\n", groups.collect::<String>());
    let told = "No user asked about these sections, or search does not find them.";
    format!("{head}<p class=\"quiet\">{told}</p>\n{}", folded(missing.len() <= SHORT, &summary, &list))
}

/// Breadcrumbs by URL.
pub(super) struct Names<'a>(HashMap<&'a str, &'a str>);

impl<'a> Names<'a> {
    /// If several sections have the same URL, the first one gives the name.
    pub(super) fn new(sections: &'a [Section]) -> Self {
        let named = sections.iter().rev().map(|section| (section.url.as_str(), section.breadcrumb.as_str()));
        Self(named.collect())
    }

    /// The breadcrumb, or the URL itself if the book has no such section.
    pub(super) fn of<'b>(&self, url: &'b str) -> &'b str
    where
        'a: 'b,
    {
        self.0.get(url).copied().unwrap_or(url)
    }

    fn is_gone(&self, url: &str) -> bool {
        !self.0.is_empty() && !self.0.contains_key(url)
    }
}

/// A section and how often it was cited.
#[derive(Debug, PartialEq)]
struct Cited<'a> {
    url: &'a str,
    answers: usize,
    ups: usize,
    downs: usize,
}

/// The cited sections, most cited first. An answer that cites a section twice counts once.
fn cited(asked: &[Asked]) -> Vec<Cited<'_>> {
    let mut sections: BTreeMap<&str, Cited> = BTreeMap::new();
    for asked in asked {
        for url in asked.cited.iter().map(String::as_str).collect::<BTreeSet<_>>() {
            let cited = sections.entry(url).or_insert(Cited { url, answers: 0, ups: 0, downs: 0 });
            cited.answers += 1;
            cited.ups += usize::from(asked.rating == Some(true));
            cited.downs += usize::from(asked.rating == Some(false));
        }
    }
    let mut sections: Vec<Cited> = sections.into_values().collect();
    sections.sort_by_key(|cited| Reverse(cited.answers));
    sections
}

/// The sections that are never cited, in the order of the book.
fn uncited<'a>(report: &Report<'a>) -> Vec<&'a Section> {
    let cited: HashSet<&str> =
        report.asked.iter().flat_map(|asked| &asked.cited).map(String::as_str).collect();
    report.sections.iter().filter(|section| !cited.contains(section.url.as_str())).collect()
}

/// The URL without its anchor.
fn page(url: &str) -> &str {
    url.split('#').next().unwrap_or(url)
}

/// The last heading, with its page if another bar has the same heading.
fn label(breadcrumb: &str, all: &[&str]) -> String {
    let last = |breadcrumb: &str| breadcrumb.rsplit(" > ").next().unwrap_or_default().to_owned();
    let heading = last(breadcrumb);
    let alone = all.iter().filter(|other| last(other) == heading).count() == 1;
    match breadcrumb.split_once(" > ") {
        Some((title, _)) if !alone => format!("{heading} ({title})"),
        _ => heading,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(breadcrumb: &str, url: &str) -> Section {
        Section { breadcrumb: breadcrumb.to_owned(), url: url.to_owned() }
    }

    fn citing(urls: &[&str], rating: Option<bool>) -> Asked {
        Asked { cited: urls.iter().map(|url| (*url).to_owned()).collect(), rating, ..Asked::default() }
    }

    fn book() -> [Section; 4] {
        [
            section("Nodes", "https://b.org/nodes"),
            section("Nodes > Names", "https://b.org/nodes#names"),
            section("Topics", "https://b.org/topics"),
            section("Topics > Names", "https://b.org/topics#names"),
        ]
    }

    fn report<'a>(asked: &'a [Asked], sections: &'a [Section]) -> Report<'a> {
        Report { title: "Book", made: String::new(), days: 30, asked, sections }
    }

    #[test]
    fn an_answer_counts_once_for_each_section_it_cites() {
        let asked = [
            citing(&["b", "a", "b"], Some(true)),
            citing(&["b"], Some(false)),
            citing(&["c"], None),
            citing(&[], Some(false)),
        ];
        let expected = [("b", 2, 1, 1), ("a", 1, 1, 0), ("c", 1, 0, 0)]
            .map(|(url, answers, ups, downs)| Cited { url, answers, ups, downs });
        assert_eq!(cited(&asked), expected);
    }

    #[test]
    fn every_section_is_cited_or_never_cited() {
        let book = book();
        for cited in [&[][..], &[0], &[1, 3], &[0, 1, 2, 3]] {
            let urls: Vec<&str> = cited.iter().map(|number| book[*number].url.as_str()).collect();
            let asked = [citing(&urls, None), citing(&["https://b.org/gone"], None)];
            let report = report(&asked, &book);
            let missing = uncited(&report);
            for (number, section) in book.iter().enumerate() {
                assert_ne!(cited.contains(&number), missing.contains(&section), "{section:?}");
            }
            assert_eq!(missing.len() + cited.len(), book.len());
        }
    }

    #[test]
    fn sections_never_cited_are_grouped_by_page() {
        let (asked, book) = ([citing(&["https://b.org/nodes"], None)], book());
        let list = never_cited(&report(&asked, &book));
        assert!(list.contains("<summary>3 of 4 sections, on 2 pages</summary>"), "{list}");
        assert!(list.contains("Nodes</bdi></a> · 1 of 2 sections</dt>"));
        assert!(list.contains("Topics</bdi></a> · the whole page</dt>"));
        assert!(list.contains("<li><a href=\"https://b.org/nodes#names\"><bdi>Names</bdi></a></li>"));
        assert!(list.contains("open") && !list.contains("<li><a href=\"https://b.org/nodes\">"));
        let many: Vec<Section> = (0..40).map(|number| section("Page", &format!("p#{number}"))).collect();
        assert!(!never_cited(&report(&[], &many)).contains("open"));
        assert!(never_cited(&report(&[], &[])).contains("The book has no sections."));
    }

    #[test]
    fn bars_with_the_same_heading_show_their_page() {
        let all = ["Nodes > Names", "Topics > Names", "Topics > Types"];
        let labels = all.map(|breadcrumb| label(breadcrumb, &all));
        assert_eq!(labels, ["Names (Nodes)", "Names (Topics)", "Types"]);
    }

    #[test]
    fn a_section_that_is_no_longer_in_the_book_is_shown_by_its_url() {
        let (asked, book) = ([citing(&["https://b.org/gone"], Some(true))], book());
        let list = most_cited(&report(&asked, &book));
        assert!(list.contains("<bdi>https://b.org/gone</bdi></a>"), "{list}");
        assert!(list.contains("1 answer · 1 thumb up · no longer in the book"));
        assert!(!most_cited(&report(&asked, &[])).contains("no longer"));
        assert!(most_cited(&report(&[], &book)).contains("No answer has cited a section yet."));
    }
}
