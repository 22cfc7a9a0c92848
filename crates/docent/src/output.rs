//! What commands print: data to stdout, everything else to stderr.
//!
//! Invariant: a closed pipe (`docent search … | head -1`) ends the program without an error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::cli::{Color, Common};
use crate::exit::{Exit, Failure};

/// Bold.
pub const STRONG: Style = Style::new().bold();
/// For secondary text.
pub const FAINT: Style = Style::new().dimmed();
/// For links.
pub const LINK: Style = AnsiColor::Cyan.on_default();
/// For success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// For warnings.
pub const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// For errors.
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// Prints what a command has to say, as its flags ask.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// `--json`
    pub json: bool,
    /// `--quiet`
    pub quiet: bool,
    /// `--verbose`
    pub verbose: bool,
}

impl Output {
    /// An output that follows the flags.
    pub fn new(flags: &Common) -> Self {
        let choice = match flags.color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
        Self { json: flags.json, quiet: flags.quiet, verbose: flags.verbose }
    }

    /// Prints a line of data.
    pub fn line(&self, text: impl std::fmt::Display) -> Result<(), Failure> {
        finish(writeln!(anstream::stdout().lock(), "{text}"))
    }

    /// Prints an object as indented JSON.
    pub fn object(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(anyhow::Error::from)?;
        self.line(text)
    }

    /// Prints an object as JSON on one line.
    pub fn json_line(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.line(serde_json::to_string(value).map_err(anyhow::Error::from)?)
    }

    /// Prints a note to stderr, unless `--quiet`.
    pub fn note(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            say(text);
        }
    }

    /// Prints a warning to stderr, unless `--quiet`.
    pub fn warn(&self, text: impl std::fmt::Display) {
        self.note(format!("{WARN}warning:{WARN:#} {text}"));
    }

    /// Whether stderr is a terminal that may show progress.
    pub fn watched(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

/// Writes the result of a command to a file that the user named.
pub fn write_file(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot write {}: {error}", path.display())))
}

/// Prints an error and its hint.
pub fn report(failure: &Failure) {
    say(format!("{BAD}error:{BAD:#} {}", failure.message));
    if let Some(hint) = &failure.hint {
        say(format!("{STRONG}hint:{STRONG:#} {hint}"));
    }
}

/// Prints a line to stderr. Failures are ignored: there is nowhere to report them.
fn say(text: impl std::fmt::Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

fn finish(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::from(anyhow::Error::from(error).context("cannot write the output"))),
    }
}
