//! Runs `docent` in a clean environment with its own data folder.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

/// A user with nothing installed.
pub struct Docent {
    pub home: TempDir,
    variables: Vec<(String, String)>,
}

/// The output and exit code of a run.
pub struct Run {
    pub stdout: String,
    pub stderr: String,
    pub status: i32,
}

impl Docent {
    pub fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    /// Keyword search only, so that ingesting is fast.
    pub fn without_vectors() -> Self {
        Self::new().with("DOCENT_EMBEDDER__KIND", "none")
    }

    pub fn with(mut self, variable: &str, value: &str) -> Self {
        self.variables.push((variable.to_owned(), value.to_owned()));
        self
    }

    /// Writes a file below the home folder.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn index(&self) -> PathBuf {
        self.home.path().join("data/index")
    }

    /// The folder of the published generation.
    pub fn generation(&self) -> PathBuf {
        let name = std::fs::read_to_string(self.index().join("CURRENT")).unwrap();
        self.index().join(name.trim())
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_docent"));
        command.env_clear().current_dir(self.home.path());
        command.env("HOME", self.home.path()).env("DOCENT_DATA_DIR", self.home.path().join("data"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(arguments).output().unwrap())
    }

    /// Runs and also returns the peak memory in megabytes, as reported by the kernel.
    pub fn run_watched(&self, arguments: &[&str]) -> (Run, u64) {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let watching = std::thread::spawn(move || {
            let mut peak = 0;
            // The value disappears as soon as the process has ended, even before anyone waited for it.
            while let Some(kilobytes) = std::fs::read_to_string(&status).ok().and_then(|text| {
                let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
                line.split_whitespace().nth(1)?.parse::<u64>().ok()
            }) {
                peak = peak.max(kilobytes / 1024);
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            peak
        });
        let run = Run::of(child.wait_with_output().unwrap());
        (run, watching.join().unwrap())
    }

    /// Runs with these lines as input.
    pub fn run_with_input(&self, arguments: &[&str], lines: &str) -> Run {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        Run::of(child.wait_with_output().unwrap())
    }

    /// Runs and expects success; returns stdout.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let run = self.run(arguments);
        assert_eq!(run.status, 0, "{arguments:?}: {}", run.stderr);
        run.stdout
    }

    /// Runs with `--json` and expects success. For an ingest, skips the progress before the report.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        last_object(&self.ok(&[arguments, &["--json"]].concat()))
    }

    /// Runs and expects this exit code and this message, with the home folder shown as `~`.
    pub fn fails(&self, arguments: &[&str], status: i32, message: &str) {
        let run = self.run(arguments);
        let shown = run.stderr.replace(&*self.home.path().to_string_lossy(), "~");
        assert_eq!(shown.trim_end(), message, "{arguments:?}");
        assert_eq!(run.status, status, "{arguments:?}");
        assert_eq!(run.stdout, "", "{arguments:?}");
    }
}

/// A running server; it stops when dropped.
pub struct Served {
    /// `http://127.0.0.1:PORT`
    pub url: String,
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Docent {
    /// Serves on a free local port.
    pub fn serve(&self) -> Served {
        self.serve_as(|_| {})
    }

    /// The same, after `changed` has modified the command.
    pub fn serve_as(&self, changed: impl FnOnce(&mut Command)) -> Served {
        self.try_serve_as(changed).expect("the server exited before it was ready")
    }

    /// The same; nothing if the server exits before it is ready.
    pub fn try_serve_as(&self, changed: impl FnOnce(&mut Command)) -> Option<Served> {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        changed(&mut command);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(String::new()));
        let mut url = None;
        while url.is_none() {
            let Some(line) = lines.next() else {
                child.wait().unwrap();
                return None;
            };
            let line = line.unwrap();
            url = line
                .strip_prefix("serving on ")
                .map(|rest| rest.split('/').take(3).collect::<Vec<_>>().join("/"));
            said.lock().unwrap().push_str(&(line + "\n"));
        }
        let log = said.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                log.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        Some(Served { url: url.unwrap(), child, said })
    }
}

impl Served {
    /// The output on stderr so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Stops the server like a service manager and waits; returns whether it exited successfully.
    pub fn stop(&mut self) -> bool {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        self.child.wait().unwrap().success()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that runs until it is stopped; killed when dropped.
pub struct Running {
    child: Child,
    said: Arc<Mutex<String>>,
    reading: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let (lines, log) = (BufReader::new(child.stderr.take().unwrap()).lines(), said.clone());
        let reading = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                log.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        Self { child, said, reading: Some(reading) }
    }

    /// The output on stderr so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Its standard input.
    pub fn input(&mut self) -> &mut std::process::ChildStdin {
        self.child.stdin.as_mut().unwrap()
    }

    /// Waits for this text on stderr.
    pub fn wait_for(&self, text: &str) {
        let end = std::time::Instant::now() + TIMEOUT;
        while !self.said().contains(text) {
            let ended = self.reading.as_ref().is_none_or(|reading| reading.is_finished());
            assert!(!ended || self.said().contains(text), "exited before printing {text}: {}", self.said());
            assert!(std::time::Instant::now() < end, "timed out waiting for {text}: {}", self.said());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// The address of a server: `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        self.wait_for("serving on ");
        let said = self.said();
        said.split_once("serving on http://").unwrap().1.split('/').next().unwrap().to_owned()
    }

    pub fn signal(&self, name: &str) {
        let kill = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).output().unwrap();
        assert!(kill.status.success() || !kill.stderr.is_empty());
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the end; returns the exit code, or -1 for an unhandled signal.
    pub fn wait(&mut self) -> i32 {
        let status = self.child.wait().unwrap().code().unwrap_or(-1);
        if let Some(reading) = self.reading.take() {
            reading.join().unwrap();
        }
        status
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Timeout for anything that may be slow on a busy machine.
pub const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(120);

/// Waits for a condition.
pub fn wait_until(happened: impl Fn() -> bool) {
    let end = std::time::Instant::now() + TIMEOUT;
    while !happened() {
        assert!(std::time::Instant::now() < end, "timed out");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

impl Run {
    fn of(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            status: output.status.code().unwrap_or(-1),
        }
    }
}

/// The last JSON object in the output.
pub fn last_object(printed: &str) -> serde_json::Value {
    serde_json::Deserializer::from_str(printed).into_iter().last().unwrap().unwrap()
}

/// The public books and question sets, if they are next to the checkout; otherwise the test is skipped with a
/// message.
pub fn shared_data() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let found = std::env::var_os("DOCENT_TEST_DATA").map_or(folder, PathBuf::from).canonicalize().ok();
    if found.is_none() {
        docent_testkit::skipped(
            "its books and questions are not part of the repository; CONTRIBUTING.md says where they are from, \
             and DOCENT_TEST_DATA names the folder they are in",
        );
    }
    found
}
