//! Runs the scripted model on a local port, to try Docent without a model provider.
//!
//! Invariant: the first line on stdout is the base URL, printed when the port is open.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program prints")]

use std::process::ExitCode;

use docent_testkit::{Reply, ScriptedModel};

const HELP: &str = "\
A model that replies according to a script, over the OpenAI API.

Usage: scripted-model [--port PORT] [--script FILE.json]

  --port PORT         listen on this port of 127.0.0.1 [default: 0, any free port]
  --script FILE.json  a list of replies; the last one is repeated [default: echo questions]
  --help              show this help

Prints its base URL and runs until it is killed. Kinds of replies:

  {\"text\": \"…\"}                                   sends this text
  {\"tool_calls\": [[\"name\", \"{\\\"query\\\": 1}\"]]}    calls tools with these arguments
  {\"status\": {\"code\": 429, \"retry_after\": 1}}     responds with this HTTP status
  {\"stall\": {\"after\": \"…\"}}                       sends this text, then stalls
  {\"cut\": {\"after\": \"…\"}}                         sends this text, then closes the connection
  {\"paced\": {\"text\": \"…\", \"first_ms\": 300, \"per_second\": 50}}   sends this text at the pace of a model
  {\"huge\": 10000000}                              sends this many bytes
  {\"raw\": \"…\"}                                    sends this raw body
  \"invalid_json\"  \"empty\"  \"echo\"
";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| matches!(argument.as_str(), "--help" | "-h")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let (port, script) = match read(&arguments) {
        Ok(settings) => settings,
        Err(message) => {
            eprintln!("error: {message}\nhint: see scripted-model --help");
            return ExitCode::from(2);
        }
    };
    match ScriptedModel::start_at(port, script).await {
        Ok(model) => {
            println!("{}", model.url());
            std::future::pending().await
        }
        Err(error) => {
            eprintln!("error: port {port}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(arguments: &[String]) -> Result<(u16, Vec<Reply>), String> {
    let (mut port, mut script) = (0, vec![Reply::Echo]);
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--port" => {
                let value = value?;
                port = value.parse().map_err(|_| format!("invalid port `{value}`"))?;
            }
            "--script" => {
                let path = value?;
                let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
                script = serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
            }
            _ => return Err(format!("unknown argument `{name}`")),
        }
    }
    Ok((port, script))
}
