//! Where books come from: folders and files, archives, sites, and corpora in the BEIR layout.

pub mod archive;
pub mod corpus;
pub mod folder;
mod generator;
mod patience;
pub mod site;
mod toctree;

use std::path::{Path, PathBuf};

use docent_core::document::{Document, Warning};
use thiserror::Error;

use crate::index::parts::SourceRecord;

/// What was read from a source.
#[derive(Debug, Default)]
pub struct Read {
    /// Its pages, in reading order.
    pub documents: Vec<Document>,
    /// Everything that was not understood or left out, by file.
    pub warnings: Vec<Warning>,
    /// What the author calls the modules, by name.
    pub labels: std::collections::BTreeMap<String, String>,
    /// What the source turned out to be.
    pub kind: String,
    /// Files that are no pages (images, styles, data), by extension.
    pub other_files: std::collections::BTreeMap<String, usize>,
    /// What happened to the pages of a site.
    pub site: Option<site::SiteReport>,
}

/// Why a source could not be read at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The path leads nowhere.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),

    /// It is there but cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },

    /// It is not what its name promises.
    #[error("{}, line {line}: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },

    /// It is an archive that cannot be unpacked, or that should not be.
    #[error("cannot unpack {}: {message}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },

    /// Only http and https are spoken, and nobody is logged in.
    #[error("{0} is not an address that can be read: only http and https, without a user's name")]
    Address(String),

    /// A pattern for pages makes no sense.
    #[error("{0}")]
    Pattern(String),

    /// The site does not want to be read.
    #[error("robots.txt forbids reading {0}")]
    Forbidden(String),

    /// The flag for private networks was not given.
    #[error("{0} leads to a private address")]
    Private(String),

    /// Try again later; what was read is kept.
    #[error("{url} cannot be read now: {what}")]
    Unavailable {
        /// Where the site begins.
        url: String,
        /// What happened.
        what: String,
    },

    /// There is nothing to read.
    #[error("no pages found at {url}: {what}")]
    NoSite {
        /// Where the site should begin.
        url: String,
        /// What was found instead.
        what: String,
    },
}

/// Reads a source on this machine, whatever it is; for addresses there is [`site::read`].
pub fn read(source: &SourceRecord) -> Result<Read, SourceError> {
    if site::is_address(&source.location) {
        return Err(SourceError::Address(source.location.clone()));
    }
    let path = Path::new(&source.location);
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => SourceError::Missing(path.to_owned()),
        _ => SourceError::Unreadable { path: path.to_owned(), source: error },
    })?;
    if metadata.is_file() && corpus::is_corpus(path) {
        return corpus::read(path);
    }
    if metadata.is_file() && archive::is_archive(path) {
        return archive::read(path, source);
    }
    folder::read(path, source)
}
