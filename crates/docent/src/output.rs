//! What commands print: data to stdout, everything else to stderr.
//!
//! Invariant: a reader that goes away (`docent search … | head -1`) ends the program quietly.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::cli::{Color, Common};
use crate::exit::{Exit, Failure};

/// Bold.
pub const STRONG: Style = Style::new().bold();
/// For what matters less.
pub const FAINT: Style = Style::new().dimmed();
/// For links.
pub const LINK: Style = AnsiColor::Cyan.on_default();
/// For what is well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// For warnings.
pub const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// For errors.
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// Where commands print to.
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
    /// As the flags say.
    pub fn new(flags: &Common) -> Self {
        let choice = match flags.color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
        Self { json: flags.json, quiet: flags.quiet, verbose: flags.verbose }
    }

    /// A line of data.
    pub fn line(&self, text: impl std::fmt::Display) -> Result<(), Failure> {
        finish(writeln!(anstream::stdout().lock(), "{text}"))
    }

    /// An object as indented JSON.
    pub fn object(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(anyhow::Error::from)?;
        self.line(text)
    }

    /// An object as JSON in one line.
    pub fn json_line(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.line(serde_json::to_string(value).map_err(anyhow::Error::from)?)
    }

    /// Something the user should know.
    pub fn note(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            say(text);
        }
    }

    /// Something the user should look at.
    pub fn warn(&self, text: impl std::fmt::Display) {
        self.note(format!("{WARN}warning:{WARN:#} {text}"));
    }

    /// Whether a person is watching stderr.
    pub fn watched(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

/// Writes what a command made to a file the user named.
pub fn write_file(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot write {}: {error}", path.display())))
}

/// How a command failed.
pub fn report(failure: &Failure) {
    say(format!("{BAD}error:{BAD:#} {}", failure.message));
    if let Some(hint) = &failure.hint {
        say(format!("{STRONG}hint:{STRONG:#} {hint}"));
    }
}

/// A line on stderr; there is nobody to tell when that fails.
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
