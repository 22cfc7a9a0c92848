//! `docent calibrate`: fit the relevance model.

use crate::cli::Calibrate;
use crate::exit::Failure;
use crate::output::Output;
use crate::settings::Settings;

/// Runs the command.
pub async fn run(_settings: &Settings, _arguments: Calibrate, _output: &Output) -> Result<(), Failure> {
    Ok(())
}
