//! Reports tests that cannot run on this machine.
//!
//! Invariant: no test is skipped silently.

use std::fs::OpenOptions;
use std::io::Write;

/// Reports that the current test is skipped, why, and what to do about it. `cargo xtask check` passes a file
/// in `DOCENT_TEST_SKIPPED` and prints its contents at the end.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let line = format!("skipped: {}: {reason}\n", thread.name().unwrap_or("a test"));
    // If even this fails, nothing else can be done.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("DOCENT_TEST_SKIPPED")
        && let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path)
    {
        let _ = file.write_all(line.as_bytes());
    }
}
