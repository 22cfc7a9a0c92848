//! Draws pages of PDFs, each in a process of its own.
//!
//! A user waits for the page, and anyone who may read the book can request it, so the limits are tighter than those of
//! an ingest.
//!
//! Invariant: a drawing never exceeds the memory, time and size limits here, and its process never outlives
//! [`PdfDrawer::draw`].

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use docent_parse::pdf::drawing::draw_page;
pub use docent_parse::pdf::drawing::{Area, Drawing, areas};

use super::STACK;
use super::child::limit_memory;

/// Maximum time for one page.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Memory limit of the process in bytes, in addition to the file itself.
const MEMORY: u64 = 512 << 20;

/// Maximum size of a drawing with its letters, in bytes.
const LARGEST: u64 = 8 << 20;

/// Draws pages of PDFs in child processes.
#[derive(Debug, Clone)]
pub struct PdfDrawer {
    program: PathBuf,
    arguments: Vec<OsString>,
    timeout: Duration,
}

impl PdfDrawer {
    /// Starts the program at `program` for each page, with these arguments, the path of the file and the number of the
    /// page. The program must then call [`work`] with the last two.
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments, timeout: TIMEOUT }
    }

    /// Draws a page; the first has the number 1. `None` if there is no such page, or if it cannot be drawn within the
    /// limits. An error means that the process could not be started.
    pub fn draw(&self, file: &Path, page: usize) -> io::Result<Option<Drawing>> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(file).arg(page.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let Some(output) = process.stdout.take() else { return Ok(None) };
        let (sender, answers) = mpsc::channel();
        let reading = std::thread::Builder::new().name("pdf drawing".to_owned()).spawn(move || {
            let mut answer = Vec::new();
            let read = output.take(LARGEST + 1).read_to_end(&mut answer);
            // After the deadline, the receiver is gone.
            let _ = sender.send(read.map(|_| answer));
        });
        let answer = reading.map(|_| answers.recv_timeout(self.timeout));
        let _ = process.kill();
        process.wait()?;
        // A larger answer is cut off, and so is not JSON.
        Ok(answer?.ok().and_then(Result::ok).and_then(|answer| serde_json::from_slice(&answer).ok()))
    }
}

/// The child's end: draws a page and writes it to standard output as JSON.
pub fn work(file: &Path, page: usize) -> ExitCode {
    let size = std::fs::metadata(file).map_or(0, |known| known.len());
    limit_memory(MEMORY + 2 * size);
    limit_time();
    let Ok(bytes) = std::fs::read(file) else { return ExitCode::FAILURE };
    let drawing = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || draw_page(bytes, page))
        .map(|thread| thread.join());
    let Ok(Ok(Some(drawing))) = drawing else { return ExitCode::FAILURE };
    let written = serde_json::to_vec(&drawing).map_err(io::Error::from);
    match written.and_then(|bytes| io::stdout().lock().write_all(&bytes)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Limits the processor time, for a process whose parent was killed.
#[cfg(unix)]
fn limit_time() {
    let _ = rlimit::setrlimit(rlimit::Resource::CPU, TIMEOUT.as_secs(), TIMEOUT.as_secs());
}

#[cfg(not(unix))]
fn limit_time() {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn drawn(script: &str, timeout: Duration) -> io::Result<Option<Drawing>> {
        let arguments = ["-c", script].map(OsString::from).to_vec();
        let drawer = PdfDrawer { timeout, ..PdfDrawer::new(PathBuf::from("/bin/sh"), arguments) };
        drawer.draw(Path::new("a.pdf"), 1)
    }

    #[test]
    fn a_drawing_is_read_from_the_answer_of_the_process() {
        // The path and the page are the arguments of the script.
        let answer =
            r#"[ "$0 $1" = "a.pdf 1" ] && echo '{"svg":"<svg/>","width":1,"height":2,"letters":[]}'"#;
        let drawing = drawn(answer, TIMEOUT).unwrap().unwrap();
        assert_eq!((drawing.svg.as_str(), drawing.height), ("<svg/>", 2.0));
    }

    #[test]
    fn a_process_that_fails_says_too_much_or_never_ends_draws_nothing() {
        for script in ["exit 1", "kill -ABRT $$", "echo nonsense", "cat /dev/zero"] {
            assert_eq!(drawn(script, TIMEOUT).unwrap(), None, "{script}");
        }
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("pid");
        let endless = format!("echo $$ > {}; exec tail -f /dev/null", name.display());
        assert_eq!(drawn(&endless, Duration::from_secs(2)).unwrap(), None);
        let pid = std::fs::read_to_string(name).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "the process is gone");
        let missing = PdfDrawer::new(PathBuf::from("/does/not/exist"), Vec::new());
        assert!(missing.draw(Path::new("a.pdf"), 1).is_err());
    }
}
