//! `docent mcp`: an MCP server on standard input and output.

use std::sync::Arc;

use crate::compose;
use crate::exit::Failure;
use crate::mcp::{self, Service};
use crate::output::Output;
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let book = compose::book(settings).await?;
    book.announce(output);
    let agent = compose::agent(&book, settings, None)?;
    let service = Service { answers: Arc::new(agent), library: book.library.clone(), title: book.title };
    mcp::stdio(service).await?;
    Ok(())
}
