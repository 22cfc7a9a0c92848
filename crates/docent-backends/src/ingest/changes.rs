//! Compares two generations of a book.

use std::collections::{BTreeMap, HashMap, HashSet};

use docent_core::chunk::Chunk;
use docent_core::edition::Edition;
use docent_parse::document::Document;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3Default;

use crate::index::contents::PageRecord;

/// How many pages or sections were added, changed, removed and unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Changes {
    /// New in this generation.
    pub added: usize,
    /// Present in both generations, with different content.
    pub changed: usize,
    /// No longer there.
    pub removed: usize,
    /// Identical in both generations.
    pub unchanged: usize,
}

/// A page that differs between two generations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PageChange {
    /// The page's id.
    pub page: String,
    /// What happened to it.
    pub change: Change,
}

/// What happened to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is new.
    Added,
    /// Its content changed.
    Changed,
    /// It is gone.
    Removed,
}

/// A page and the hashes of its sections, without a version and a locale.
pub fn page_record(book: &str, document: &Document, chunks: &[Chunk]) -> PageRecord {
    let mut hashers: BTreeMap<String, Xxh3Default> = BTreeMap::new();
    for chunk in chunks {
        let hasher = hashers.entry(section_name(document, chunk)).or_default();
        hasher.update(chunk.embedded_text().as_bytes());
        hasher.update(chunk.url.as_bytes());
        for figure in &chunk.figures {
            hasher.update(figure.image.as_bytes());
        }
        hasher.update(chunk.pdf.as_deref().unwrap_or_default().as_bytes());
    }
    PageRecord {
        id: document.id.clone(),
        url: document.url.clone(),
        title: document.title.clone(),
        book: book.to_owned(),
        module: document.module.clone(),
        edition: Edition::default(),
        chunks: chunks.len(),
        sections: hashers
            .into_iter()
            .map(|(name, hasher)| (name, format!("{:016x}", hasher.digest())))
            .collect(),
    }
}

/// The section's anchor, which stays the same when sections before it are added or removed; its position
/// if it has no anchor.
fn section_name(document: &Document, chunk: &Chunk) -> String {
    let section = document.sections.get(chunk.section as usize);
    match section.and_then(|section| section.heading.as_ref()?.anchor.as_deref()) {
        Some(anchor) => format!("#{anchor}"),
        None => chunk.section.to_string(),
    }
}

/// Compares pages by id.
pub fn pages(before: &[PageRecord], after: &[PageRecord]) -> Changes {
    let old: HashMap<_, _> = before.iter().map(|page| (&page.id, page)).collect();
    let new: HashMap<_, _> = after.iter().map(|page| (&page.id, page)).collect();
    compare(&old, &new)
}

/// The pages that changed, in the order of the book; removed pages come last.
pub fn changed_pages(before: &[PageRecord], after: &[PageRecord]) -> Vec<PageChange> {
    let old: HashMap<_, _> = before.iter().map(|page| (&page.id, page)).collect();
    let new: HashSet<_> = after.iter().map(|page| &page.id).collect();
    let present = after.iter().filter_map(|page| match old.get(&page.id) {
        None => Some((page, Change::Added)),
        Some(before) => (*before != page).then_some((page, Change::Changed)),
    });
    let gone = before.iter().filter(|page| !new.contains(&page.id)).map(|page| (page, Change::Removed));
    present.chain(gone).map(|(page, change)| PageChange { page: page.id.clone(), change }).collect()
}

/// Compares sections by page and name.
pub fn sections(before: &[PageRecord], after: &[PageRecord]) -> Changes {
    compare(&by_section(before), &by_section(after))
}

fn by_section(pages: &[PageRecord]) -> HashMap<(&str, &str), &str> {
    pages
        .iter()
        .flat_map(|page| {
            page.sections.iter().map(|(name, hash)| ((page.id.as_str(), name.as_str()), hash.as_str()))
        })
        .collect()
}

fn compare<K: std::hash::Hash + Eq, V: PartialEq>(old: &HashMap<K, V>, new: &HashMap<K, V>) -> Changes {
    let mut changes =
        Changes { removed: old.keys().filter(|key| !new.contains_key(key)).count(), ..Changes::default() };
    for (key, value) in new {
        match old.get(key) {
            None => changes.added += 1,
            Some(before) if before == value => changes.unchanged += 1,
            Some(_) => changes.changed += 1,
        }
    }
    changes
}
