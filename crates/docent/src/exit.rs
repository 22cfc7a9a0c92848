//! How a command ends: a status for programs, a line and a hint for people.

use std::fmt;

/// The exit statuses of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; an abstention is done too.
    Done = 0,
    /// It was understood, and it failed.
    Failed = 1,
    /// It was not understood: wrong flags, wrong values.
    Usage = 2,
    /// Something has to be configured first.
    NotConfigured = 3,
    /// A service outside is not there.
    Unavailable = 4,
}

/// A failure as the user sees it.
#[derive(Debug)]
pub struct Failure {
    /// The status.
    pub exit: Exit,
    /// What happened and where, in one line.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with this status.
    pub fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string(), hint: None }
    }

    /// The caller asked for something that cannot be.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Adds what to do about it.
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

/// The name nearest to `wanted`, if one is near enough to be a slip.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wanted.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3))
        .min()
        .map(|(_, name)| name)
}
