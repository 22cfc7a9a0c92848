//! A turn with a model: its calls, the tools it asks for, its sentences as they come.
//!
//! Invariant: at most `max_tool_rounds` rounds of tools; then the model must answer without.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use serde_json::Value;

use super::compose::{Piece, Writer, Written};
use super::window::{Window, left_out_warning, tokens};
use super::{Agent, Brief, Draft, NO_INFORMATION, RESERVE, RetrievalMode, too_slow};
use crate::cite::{Addresses, take_pointers};
use crate::clock::Clock;
use crate::generate::{
    GenerateError, GenerateEvent, GenerateRequest, Generator, Message, Role, ToolCall, Usage,
};
use crate::index::{Filter, NoSuchPart};
use crate::prompt;
use crate::query::{MOST_TOOL_HITS, Question};
use crate::retrieve::Hit;
use crate::session::ToolRecord;
use crate::units::units;

/// Waits for `work`, but not longer than `time`.
pub async fn within<T>(clock: &dyn Clock, time: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(Box::pin(work), clock.sleep(time)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

/// What a model said, without what it thought: some send both in one stream.
pub fn spoken(text: &str) -> &str {
    match text.trim_start().strip_prefix("<think>") {
        Some(thought) => thought.split_once("</think>").map_or("", |(_, said)| said),
        None if "<think>".starts_with(text.trim_start()) => "",
        None => text,
    }
}

/// One turn of a model.
pub struct ModelTurn<'a> {
    agent: &'a Agent,
    generator: &'a dyn Generator,
    searched: &'a Question,
    /// The passages the model has seen; passage `n` is at `n - 1`.
    hits: Vec<Hit>,
    messages: Vec<Message>,
    /// How many of the messages are earlier turns.
    earlier: usize,
    writer: Writer<'a>,
    usage: Usage,
    tool_calls: Vec<ToolRecord>,
    removed_pointers: usize,
    warnings: Vec<String>,
    /// All that came in this call, thoughts included.
    received: String,
    /// How much of what was said is written.
    written_to: usize,
    /// When something last came, in microseconds of the clock; read while the turn runs.
    progress: Arc<AtomicU64>,
}

impl<'a> ModelTurn<'a> {
    /// Prepares the conversation.
    pub fn new(
        agent: &'a Agent,
        generator: &'a dyn Generator,
        brief: &Brief<'a>,
        writer: Writer<'a>,
    ) -> Self {
        let prefetch = agent.settings.retrieval_mode == RetrievalMode::Prefetch;
        let mut hits = if prefetch { brief.retrieved.hits.clone() } else { Vec::new() };
        let window = Window::new(brief.asked, &hits, brief.history, &agent.settings);
        hits.truncate(window.passages);
        Self {
            agent,
            generator,
            searched: brief.searched,
            hits,
            messages: window.messages,
            earlier: window.earlier,
            writer,
            usage: Usage::default(),
            tool_calls: Vec::new(),
            removed_pointers: 0,
            warnings: window.warnings,
            received: String::new(),
            written_to: 0,
            progress: Arc::new(AtomicU64::new(micros(agent.clock.now()))),
        }
    }

    /// Runs the turn within its deadline. When it is streamed, the deadline begins anew
    /// with everything that comes, up to the time a streamed turn may take.
    pub async fn run_within(&mut self, brief: &Brief<'_>) -> Result<(), GenerateError> {
        let (start, streamed) = (brief.start, brief.streamed);
        let (clock, settings) = (self.agent.clock.clone(), &self.agent.settings);
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
        let settings = &self.agent.settings;
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
                    // Our estimate was wrong: the conversation goes, the question stays.
                    self.messages.drain(1..=self.earlier);
                    self.warnings.push(left_out_warning(self.earlier / 2));
                    self.earlier = 0;
                    continue;
                }
                called => called?,
            };
            if calls.is_empty() && request.must_use_tool {
                // It answered without looking: look for it, and let it answer again.
                calls.push(self.obvious_call());
            }
            if calls.is_empty() || last {
                break;
            }
            // What it said before it had the passages is no answer.
            let said = spoken(&std::mem::take(&mut self.received)).to_owned();
            self.written_to = 0;
            self.writer.clear();
            self.messages.push(Message { tool_calls: calls.clone(), ..Message::text(Role::Assistant, said) });
            for call in &calls {
                let result = self.run_tool(call).await;
                self.messages.push(Message::tool_result(call, result));
            }
            round += 1;
        }
        self.write_up_to(usize::MAX).await;
        if spoken(&self.received).trim().is_empty() {
            return Err(GenerateError::Unavailable("it sent an empty answer".to_owned()));
        }
        Ok(())
    }

    /// One call: sentences are written as they are complete.
    async fn call(&mut self, request: &GenerateRequest) -> Result<Vec<ToolCall>, GenerateError> {
        let mut stream = self.generator.generate(request).await?;
        let mut calls = Vec::new();
        while let Some(event) = stream.next().await {
            self.progress.store(micros(self.agent.clock.now()), Ordering::Relaxed);
            match event? {
                GenerateEvent::Text(text) => {
                    self.received.push_str(&text);
                    let complete =
                        units(spoken(&self.received)).iter().rev().nth(1).map(|unit| unit.span.end);
                    if let Some(end) = complete.filter(|end| *end > self.written_to) {
                        self.write_up_to(end).await;
                    }
                }
                GenerateEvent::ToolCalls(more) => calls.extend(more),
                GenerateEvent::Done(usage) => self.count(usage, request),
            }
        }
        Ok(calls)
    }

    /// Adds what a call cost; an estimate where the provider does not say.
    fn count(&mut self, usage: Usage, request: &GenerateRequest) {
        let sent = || request.messages.iter().map(|message| tokens(&message.content)).sum::<usize>() as u32;
        let estimated = usage.total() == 0;
        self.usage.input_tokens += if estimated { sent() } else { usage.input_tokens };
        self.usage.output_tokens +=
            if estimated { tokens(&self.received) as u32 } else { usage.output_tokens };
    }

    /// Writes the sentences of the answer that end at or before `end`.
    async fn write_up_to(&mut self, end: usize) {
        let answer = spoken(&self.received).to_owned();
        for unit in units(&answer) {
            if unit.span.end > end || unit.span.start < self.written_to {
                continue;
            }
            let separator = match &answer[self.written_to..unit.span.start] {
                gap if gap.contains("\n\n") => "\n\n",
                gap if gap.contains('\n') => "\n",
                _ => " ",
            };
            let pointed = take_pointers(&answer[unit.span.clone()], self.hits.len(), &Seen(&self.hits));
            self.written_to = unit.span.end;
            self.removed_pointers += pointed.removed;
            let piece = Piece {
                separator: separator.to_owned(),
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
            name: self.agent.settings.tool_name.clone(),
            arguments: serde_json::json!({ "query": self.searched.text() }).to_string(),
        }
    }

    /// Runs a tool. Whatever is wrong goes back to the model as words it can act on.
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
            timestamp: self.agent.clock.timestamp(),
        });
        result
    }

    async fn search(&self, call: &ToolCall) -> Result<(String, Vec<Hit>), (String, String)> {
        let tool = &self.agent.settings.tool_name;
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

    /// A module the book does not have would silently find nothing.
    async fn check_filter(&self, filter: &Filter) -> Result<(), String> {
        match self.agent.retriever.check(filter).await {
            Ok(Err(NoSuchPart::Module { name, known, .. } | NoSuchPart::Book { name, known })) => {
                Err(format!("there is no module `{name}`; there are {}", known.join(", ")))
            }
            _ => Ok(()),
        }
    }

    /// What came of it.
    pub fn finish(self) -> (Draft, Written) {
        let declined = spoken(&self.received).contains(NO_INFORMATION);
        let draft = Draft {
            hits: self.hits,
            usage: self.usage,
            model: self.generator.model().to_owned(),
            tool_calls: self.tool_calls,
            removed_pointers: self.removed_pointers,
            warnings: self.warnings,
            ..Draft::default()
        };
        let mut writer = self.writer;
        if declined {
            // A model that declines and then talks on has declined.
            writer.clear();
        }
        (draft, writer.finish())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The addresses of the passages the model has seen.
struct Seen<'a>(&'a [Hit]);

impl Addresses for Seen<'_> {
    fn is_page(&self, url: &str) -> bool {
        self.0.iter().any(|hit| hit.chunk.url == url)
    }

    fn is_in_text(&self, url: &str) -> bool {
        self.0.iter().any(|hit| hit.chunk.content.contains(url))
    }
}
