//! How a command ends: an exit status for programs, a message and a hint for people.

use std::fmt;

/// The documented exit statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success. An abstention is a success, too.
    Done = 0,
    /// The command was valid but failed.
    Failed = 1,
    /// The arguments are invalid.
    Usage = 2,
    /// The configuration is invalid or incomplete.
    NotConfigured = 3,
    /// An external service is unavailable.
    Unavailable = 4,
    /// Stopped by Ctrl-C or SIGTERM before it was done.
    Stopped = 130,
}

/// A failure as the user sees it.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub exit: Exit,
    /// What happened and where, in one line.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with this status.
    pub fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string(), hint: None }
    }

    /// A failure because of invalid arguments.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Exit::Failed, format!("{error:#}"))
    }
}

/// The known name most similar to `wanted`, if it is similar enough to be what a typo meant.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wanted.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3))
        .min()
        .map(|(_, name)| name)
}
