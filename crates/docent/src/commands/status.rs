//! `docent status`: what is in the index.

use std::path::Path;

use docent_core::index::Description;
use serde::Serialize;

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
    let book = compose::book(settings).await?;
    let folder = settings.index_folder()?;
    let description = &book.description;
    let on_disk = !book.is_sample && settings.index_kind() == IndexKind::Embedded;
    let status = Status {
        sample: book.is_sample,
        index: match settings.index_kind() {
            _ if book.is_sample => "inside the program".to_owned(),
            IndexKind::Embedded => folder.display().to_string(),
            IndexKind::Qdrant => settings.qdrant.url.clone().unwrap_or_default(),
        },
        bytes: if on_disk { folder_size(&folder) } else { 0 },
        description,
    };
    if output.json {
        return output.object(&status);
    }
    if book.is_sample {
        output.note(format!("{FAINT}no book ingested yet; this is the sample book{FAINT:#}"));
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
    line("language", description.language.to_string())?;
    line("embedder", description.embedder.to_string())?;
    if on_disk {
        line("size", format!("{:.1} MB on disk", status.bytes as f64 / 1e6))?;
    }
    if !book.is_sample {
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
