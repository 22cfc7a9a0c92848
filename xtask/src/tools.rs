//! What the tests need that cargo does not bring: other people's clients, a browser, PostgreSQL.
//!
//! The clients go to `target/test-tools`; Debian installs the others. As root,
//! or where `CI` or `DOCENT_CI` is set, what cannot be installed is a failure; on a
//! developer's machine it is left out, and said.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run;

const FOLDER: &str = "target/test-tools";
const REQUIREMENTS: &str = "tests/clients/requirements.txt";
const BROWSER: [&str; 2] = ["/usr/bin/chromium", "/usr/bin/chromedriver"];
const POSTGRES: &str = "/usr/lib/postgresql";

/// What it is called, the variable that makes the tests insist on it, and how to install it.
type Tool = (&'static str, &'static str, fn() -> Result<(), String>);

/// Prepares the tools; returns the variables that make the tests insist on them.
pub fn prepare() -> Result<Vec<&'static str>, String> {
    let tools: [Tool; 3] = [
        ("clients", "DOCENT_TEST_REQUIRE_CLIENTS", clients),
        ("browser", "DOCENT_TEST_REQUIRE_BROWSER", browser),
        ("database", "DOCENT_TEST_REQUIRE_POSTGRES", postgres),
    ];
    let required = is_root() || is_set("CI") || is_set("DOCENT_CI");
    let mut insist = Vec::new();
    for (name, variable, install) in tools {
        match install() {
            Ok(()) => insist.push(variable),
            Err(reason) if required => return Err(format!("the {name} of the tests: {reason}")),
            Err(reason) => eprintln!("   LEFT OUT: tests with the {name}: {reason}"),
        }
    }
    Ok(insist)
}

/// A Python of its own with the packages of `requirements.txt`.
fn clients() -> Result<(), String> {
    let wanted = std::fs::read(REQUIREMENTS).map_err(|error| format!("{REQUIREMENTS}: {error}"))?;
    let environment = format!("{FOLDER}/venv");
    let python = format!("{environment}/bin/python");
    let stamp = format!("{environment}/installed");
    let mark = fingerprint(&wanted);
    if Path::new(&python).exists() && std::fs::read_to_string(&stamp).is_ok_and(|last| last == mark) {
        return Ok(());
    }
    let make = || run(command("python3", &["-m", "venv", "--clear", &environment]));
    make().or_else(|_| {
        // Debian's Python comes without it.
        debian(&["python3-venv"])?;
        make()
    })?;
    let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS];
    run(command(&python, &quiet))?;
    std::fs::write(&stamp, mark).map_err(|error| format!("{stamp}: {error}"))
}

/// Chromium, its driver, and axe, which judges whether everybody can use a page.
fn browser() -> Result<(), String> {
    if !BROWSER.iter().all(|program| Path::new(program).exists()) {
        debian(&["chromium", "chromium-driver"])?;
    }
    if Path::new(FOLDER).join("node_modules/axe-core/axe.min.js").exists() {
        return Ok(());
    }
    if !starts("npm") {
        debian(&["npm"])?;
    }
    std::fs::create_dir_all(FOLDER).map_err(|error| format!("{FOLDER}: {error}"))?;
    run(command("npm", &["install", "--silent", "--no-audit", "--no-fund", "--prefix", FOLDER, "axe-core@4"]))
}

/// PostgreSQL's programs; each test starts a server of its own with them.
fn postgres() -> Result<(), String> {
    let installed = || {
        let versions = Path::new(POSTGRES).read_dir().into_iter().flatten().flatten();
        versions.map(|version| version.path()).any(|version| version.join("bin/initdb").exists())
    };
    if !installed() {
        debian(&["postgresql"])?;
    }
    if installed() { Ok(()) } else { Err(format!("{POSTGRES} has no version with initdb")) }
}

/// Installs packages of Debian, when we may.
fn debian(packages: &[&str]) -> Result<(), String> {
    if !starts("apt-get") {
        return Err(format!("{} must be installed by hand", packages.join(" and ")));
    }
    let install = [&["install", "-y", "-qq", "--no-install-recommends"], packages].concat();
    // A fresh machine has no lists of packages.
    for arguments in [&["update", "-qq"][..], &install] {
        let mut command = if is_root() {
            command("apt-get", arguments)
        } else {
            command("sudo", &[&["-n", "apt-get"], arguments].concat())
        };
        command.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        run(command)?;
    }
    Ok(())
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Whether a program is there.
pub fn starts(program: &str) -> bool {
    let mut command = command(program, &["--version"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Enough to notice a change.
fn fingerprint(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
