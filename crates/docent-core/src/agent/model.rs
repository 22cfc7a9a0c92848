//! A turn with a model: its calls, the tools it asks for, its sentences as they come.
//!
//! Invariant: at most `max_tool_rounds` rounds of tools; then the model must answer without.

use std::future::Future;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use serde_json::Value;

use super::compose::{Piece, Writer, Written};
use super::{Agent, Draft, NO_INFORMATION, RetrievalMode};
use crate::cite::{Addresses, take_pointers};
use crate::clock::Clock;
use crate::generate::{
    GenerateError, GenerateEvent, GenerateRequest, Generator, Message, Role, ToolCall, Usage,
};
use crate::prompt;
use crate::query::{MOST_TOOL_HITS, Question};
use crate::retrieve::{Hit, RetrieveError, Retrieved};
use crate::session::{ToolRecord, Turn};
use crate::units::units;

/// Characters of earlier turns shown to the model; the oldest go first.
const HISTORY_BUDGET: usize = 16_000;

/// Waits for `work`, but not longer than `time`.
pub async fn within<T>(clock: &dyn Clock, time: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(Box::pin(work), clock.sleep(time)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

/// One turn of a model.
pub struct ModelTurn<'a> {
    agent: &'a Agent,
    generator: &'a dyn Generator,
    question: &'a Question,
    /// The passages the model has seen; passage `n` is at `n - 1`.
    hits: Vec<Hit>,
    messages: Vec<Message>,
    writer: Writer<'a>,
    usage: Usage,
    tool_calls: Vec<ToolRecord>,
    answer: String,
    /// How much of the answer is written.
    written_to: usize,
}

impl<'a> ModelTurn<'a> {
    /// Prepares the conversation.
    pub fn new(
        agent: &'a Agent,
        generator: &'a dyn Generator,
        question: &'a Question,
        retrieved: &Retrieved,
        history: &[Turn],
        writer: Writer<'a>,
    ) -> Self {
        let prefetch = agent.settings.retrieval_mode == RetrievalMode::Prefetch;
        let hits = if prefetch { retrieved.hits.clone() } else { Vec::new() };
        let mut messages = vec![Message::text(Role::System, prompt::system(&agent.settings.tool_name))];
        messages.extend(conversation(history, agent.settings.max_history));
        messages.push(Message::text(Role::User, prompt::question(question.text(), &hits, 1)));
        Self {
            agent,
            generator,
            question,
            hits,
            messages,
            writer,
            usage: Usage::default(),
            tool_calls: Vec::new(),
            answer: String::new(),
            written_to: 0,
        }
    }

    /// Calls the model until it answers.
    pub async fn run(&mut self) -> Result<(), GenerateError> {
        for round in 0.. {
            let settings = &self.agent.settings;
            let last = round >= settings.max_tool_rounds;
            let request = GenerateRequest {
                messages: self.messages.clone(),
                tools: if last { Vec::new() } else { vec![prompt::tool(&settings.tool_name)] },
                must_use_tool: !last && round == 0 && settings.retrieval_mode == RetrievalMode::Tool,
                temperature: settings.temperature,
                max_output_tokens: settings.max_output_tokens,
            };
            let mut calls = self.call(&request).await?;
            if calls.is_empty() && request.must_use_tool {
                // It answered without looking: look for it, and let it answer again.
                calls.push(self.obvious_call());
            }
            if calls.is_empty() || last {
                break;
            }
            // What it said before it had the passages is no answer.
            let said = std::mem::take(&mut self.answer);
            self.written_to = 0;
            self.writer.clear();
            self.messages.push(Message { tool_calls: calls.clone(), ..Message::text(Role::Assistant, said) });
            for call in &calls {
                let result = self.run_tool(call).await;
                self.messages.push(Message::tool_result(call, result));
            }
        }
        self.write_up_to(self.answer.len()).await;
        if self.answer.trim().is_empty() {
            return Err(GenerateError::Unavailable("it sent an empty answer".to_owned()));
        }
        Ok(())
    }

    /// One call: sentences are written as they are complete.
    async fn call(&mut self, request: &GenerateRequest) -> Result<Vec<ToolCall>, GenerateError> {
        let mut stream = self.generator.generate(request).await?;
        let mut calls = Vec::new();
        while let Some(event) = stream.next().await {
            match event? {
                GenerateEvent::Text(text) => {
                    self.answer.push_str(&text);
                    let complete = units(&self.answer).iter().rev().nth(1).map(|unit| unit.span.end);
                    if let Some(end) = complete.filter(|end| *end > self.written_to) {
                        self.write_up_to(end).await;
                    }
                }
                GenerateEvent::ToolCalls(more) => calls.extend(more),
                GenerateEvent::Done(usage) => {
                    self.usage.input_tokens += usage.input_tokens;
                    self.usage.output_tokens += usage.output_tokens;
                }
            }
        }
        Ok(calls)
    }

    /// Writes the sentences of the answer that end at or before `end`.
    async fn write_up_to(&mut self, end: usize) {
        let answer = self.answer.clone();
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
            arguments: serde_json::json!({ "query": self.question.text() }).to_string(),
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
        let module = argument(["module", "module_filter"]).and_then(Value::as_str).map(str::to_owned);
        let module = module.or_else(|| self.question.module().map(str::to_owned));
        let question = Question::within(MOST_TOOL_HITS, &query, top_k, threshold, module)
            .map_err(|error| invalid(error.to_string()))?;
        match self.agent.retriever.search(&question).await {
            Ok(found) => Ok((query, found.hits)),
            Err(RetrieveError::Embed(_)) => Err((query, "Embedding generation failed".to_owned())),
            Err(_) => Err((query, "Textbook search unavailable".to_owned())),
        }
    }

    /// What came of it.
    pub fn finish(self) -> (Draft, Written) {
        let declined = self.answer.contains(NO_INFORMATION);
        let draft = Draft {
            hits: self.hits,
            usage: self.usage,
            model: String::new(),
            degraded: false,
            error: None,
            tool_calls: self.tool_calls,
        };
        // A model that declines and then talks on has declined.
        (draft, if declined { Written::default() } else { self.writer.finish() })
    }
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

/// The earlier turns as messages, the newest that fit.
fn conversation(history: &[Turn], most: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut budget = HISTORY_BUDGET;
    for turn in history.iter().rev() {
        let answer: Vec<&str> =
            turn.response.sentences.iter().map(|sentence| sentence.text.as_str()).collect();
        let answer = if answer.is_empty() { format!("{NO_INFORMATION}.") } else { answer.join(" ") };
        let length = turn.query.len() + answer.len();
        if messages.len() + 2 > most || length > budget {
            break;
        }
        budget -= length;
        messages.push(Message::text(Role::Assistant, answer));
        messages.push(Message::text(Role::User, turn.query.clone()));
    }
    messages.reverse();
    messages
}
