//! Installs what the tests need beyond cargo: client libraries, site generators, a trace collector, a browser,
//! PostgreSQL, nginx.
//!
//! Client libraries, site generators and the collector go to `target/test-tools`; the others are installed with Debian's apt.
//!
//! Invariant: as root, or if `CI` or `DOCENT_CI` is set, a tool that cannot be installed is a failure; on a
//! developer's machine its tests are skipped with a message.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run;

const FOLDER: &str = "target/test-tools";
const REQUIREMENTS: &str = "tests/clients/requirements.txt";
/// The site generators that the packages in `integrations/` are tested with.
const INTEGRATIONS: &str = "crates/docent/tests/fixtures/integrations";
const BROWSER: [&str; 2] = ["/usr/bin/chromium", "/usr/bin/chromedriver"];
const POSTGRES: &str = "/usr/lib/postgresql";
const NGINX: &str = "/usr/sbin/nginx";

/// An OpenTelemetry collector as a Python package.
const COLLECTOR: &str = "rotel==0.0.1a15";

/// The name of a tool, the variable that makes its tests mandatory, and how to install it.
type Tool = (&'static str, &'static str, fn() -> Result<(), String>);

/// Installs the tools; returns the variables that make their tests mandatory.
pub fn prepare() -> Result<Vec<&'static str>, String> {
    let tools: [Tool; 6] = [
        ("clients", "DOCENT_TEST_REQUIRE_CLIENTS", clients),
        ("collector", "DOCENT_TEST_REQUIRE_COLLECTOR", collector),
        ("browser", "DOCENT_TEST_REQUIRE_BROWSER", browser),
        ("site generators", "DOCENT_TEST_REQUIRE_INTEGRATIONS", integrations),
        ("database", "DOCENT_TEST_REQUIRE_POSTGRES", postgres),
        ("proxy", "DOCENT_TEST_REQUIRE_PROXY", nginx),
    ];
    let required = is_root() || is_set("CI") || is_set("DOCENT_CI");
    let mut insist = Vec::new();
    for (name, variable, install) in tools {
        match install() {
            Ok(()) => insist.push(variable),
            Err(reason) if required => return Err(format!("cannot install the {name}: {reason}")),
            Err(reason) => eprintln!("   SKIPPED: tests that need the {name}: {reason}"),
        }
    }
    Ok(insist)
}

/// Creates a Python environment with the packages in `requirements.txt`.
fn clients() -> Result<(), String> {
    let wanted = std::fs::read(REQUIREMENTS).map_err(|error| format!("{REQUIREMENTS}: {error}"))?;
    let environment = format!("{FOLDER}/venv");
    let python = format!("{environment}/bin/python");
    let stamp = format!("{environment}/installed");
    let mark = fingerprint(&wanted);
    if Path::new(&python).exists() && std::fs::read_to_string(&stamp).is_ok_and(|last| last == mark) {
        return Ok(());
    }
    python_packages(REQUIREMENTS, &environment)?;
    std::fs::write(&stamp, mark).map_err(|error| format!("{stamp}: {error}"))
}

/// Creates a Python environment with these packages.
fn python_packages(requirements: &str, environment: &str) -> Result<(), String> {
    eprintln!("   installing the packages of {requirements} into {environment}");
    let make = || run(command("python3", &["-m", "venv", "--clear", environment]));
    make().or_else(|_| {
        // Debian's Python does not include `venv`.
        debian(&["python3-venv"])?;
        make()
    })?;
    let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements];
    run(command(&format!("{environment}/bin/python"), &quiet))
}

/// Site generators from npm and PyPI, in the versions of the lock files.
fn integrations() -> Result<(), String> {
    let folder = format!("{FOLDER}/integrations");
    let stamp = format!("{folder}/installed");
    let mut wanted = Vec::new();
    std::fs::create_dir_all(&folder).map_err(|error| format!("{folder}: {error}"))?;
    for name in ["package.json", "package-lock.json", "requirements.txt"] {
        let from = format!("{INTEGRATIONS}/{name}");
        wanted.extend(std::fs::read(&from).map_err(|error| format!("{from}: {error}"))?);
        std::fs::copy(&from, format!("{folder}/{name}")).map_err(|error| format!("{from}: {error}"))?;
    }
    let mark = fingerprint(&wanted);
    if std::fs::read_to_string(&stamp).is_ok_and(|last| last == mark) {
        return Ok(());
    }
    if !starts("npm") {
        debian(&["npm"])?;
    }
    eprintln!("   installing the packages of {INTEGRATIONS}/package-lock.json into {folder}");
    let npm = ["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", &folder];
    run(command("npm", &npm))?;
    python_packages(&format!("{INTEGRATIONS}/requirements.txt"), &format!("{folder}/venv"))?;
    std::fs::write(&stamp, mark).map_err(|error| format!("{stamp}: {error}"))
}

/// A collector that traces are sent to. Only its program is used, which needs no other package.
fn collector() -> Result<(), String> {
    let folder = format!("{FOLDER}/collector");
    let stamp = format!("{folder}/installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|last| last == COLLECTOR) {
        return Ok(());
    }
    eprintln!("   installing {COLLECTOR} into {folder}");
    let python = format!("{FOLDER}/venv/bin/python");
    let python = if Path::new(&python).exists() { python.as_str() } else { "python3" };
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", "--no-deps"];
    run(command(python, &[&pip[..], &["--target", &folder, COLLECTOR]].concat()))?;
    std::fs::write(&stamp, COLLECTOR).map_err(|error| format!("{stamp}: {error}"))
}

/// Chromium, its driver, and axe, which checks the accessibility of a page.
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
    eprintln!("   installing axe-core into {FOLDER}");
    run(command("npm", &["install", "--silent", "--no-audit", "--no-fund", "--prefix", FOLDER, "axe-core@4"]))
}

/// The PostgreSQL programs; each test starts its own server with them.
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

/// nginx; each test starts its own.
fn nginx() -> Result<(), String> {
    if !Path::new(NGINX).exists() {
        debian(&["nginx-light"])?;
    }
    if Path::new(NGINX).exists() { Ok(()) } else { Err(format!("there is no {NGINX}")) }
}

/// Installs Debian packages if we have permission.
fn debian(packages: &[&str]) -> Result<(), String> {
    if !starts("apt-get") {
        return Err(format!("please install {}", packages.join(" and ")));
    }
    eprintln!("   installing {} (apt-get)", packages.join(", "));
    let install = [&["install", "-y", "-qq", "--no-install-recommends"], packages].concat();
    // A fresh machine has no package lists.
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

/// Whether a program is installed.
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

/// A checksum that is good enough to detect changes.
fn fingerprint(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
