//! The first step of an ingest: reads all sources as one book.
//!
//! Invariant: ids of pages are unique in the book, whatever files its sources contain.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use docent_parse::document::{Document, Warning};

use super::editions::Editions;
use super::volume::Volume;
use super::{IngestError, Plan};
use crate::figures::Figures;
use crate::index::contents::{Labels, SourceRecord};
use crate::progress::Progress;
use crate::source::edition::in_address;
use crate::source::site::{self, SiteReport};
use crate::source::{self, Reading};

/// Bytes of text used to detect the book's language.
const LANGUAGE_SAMPLE: usize = 40_000;

/// Everything read from the sources.
#[derive(Default)]
pub(super) struct Book {
    pub(super) volumes: Vec<Volume>,
    pub(super) warnings: Vec<Warning>,
    pub(super) kinds: Vec<String>,
    pub(super) labels: Labels,
    pub(super) other_files: BTreeMap<String, usize>,
    pub(super) sites: Vec<SiteReport>,
    pub(super) editions: Editions,
}

/// Reads the sources in the order of the plan.
pub(super) async fn read_book(
    plan: &Plan,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Book, IngestError> {
    let mut book = Book::default();
    let mut released = Vec::new();
    let reading = Reading { figures: Some(Arc::new(Figures::new(folder))), ..plan.reading.clone() };
    for source in &plan.sources {
        let is_site = site::is_address(&source.location);
        let mut read = match is_site {
            true => site::read(source, &plan.limits, folder, progress).await?,
            false => source::read(source, &reading)?,
        };
        // An empty source would silently remove its book from the index.
        if read.documents.is_empty() {
            return Err(IngestError::NoPages(source.location.clone()));
        }
        let mut sections = read.documents.iter().flat_map(|document| &document.sections);
        if sections.all(|section| section.blocks.is_empty()) {
            return Err(IngestError::NoText(source.location.clone()));
        }
        released.extend(std::mem::take(&mut read.released));
        assign_edition(&mut read.documents, source);
        // Ids of site pages are URLs and therefore unique. Other sources may both have an `index.md`, so
        // their ids get a prefix.
        let above = match &source.name {
            _ if is_site => None,
            Some(name) => {
                let parts = [Some(name), source.version.as_ref(), source.locale.as_ref()];
                Some(parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("/"))
            }
            None => (plan.sources.len() > 1).then(|| source.location.trim_end_matches('/').to_owned()),
        };
        if let Some(above) = above {
            let ids = read.documents.iter_mut().map(|document| &mut document.id);
            for id in ids.chain(read.warnings.iter_mut().map(|warning| &mut warning.path)) {
                *id = format!("{above}/{id}");
            }
        }
        let name = source.name.clone().unwrap_or_default();
        book.labels.extend(read.labels.into_iter().map(|(module, label)| ((name.clone(), module), label)));
        book.volumes.push(Volume { name, documents: read.documents });
        book.warnings.extend(read.warnings);
        book.kinds.push(read.kind);
        book.sites.extend(read.site);
        for (extension, count) in read.other_files {
            *book.other_files.entry(extension).or_default() += count;
        }
    }
    book.editions = Editions::settle(&mut book.volumes, &released);
    if let Err(error) = site::forget_others(folder, &plan.sources) {
        tracing::warn!(%error, "cannot remove the cached pages of sites that are no longer sources");
    }
    Ok(book)
}

/// Assigns the version and locale that were given for a source, or else those in the address where it is published.
fn assign_edition(documents: &mut [Document], source: &SourceRecord) {
    let found = match &source.base_url {
        Some(url) => in_address(&format!("{}/", url.trim_end_matches('/'))),
        None => None,
    };
    for document in documents {
        if source.version.is_some() || source.locale.is_some() {
            document.work = String::new();
            document.version = source.version.clone().or(document.version.take());
            document.locale = source.locale.clone().or(document.locale.take());
        } else if let Some(found) = found.as_ref().filter(|_| document.version.is_none()) {
            document.version = Some(found.version.clone());
            document.locale = Some(found.locale.clone());
            document.work.clone_from(&found.work);
        }
    }
}

/// The first prose of the book, up to [`LANGUAGE_SAMPLE`] bytes.
pub(super) fn language_sample(volumes: &[Volume]) -> String {
    let mut sample = String::new();
    let documents = volumes.iter().flat_map(|volume| &volume.documents);
    let blocks = documents.flat_map(|document| &document.sections).flat_map(|section| &section.blocks);
    for block in blocks.filter(|block| !block.kind.is_atomic()) {
        if sample.len() > LANGUAGE_SAMPLE {
            break;
        }
        sample.push_str(&block.text);
        sample.push('\n');
    }
    sample
}
