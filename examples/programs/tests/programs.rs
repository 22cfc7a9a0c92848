//! The example programs run and print what their comments promise.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

const BOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample-book");

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn parse_book_prints_headings_with_their_addresses() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_parse_book"));
    let printed = output(program.args([BOOK, "https://example.org/docs"]));
    assert!(
        printed.contains("What makes a good node https://example.org/docs/ros2/nodes#what-is-a-node"),
        "{printed}"
    );
}

#[test]
fn verify_text_tells_supported_sentences_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let (page, text) = (folder.path().join("page.md"), folder.path().join("text.txt"));
    std::fs::write(&page, "# Pumps\n\nThe pump starts at three bar. It stops after ten minutes.\n").unwrap();
    std::fs::write(&text, "The pump starts at three bar. The pump was invented in France.").unwrap();
    let printed = output(Command::new(env!("CARGO_BIN_EXE_verify_text")).args([&page, &text]));
    assert!(
        printed.contains(": The pump starts at three bar.\n  “The pump starts at three bar.”"),
        "{printed}"
    );
    assert!(printed.contains("NOT SUPPORTED: The pump was invented in France."), "{printed}");
}

#[test]
fn axum_server_answers_with_citations() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pumps.md"), "# Pumps\n\nThe pump starts at three bar.\n").unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_axum_server"));
    let mut server = program.arg(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let listening = lines.find(|line| line.starts_with("listening on ")).unwrap();
    let address = listening.trim_start_matches("listening on http://");
    let mut connection = std::net::TcpStream::connect(address).unwrap();
    let request =
        "GET /ask?q=When+does+the+pump+start%3F HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    connection.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let body = response.split("\r\n\r\n").nth(1).unwrap();
    let answer: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{response}"));
    assert!(answer["answer"].as_str().unwrap().contains("starts at three bar"), "{answer}");
    assert_eq!(answer["citations"].as_array().unwrap().len(), 1, "{answer}");
}
