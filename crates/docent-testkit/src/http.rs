//! The minimum of HTTP/1.1 that the test doubles need: one request and one response per connection.
//!
//! Invariant: a response can be cut off at any byte.

use std::collections::BTreeMap;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Maximum size of a request; anything longer is treated as an error.
const LONGEST: usize = 32 << 20;

pub(super) struct HttpRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

/// Reads one request; nothing if the client sent no valid request.
pub(super) async fn read_request(connection: &mut TcpStream) -> io::Result<Option<HttpRequest>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if bytes.len() > LONGEST || connection.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut body = bytes.split_off(head_end + 4);
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (Some(method), Some(target)) = (first.next(), first.next()) else { return Ok(None) };
    let headers: BTreeMap<String, String> = lines.filter_map(header).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    if length > LONGEST {
        return Ok(None);
    }
    while body.len() < length {
        if connection.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    let path = target.split('?').next().unwrap_or_default().to_owned();
    Ok(Some(HttpRequest { method, path, headers, body }))
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    let value = match name.as_str() {
        "authorization" => format!("{} …", value.split(' ').next().unwrap_or_default()),
        "x-api-key" | "api-key" => "…".to_owned(),
        _ => value.to_owned(),
    };
    Some((name, value))
}

/// Sends a complete response.
pub(super) async fn write_whole(
    connection: &mut TcpStream,
    code: u16,
    headers: &[(&str, String)],
    kind: &str,
    body: &str,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {code} Scripted\r\ncontent-type: {kind}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", body.len());
    connection.write_all(head.as_bytes()).await?;
    connection.write_all(body.as_bytes()).await?;
    connection.shutdown().await
}

/// Starts a chunked response of unknown length.
pub(super) async fn begin_chunks(connection: &mut TcpStream, kind: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await
}

/// Sends bytes in chunks that end anywhere: inside a line, inside a character.
pub(super) async fn write_shredded(connection: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    for size in [1, 7, 64, 3, 200].into_iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (chunk, rest) = bytes.split_at(size.min(bytes.len()));
        write_chunk(connection, chunk).await?;
        bytes = rest;
    }
    Ok(())
}

/// Sends one chunk.
pub(super) async fn write_chunk(connection: &mut TcpStream, chunk: &[u8]) -> io::Result<()> {
    let mut bytes = format!("{:x}\r\n", chunk.len()).into_bytes();
    bytes.extend_from_slice(chunk);
    bytes.extend_from_slice(b"\r\n");
    connection.write_all(&bytes).await
}

/// Ends a chunked response properly.
pub(super) async fn end_chunks(connection: &mut TcpStream) -> io::Result<()> {
    connection.write_all(b"0\r\n\r\n").await?;
    connection.shutdown().await
}

/// Announces a chunk and closes the connection halfway through it.
pub(super) async fn cut(connection: &mut TcpStream) -> io::Result<()> {
    connection.write_all(b"400\r\ndata: {\"choices\": [").await?;
    connection.shutdown().await
}

/// Sends nothing more until the client disconnects.
pub(super) async fn stall(connection: &mut TcpStream) -> io::Result<()> {
    while connection.read_u8().await.is_ok() {}
    Err(io::ErrorKind::BrokenPipe.into())
}
