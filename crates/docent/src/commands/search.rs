//! `docent search`: show the passages that match a question.

use docent_core::query::Question;
use docent_core::retrieve::Confidence;
use docent_core::search_response::{SearchResponse, SourceChunk};

use crate::cli::{self, Search};
use crate::compose;
use crate::exit::Failure;
use crate::output::{FAINT, GOOD, LINK, Output, STRONG, WARN};
use crate::settings::Settings;

/// The number of lines shown of a passage, without `--verbose`.
const SHOWN_LINES: usize = 6;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Search, output: &Output) -> Result<(), Failure> {
    let question = Question::new(
        &cli::typed(&arguments.query, &arguments.words),
        arguments.top_k.unwrap_or(settings.retrieval.top_k),
        arguments.threshold.unwrap_or(settings.retrieval.threshold),
        arguments.part.into(),
    )
    .map_err(Failure::usage)?;
    let book = compose::book(settings).await?;
    if book.is_sample {
        output.note(format!("{FAINT}no book ingested yet; searching the built-in sample book (run `docent ingest FOLDER` to add yours){FAINT:#}"));
    }
    book.description.check(question.filter()).map_err(compose::no_such_part)?;
    let retrieved = book.retriever.search(&question).await.map_err(compose::retrieve_failure)?;
    let response = SearchResponse::new(question.text(), &retrieved);
    if output.json {
        return output.object(&response);
    }
    for chunk in &response.chunks {
        show(chunk, output)?;
    }
    footer(&response, output);
    Ok(())
}

fn show(chunk: &SourceChunk, output: &Output) -> Result<(), Failure> {
    output.line(format!(
        "{STRONG}{}. {}{STRONG:#} {FAINT}[{}] {:.2}{FAINT:#}",
        chunk.position,
        chunk.breadcrumb,
        chunk.part(),
        chunk.similarity_score
    ))?;
    let lines: Vec<&str> = chunk.content.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = if output.verbose { lines.len() } else { lines.len().min(SHOWN_LINES) };
    for line in &lines[..shown] {
        output.line(format!("   {line}"))?;
    }
    if shown < lines.len() {
        output.line(format!("   {FAINT}… {} more lines{FAINT:#}", lines.len() - shown))?;
    }
    output.line(format!("   {LINK}{}{LINK:#}\n", chunk.url))
}

fn footer(response: &SearchResponse, output: &Output) {
    let judgement = match response.confidence {
        Confidence::High => format!("{GOOD}high confidence{GOOD:#}"),
        Confidence::Low => format!("{WARN}low confidence: the book may not cover this{WARN:#}"),
        Confidence::None => format!("{WARN}nothing found{WARN:#}"),
    };
    output.note(format!(
        "{judgement} {FAINT}· relevance {:.2} · {:.0} ms{FAINT:#}",
        response.relevance, response.query_time_ms
    ));
}
