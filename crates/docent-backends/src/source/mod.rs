//! The sources of books: folders and files, archives, sites, and corpora in the BEIR format.

mod cross_references;
pub mod archive;
pub mod corpus;
mod docusaurus;
mod docusaurus_editions;
pub(crate) mod edition;
pub mod folder;
mod generator;
mod mike;
pub mod pdf;
pub mod project;
pub mod site;
mod toctree;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use docent_parse::document::{Document, Warning};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::figures::Figures;
use crate::index::contents::SourceRecord;
use pdf::PdfParser;

/// How sources are read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Cancel it to stop reading; it is checked between files.
    pub stop: CancellationToken,
    /// The parser for PDFs.
    pub pdf: PdfParser,
    /// Copies the images of the pages, and PDFs; without it, images of files on this machine are left out.
    pub figures: Option<Arc<Figures>>,
}

/// What was read from a source.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Read {
    /// Its pages, in reading order.
    pub documents: Vec<Document>,
    /// Content that was skipped or not understood, by file.
    pub warnings: Vec<Warning>,
    /// The author's labels of the modules, by module name.
    pub labels: std::collections::BTreeMap<String, String>,
    /// The detected kind of source.
    pub kind: String,
    /// Number of files that are not pages (images, styles, data), by extension.
    pub other_files: std::collections::BTreeMap<String, usize>,
    /// The report of a crawled site.
    pub site: Option<site::SiteReport>,
    /// Which versions and locales are the default, as far as the source says so.
    pub released: Vec<Released>,
}

/// The default version and locale of a work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Released {
    /// The work, as in [`Document::work`].
    pub work: String,
    /// The version, if it is known.
    pub version: Option<String>,
    /// The locale, if it is known.
    pub locale: Option<String>,
}

/// Why a source could not be read at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The path does not exist.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),

    /// The path exists but cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },

    /// The file does not have the expected format.
    #[error("{}, line {line}: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },

    /// The archive cannot be unpacked, or exceeds the limits.
    #[error("cannot unpack {}: {message}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },

    /// Only http and https are supported, without a user name or password.
    #[error("unsupported address {0}: use http or https, without a user name or password")]
    Address(String),

    /// A glob pattern for pages is invalid.
    #[error("{0}")]
    Pattern(String),

    /// The site's `robots.txt` disallows crawling.
    #[error("robots.txt forbids reading {0}")]
    Forbidden(String),

    /// The address is in a private network, and `allow_private` is not set.
    #[error("{0} leads to a private address")]
    Private(String),

    /// Try again later; pages fetched so far are cached.
    #[error("{url} is unavailable: {what}")]
    Unavailable {
        /// The start page of the site.
        url: String,
        /// The reason.
        what: String,
    },

    /// Reading was cancelled.
    #[error("stopped")]
    Stopped,

    /// The address has no pages.
    #[error("no pages found at {url}: {what}")]
    NoSite {
        /// The start page of the site.
        url: String,
        /// What was found instead.
        what: String,
    },
}

/// Reads a source on this machine; for addresses, use [`site::read`].
pub fn read(source: &SourceRecord, reading: &Reading) -> Result<Read, SourceError> {
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
        return archive::read(path, source, reading);
    }
    folder::read(path, source, reading)
}
