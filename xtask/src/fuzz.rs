//! Every parser is fed with noise for a minute: `cargo xtask fuzz`, and the end of `cargo xtask check --long`.
//!
//! The noise starts from `fuzz/seeds` and from what earlier runs found worth keeping (`fuzz/corpus`).
//! The compiler is the one that builds the product: `RUSTC_BOOTSTRAP` lets it take the options of
//! coverage and of the address sanitizer, so that no second toolchain is needed.
//!
//! Invariant: a panic, ten seconds over one page, or memory without end is a failure, and the
//! input that did it stays in `fuzz/artifacts`.

use std::process::Command;

use crate::{installed, run as start, tools};

const TARGETS: [&str; 9] =
    ["markdown", "mdx", "mdbook", "html", "rst", "asciidoc", "notebook", "epub", "pdf"];

/// Of one target.
const SECONDS: &str = "-max_total_time=60";

/// What one page may cost: ten seconds, two gigabytes with the sanitizer's own. Pages are up to 32 KiB.
const BOUNDS: [&str; 3] = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=32768"];

/// Runs these targets, or all; the first failure ends it.
pub fn run(targets: &[&str]) -> Result<(), String> {
    if let Some(unknown) = targets.iter().find(|target| !TARGETS.contains(target)) {
        return Err(format!("there is no target `{unknown}`, only {}", TARGETS.join(", ")));
    }
    if !installed("fuzz") {
        return Err("cargo-fuzz is not installed (cargo install cargo-fuzz --locked)".to_owned());
    }
    // libFuzzer is C++ and compiled here.
    if !tools::starts("c++") {
        return Err("there is no C++ compiler (Debian: apt-get install g++)".to_owned());
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
