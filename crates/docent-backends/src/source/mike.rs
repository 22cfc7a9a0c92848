//! A built site with several versions, as mike publishes it for MkDocs: one folder per version, listed in
//! `versions.json`.
//!
//! Invariant: without such a list, nothing changes.

use std::collections::HashMap;
use std::path::Path;

use docent_parse::document::Warning;
use serde::Deserialize;

use super::{Read, Released};

/// A version of the site.
#[derive(Debug, Deserialize)]
struct Version {
    /// Its folder.
    version: String,
    /// Other folders with the same pages, such as `latest`.
    #[serde(default)]
    aliases: Vec<String>,
}

/// Assigns the pages in `root` to their versions. Copies of a version are left out.
pub(super) fn assign(root: &Path, read: &mut Read) {
    let Ok(text) = std::fs::read_to_string(root.join("versions.json")) else { return };
    let Ok(versions) = serde_json::from_str::<Vec<Version>>(&text) else { return };
    let folders: HashMap<&str, &str> = versions
        .iter()
        .flat_map(|version| {
            std::iter::once(&version.version)
                .chain(&version.aliases)
                .map(|name| (name.as_str(), version.version.as_str()))
        })
        .collect();
    let work = root.to_string_lossy().into_owned();
    let mut copies: Vec<String> = Vec::new();
    read.documents.retain_mut(|document| {
        let Some((folder, below)) = document.id.split_once('/') else { return true };
        let Some(version) = folders.get(folder) else { return true };
        if *version != folder && root.join(version).is_dir() {
            if !copies.iter().any(|known| known == folder) {
                copies.push(folder.to_owned());
            }
            return false;
        }
        // The folder of the version is not a module.
        if document.module == folder {
            let module = below.split_once('/').map_or("docs", |(module, _)| module);
            document.module = module.to_owned();
        }
        document.version = Some((*version).to_owned());
        document.work.clone_from(&work);
        true
    });
    for folder in copies {
        let version = folders[folder.as_str()];
        read.warnings.push(Warning::new(&folder, format!("the same pages as version {version}; skipped")));
    }
    let is_called = |version: &&Version, name: &str| version.aliases.iter().any(|alias| alias == name);
    let released = ["stable", "latest"]
        .into_iter()
        .find_map(|name| versions.iter().find(|version| is_called(version, name)))
        .map(|version| version.version.clone());
    read.released.push(Released { work, version: released, locale: None });
}

#[cfg(test)]
mod tests {
    use super::super::folder::read;
    use super::super::{Reading, SourceRecord};

    #[test]
    fn folders_listed_in_versions_json_are_versions() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let list = r#"[{"version": "2.0", "title": "2.0", "aliases": ["latest"]}, {"version": "1.0", "title": "1.0", "aliases": []}]"#;
        write("versions.json", list);
        for version in ["2.0", "1.0", "latest"] {
            write(
                &format!("{version}/guide/start/index.html"),
                &format!("<main><h1>Start</h1><p>Of {version}.</p></main>"),
            );
        }
        write("index.html", "<main><h1>Mill</h1><p>Choose a version.</p></main>");
        let mut source = SourceRecord::new(folder.path().to_string_lossy());
        source.base_url = Some("https://mill.dev".to_owned());
        let read = read(folder.path(), &source, &Reading::default()).unwrap();
        let pages: Vec<_> = read
            .documents
            .iter()
            .map(|page| (page.url.as_str(), page.version.as_deref(), page.module.as_str()))
            .collect();
        let module = folder.path().file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(
            pages,
            [
                ("https://mill.dev/1.0/guide/start/index.html", Some("1.0"), "guide"),
                ("https://mill.dev/2.0/guide/start/index.html", Some("2.0"), "guide"),
                ("https://mill.dev/index.html", None, module.as_str()),
            ]
        );
        assert_eq!(read.released[0].version.as_deref(), Some("2.0"));
        let warnings: Vec<_> =
            read.warnings.iter().map(|warning| (&*warning.path, &*warning.message)).collect();
        assert_eq!(warnings, [("latest", "the same pages as version 2.0; skipped")]);
    }
}
