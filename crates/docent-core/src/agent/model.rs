//! Run a turn with a model: call it, run the tools it requests, and write its sentences as they arrive.
//!
//! Invariant: there are at most `max_tool_rounds` rounds of tool calls; after them, the model must answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use serde_json::Value;

use super::incoming::{Incoming, Raw};
use super::window::{Characters, Window, left_out_warning, tokens};
use super::writer::{Piece, Writer, Written};
use super::{Brief, Draft, NO_INFORMATION, PinnedAgent, RESERVE, RetrievalMode, too_slow};
use crate::cite::{Addresses, take_pointers};
use crate::generate::{
    GenerateError, GenerateEvent, GenerateRequest, Generator, Message, Meter, Role, ToolCall, Usage,
};
use crate::index::{Filter, NoSuchPart};
use crate::prompt;
use crate::query::{MOST_TOOL_HITS, Question};
use crate::retrieve::Hit;
use crate::session::ToolRecord;

/// One turn of a model.
pub struct ModelTurn<'a> {
    agent: &'a PinnedAgent,
    generator: &'a dyn Generator,
    searched: &'a Question,
    /// The passages the model has seen; passage `n` is at `n - 1`.
    hits: Vec<Hit>,
    messages: Vec<Message>,
    /// How many of the messages are earlier turns.
    earlier: usize,
    writer: Writer<'a>,
    /// Tokens the turn had used before its first call.
    used_before: Usage,
    /// Tokens used by finished calls.
    usage: Usage,
    /// Estimated tokens of the current call.
    running: Usage,
    meter: &'a Meter,
    tool_calls: Vec<ToolRecord>,
    removed_pointers: usize,
    warnings: Vec<String>,
    /// Text received in the current call.
    incoming: Incoming,
    /// When the model last sent something, in microseconds of the clock; read while the turn runs.
    progress: Arc<AtomicU64>,
}

impl<'a> ModelTurn<'a> {
    /// Prepares the messages.
    pub fn new(
        agent: &'a PinnedAgent,
        generator: &'a dyn Generator,
        brief: &Brief<'a>,
        writer: Writer<'a>,
    ) -> Self {
        let sent = brief.prefetched(&agent.parts.settings);
        let window = Window::new(brief.asked, &sent, brief.history, &agent.parts.settings);
        let hits = sent[..window.passages].iter().map(|excerpt| excerpt.hit.clone()).collect();
        Self {
            agent,
            generator,
            searched: brief.searched,
            hits,
            messages: window.messages,
            earlier: window.earlier,
            writer,
            used_before: brief.meter.usage(),
            usage: Usage::default(),
            running: Usage::default(),
            meter: brief.meter,
            tool_calls: Vec::new(),
            removed_pointers: 0,
            warnings: window.warnings,
            incoming: Incoming::default(),
            progress: Arc::new(AtomicU64::new(micros(agent.parts.clock.now()))),
        }
    }

    /// Runs the turn within its deadline. For a streamed turn, everything that arrives restarts the deadline,
    /// up to the limit for streamed turns.
    pub async fn run_within(&mut self, brief: &Brief<'_>) -> Result<(), GenerateError> {
        let (start, streamed) = (brief.start, brief.streamed);
        let (clock, settings) = (self.agent.parts.clock.clone(), &self.agent.parts.settings);
        let whole = if streamed { settings.stream_deadline } else { settings.deadline };
        let end = (start + whole).saturating_sub(RESERVE);
        let quiet = settings.deadline.saturating_sub(RESERVE);
        let progress = self.progress.clone();
        let mut work = Box::pin(self.run());
        loop {
            let heard = Duration::from_micros(progress.load(Ordering::Relaxed));
            let until = if streamed { end.min(heard + quiet) } else { end };
            let left = until.saturating_sub(clock.now());
            if left.is_zero() {
                return Err(too_slow());
            }
            match select(work, clock.sleep(left)).await {
                Either::Left((ended, _)) => return ended,
                Either::Right(((), unfinished)) => {
                    let now = Duration::from_micros(progress.load(Ordering::Relaxed));
                    if !streamed || now == heard {
                        return Err(too_slow());
                    }
                    work = unfinished;
                }
            }
        }
    }

    /// Calls the model until it answers.
    async fn run(&mut self) -> Result<(), GenerateError> {
        let settings = &self.agent.parts.settings;
        let mut round = 0;
        loop {
            let last = round >= settings.max_tool_rounds;
            let request = GenerateRequest {
                messages: self.messages.clone(),
                tools: if last { Vec::new() } else { vec![prompt::tool(&settings.tool_name)] },
                must_use_tool: !last && round == 0 && settings.retrieval_mode == RetrievalMode::Tool,
                temperature: settings.temperature,
                max_output_tokens: settings.max_output_tokens,
            };
            let mut calls = match self.call(&request).await {
                Err(GenerateError::TooLong(_)) if self.earlier > 0 => {
                    // The estimate was too low: drop the earlier turns and keep the question.
                    self.messages.drain(1..=self.earlier);
                    self.warnings.push(left_out_warning(self.earlier / 2));
                    self.earlier = 0;
                    continue;
                }
                called => called?,
            };
            if calls.is_empty() && request.must_use_tool {
                // The model answered without searching: search for it, and let it answer again.
                calls.push(self.obvious_call());
            }
            if calls.is_empty() || last {
                break;
            }
            // Text sent before the passages were known is not part of the answer.
            let said = std::mem::take(&mut self.incoming).spoken().to_owned();
            self.writer.clear();
            self.messages.push(Message { tool_calls: calls.clone(), ..Message::text(Role::Assistant, said) });
            for call in &calls {
                let result = self.run_tool(call).await;
                self.messages.push(Message::tool_result(call, result));
            }
            round += 1;
        }
        let rest = self.incoming.finish();
        self.write(rest).await;
        if self.incoming.spoken().trim().is_empty() {
            return Err(GenerateError::Unavailable("it sent an empty answer".to_owned()));
        }
        Ok(())
    }

    /// Makes one call and writes each sentence as soon as it is complete.
    async fn call(&mut self, request: &GenerateRequest) -> Result<Vec<ToolCall>, GenerateError> {
        self.begin_call(request);
        let started = self.generator.generate(request).await;
        if started.is_err() {
            // The call was refused, so no tokens were used.
            self.end_call(Usage::default());
        }
        let mut stream = started?;
        let mut calls = Vec::new();
        let mut characters = Characters::default();
        while let Some(event) = stream.next().await {
            self.progress.store(micros(self.agent.parts.clock.now()), Ordering::Relaxed);
            match event? {
                GenerateEvent::Text(text) => {
                    characters.count(&text);
                    self.running.output_tokens = characters.tokens();
                    self.show_usage();
                    let complete = self.incoming.push(&text);
                    self.write(complete).await;
                }
                GenerateEvent::ToolCalls(more) => calls.extend(more),
                // Some providers do not report usage.
                GenerateEvent::Done(usage) if usage.total() == 0 => self.end_call(self.running),
                GenerateEvent::Done(usage) => self.end_call(usage),
            }
        }
        Ok(calls)
    }

    fn begin_call(&mut self, request: &GenerateRequest) {
        self.end_call(self.running);
        let sent = request.messages.iter().map(|message| tokens(&message.content)).sum::<usize>();
        self.running.input_tokens = u32::try_from(sent).unwrap_or(u32::MAX);
        self.show_usage();
    }

    fn end_call(&mut self, usage: Usage) {
        self.usage = self.usage + usage;
        self.running = Usage::default();
        self.show_usage();
    }

    fn show_usage(&self) {
        self.meter.set(self.used_before + self.usage + self.running);
    }

    /// Writes pieces of the answer.
    async fn write(&mut self, pieces: Vec<Raw>) {
        for raw in pieces {
            let pointed = take_pointers(&raw.text, self.hits.len(), &Seen(&self.hits));
            self.removed_pointers += pointed.removed;
            let piece = Piece {
                separator: raw.separator,
                text: pointed.text,
                passages: pointed.passages,
                copied: None,
            };
            self.writer.write(piece, &self.hits).await;
        }
    }

    fn obvious_call(&self) -> ToolCall {
        ToolCall {
            id: "call_0".to_owned(),
            name: self.agent.parts.settings.tool_name.clone(),
            arguments: serde_json::json!({ "query": self.searched.text() }).to_string(),
        }
    }

    /// Runs a tool. Errors go back to the model as text, so that it can react.
    async fn run_tool(&mut self, call: &ToolCall) -> String {
        let (result, query, found) = match self.search(call).await {
            Ok((query, hits)) => {
                let first = self.hits.len() + 1;
                let result = prompt::tool_result(&query, &hits, first);
                self.hits.extend(hits.iter().cloned());
                (result, query, hits)
            }
            Err((query, message)) => (prompt::tool_error(&query, &message), query, Vec::new()),
        };
        self.tool_calls.push(ToolRecord {
            tool_name: call.name.clone(),
            arguments: call.arguments.clone(),
            query,
            results_count: found.len(),
            avg_similarity: found.iter().map(|hit| hit.score).sum::<f32>() / found.len().max(1) as f32,
            timestamp: self.agent.parts.clock.timestamp(),
        });
        result
    }

    async fn search(&self, call: &ToolCall) -> Result<(String, Vec<Hit>), (String, String)> {
        let tool = &self.agent.parts.settings.tool_name;
        if call.name != *tool {
            return Err((String::new(), format!("there is no tool `{}`; use `{tool}`", call.name)));
        }
        let arguments: Value = serde_json::from_str(&call.arguments)
            .map_err(|error| (String::new(), format!("the arguments are not valid JSON: {error}")))?;
        let argument = |names: [&str; 2]| {
            names.iter().find_map(|name| arguments.get(*name)).filter(|value| !value.is_null())
        };
        let query = argument(["query", "question"]).and_then(Value::as_str).unwrap_or_default().to_owned();
        let invalid = |message: String| (query.clone(), message);
        let top_k = match argument(["top_k", "k"]) {
            None => crate::query::DEFAULT_HITS,
            Some(value) => {
                value.as_u64().ok_or_else(|| invalid("top_k must be a whole number".to_owned()))? as usize
            }
        };
        let threshold = match argument(["similarity_threshold", "threshold"]) {
            None => 0.0,
            Some(value) => {
                value.as_f64().ok_or_else(|| invalid("similarity_threshold must be a number".to_owned()))?
                    as f32
            }
        };
        let mut filter = self.searched.filter().clone();
        if let Some(module) = argument(["module", "module_filter"]).and_then(Value::as_str) {
            filter.module = Some(module.to_owned());
            self.check_filter(&filter).await.map_err(&invalid)?;
        }
        let question = Question::within(MOST_TOOL_HITS, &query, top_k, threshold, filter)
            .map_err(|error| invalid(error.to_string()))?;
        match self.agent.retriever.search(&question).await {
            Ok(found) => Ok((query, found.hits)),
            Err(error) => Err((query, error.told().to_owned())),
        }
    }

    /// Reports unknown modules and books; otherwise the search would silently find nothing.
    async fn check_filter(&self, filter: &Filter) -> Result<(), String> {
        match self.agent.retriever.check(filter).await {
            Ok(Err(NoSuchPart::Module { name, known, .. })) => {
                Err(format!("there is no module `{name}`; available modules: {}", known.join(", ")))
            }
            Ok(Err(error)) => {
                Err(format!("{error}; available {}: {}", error.kind(), error.known().join(", ")))
            }
            _ => Ok(()),
        }
    }

    /// The result of the turn.
    pub fn finish(self) -> (Draft, Written) {
        let declined = self.incoming.spoken().contains(NO_INFORMATION);
        let draft = Draft {
            hits: self.hits,
            // An interrupted call is billed too.
            usage: self.usage + self.running,
            model: self.generator.model().to_owned(),
            tool_calls: self.tool_calls,
            removed_pointers: self.removed_pointers,
            warnings: self.warnings,
            ..Draft::default()
        };
        let mut writer = self.writer;
        if declined {
            // If the model declines, ignore the rest of its answer.
            writer.clear();
        }
        (draft, writer.finish())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The URLs of the passages the model has seen.
struct Seen<'a>(&'a [Hit]);

impl Addresses for Seen<'_> {
    fn is_page(&self, url: &str) -> bool {
        self.0.iter().any(|hit| hit.chunk.url == url)
    }

    fn is_in_text(&self, url: &str) -> bool {
        self.0.iter().any(|hit| hit.chunk.content.contains(url))
    }
}
