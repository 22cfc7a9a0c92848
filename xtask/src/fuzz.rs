//! Fuzzes every parser for a minute: `cargo xtask fuzz`, and the last step of `cargo xtask check --long`.
//!
//! Inputs start from `fuzz/seeds` and from what earlier runs added to `fuzz/corpus`. The same compiler that
//! builds the product is used: `RUSTC_BOOTSTRAP` enables its options for coverage and the address sanitizer,
//! so that no second toolchain is needed.
//!
//! Invariant: a panic, more than ten seconds for one page, or excessive memory is a failure, and the input is
//! kept in `fuzz/artifacts`.

use std::process::Command;

use crate::{installed, run as start, tools};

const TARGETS: [&str; 9] =
    ["markdown", "mdx", "mdbook", "html", "rst", "asciidoc", "notebook", "epub", "pdf"];

/// Time per target.
const SECONDS: &str = "-max_total_time=60";

/// Limits per page: ten seconds, and two gigabytes including the sanitizer's overhead. Pages are up to 32
/// KiB.
const BOUNDS: [&str; 3] = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=32768"];

/// Runs the given targets, or all of them; stops at the first failure.
pub fn run(targets: &[&str]) -> Result<(), String> {
    if let Some(unknown) = targets.iter().find(|target| !TARGETS.contains(target)) {
        return Err(format!("unknown target `{unknown}`; available targets: {}", TARGETS.join(", ")));
    }
    if !installed("fuzz") {
        return Err("cargo-fuzz is not installed (cargo install cargo-fuzz --locked)".to_owned());
    }
    // libFuzzer is written in C++ and compiled here.
    if !tools::starts("c++") {
        return Err("a C++ compiler is required (Debian: apt-get install g++)".to_owned());
    }
    for target in if targets.is_empty() { &TARGETS } else { targets } {
        eprintln!("── {target}");
        let corpus = format!("fuzz/corpus/{target}");
        std::fs::create_dir_all(&corpus).map_err(|error| format!("{corpus}: {error}"))?;
        let mut command = Command::new("cargo");
        command.args(["fuzz", "run", target, &corpus, &format!("fuzz/seeds/{target}"), "--", SECONDS]);
        command.args(BOUNDS).env("RUSTC_BOOTSTRAP", "1");
        start(command).map_err(|reason| format!("{target}: {reason}"))?;
    }
    Ok(())
}
