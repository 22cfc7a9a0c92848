//! The `docent` program: parses the arguments, resolves the settings and runs one command.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod cli;
mod settings;
mod compose;
mod sample;
mod readable;
mod title;
mod conversation;
mod commands;
mod eval;
mod http;
mod mcp;
mod report;
mod plot;
mod formula;
mod highlight;
mod output;
mod logging;
mod exit;
mod stop;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};
use exit::{Exit, Failure};
use output::Output;
use settings::Settings;

fn main() -> ExitCode {
    let variables = environment();
    let cli = Cli::parse_from(cli::mark_words(std::env::args_os()));
    // These run in a child process, which needs neither settings nor a runtime.
    match &cli.command {
        Command::ParsePdf => return docent_backends::source::pdf::work(),
        Command::DrawPdf { file, page } => return docent_backends::source::pdf::drawing::work(file, *page),
        _ => {}
    }
    let output = Output::new(&cli.common);
    match variables.and_then(|()| run(cli, output)) {
        Ok(()) => ExitCode::from(Exit::Done as u8),
        Err(failure) => {
            output::report(&failure);
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// Loads `.env` from the current folder; variables that are already set win.
///
/// Parent folders are not searched: a key found there could turn on a model that costs money.
fn environment() -> Result<(), Failure> {
    let path = Path::new(".env");
    // A folder named `.env` is a Python virtual environment.
    if !path.is_file() {
        return Ok(());
    }
    let wrong = |what: String| Failure::new(Exit::NotConfigured, what);
    dotenvy::from_path(path).map_err(|error| match error {
        dotenvy::Error::Io(error) => wrong(format!("cannot read .env: {error}")),
        // The line is not printed: it may contain a key.
        dotenvy::Error::LineParse(_, position) => {
            wrong(format!(".env has an invalid line; parsing failed at its character {position}"))
                .hint("each line must be NAME=value; quote values that contain spaces")
        }
        _ => wrong("cannot parse .env".to_owned()),
    })
}

fn run(cli: Cli, output: Output) -> Result<(), Failure> {
    let settings = Settings::resolve(cli.common.config.as_deref(), cli.common.data_dir.as_deref());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(anyhow::Error::from)?;
    let done = runtime.block_on(command(cli.command, settings, cli.common.config.as_deref(), &output));
    // A thread may still be in a long computation whose result is no longer needed.
    runtime.shutdown_timeout(stop::THREADS);
    done
}

async fn command(
    command: Command,
    settings: Result<Settings, Failure>,
    config: Option<&std::path::Path>,
    output: &Output,
) -> Result<(), Failure> {
    // `doctor` also runs with invalid settings, to report what is wrong with them.
    if let Command::Doctor = command {
        return commands::doctor::run(settings, config, output).await;
    }
    // The file that it replaces may be invalid.
    if let Command::Init(arguments) = &command {
        return commands::init::run(arguments, output);
    }
    let settings = settings?;
    let serves = matches!(command, Command::Serve(_));
    let _traces = logging::start(output, serves.then_some(&settings.serve));
    match command {
        Command::Ingest(arguments) => commands::ingest::run(&settings, arguments, output).await,
        Command::Search(arguments) => commands::search::run(&settings, arguments, output).await,
        Command::Ask(arguments) => commands::ask::run(&settings, arguments, output).await,
        Command::Chat(arguments) => commands::chat::run(&settings, arguments, output).await,
        Command::Quiz(arguments) => commands::quiz::run(&settings, arguments, output).await,
        Command::Sessions(command) => commands::sessions::run(&settings, command, output).await,
        Command::Serve(arguments) => commands::serve::run(&settings, arguments, output).await,
        Command::Mcp => commands::mcp::run(&settings, output).await,
        Command::Report(arguments) => commands::report::run(&settings, arguments, output).await,
        Command::Key(arguments) => commands::key::run(&arguments, output),
        Command::Export(arguments) => commands::export::run(&settings, &arguments, output).await,
        Command::Status => commands::status::run(&settings, output).await,
        Command::Modules => commands::modules::run(&settings, output).await,
        Command::Doctor | Command::Init(_) | Command::ParsePdf | Command::DrawPdf { .. } => Ok(()),
        Command::Eval(arguments) => commands::eval::run(&settings, arguments, output).await,
        Command::CalibrateVerify(arguments) => {
            commands::calibrate_verify::run(&settings, arguments, output).await
        }
        Command::CalibrateReading(arguments) => {
            commands::calibrate_reading::run(&settings, arguments, output).await
        }
        Command::Calibrate(arguments) => commands::calibrate::run(&settings, arguments, output).await,
    }
}
