//! A corpus in the BEIR format: one JSON object per line, with `_id`, `title`, `text` and `url`.
//!
//! Invariant: a document's id is its `_id`, so that a run can be scored.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use docent_parse::document::{Document, Warning};
use docent_parse::markdown::Flavor;
use docent_parse::{Format, parse};
use rayon::prelude::*;
use serde::Deserialize;

use super::{Read, SourceError};

/// A document of a corpus.
#[derive(Debug, Deserialize)]
pub struct Record {
    /// Its id.
    #[serde(rename = "_id")]
    pub id: String,
    #[serde(default)]
    title: String,
    /// Its text.
    #[serde(default)]
    pub text: String,
    #[serde(default)]
    url: Option<String>,
}

/// Whether a file is a corpus, by its name.
pub fn is_corpus(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")
}

/// Reads a corpus.
pub fn read(path: &Path) -> Result<Read, SourceError> {
    let pages: Vec<(Document, Vec<Warning>)> = records(path)?.into_par_iter().map(document).collect();
    let (documents, warnings): (Vec<_>, Vec<_>) = pages.into_iter().unzip();
    Ok(Read { documents, warnings: warnings.concat(), kind: "corpus".to_owned(), ..Read::default() })
}

/// Reads the records. An invalid line is an error, because skipping it would silently lower scores.
pub fn records(path: &Path) -> Result<Vec<Record>, SourceError> {
    let unreadable = |source| SourceError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let packed = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
    let reader: Box<dyn std::io::Read> =
        if packed { Box::new(flate2::read::MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut records = Vec::new();
    for (number, line) in BufReader::new(reader.take(u64::MAX)).lines().enumerate() {
        let line = line.map_err(unreadable)?;
        if line.trim().is_empty() {
            continue;
        }
        let record: Record = serde_json::from_str(&line).map_err(|error| SourceError::Malformed {
            path: path.to_owned(),
            line: number + 1,
            message: error.to_string(),
        })?;
        records.push(record);
    }
    Ok(records)
}

fn document(record: Record) -> (Document, Vec<Warning>) {
    // In these corpora, the text of a notebook is its Markdown.
    let format = if record.id.ends_with(".ipynb") { Some(Format::Markdown) } else { Format::of(&record.id) };
    let flavor = if record.id.ends_with(".mdx") { Flavor::Docusaurus } else { Flavor::Plain };
    let (front, parsed) = parse(format.unwrap_or(Format::Text), &record.text, flavor, &mut |_| None);
    let title = Some(record.title.trim().to_owned()).filter(|title| !title.is_empty());
    let url = record.url.unwrap_or_else(|| record.id.clone());
    let title = title.or(front.title).or(parsed.title).unwrap_or_default();
    let module = record.id.split_once('/').map_or("corpus", |(first, _)| first);
    let document = Document::new(&record.id, url, title).with_module(module).with_sections(parsed.sections);
    (document, Vec::new())
}
