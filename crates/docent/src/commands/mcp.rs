//! `docent mcp`: the book for programs that speak MCP, on standard input and output.

use std::sync::Arc;

use crate::compose;
use crate::exit::Failure;
use crate::mcp::{self, Shelf};
use crate::output::Output;
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let book = compose::book(settings).await?;
    book.announce(output);
    let agent = compose::agent(&book, settings, None)?;
    let shelf =
        Shelf { answers: Arc::new(agent), retriever: book.retriever.clone(), title: book.title(settings) };
    mcp::stdio(shelf).await?;
    Ok(())
}
