//! `docent`: a tutor that lives in a book.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod cli;
mod settings;
mod compose;
mod sample;
mod commands;
mod eval;
mod http;
mod mcp;
mod report;
mod plot;
mod output;
mod logging;
mod exit;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};
use exit::{Exit, Failure};
use output::Output;
use settings::Settings;

fn main() -> ExitCode {
    let _ = dotenvy::dotenv();
    let cli = Cli::parse();
    let output = Output::new(&cli.common);
    match run(cli, output) {
        Ok(()) => ExitCode::from(Exit::Done as u8),
        Err(failure) => {
            output::report(&failure);
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn run(cli: Cli, output: Output) -> Result<(), Failure> {
    let settings = Settings::resolve(&cli.common);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(anyhow::Error::from)?;
    // A doctor also sees patients who cannot walk in.
    if let Command::Doctor = cli.command {
        return runtime.block_on(commands::doctor::run(settings, &output));
    }
    let settings = settings?;
    let serves = matches!(cli.command, Command::Serve(_));
    runtime.block_on(async {
        let _traces = logging::start(&output, serves.then_some(&settings.serve));
        match cli.command {
            Command::Ingest(arguments) => commands::ingest::run(&settings, arguments, &output).await,
            Command::Search(arguments) => commands::search::run(&settings, arguments, &output).await,
            Command::Ask(arguments) => commands::ask::run(&settings, arguments, &output).await,
            Command::Chat(arguments) => commands::chat::run(&settings, arguments, &output).await,
            Command::Sessions(command) => commands::sessions::run(&settings, command, &output).await,
            Command::Serve(arguments) => commands::serve::run(&settings, arguments, &output).await,
            Command::Mcp => commands::mcp::run(&settings, &output).await,
            Command::Report(arguments) => commands::report::run(&settings, arguments, &output).await,
            Command::Key(arguments) => commands::key::run(&arguments, &output),
            Command::Export(arguments) => commands::export::run(&settings, &arguments, &output).await,
            Command::Status => commands::status::run(&settings, &output).await,
            Command::Modules => commands::modules::run(&settings, &output).await,
            Command::Doctor => Ok(()),
            Command::Eval(arguments) => commands::eval::run(&settings, arguments, &output).await,
            Command::CalibrateVerify(arguments) => {
                commands::calibrate_verify::run(&settings, arguments, &output).await
            }
            Command::Calibrate(arguments) => commands::calibrate::run(&settings, arguments, &output).await,
        }
    })
}
