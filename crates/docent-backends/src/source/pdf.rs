//! Parses PDFs in child processes.
//!
//! A PDF of a few kilobytes can require gigabytes of memory or loop forever, and no library limits either. A
//! child process has an address-space limit and a deadline, and this process survives if it dies. A child
//! parses many files, one after another, and is replaced after a failure.
//!
//! Invariant: a file never exceeds the memory and time limits here, and no child keeps running after its
//! [`PdfParser`] is dropped.

mod child;
pub mod drawing;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use docent_parse::document::Parsed;
use docent_parse::pdf::parse_pdf;
use tokio_util::sync::CancellationToken;

use self::child::Child;
pub use self::child::work;

/// Maximum time for one file. A book of a thousand pages takes seconds.
const PARSE_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum file size in bytes. Larger files are collections of scans.
const LARGEST: usize = 512 << 20;

/// Memory limit of a child in bytes, in addition to the file itself.
const MEMORY: u64 = 1 << 30;

/// Maximum number of children; each may use all of its memory.
const MOST_CHILDREN: usize = 4;

/// Stack size in bytes; nested drawings need a deep stack.
const STACK: usize = 32 << 20;

/// How often a waiting parse checks whether it was cancelled.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A parser for PDFs.
#[derive(Debug, Clone, Default)]
pub struct PdfParser(Option<Arc<Children>>);

/// How a child is started.
#[derive(Debug)]
struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
}

#[derive(Debug)]
struct Children {
    program: Program,
    timeout: Duration,
    pool: Mutex<Pool>,
    /// Notified when a child ended or became idle.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Child>,
    /// Number of idle and busy children.
    running: usize,
}

/// The path of the running program, to start it again as a child.
pub fn this_program() -> io::Result<PathBuf> {
    // The program's file may have been replaced by a newer version since it was started.
    let own = PathBuf::from("/proc/self/exe");
    if own.exists() { Ok(own) } else { std::env::current_exe() }
}

impl PdfParser {
    /// Parses in child processes that run the program at `path`, which must call [`work`] when started with
    /// these arguments. The default parser ([`PdfParser::default`]) uses a thread of this process instead: it
    /// has no memory limit, and the thread keeps running after the deadline.
    pub fn in_processes(path: PathBuf, arguments: Vec<OsString>) -> Self {
        Self::with_timeout(path, arguments, PARSE_TIMEOUT)
    }

    fn with_timeout(path: PathBuf, arguments: Vec<OsString>, timeout: Duration) -> Self {
        let program = Program { path, arguments };
        let (pool, changed) = (Mutex::default(), Condvar::new());
        Self(Some(Arc::new(Children { program, timeout, pool, changed })))
    }

    /// Parses a PDF. An error is the reason why the file is skipped.
    pub(super) fn parse(&self, bytes: Vec<u8>, stop: &CancellationToken) -> Result<Parsed, String> {
        if bytes.len() > LARGEST {
            return Err(format!("larger than {} MB; skipped", LARGEST >> 20));
        }
        match &self.0 {
            Some(children) => children.parse(&bytes, stop),
            None => on_a_thread(bytes),
        }
    }
}

impl Children {
    fn parse(&self, bytes: &[u8], stop: &CancellationToken) -> Result<Parsed, String> {
        let Some(child) = self.take(stop) else { return Err("cancelled; skipped".to_owned()) };
        let mut child = match child {
            Ok(child) => child,
            Err(error) => {
                self.put(None);
                return Err(format!("cannot be read: the PDF parser failed to start: {error}"));
            }
        };
        let parsed = self.parse_in(&mut child, bytes, stop);
        // A child that failed is dropped, which kills it.
        self.put(parsed.is_ok().then_some(child));
        parsed
    }

    fn parse_in(&self, child: &mut Child, bytes: &[u8], stop: &CancellationToken) -> Result<Parsed, String> {
        let deadline = Instant::now() + self.timeout;
        if child.send(bytes).is_err() {
            return Err(child.end_reason());
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match child.answers.recv_timeout(left.min(STOP_CHECK_INTERVAL)) {
                Ok(answer) => {
                    return serde_json::from_slice(&answer).map_err(|_| "damaged; skipped".to_owned());
                }
                Err(RecvTimeoutError::Disconnected) => return Err(child.end_reason()),
                Err(RecvTimeoutError::Timeout) if stop.is_cancelled() => {
                    return Err("cancelled; skipped".to_owned());
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Err(format!("not parsed within {} s; skipped", self.timeout.as_secs()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// An idle child, or a new one; waits while there are too many. `None` if cancelled.
    fn take(&self, stop: &CancellationToken) -> Option<io::Result<Child>> {
        let mut pool = self.pool();
        loop {
            if stop.is_cancelled() {
                return None;
            }
            if let Some(child) = pool.idle.pop() {
                return Some(Ok(child));
            }
            if pool.running < MOST_CHILDREN {
                pool.running += 1;
                drop(pool);
                return Some(Child::start(&self.program));
            }
            let waited = self.changed.wait_timeout(pool, STOP_CHECK_INTERVAL);
            pool = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns a child to the pool; `None` if it ended.
    fn put(&self, child: Option<Child>) {
        let mut pool = self.pool();
        match child {
            Some(child) => pool.idle.push(child),
            None => pool.running -= 1,
        }
        self.changed.notify_one();
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For programs that cannot start child processes.
fn on_a_thread(bytes: Vec<u8>) -> Result<Parsed, String> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name("pdf".to_owned()).stack_size(STACK).spawn(move || {
        // After a timeout, the receiver is gone.
        let _ = sender.send(parse_pdf(&bytes));
    });
    match thread.map(|_| receiver.recv_timeout(PARSE_TIMEOUT)) {
        Ok(Ok(parsed)) => Ok(parsed),
        Ok(Err(RecvTimeoutError::Timeout)) => {
            Err(format!("not parsed within {} s; skipped", PARSE_TIMEOUT.as_secs()))
        }
        Ok(Err(RecvTimeoutError::Disconnected)) => Err("damaged; skipped".to_owned()),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parser(script: &str, timeout: Duration) -> PdfParser {
        let arguments = ["-c", script].map(OsString::from).to_vec();
        PdfParser::with_timeout(PathBuf::from("/bin/sh"), arguments, timeout)
    }

    fn parse(parser: &PdfParser) -> Result<Parsed, String> {
        parser.parse(b"%PDF".to_vec(), &CancellationToken::new())
    }

    #[cfg(unix)]
    #[test]
    fn a_child_that_does_not_answer_is_killed_at_the_deadline() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("pid");
        let script = format!("echo $$ > {}; exec tail -f /dev/null", name.display());
        let slow = parser(&script, Duration::from_secs(2));
        assert_eq!(parse(&slow), Err("not parsed within 2 s; skipped".to_owned()));
        let pid = std::fs::read_to_string(name).unwrap();
        assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "the child is gone");
    }

    #[cfg(unix)]
    #[test]
    fn a_child_that_dies_fails_only_its_file() {
        let dying = parser("kill -ABRT $$", PARSE_TIMEOUT);
        for _ in 0..2 * MOST_CHILDREN {
            let reason = parse(&dying).unwrap_err();
            assert!(reason.starts_with("needs more than 1024 MB of memory"), "{reason}");
        }
        assert_eq!(parse(&parser("exit 1", PARSE_TIMEOUT)), Err("damaged; skipped".to_owned()));
        let missing = PdfParser::in_processes(PathBuf::from("/does/not/exist"), Vec::new());
        assert!(parse(&missing).unwrap_err().contains("failed to start"));
    }

    #[cfg(unix)]
    #[test]
    fn a_cancelled_parse_returns_an_error() {
        let stop = CancellationToken::new();
        stop.cancel();
        let slow = parser("exec tail -f /dev/null", PARSE_TIMEOUT);
        assert!(slow.parse(Vec::new(), &stop).is_err());
    }
}
