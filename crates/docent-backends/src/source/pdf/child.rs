//! A process that parses PDFs: both ends of its pipes.
//!
//! A message is its length in eight bytes, followed by its bytes. The parent sends a PDF, and the child
//! answers with the parsed document as JSON.
//!
//! Invariant: a child exits when its parent does, because its input is closed then.

use std::io::{self, Read, Write};
use std::process::{ChildStdin, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;

use docent_parse::pdf::parse_pdf;

use super::{LARGEST, MEMORY, Program, STACK};

/// The parent's end.
#[derive(Debug)]
pub(super) struct Child {
    process: std::process::Child,
    input: ChildStdin,
    /// Its answers; disconnected when the child has ended.
    pub(super) answers: mpsc::Receiver<Vec<u8>>,
}

impl Child {
    pub(super) fn start(program: &Program) -> io::Result<Self> {
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let (Some(input), Some(mut output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        let (sender, answers) = mpsc::channel();
        let child = Self { process, input, answers };
        std::thread::Builder::new().name("pdf answers".to_owned()).spawn(move || {
            while let Ok(answer) = receive(&mut output, |_| Ok(())) {
                if sender.send(answer).is_err() {
                    break;
                }
            }
        })?;
        Ok(child)
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        send(&mut self.input, bytes)
    }

    /// Why the child ended, as the reason why the current file is skipped.
    pub(super) fn end_reason(&mut self) -> String {
        // The child closed its pipes, so it has exited or is about to.
        match self.process.wait() {
            Ok(status) if was_killed(status) => {
                format!("needs more than {} MB of memory, or is damaged; skipped", MEMORY >> 20)
            }
            _ => "damaged; skipped".to_owned(),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&status).is_some()
}

#[cfg(not(unix))]
fn was_killed(status: ExitStatus) -> bool {
    !status.success()
}

/// The child's end: parses PDFs from standard input until it is closed.
pub fn work() -> ExitCode {
    limit_memory(MEMORY);
    let (sender, requests) = mpsc::channel::<Vec<u8>>();
    let reading = std::thread::Builder::new().name("requests".to_owned()).spawn(move || {
        let mut input = io::stdin().lock();
        let with_file = |length| {
            limit_memory(MEMORY + 2 * length as u64);
            Ok(())
        };
        while let Ok(request) = receive(&mut input, with_file) {
            if sender.send(request).is_err() {
                break;
            }
        }
        // The parent is gone, so the result is not needed any more.
        std::process::exit(0);
    });
    let parsing = std::thread::Builder::new().name("pdf".to_owned()).stack_size(STACK).spawn(move || {
        let mut output = io::stdout().lock();
        requests.iter().try_for_each(|bytes| {
            let parsed = parse_pdf(&bytes);
            drop(bytes);
            send(&mut output, &serde_json::to_vec(&parsed)?)
        })
    });
    match (reading, parsing.map(std::thread::JoinHandle::join)) {
        (Ok(_), Ok(Ok(Ok(())))) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Limits the memory of this process, in bytes.
#[cfg(unix)]
pub(super) fn limit_memory(bound: u64) {
    use rlimit::Resource;
    // If the system does not support this limit, there is still the deadline.
    let _ = rlimit::getrlimit(Resource::AS)
        .and_then(|(_, hard)| rlimit::setrlimit(Resource::AS, bound.min(hard), hard));
    let _ = rlimit::setrlimit(Resource::CORE, 0, 0);
}

#[cfg(not(unix))]
pub(super) fn limit_memory(_bound: u64) {}

fn send(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    output.write_all(&(bytes.len() as u64).to_le_bytes())?;
    output.write_all(bytes)?;
    output.flush()
}

/// Reads a message; `announced` is called with its length before its bytes are read.
fn receive(input: &mut impl Read, announced: impl Fn(usize) -> io::Result<()>) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LARGEST {
        return Err(io::Error::other("too long"));
    }
    announced(length)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length)?;
    bytes.resize(length, 0);
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}
