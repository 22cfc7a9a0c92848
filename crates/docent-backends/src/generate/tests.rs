use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use docent_core::generate::{
    EventStream, GenerateError, GenerateEvent, GenerateRequest, Generator, Message, Role, ToolCall, ToolSpec,
    Usage,
};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{RemoteGenerator, RemoteSettings};
use crate::resilience::{BreakerState, Policy};
use docent_testkit::{Reply, ScriptedModel};

const KEY: &str = "sk-very-secret";

/// Settings with short timeouts, so that failing tests fail quickly.
fn settings(model: &ScriptedModel) -> RemoteSettings {
    let policy = Policy {
        first_delay: Duration::from_millis(1),
        attempt_timeout: Duration::from_secs(5),
        ..Policy::default()
    };
    RemoteSettings {
        base_url: Some(model.url()),
        api_key: Some(KEY.into()),
        policy,
        ..RemoteSettings::new("test-model")
    }
}

async fn scripted(script: Vec<Reply>) -> (ScriptedModel, RemoteGenerator) {
    let model = ScriptedModel::start(script).await.unwrap();
    let generator = RemoteGenerator::new(settings(&model)).unwrap();
    (model, generator)
}

fn question() -> GenerateRequest {
    let messages =
        vec![Message::text(Role::System, "Answer briefly."), Message::text(Role::User, "What is a node?")];
    let mut request = GenerateRequest::new(messages);
    request.temperature = 0.1;
    request
}

fn search_tool() -> ToolSpec {
    let query = json!({"type": "string"});
    ToolSpec {
        name: "search".to_owned(),
        description: "Finds passages.".to_owned(),
        parameters: json!({"type": "object", "properties": {"query": query}, "required": ["query"]}),
    }
}

/// The whole answer: its text, its tool calls, and how it ended.
async fn drain(mut stream: EventStream) -> (String, Vec<ToolCall>, Result<Usage, GenerateError>) {
    let (mut text, mut calls) = (String::new(), Vec::new());
    loop {
        let ended = match stream.next().await.unwrap() {
            Ok(GenerateEvent::Text(piece)) => {
                text += &piece;
                continue;
            }
            Ok(GenerateEvent::ToolCalls(some)) => {
                calls.extend(some);
                continue;
            }
            Ok(GenerateEvent::Done(usage)) => Ok(usage),
            Ok(event) => panic!("unexpected event: {event:?}"),
            Err(error) => Err(error),
        };
        assert!(stream.next().await.is_none(), "there was an event after the end");
        return (text, calls, ended);
    }
}

async fn ask(script: Vec<Reply>) -> (String, Vec<ToolCall>, Result<Usage, GenerateError>) {
    let (_model, generator) = scripted(script).await;
    drain(generator.generate(&question()).await.unwrap()).await
}

/// The error of a call that fails before the first event, and the number of requests.
async fn refuse(reply: Reply) -> (GenerateError, usize) {
    let (model, generator) = scripted(vec![reply]).await;
    let error = generator.generate(&question()).await.err().unwrap();
    (error, model.count())
}

#[tokio::test]
async fn text_is_complete_and_in_order() {
    let said =
        "Ein Knoten ist ein Prozeß. 🤖 节点是一个进程。 \"Quoted\\\" and\nbroken — ünïcödé. ".repeat(5);
    let (text, calls, ended) = ask(vec![Reply::text(said.clone())]).await;
    assert_eq!(text, said);
    assert_eq!(calls, []);
    let words = said.split_whitespace().count() as u32;
    assert_eq!(ended.unwrap(), Usage { input_tokens: 6, output_tokens: words });
}

#[tokio::test]
async fn text_is_streamed() {
    let (_model, generator) = scripted(vec![Reply::Stall { after: "First words".to_owned() }]).await;
    let mut stream = generator.generate(&question()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), GenerateEvent::Text("First wo".to_owned()));
}

#[tokio::test]
async fn several_tools_may_be_called_in_one_message() {
    let calls =
        [("search", r#"{"query":"what is a node, précisément"}"#), ("read", r#"{"page":7}"#), ("list", "{}")];
    let script = calls.map(|(name, arguments)| (name.to_owned(), arguments.to_owned())).to_vec();
    let (text, got, ended) = ask(vec![Reply::ToolCalls(script)]).await;
    assert_eq!(text, "");
    assert!(ended.is_ok());
    let got: Vec<_> = got.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(got, calls);
}

#[tokio::test]
async fn arguments_that_are_not_json_are_unchanged() {
    let (_, calls, _) = ask(vec![Reply::tool_call("search", "{\"query\": oops")]).await;
    assert_eq!(calls[0].arguments, "{\"query\": oops");
}

#[tokio::test]
async fn calls_without_ids_get_unique_ids_however_the_server_numbers_them() {
    let delta =
        |call: Value| format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}));
    let call = |index: u32, query: &str| {
        let begin = json!({"index": index, "function": {"name": "search", "arguments": "{\"query\":"}});
        let end = json!({"index": index, "function": {"arguments": format!("\"{query}\"}}")}});
        delta(begin) + &delta(end)
    };
    let body = call(1, "a") + &call(2, "b") + "data: [DONE]\n\n";
    let (_, first, ended) = ask(vec![Reply::Raw(body.clone())]).await;
    assert_eq!(ended.unwrap(), Usage::default());
    let (_, second, _) = ask(vec![Reply::Raw(body)]).await;
    let arguments: Vec<_> = first.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, [r#"{"query":"a"}"#, r#"{"query":"b"}"#]);
    let ids: std::collections::HashSet<_> = first.iter().chain(&second).map(|call| &call.id).collect();
    assert_eq!(ids.len(), 4);
}

#[tokio::test]
async fn an_empty_answer_is_valid() {
    let (text, calls, ended) = ask(vec![Reply::Empty]).await;
    assert_eq!((text.as_str(), calls.as_slice(), ended.unwrap().output_tokens), ("", [].as_slice(), 0));
}

#[tokio::test]
async fn the_request_is_what_openai_expects() {
    let (model, generator) = scripted(vec![Reply::text("Yes.")]).await;
    let call = ToolCall {
        id: "1".to_owned(),
        name: "search".to_owned(),
        arguments: "{\"query\":\"node\"}".to_owned(),
    };
    let mut request = question();
    request
        .messages
        .push(Message { tool_calls: vec![call.clone()], ..Message::text(Role::Assistant, "Let me look.") });
    request.messages.push(Message::tool_result(&call, "{\"results\":[]}"));
    request.tools = vec![search_tool()];
    request.must_use_tool = true;
    request.max_output_tokens = Some(300);
    drain(generator.generate(&request).await.unwrap()).await.2.unwrap();

    let sent = &model.requests()[0];
    assert_eq!(sent.headers["authorization"], "Bearer …");
    assert_eq!(
        sent.body,
        json!({
            "model": "test-model",
            "stream": true,
            "stream_options": {"include_usage": true},
            "temperature": 0.1,
            "max_tokens": 300,
            "tool_choice": "required",
            "tools": [{"type": "function", "function": {
                "name": "search", "description": "Finds passages.", "strict": false,
                "parameters": search_tool().parameters,
            }}],
            "messages": [
                {"role": "system", "content": "Answer briefly."},
                {"role": "user", "content": "What is a node?"},
                {"role": "assistant", "content": "Let me look.", "tool_calls": [
                    {"type": "function", "id": "1", "function": {"name": "search", "arguments": "{\"query\":\"node\"}"}},
                ]},
                {"role": "tool", "tool_call_id": "1", "content": "{\"results\":[]}"},
            ],
        })
    );
}

#[tokio::test]
async fn a_request_without_tools_has_no_tool_choice() {
    let (model, generator) = scripted(vec![Reply::Echo]).await;
    let mut request = question();
    request.must_use_tool = true;
    let (text, ..) = drain(generator.generate(&request).await.unwrap()).await;
    assert_eq!(text, "You asked: What is a node?");
    let body = &model.requests()[0].body;
    assert!(body.get("tools").is_none() && body.get("tool_choice").is_none(), "{body}");
}

#[tokio::test]
async fn a_local_server_needs_no_key_and_no_exact_url() {
    let model = ScriptedModel::start(vec![Reply::Echo]).await.unwrap();
    let bare = model.url().trim_end_matches("/v1").to_owned();
    for (url, key) in [(format!("{}/", model.url()), None), (bare.clone(), Some("")), (bare + "/", None)] {
        let settings =
            RemoteSettings { base_url: Some(url), api_key: key.map(Into::into), ..settings(&model) };
        let generator = RemoteGenerator::new(settings).unwrap();
        drain(generator.generate(&question()).await.unwrap()).await.2.unwrap();
    }
    assert_eq!(model.count(), 3);
    assert!(model.requests().iter().all(|request| !request.headers.contains_key("authorization")));
}

#[tokio::test]
async fn a_compatible_server_gets_the_full_model_name() {
    let model = ScriptedModel::start(vec![Reply::Echo]).await.unwrap();
    let generator =
        RemoteGenerator::new(RemoteSettings { model: "my-model-max".to_owned(), ..settings(&model) })
            .unwrap();
    drain(generator.generate(&question()).await.unwrap()).await.2.unwrap();
    let body = &model.requests()[0].body;
    assert_eq!(body["model"], "my-model-max");
    assert!(body.get("reasoning_effort").is_none());
}

#[tokio::test]
async fn the_temperature_is_omitted_after_the_model_rejects_it() {
    let refusal = json!({"error": {"param": "temperature", "code": "unsupported_value"}}).to_string();
    let decide = move |body: &Value| match body.get("temperature") {
        Some(_) => Reply::Status { code: 400, retry_after: None, body: refusal.clone() },
        None => Reply::text("Fine."),
    };
    let (model, generator) = scripted(vec![Reply::with(decide)]).await;
    for calls in [2, 3] {
        let (text, ..) = drain(generator.generate(&question()).await.unwrap()).await;
        assert_eq!((text.as_str(), model.count()), ("Fine.", calls));
    }
}

#[tokio::test]
async fn retry_after_is_respected() {
    let busy = Reply::Status { code: 429, retry_after: Some(1), body: String::new() };
    let (model, generator) = scripted(vec![busy, Reply::text("Now.")]).await;
    let started = Instant::now();
    let (text, ..) = drain(generator.generate(&question()).await.unwrap()).await;
    assert_eq!((text.as_str(), model.count()), ("Now.", 2));
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_long_retry_after_fails_at_once() {
    let (error, calls) =
        refuse(Reply::Status { code: 429, retry_after: Some(60), body: String::new() }).await;
    let delay = Some(Duration::from_secs(60));
    assert!(matches!(error, GenerateError::RateLimited { retry_after } if retry_after == delay), "{error}");
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn server_errors_are_retried_up_to_three_attempts() {
    let (error, calls) = refuse(Reply::status(500)).await;
    assert!(matches!(error, GenerateError::Unavailable(_)), "{error}");
    assert_eq!(calls, 3);
}

#[tokio::test]
async fn invalid_responses_are_retried_up_to_three_attempts() {
    for nonsense in [Reply::InvalidJson, Reply::Raw("<html>Welcome</html>".to_owned())] {
        let (error, calls) = refuse(nonsense).await;
        assert!(matches!(error, GenerateError::Unavailable(_)), "{error}");
        assert_eq!(calls, 3);
    }
}

#[tokio::test]
async fn an_error_sent_as_an_event_is_an_error() {
    let (error, calls) =
        refuse(Reply::Raw("data: {\"error\": {\"message\": \"no\", \"code\": 400}}\n\n".to_owned())).await;
    assert!(matches!(error, GenerateError::Refused(_)), "{error}");
    assert_eq!(calls, 1);
    let (error, calls) =
        refuse(Reply::Raw("data: {\"error\": {\"message\": \"overloaded\"}}\n\n".to_owned())).await;
    assert!(matches!(error, GenerateError::Unavailable(_)), "{error}");
    assert_eq!(calls, 3);
}

#[tokio::test]
async fn an_unreachable_server_is_unavailable() {
    let model = ScriptedModel::start(vec![]).await.unwrap();
    let generator = RemoteGenerator::new(settings(&model)).unwrap();
    let url = model.url();
    drop(model);
    // The port is free once the server's task is gone.
    while tokio::net::TcpStream::connect(url.trim_start_matches("http://").trim_end_matches("/v1"))
        .await
        .is_ok()
    {
        tokio::task::yield_now().await;
    }
    let error = generator.generate(&question()).await.err().unwrap();
    assert_eq!(error.to_string(), "the model is unavailable: the connection failed: connection refused");
}

#[tokio::test]
async fn a_model_that_never_answers_times_out() {
    let model = ScriptedModel::start(vec![Reply::Stall { after: String::new() }]).await.unwrap();
    let mut settings = settings(&model);
    settings.policy.attempt_timeout = Duration::from_millis(100);
    let generator = RemoteGenerator::new(settings).unwrap();
    let error = generator.generate(&question()).await.err().unwrap();
    assert!(matches!(error, GenerateError::Unavailable(_)), "{error}");
    assert_eq!(model.count(), 3);
}

#[tokio::test]
async fn five_failures_open_the_circuit() {
    let model = ScriptedModel::start(vec![Reply::status(503)]).await.unwrap();
    let mut settings = settings(&model);
    settings.policy.attempts = 1;
    let generator = RemoteGenerator::new(settings).unwrap();
    for _ in 0..5 {
        assert_eq!(generator.breaker(), BreakerState::Closed);
        assert!(generator.generate(&question()).await.is_err());
    }
    assert_eq!((generator.breaker(), model.count()), (BreakerState::Open, 5));
    let error = generator.generate(&question()).await.err().unwrap();
    assert!(matches!(error, GenerateError::Unavailable(_)), "{error}");
    assert_eq!(model.count(), 5);
}

#[tokio::test]
async fn interrupted_answers_open_the_circuit() {
    let (_model, generator) = scripted(vec![Reply::Cut { after: "A node is".to_owned() }]).await;
    for _ in 0..5 {
        assert_eq!(generator.breaker(), BreakerState::Closed);
        assert!(drain(generator.generate(&question()).await.unwrap()).await.2.is_err());
    }
    assert_eq!(generator.breaker(), BreakerState::Open);
}

#[tokio::test]
async fn a_stalled_answer_is_interrupted() {
    let model = ScriptedModel::start(vec![Reply::Stall { after: "A node is".to_owned() }]).await.unwrap();
    let idle_timeout = Duration::from_millis(200);
    let generator = RemoteGenerator::new(RemoteSettings { idle_timeout, ..settings(&model) }).unwrap();
    let started = Instant::now();
    let (text, _, ended) = drain(generator.generate(&question()).await.unwrap()).await;
    assert_eq!(text, "A node is");
    assert!(matches!(ended, Err(GenerateError::Interrupted(_))));
    assert!(started.elapsed() >= idle_timeout);
    assert_eq!(model.count(), 1);
    model.hangup().await;
}

#[tokio::test]
async fn a_dropped_connection_interrupts_the_answer() {
    let (text, _, ended) = ask(vec![Reply::Cut { after: "A node is".to_owned() }]).await;
    assert_eq!(text, "A node is");
    assert!(matches!(ended, Err(GenerateError::Interrupted(_))));
}

#[tokio::test]
async fn an_answer_without_an_end_is_interrupted() {
    let body = "data: {\"choices\": [{\"delta\": {\"content\": \"A node\"}}]}\n\n";
    let (text, _, ended) = ask(vec![Reply::Raw(body.to_owned())]).await;
    assert_eq!(text, "A node");
    assert!(matches!(ended, Err(GenerateError::Interrupted(_))));
    let (text, _, ended) = ask(vec![Reply::Raw(format!("{body}data: {{\"cho\n\n"))]).await;
    assert_eq!(text, "A node");
    assert!(matches!(ended, Err(GenerateError::Interrupted(_))));
}

#[tokio::test]
async fn an_endless_answer_is_stopped() {
    let (model, generator) = scripted(vec![Reply::Huge(10_000_000)]).await;
    let (text, _, ended) = drain(generator.generate(&question()).await.unwrap()).await;
    assert!((900_000..=1_000_000).contains(&text.len()), "{}", text.len());
    assert_eq!(ended.unwrap_err().to_string(), "the model's answer was interrupted: the answer is too long");
    model.hangup().await;
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let (model, generator) = scripted(vec![Reply::Stall { after: "A node is".to_owned() }]).await;
    let mut stream = generator.generate(&question()).await.unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    model.hangup().await;
    assert_eq!(generator.breaker(), BreakerState::Closed);
}

#[tokio::test]
async fn a_rejected_request_is_not_retried_and_its_error_contains_no_secrets() {
    let body =
        format!("{{\"error\": {{\"message\": \"Bad key {KEY}: What is a node?\", \"code\": \"{KEY}\"}}}}");
    for code in [400, 401, 403, 404, 422] {
        let (error, calls) = refuse(Reply::Status { code, retry_after: None, body: body.clone() }).await;
        assert!(matches!(error, GenerateError::Refused(_)), "{error}");
        assert_eq!(calls, 1);
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("secret") && !shown.contains("node"), "{shown}");
    }
}

#[tokio::test]
async fn the_key_does_not_appear_in_debug_output_and_errors() {
    let (_model, generator) = scripted(vec![]).await;
    assert!(!format!("{generator:?}").contains("secret"));
    let settings =
        RemoteSettings { api_key: Some("two\nlines".into()), ..RemoteSettings::new("gpt-4o-mini") };
    let error = RemoteGenerator::new(settings).unwrap_err();
    assert!(matches!(error, GenerateError::Refused(_)) && !error.to_string().contains("lines"));
}

/// Records everything that is logged.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<String>>);

impl tracing::Subscriber for Listener {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut |_: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            self.0.lock().unwrap().push_str(&format!("{value:?}\n"));
        });
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn text_from_the_server_is_never_logged() {
    let listener = Listener::default();
    let _guard = tracing::subscriber::set_default(listener.clone());
    tracing::info!("listening");
    let body = format!("Bad key {KEY}: What is a node?");
    refuse(Reply::Status { code: 401, retry_after: None, body: body.clone() }).await;
    let said = "data: {\"choices\": [{\"delta\": {\"content\": \"A\"}}]}\n\n";
    let (.., ended) = ask(vec![Reply::Raw(format!("{said}data: {body}\n\n"))]).await;
    assert!(ended.is_err());
    let heard = listener.0.lock().unwrap().clone();
    assert!(heard.contains("listening"));
    assert!(!heard.contains("secret") && !heard.contains("node"), "{heard}");
}
