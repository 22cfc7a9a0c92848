//! Summarizes which tests were skipped, and why.
//!
//! Test runners hide the output of passing tests, so tests that cannot run also append a line to a file.
//!
//! Invariant: no test is skipped silently.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The environment variable with the path of the file.
pub const VARIABLE: &str = "DOCENT_TEST_SKIPPED";

fn path() -> PathBuf {
    std::env::temp_dir().join(format!("docent-skipped-{}", std::process::id()))
}

/// Creates an empty file. Each skipped test appends a line: `skipped: TEST: why`.
pub fn start() -> Result<PathBuf, String> {
    let path = path();
    std::fs::write(&path, "").map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Prints the number of skipped tests by reason.
pub fn summary() {
    let Ok(lines) = std::fs::read_to_string(path()) else { return };
    let _ = std::fs::remove_file(path());
    eprint!("{}", summary_of(&lines));
}

fn summary_of(lines: &str) -> String {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in lines.lines() {
        let Some((test, reason)) = line.strip_prefix("skipped: ").and_then(|line| line.split_once(": "))
        else {
            continue;
        };
        let tests = reasons.entry(reason).or_default();
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    let total: usize = reasons.values().map(Vec::len).sum();
    let mut summary = format!("── {total} tests skipped\n");
    for (reason, tests) in reasons {
        summary.push_str(&format!("   {} ({}): {reason}\n", tests.join(", "), tests.len()));
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::summary_of;

    #[test]
    fn skipped_tests_are_counted_by_reason() {
        assert_eq!(summary_of(""), "── 0 tests skipped\n");
        let lines = "skipped: books::all: no data; see CONTRIBUTING.md\nskipped: eval::set: no data; see CONTRIBUTING.md\n\
                     skipped: books::all: no data; see CONTRIBUTING.md\nnoise\nskipped: disk::full: not root\n";
        assert_eq!(
            summary_of(lines),
            "── 3 tests skipped\n   books::all, eval::set (2): no data; see CONTRIBUTING.md\n   \
             disk::full (1): not root\n"
        );
    }
}
