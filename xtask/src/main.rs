//! Development tasks; `cargo xtask check` runs everything that CI runs.
//!
//! Invariant: CI has no checks of its own.

mod cycles;
mod fuzz;
mod purity;
mod skipped;
mod tools;

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const USAGE: &str =
    "usage: cargo xtask check           formatting, lints, what crates and modules may use, tests, documentation, licenses
       cargo xtask check --long    the same, then fuzz every parser for a minute
       cargo xtask setup           install what the tests need (Chromium, PostgreSQL, Python clients)
       cargo xtask fuzz [TARGET…]  fuzz all parsers, or only the given ones";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let long: Step = ("fuzz targets, a minute each", || fuzz::run(&[]));
    match arguments.as_slice() {
        ["check"] => steps(&CHECKS),
        ["check", "--long"] => steps(&[&CHECKS[..], &[long]].concat()),
        ["setup"] => setup(),
        ["fuzz", targets @ ..] => match fuzz::run(targets) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                eprintln!("failed: {reason}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// A check and how to run it.
type Step = (&'static str, fn() -> Result<(), String>);

const CHECKS: [Step; 8] = [
    ("formatting", || cargo(&["fmt", "--all", "--check"])),
    ("modules do not import each other in circles", cycles::check),
    ("lints", || cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])),
    ("docent-core and docent-parse do no I/O; no test double is part of docent", purity::check),
    ("tests", tests),
    ("documentation examples", doctests),
    ("documentation", documentation),
    ("licenses and advisories", licenses),
];

fn steps(steps: &[Step]) -> ExitCode {
    let done = run_steps(steps);
    skipped::summary();
    done
}

fn run_steps(steps: &[Step]) -> ExitCode {
    for (name, step) in steps {
        eprintln!("── {name}");
        let start = Instant::now();
        if let Err(reason) = step() {
            eprintln!("failed: {name}: {reason}");
            return ExitCode::FAILURE;
        }
        eprintln!("   done in {:.0} s", start.elapsed().as_secs_f64());
    }
    ExitCode::SUCCESS
}

/// Installs what the tests need and reports what it installs.
fn setup() -> ExitCode {
    match tools::prepare() {
        Ok(_) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("failed: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn tests() -> Result<(), String> {
    let insist = tools::prepare()?;
    // Passing tests print nothing, so report here which Qdrant they use.
    match std::env::var("DOCENT_TEST_QDRANT_URL") {
        Ok(url) => eprintln!("   Qdrant: the test double and the real server at {url}"),
        Err(_) => eprintln!("   Qdrant: only the test double (DOCENT_TEST_QDRANT_URL adds a real server)"),
    }
    let mut command = Command::new("cargo");
    command.envs(insist.iter().map(|variable| (variable, "1")));
    command.env(skipped::VARIABLE, skipped::start()?);
    if installed("nextest") {
        command.args(["nextest", "run", "--workspace", "--locked"]);
    } else {
        eprintln!("   cargo-nextest is not installed (cargo install cargo-nextest); using cargo test");
        command.args(["test", "--workspace", "--locked"]);
    }
    run(command)
}

/// `cargo nextest` does not run them.
fn doctests() -> Result<(), String> {
    cargo(&["test", "--doc", "--workspace", "--locked", "--quiet"])
}

fn documentation() -> Result<(), String> {
    let mut command = Command::new("cargo");
    command
        .args(["doc", "--workspace", "--no-deps", "--locked", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings");
    run(command)
}

fn licenses() -> Result<(), String> {
    if installed("deny") {
        cargo(&["deny", "--locked", "check", "licenses", "bans", "sources"])?;
        // The advisory database must be downloaded; without network access this check is skipped.
        if cargo(&["deny", "fetch", "db"]).is_err() {
            eprintln!("   skipped the advisories check: the advisory database could not be fetched");
            return Ok(());
        }
        cargo(&["deny", "--locked", "check", "--disable-fetch", "advisories"])
    } else {
        eprintln!("   skipped: cargo-deny is not installed (cargo install cargo-deny)");
        Ok(())
    }
}

fn cargo(arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.args(arguments);
    run(command)
}

fn run(mut command: Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("{command:?} could not be started: {error}")),
    }
}

fn installed(subcommand: &str) -> bool {
    Command::new("cargo")
        .args([subcommand, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
