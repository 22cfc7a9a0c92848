//! Runs the scripted Qdrant on a local port, to try Docent without a database.
//!
//! Invariant: the first line on stdout is the URL, printed when the port is open.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program prints")]

use std::process::ExitCode;

use docent_testkit::ScriptedQdrant;

const HELP: &str = "\
An in-memory test double of Qdrant, over gRPC.

Usage: scripted-qdrant [--port PORT]

  --port PORT  listen on this port of 127.0.0.1 [default: 0, any free port]
  --help       show this help

Prints its URL and runs until it is killed. All data is lost on exit.
";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let port = match read(&arguments) {
        Ok(port) => port,
        Err(message) => {
            eprintln!("error: {message}\nhint: see scripted-qdrant --help");
            return ExitCode::from(2);
        }
    };
    match ScriptedQdrant::start_on(port).await {
        Ok(qdrant) => {
            println!("{}", qdrant.url());
            std::future::pending().await
        }
        Err(error) => {
            eprintln!("error: port {port}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(arguments: &[String]) -> Result<u16, String> {
    match arguments {
        [] => Ok(0),
        [name, value] if name == "--port" => value.parse().map_err(|_| format!("invalid port `{value}`")),
        [name] if name == "--port" => Err("--port needs a value".to_owned()),
        [name, _, more, ..] if name == "--port" => Err(format!("unknown argument `{more}`")),
        [name, ..] => Err(format!("unknown argument `{name}`")),
    }
}
