//! Reads the versions and locales of a Docusaurus project one by one.
//!
//! Invariant: pages outside of `docs/` have ids that begin with their folder, so that ids are unique.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use docent_parse::document::Document;

use super::super::docusaurus_editions::{self, Editions, Part};
use super::super::{Read, Released, SourceError, docusaurus};
use crate::index::contents::SourceRecord;

/// The pages of a part that was read, and where they are published.
type Originals<'a> = HashMap<&'a Path, (Option<String>, Vec<Document>)>;

/// Reads all versions and locales of the project in `path`, which is shown as `work`. `read_part` reads the pages in a
/// folder of the project.
pub(super) fn read(
    editions: &Editions,
    path: &Path,
    work: &str,
    source: &SourceRecord,
    read_part: impl Fn(&Path, &SourceRecord) -> Result<Read, SourceError>,
) -> Result<Read, SourceError> {
    let mut all = Read::default();
    let config = docusaurus::Config::read(path);
    let docs = source.base_url.clone().or_else(|| config.as_ref()?.address());
    let route = config.as_ref().and_then(docusaurus::Config::route).unwrap_or_default();
    let mut originals = Originals::new();
    for part in &editions.parts {
        let source = SourceRecord {
            base_url: docs.as_ref().map(|docs| part.address(docs, route)),
            layout: source.layout.clone().or_else(|| Some("docusaurus".to_owned())),
            ..source.clone()
        };
        let mut read = read_part(&part.folder, &source)?;
        match &part.original {
            None if editions.default_locale.is_some() => {
                originals.insert(&part.folder, (source.base_url, read.documents.clone()));
            }
            None => {}
            Some(original) => {
                let known = originals.get(original.as_path());
                if let (Some(to), Some((Some(from), pages))) = (&source.base_url, known) {
                    add_untranslated(&mut read.documents, pages, from, to);
                }
            }
        }
        name(&mut read, part, work);
        add(&mut all, read);
    }
    let (version, locale) = (editions.default_version.clone(), editions.default_locale.clone());
    all.released = vec![Released { work: work.to_owned(), version, locale }];
    Ok(all)
}

/// Adds the pages that have no translation: Docusaurus publishes them at the address of the locale, too.
fn add_untranslated(translated: &mut Vec<Document>, originals: &[Document], from: &str, to: &str) {
    let known: HashSet<String> = translated.iter().map(|document| document.id.clone()).collect();
    for original in originals.iter().filter(|original| !known.contains(&original.id)) {
        if let Some(below) = original.url.strip_prefix(from) {
            let mut page = original.clone();
            page.url = format!("{to}{below}");
            translated.push(page);
        }
    }
}

/// Gives the pages of a part their version and locale, unique ids, and the module of the docs instead of that of the
/// folder.
fn name(read: &mut Read, part: &Part, work: &str) {
    let folders = [Some(&part.folder), part.original.as_ref()].into_iter().flatten();
    let modules: Vec<String> =
        folders.filter_map(|folder| Some(folder.file_name()?.to_string_lossy().into_owned())).collect();
    for document in &mut read.documents {
        document.version.clone_from(&part.version);
        document.locale.clone_from(&part.locale);
        work.clone_into(&mut document.work);
        if modules.contains(&document.module) {
            "docs".clone_into(&mut document.module);
        }
    }
    let above = part.folder.to_string_lossy().replace('\\', "/");
    if above != "docs" {
        let ids = read.documents.iter_mut().map(|document| &mut document.id);
        for id in ids.chain(read.warnings.iter_mut().map(|warning| &mut warning.path)) {
            *id = format!("{above}/{id}");
        }
    }
}

/// Adds a part to what was read before. Its labels count where there are none yet.
fn add(all: &mut Read, read: Read) {
    all.kind = read.kind;
    all.documents.extend(read.documents);
    all.warnings.extend(read.warnings);
    for (module, label) in read.labels {
        all.labels.entry(module).or_insert(label);
    }
    for (extension, count) in read.other_files {
        *all.other_files.entry(extension).or_default() += count;
    }
}

/// What a folder is in its Docusaurus project, if that has several versions or locales, and where it is published.
pub(super) fn own_part(root: &Path) -> Option<(Part, Released, Option<String>)> {
    let project = docusaurus_editions::project_of(root)?;
    let editions = docusaurus_editions::editions(&project)?;
    let part = editions.parts.iter().find(|part| project.join(&part.folder) == root)?.clone();
    let config = docusaurus::Config::read(&project)?;
    let address = config.address().map(|docs| part.address(&docs, config.route().unwrap_or_default()));
    let released = Released {
        work: project.to_string_lossy().into_owned(),
        version: editions.default_version,
        locale: editions.default_locale,
    };
    Some((part, released, address))
}
