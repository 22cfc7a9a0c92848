//! Third-party programs against the real server: the scripts in `tests/clients`, and a trace collector.
//!
//! The scripts run with the Python that `cargo xtask check` installs in `target/test-tools/venv`, or with
//! `DOCENT_TEST_PYTHON`. Without one they are skipped, unless `DOCENT_TEST_REQUIRE_CLIENTS` is set.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

#[allow(dead_code)]
#[path = "it/support.rs"]
mod support;

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

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

#[test]
fn traces_arrive_at_an_opentelemetry_collector() {
    let Some(collector) = Collector::start() else { return };
    let docent = Docent::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    let mut served = docent.serve();
    let asking = async {
        let ask = reqwest::Client::new().post(format!("{}/api/v1/ask", served.url));
        let body = serde_json::json!({ "query": "What is a ROS 2 node?", "stream": true });
        let response = ask.json(&body).send().await.unwrap();
        let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        response.text().await.unwrap();
        id
    };
    let id = tokio::runtime::Runtime::new().unwrap().block_on(asking);
    // The last spans are sent when the server stops.
    assert!(served.stop(), "{}", served.said());
    let said = || collector.said();
    let spans = ["service.name: Str(docent)", "Name           : request", "Name           : turn"];
    support::wait_until(|| spans.iter().all(|span| said().contains(span)) && said().contains(&id));
    for part in ["outcome: Str(completed)", "state: Str(retrieving)"] {
        assert!(said().contains(part), "{part}: {}", said());
    }
}

/// A collector that prints what it receives; it ends when this is dropped.
struct Collector {
    endpoint: String,
    child: Child,
    folder: tempfile::TempDir,
}

impl Collector {
    /// Returns nothing, with a message, if the collector is not installed.
    fn start() -> Option<Self> {
        let program = tools().join("collector/rotel/rotel-agent");
        if !program.exists() {
            let missing = format!("there is no {}; `cargo xtask check` installs it", program.display());
            assert!(std::env::var_os("DOCENT_TEST_REQUIRE_COLLECTOR").is_none(), "{missing}");
            docent_testkit::skipped(&missing);
            return None;
        }
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let (http, grpc) = (free(), free());
        let folder = tempfile::tempdir().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(program);
        command.args(["start", "--exporter", "blackhole", "--debug-log", "traces"]);
        command.args(["--debug-log-verbosity", "detailed", "--otlp-http-endpoint", &http]);
        command.args(["--otlp-grpc-endpoint", &grpc, "--pid-file"]).arg(folder.path().join("pid"));
        command.env_clear().current_dir(folder.path());
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        support::wait_until(|| TcpStream::connect(&http).is_ok());
        Some(Self { endpoint: format!("http://{http}"), child, folder })
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
            docent_testkit::skipped(&format!("{name}: {missing}"));
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
    tools().join("venv/bin/python")
}

/// Where `cargo xtask check` installs tools.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-tools")
}
