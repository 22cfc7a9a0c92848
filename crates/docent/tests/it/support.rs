//! Runs `docent` in a clean environment with a data folder of its own.

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

/// What a run printed and how it ended.
pub struct Run {
    pub stdout: String,
    pub stderr: String,
    pub status: i32,
}

impl Docent {
    pub fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    /// Search by keywords only: ingesting costs next to nothing.
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

    /// Runs and watches; the most memory it had, in megabytes, by the kernel's own mark.
    pub fn run_watched(&self, arguments: &[&str]) -> (Run, u64) {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let watching = std::thread::spawn(move || {
            let mut peak = 0;
            // The mark is gone as soon as the process has ended, also before anyone waited for it.
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

    /// Runs with these lines typed in.
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

    /// Runs with `--json` and expects success; an ingest says its progress before the report.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        last_object(&self.ok(&[arguments, &["--json"]].concat()))
    }

    /// Runs and expects this status and this message, with the home folder shown as `~`.
    pub fn fails(&self, arguments: &[&str], status: i32, message: &str) {
        let run = self.run(arguments);
        let shown = run.stderr.replace(&*self.home.path().to_string_lossy(), "~");
        assert_eq!(shown.trim_end(), message, "{arguments:?}");
        assert_eq!(run.status, status, "{arguments:?}");
        assert_eq!(run.stdout, "", "{arguments:?}");
    }
}

/// A server that stops when dropped.
pub struct Served {
    /// `http://127.0.0.1:PORT`
    pub url: String,
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Docent {
    /// Serves on a free port of this machine.
    pub fn serve(&self) -> Served {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(String::new()));
        let mut url = None;
        while url.is_none() {
            let line = lines.next().expect("the server ended before it served").unwrap();
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
        Served { url: url.unwrap(), child, said }
    }
}

impl Served {
    /// What it printed on stderr so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Asks it to stop, as a service manager does, and waits; returns whether it ended well.
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

impl Run {
    fn of(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            status: output.status.code().unwrap_or(-1),
        }
    }
}

/// The last object of what was printed.
pub fn last_object(printed: &str) -> serde_json::Value {
    serde_json::Deserializer::from_str(printed).into_iter().last().unwrap().unwrap()
}

/// The public books and question sets, when they lie beside the checkout.
pub fn shared_data() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let found = folder.canonicalize().ok();
    if found.is_none() {
        eprintln!("skipped: there is no shared/data beside the checkout");
    }
    found
}
