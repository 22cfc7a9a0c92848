//! Checks what crates forbid: `docent-core` and `docent-parse` do no input or output, neither themselves nor
//! through the crates they use, and the program contains no test double.
//!
//! Invariant: only what is compiled into a release counts, not dependencies of tests.

use std::path::PathBuf;
use std::process::Command;

/// Crates that access the network, the disk or a database.
const FORBIDDEN_CRATES: [&str; 14] = [
    "tokio", "mio", "socket2", "hyper", "reqwest", "ureq", "tonic", "sqlx", "rusqlite", "memmap2",
    "tempfile", "walkdir", "notify", "tantivy",
];

/// Items of the standard library that do the same.
const FORBIDDEN_PATHS: [&str; 9] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::env::",
    "std::time::Instant",
    "Instant::now",
    "SystemTime",
    "std::io::std",
    "println!",
];

/// Fails with the first thing that is forbidden.
pub fn check() -> Result<(), String> {
    uses_none_of("docent-core", &FORBIDDEN_CRATES)?;
    uses_none_of("docent", &["docent-testkit"])?;
    let mut folders: Vec<PathBuf> =
        ["crates/docent-core/src", "crates/docent-parse/src"].map(Into::into).into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text =
                std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            if let Some(found) = FORBIDDEN_PATHS.iter().find(|forbidden| text.contains(*forbidden)) {
                return Err(format!("{} uses {found}", path.display()));
            }
        }
    }
    Ok(())
}

/// Fails if the package, as it is released, depends on one of the crates.
fn uses_none_of(package: &str, forbidden: &[&str]) -> Result<(), String> {
    let output = Command::new("cargo")
        .args(["tree", "--locked", "-p", package, "-e", "normal", "--prefix", "none", "--format", "{p}"])
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let tree = String::from_utf8_lossy(&output.stdout);
    let mut names = tree.lines().map(|line| line.split(' ').next().unwrap_or_default());
    match names.find(|name| forbidden.contains(name)) {
        Some(name) => Err(format!("{package} depends on {name}")),
        None => Ok(()),
    }
}
