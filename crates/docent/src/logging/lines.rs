//! Writes log lines to stderr.
//!
//! Invariant: a line has at most [`LONGEST`] bytes, and a server never blocks on its log: when the queue is full,
//! lines are dropped and counted.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// The longest line, in bytes.
pub const LONGEST: usize = 4096;

/// The longest field in a JSON line that had to be shortened, in characters.
const LONGEST_FIELD: usize = 500;

/// The length of the queue, in lines.
const MOST_WAITING: usize = 1024;

/// How long [`Lines::flush`] waits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Where log lines go.
#[derive(Clone)]
pub struct Lines {
    /// The queue; `None` if lines are written immediately.
    waiting: Option<SyncSender<Entry>>,
    is_json: bool,
}

enum Entry {
    Line(Vec<u8>),
    /// Acknowledged when everything before it is written.
    Mark(SyncSender<()>),
}

impl Lines {
    /// Writes immediately, for short-lived commands.
    pub fn at_once() -> Self {
        Self { waiting: None, is_json: false }
    }

    /// Writes on a separate thread, for servers.
    pub fn behind(is_json: bool) -> Self {
        Self::written_to(io::stderr(), is_json)
    }

    fn written_to(target: impl Write + Send + 'static, is_json: bool) -> Self {
        let (waiting, entries) = sync_channel(MOST_WAITING);
        let thread = std::thread::Builder::new().name("log".to_owned());
        let is_started = thread.spawn(move || write(target, &entries)).is_ok();
        Self { waiting: is_started.then_some(waiting), is_json }
    }

    /// Waits briefly until everything logged so far is written.
    pub fn flush(&self) {
        let (tell, told) = sync_channel(1);
        if let Some(waiting) = &self.waiting
            && waiting.try_send(Entry::Mark(tell)).is_ok()
        {
            let _ = told.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

fn write(mut target: impl Write, entries: &Receiver<Entry>) {
    while let Ok(entry) = entries.recv() {
        match entry {
            // If the log cannot be written, there is nowhere to report it.
            Entry::Line(line) => drop(target.write_all(&line)),
            Entry::Mark(tell) => drop(tell.send(())),
        }
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { lines: self, text: Vec::new() }
    }
}

/// A line under construction; it is written when dropped.
pub struct Line<'a> {
    lines: &'a Lines,
    text: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let line = bounded(std::mem::take(&mut self.text), self.lines.is_json);
        match &self.lines.waiting {
            None => drop(io::stderr().write_all(&line)),
            Some(waiting) => {
                if waiting.try_send(Entry::Line(line)).is_err() {
                    metrics::counter!("docent_log_lines_dropped_total").increment(1);
                }
            }
        }
    }
}

/// Cuts a line that is too long. JSON stays valid: its strings are shortened.
fn bounded(line: Vec<u8>, is_json: bool) -> Vec<u8> {
    if line.len() <= LONGEST {
        return line;
    }
    if is_json && let Ok(mut value) = serde_json::from_slice(&line) {
        shorten(&mut value);
        let short = format!("{value}\n").into_bytes();
        return if short.len() <= LONGEST {
            short
        } else {
            b"{\"message\":\"a log line was too long\"}\n".to_vec()
        };
    }
    let text = String::from_utf8_lossy(&line);
    let mut end = LONGEST - 4;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…\n", &text[..end]).into_bytes()
}

fn shorten(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(LONGEST_FIELD) {
                text.truncate(end);
                text.push('…');
            }
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(shorten),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A log whose reader is stuck.
    struct Stuck(mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_log_does_not_block_writers() {
        let (_go_on, stuck) = mpsc::channel();
        let lines = Lines::written_to(Stuck(stuck), false);
        for _ in 0..3 * MOST_WAITING {
            lines.make_writer().write_all(b"a line\n").unwrap();
        }
    }

    #[test]
    fn flush_writes_everything_logged_before_it() {
        struct Sent(mpsc::Sender<Vec<u8>>);
        impl Write for Sent {
            fn write(&mut self, text: &[u8]) -> io::Result<usize> {
                let _ = self.0.send(text.to_vec());
                Ok(text.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (sent, written) = mpsc::channel();
        let lines = Lines::written_to(Sent(sent), false);
        lines.make_writer().write_all(b"one\n").unwrap();
        lines.flush();
        assert_eq!(written.try_recv().unwrap(), b"one\n");
    }

    #[test]
    fn a_long_line_is_cut() {
        let line = bounded("é".repeat(50_000).into_bytes(), false);
        assert!(line.len() <= LONGEST && line.ends_with("…\n".as_bytes()));
        let line = format!("{{\"message\":\"{}\",\"status\":200}}\n", "é".repeat(50_000)).into_bytes();
        let short = bounded(line, true);
        let value: serde_json::Value = serde_json::from_slice(&short).unwrap();
        assert!(short.len() <= LONGEST && value["status"] == 200);
        assert_eq!(bounded(b"short\n".to_vec(), true), b"short\n");
    }
}
