//! Third-party clients against the real server: the scripts in `tests/clients`.
//!
//! They run with the Python that `cargo xtask check` installs in `target/test-tools/venv`, or with
//! `DOCENT_TEST_PYTHON`. Without one they are skipped, unless `DOCENT_TEST_REQUIRE_CLIENTS` is set.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

#[allow(dead_code)]
#[path = "it/support.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::Docent;

#[test]
fn the_openai_package_works_with_the_server() {
    let Some(script) = Script::found("openai_client.py") else { return };
    let open = Docent::new().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "0");
    let served = open.serve();
    let locked = Docent::new().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "3");
    let key = lock(&locked);
    let locked_served = locked.serve();
    script
        .with("DOCENT_TEST_URL", &served.url)
        .with("DOCENT_TEST_LOCKED_URL", &locked_served.url)
        .with("DOCENT_TEST_KEY", &key)
        .passes();
}

#[test]
fn the_mcp_package_works_with_the_server() {
    let Some(script) = Script::found("mcp_client.py") else { return };
    // More pages than fit into one list response.
    let docent = Docent::without_vectors().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "0");
    for number in 1..=120 {
        let text = format!(
            "# Gearbox {number}\n\nGearbox {number} needs {number} litres of oil and a new seal every year.\n"
        );
        docent.write(&format!("book/workshop/gearbox-{number:03}.md"), &text);
    }
    docent.ok(&["ingest", "book"]);
    let served = docent.serve();
    let locked = Docent::without_vectors();
    let key = lock(&locked);
    let locked_served = locked.serve();
    script
        .with("DOCENT_TEST_URL", &served.url)
        .with("DOCENT_TEST_LOCKED_URL", &locked_served.url)
        .with("DOCENT_TEST_KEY", &key)
        .with("DOCENT_TEST_HOME", docent.home.path().to_str().unwrap())
        .with("DOCENT_TEST_PROGRAM", env!("CARGO_BIN_EXE_docent"))
        .passes();
}

#[test]
fn the_server_conforms_to_its_openapi_description() {
    let Some(script) = Script::found("schema.py") else { return };
    let docent = Docent::new().with("DOCENT_SERVE__REQUESTS_PER_MINUTE", "0");
    let served = docent.serve();
    script.with("DOCENT_TEST_URL", &served.url).passes();
    let said = served.said();
    assert!(!said.contains("panicked"), "{said}");
}

/// Creates a key and adds the printed settings; returns the key.
fn lock(docent: &Docent) -> String {
    let made = docent.run(&["key", "tester"]);
    let settings = made.stderr.find("[[serve.keys]]").expect("the command prints the settings");
    docent.write("docent.toml", &made.stderr[settings..]);
    made.stdout.trim().to_owned()
}

/// A script and the Python to run it with.
struct Script {
    command: Command,
}

impl Script {
    /// Returns nothing, with a message, if there is no Python to run it with.
    fn found(name: &str) -> Option<Self> {
        let python = std::env::var_os("DOCENT_TEST_PYTHON").map_or_else(prepared, PathBuf::from);
        if !python.exists() {
            let missing = format!("there is no {}; `cargo xtask check` prepares it", python.display());
            assert!(std::env::var_os("DOCENT_TEST_REQUIRE_CLIENTS").is_none(), "{missing}");
            docent_backends::testing::skipped(&format!("{name}: {missing}"));
            return None;
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients");
        let mut command = Command::new(python);
        // Leave no files behind in the checkout.
        command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(&folder);
        if name != "schema.py" {
            command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis"]);
        }
        command.arg(name);
        Some(Self { command })
    }

    fn with(mut self, variable: &str, value: &str) -> Self {
        self.command.env(variable, value);
        self
    }

    fn passes(mut self) {
        let output = self.command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?} failed\n{said}{complained}", self.command);
        eprintln!("{said}");
    }
}

/// The Python that `cargo xtask check` installs.
fn prepared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-tools/venv/bin/python")
}
