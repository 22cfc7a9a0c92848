//! A scripted Qdrant on a port of this machine, for trying Docent out without a database.
//!
//! Invariant: the first line on stdout is the URL, printed when the port is open.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its terminal")]

use std::process::ExitCode;

use docent_backends::testing::ScriptedQdrant;

const HELP: &str = "\
A Qdrant that keeps everything in memory, over gRPC.

Usage: scripted-qdrant [--port PORT]

  --port PORT  listen on this port of 127.0.0.1; 0, the default, takes a free one
  --help       show this

Prints its URL and runs until it is killed. Nothing is left of its data then.
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
        [name, value] if name == "--port" => value.parse().map_err(|_| format!("{value} is no port")),
        [name] if name == "--port" => Err("--port needs a value".to_owned()),
        [name, _, more, ..] if name == "--port" => Err(format!("there is no argument {more}")),
        [name, ..] => Err(format!("there is no argument {name}")),
    }
}
