//! `docent status`: show what is in the index. Needs no embedder, so it works whatever embedder is configured.

use std::path::Path;

use docent_core::index::Description;
use serde::Serialize;

use super::modules::listed;
use crate::compose;
use crate::exit::Failure;
use crate::output::{FAINT, Output, STRONG};
use crate::settings::{IndexKind, Settings};

#[derive(Serialize)]
struct Status<'a> {
    sample: bool,
    index: String,
    bytes: u64,
    #[serde(flatten)]
    description: &'a Description,
}

/// Runs the command.
pub async fn run(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let (description, is_sample) = compose::description(settings).await?;
    let folder = settings.index_folder()?;
    let on_disk = !is_sample && settings.index_kind() == IndexKind::Embedded;
    let status = Status {
        sample: is_sample,
        index: match settings.index_kind() {
            _ if is_sample => "built in".to_owned(),
            IndexKind::Embedded => folder.display().to_string(),
            IndexKind::Qdrant => settings.qdrant.url.clone().unwrap_or_default(),
        },
        bytes: if on_disk { folder_size(&folder) } else { 0 },
        description: &description,
    };
    if output.json {
        return output.object(&status);
    }
    if is_sample {
        output.note(format!("{FAINT}no book ingested yet; showing the built-in sample book{FAINT:#}"));
    }
    let line = |name: &str, value: String| output.line(format!("{STRONG}{name:<10}{STRONG:#} {value}"));
    line("index", status.index.clone())?;
    line(
        "version",
        match description.created_at.as_str() {
            "" => description.version.clone(),
            time => format!("{}, published {time}", description.version),
        },
    )?;
    line("pages", description.pages.to_string())?;
    line("passages", description.chunks.to_string())?;
    if !description.books.is_empty() {
        line("books", description.books.keys().cloned().collect::<Vec<_>>().join(", "))?;
    }
    line("modules", description.modules.keys().cloned().collect::<Vec<_>>().join(", "))?;
    for (name, variants) in [("versions", &description.versions), ("locales", &description.locales)] {
        if !variants.is_empty() {
            line(name, listed(variants))?;
        }
    }
    line("language", description.language.to_string())?;
    line("embedder", description.embedder.to_string())?;
    if on_disk {
        line("size", format!("{:.1} MB on disk", status.bytes as f64 / 1e6))?;
    }
    if !is_sample {
        line("sources", description.sources.join(", "))?;
    }
    Ok(())
}

fn folder_size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => folder_size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
