//! The summary of an ingest, as text.

use std::collections::BTreeMap;

use docent_backends::ingest::{Change, Changes, Report};
use docent_backends::source::site::SiteReport;
use docent_core::embed::EmbedderId;
use docent_parse::document::Warning;

use crate::output::{FAINT, Output, STRONG};

/// The number of names shown of a list, without `--verbose`.
const SHOWN: usize = 5;

/// Prints what changed and how long it took.
pub fn show(report: &Report, seconds: f64, output: &Output) {
    for warning in grouped(&report.warnings, output.verbose) {
        output.warn(warning);
    }
    output.note(changes("pages", &report.pages));
    changed_pages(report, output);
    output.note(changes("sections", &report.sections));
    output.note(passages(report));
    for site in &report.sites {
        site_summary(site, output);
    }
    if !report.other_files.is_empty() {
        let total: usize = report.other_files.values().sum();
        let kinds: Vec<_> =
            report.other_files.iter().map(|(extension, count)| format!("{count} .{extension}")).collect();
        let files = if total == 1 { "file that is not a page" } else { "files that are not pages" };
        output.note(format!("{FAINT}skipped {total} {files}: {}{FAINT:#}", kinds.join(", ")));
    }
    let kinds = report.kinds.join(", ");
    let outcome = if report.published { "published" } else { "nothing changed since" };
    output.note(format!(
        "{FAINT}{outcome} {} in {seconds:.1} s · {kinds} · language {} · {}{FAINT:#}",
        report.generation, report.language, report.embedder
    ));
    if output.verbose {
        let steps: Vec<_> =
            report.steps.iter().map(|step| format!("{} {:.2} s", step.name, step.seconds)).collect();
        output.note(format!("{FAINT}{}{FAINT:#}", steps.join(", ")));
    }
}

/// The summary in one line, for a server's log.
pub fn line(report: &Report, seconds: f64) -> String {
    let pages = &report.pages;
    if !report.published {
        return format!("nothing changed since {} ({seconds:.1} s)", report.generation);
    }
    format!(
        "published {}: {} pages added, {} changed, {} removed; {} passages embedded in {seconds:.1} s",
        report.generation, pages.added, pages.changed, pages.removed, report.embedded
    )
}

fn changes(name: &str, changes: &Changes) -> String {
    format!(
        "{name:<9}{STRONG}{}{STRONG:#} added, {STRONG}{}{STRONG:#} changed, {STRONG}{}{STRONG:#} removed, {} unchanged",
        changes.added, changes.changed, changes.removed, changes.unchanged
    )
}

/// Lists the pages that were added, changed and removed.
fn changed_pages(report: &Report, output: &Output) {
    for (change, name) in
        [(Change::Added, "added"), (Change::Changed, "changed"), (Change::Removed, "removed")]
    {
        let pages: Vec<&str> =
            report.changed.iter().filter(|page| page.change == change).map(|page| &*page.page).collect();
        if !pages.is_empty() {
            let list = list(&pages, if output.verbose { usize::MAX } else { SHOWN });
            output.note(format!("{FAINT}         {name}: {list}{FAINT:#}"));
        }
    }
}

/// Joins the first `most` names.
fn list(names: &[&str], most: usize) -> String {
    let shown = names[..names.len().min(most)].join(", ");
    if names.len() > most { format!("{shown}, … ({} in all)", names.len()) } else { shown }
}

/// Merges warnings of the same kind about several files, unless `all` is set.
fn grouped(warnings: &[Warning], all: bool) -> Vec<String> {
    let alone = |warning: &Warning| format!("{}: {}", warning.path, warning.message);
    if all {
        return warnings.iter().map(alone).collect();
    }
    let mut kinds: BTreeMap<String, Vec<&Warning>> = BTreeMap::new();
    for warning in warnings {
        kinds.entry(kind(&warning.message)).or_default().push(warning);
    }
    let mut kinds: Vec<_> = kinds.into_values().collect();
    kinds.sort_by_key(|warnings| std::cmp::Reverse(warnings.len()));
    let said = |warnings: Vec<&Warning>| match warnings.as_slice() {
        [warning] => alone(warning),
        [first, rest @ ..] => {
            let all = first.message.as_str();
            let what = if rest.iter().all(|warning| warning.message == all) { all } else { subject(all) };
            let mut paths: Vec<&str> = warnings.iter().map(|warning| &*warning.path).collect();
            paths.dedup();
            format!("{} times: {what} ({})", warnings.len(), list(&paths, SHOWN))
        }
        [] => String::new(),
    };
    kinds.into_iter().map(said).collect()
}

/// The part of a warning before its details: up to the first colon, without a leading number.
fn subject(message: &str) -> &str {
    let words = message.split(": ").next().unwrap_or(message);
    words.trim_start_matches(|first: char| first.is_ascii_digit() || first == ' ')
}

/// The kind of a warning: its subject without quoted text and numbers.
fn kind(message: &str) -> String {
    let mut kind = String::new();
    let mut quoted = false;
    for character in subject(message).chars() {
        match character {
            '`' | '"' => quoted = !quoted,
            '0'..='9' => {}
            other if !quoted => kind.push(other),
            _ => {}
        }
    }
    kind
}

fn site_summary(site: &SiteReport, output: &Output) {
    let kept = match site.kept {
        0 => String::new(),
        kept => format!(", {kept} kept from the last run because the server failed"),
    };
    let skipped: usize = site.skipped.values().map(|skipped| skipped.count).sum();
    output.note(format!(
        "site     {STRONG}{}{STRONG:#} fetched, {STRONG}{}{STRONG:#} unchanged (304){kept}, {skipped} skipped, found by {}",
        site.fetched, site.unchanged, site.found_by
    ));
    for (reason, skipped) in &site.skipped {
        let examples = skipped.examples.join(", ");
        let dots = if skipped.count > skipped.examples.len() { ", …" } else { "" };
        output.note(format!("{FAINT}         {} {reason}: {examples}{dots}{FAINT:#}", skipped.count));
    }
    if site.more {
        output.warn(format!(
            "{} has more pages than the limits allow; raise --max-pages or --max-depth to read them",
            site.address
        ));
    }
}

fn passages(report: &Report) -> String {
    let start = format!("passages {STRONG}{}{STRONG:#}", report.chunks);
    if report.embedder == EmbedderId::none().to_string() {
        return format!("{start}, without vectors: search uses keywords only");
    }
    let resumed = match report.resumed {
        0 => String::new(),
        resumed => format!(" ({resumed} from an interrupted run)"),
    };
    let tokens = match report.embedded_tokens {
        0 => String::new(),
        tokens => format!(" ({tokens} tokens)"),
    };
    format!("{start}: {} embedded{tokens}, {} reused{resumed}", report.embedded, report.reused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(warnings: &[(&str, &str)], expected: &[&str]) {
        let warnings: Vec<Warning> =
            warnings.iter().map(|(path, message)| Warning::new(*path, *message)).collect();
        assert_eq!(grouped(&warnings, false), expected);
        assert_eq!(grouped(&warnings, true).len(), warnings.len());
    }

    #[test]
    fn warnings_of_the_same_kind_are_merged() {
        check(&[("a.md", "cannot be read")], &["a.md: cannot be read"]);
        check(
            &[("a.md", "broken"), ("b.md", "no tag `x` in line 3"), ("c.md", "no tag `y` in line 12")],
            &["2 times: no tag `x` in line 3 (b.md, c.md)", "a.md: broken"],
        );
        check(
            &[
                ("a.md", "3 files not found: x.rs and 2 more"),
                ("b.md", "12 files not found: y.rs and 11 more"),
            ],
            &["2 times: files not found (a.md, b.md)"],
        );
        let many: Vec<String> = (0..7).map(|number| format!("{number}.md")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "a partial")).collect();
        check(&many, &["7 times: a partial (0.md, 1.md, 2.md, 3.md, 4.md, … (7 in all))"]);
    }
}
