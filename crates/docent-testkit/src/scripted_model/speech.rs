//! Writes replies in OpenAI's format, streamed as events or complete, depending on the request.
//!
//! Invariant: a streamed and a complete reply have the same content.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::Reply;
use crate::http;

/// Characters of text or arguments per event.
const PIECE: usize = 8;

/// Sends one reply to its end, or to where it breaks off.
pub(super) async fn perform(connection: &mut TcpStream, reply: Reply, request: &Value) -> io::Result<()> {
    let streamed = request["stream"] == true;
    let kind = if streamed { "text/event-stream" } else { "application/json" };
    match reply {
        Reply::Status { code, retry_after, body } => {
            let headers: Vec<_> =
                retry_after.iter().map(|after| ("retry-after", after.to_string())).collect();
            let body = if body.is_empty() { error_body(code) } else { body };
            http::write_whole(connection, code, &headers, "application/json", &body).await
        }
        Reply::Raw(body) => http::write_whole(connection, 200, &[], kind, &body).await,
        Reply::InvalidJson if streamed => {
            http::write_whole(connection, 200, &[], kind, "data: {\"choices\": [{\"delta\": {\"cont\n\n")
                .await
        }
        Reply::InvalidJson => http::write_whole(connection, 200, &[], kind, "{\"choices\": [").await,
        Reply::Stall { after } => {
            break_off(connection, after, request).await?;
            http::stall(connection).await
        }
        Reply::Cut { after } => {
            break_off(connection, after, request).await?;
            http::cut(connection).await
        }
        Reply::Huge(bytes) if streamed => {
            http::begin_chunks(connection, kind).await?;
            let sentence = "This goes on and on. ".repeat(800);
            let mut left = bytes;
            while left > 0 {
                let piece = &sentence[..sentence.len().min(left)];
                http::write_chunk(connection, event(&delta(json!({"content": piece}))).as_bytes()).await?;
                left -= piece.len();
            }
            end(connection, "stop", None).await
        }
        Reply::Huge(bytes) => finish(connection, Message::text("x".repeat(bytes)), request).await,
        Reply::Paced { text, first_ms, per_second } => {
            tokio::time::sleep(Duration::from_millis(first_ms)).await;
            if !streamed {
                return finish(connection, Message::text(text), request).await;
            }
            http::begin_chunks(connection, kind).await?;
            let mut ticks = tokio::time::interval(Duration::from_secs(1) / per_second.max(1));
            for word in text.split_inclusive(' ') {
                ticks.tick().await;
                http::write_chunk(connection, event(&delta(json!({"content": word}))).as_bytes()).await?;
            }
            let message = Message::text(text);
            end(connection, "stop", Some(usage(&message, request))).await
        }
        Reply::Text(text) => finish(connection, Message::text(text), request).await,
        Reply::ToolCalls(calls) => finish(connection, Message { text: String::new(), calls }, request).await,
        Reply::Empty => finish(connection, Message::text(""), request).await,
        Reply::Echo | Reply::With(_) => finish(connection, Message::text(echo(request)), request).await,
    }
}

/// An error in OpenAI's format.
pub(super) fn error_body(code: u16) -> String {
    let error = json!({"message": format!("Scripted error {code}."), "type": "scripted", "param": null, "code": null});
    json!({"error": error}).to_string()
}

struct Message {
    text: String,
    calls: Vec<(String, String)>,
}

impl Message {
    fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), calls: Vec::new() }
    }

    fn finish_reason(&self) -> &'static str {
        if self.calls.is_empty() { "stop" } else { "tool_calls" }
    }
}

fn echo(request: &Value) -> String {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let question = messages.iter().rev().find(|message| message["role"] == "user");
    let question = question.and_then(|message| message["content"].as_str()).unwrap_or("nothing");
    format!("You asked: {question}")
}

async fn finish(connection: &mut TcpStream, message: Message, request: &Value) -> io::Result<()> {
    if request["stream"] != true {
        let body = whole(&message, request);
        return http::write_whole(connection, 200, &[], "application/json", &body).await;
    }
    http::begin_chunks(connection, "text/event-stream").await?;
    say(connection, &message.text).await?;
    call_tools(connection, &message.calls, request).await?;
    let wanted = request["stream_options"]["include_usage"] == true;
    end(connection, message.finish_reason(), wanted.then(|| usage(&message, request))).await
}

/// Sends an incomplete response.
async fn break_off(connection: &mut TcpStream, text: String, request: &Value) -> io::Result<()> {
    if request["stream"] == true {
        http::begin_chunks(connection, "text/event-stream").await?;
        return say(connection, &text).await;
    }
    http::begin_chunks(connection, "application/json").await?;
    let body = whole(&Message::text(text), request);
    http::write_shredded(connection, &body.as_bytes()[..body.len() / 2]).await
}

async fn say(connection: &mut TcpStream, text: &str) -> io::Result<()> {
    send(connection, &delta(json!({"role": "assistant", "content": ""}))).await?;
    for piece in pieces(text) {
        send(connection, &delta(json!({"content": piece}))).await?;
    }
    Ok(())
}

/// Sends the names first, then pieces of the arguments of all calls in turn.
async fn call_tools(
    connection: &mut TcpStream,
    calls: &[(String, String)],
    request: &Value,
) -> io::Result<()> {
    for (index, (name, _)) in calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": ""});
        let call =
            json!({"index": index, "id": call_id(request, index), "type": "function", "function": function});
        send(connection, &delta(json!({"tool_calls": [call]}))).await?;
    }
    let arguments: Vec<Vec<String>> = calls.iter().map(|(_, arguments)| pieces(arguments)).collect();
    for turn in 0..arguments.iter().map(Vec::len).max().unwrap_or(0) {
        for (index, pieces) in arguments.iter().enumerate() {
            let Some(piece) = pieces.get(turn) else { continue };
            let call = json!({"index": index, "function": {"arguments": piece}});
            send(connection, &delta(json!({"tool_calls": [call]}))).await?;
        }
    }
    Ok(())
}

async fn end(connection: &mut TcpStream, reason: &str, usage: Option<Value>) -> io::Result<()> {
    let mut last = delta(json!({}));
    last["choices"][0]["finish_reason"] = json!(reason);
    send(connection, &last).await?;
    if let Some(usage) = usage {
        let mut tail = delta(json!({}));
        tail["choices"] = json!([]);
        tail["usage"] = usage;
        send(connection, &tail).await?;
    }
    http::write_shredded(connection, b"data: [DONE]\n\n").await?;
    http::end_chunks(connection).await
}

async fn send(connection: &mut TcpStream, message: &Value) -> io::Result<()> {
    http::write_shredded(connection, event(message).as_bytes()).await
}

fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

fn delta(delta: Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
    json!({"id": "scripted", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice]})
}

fn whole(message: &Message, request: &Value) -> String {
    let mut said = json!({"role": "assistant", "content": message.text});
    if !message.calls.is_empty() {
        let calls = message.calls.iter().enumerate().map(|(index, (name, arguments))| {
            json!({"id": call_id(request, index), "type": "function", "function": {"name": name, "arguments": arguments}})
        });
        said["tool_calls"] = calls.collect();
    }
    let choice = json!({"index": 0, "message": said, "finish_reason": message.finish_reason()});
    json!({
        "id": "scripted", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [choice], "usage": usage(message, request),
    })
    .to_string()
}

/// Counts one token per word.
fn usage(message: &Message, request: &Value) -> Value {
    let words = |text: &str| text.split_whitespace().count();
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let prompt: usize = messages.iter().filter_map(|message| message["content"].as_str()).map(words).sum();
    let completion = words(&message.text) + message.calls.iter().map(|(_, said)| words(said)).sum::<usize>();
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

/// Unique within a conversation, because it grows with every call.
fn call_id(request: &Value, index: usize) -> String {
    format!("scripted-{}-{index}", request["messages"].as_array().map_or(0, Vec::len))
}

fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}
