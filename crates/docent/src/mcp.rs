//! An MCP server that gives AI assistants access to the book, on stdio or at `/mcp`.
//!
//! It offers three tools (`search_book`, `ask_book`, `read_page`), every page as a resource, and one prompt.
//! The tools return the same objects as the HTTP API, and also as text.
//!
//! Invariant: a mistake of the calling model becomes a tool error that it can act on; internal errors are
//! returned without details. Only protocol messages are written to stdout.

mod tools;
mod pages;
mod http;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use docent_core::agent::{Agent, Ask, AskError, MODEL_UNAVAILABLE};
use docent_core::answer::AgentResponse;
use docent_core::index::{Filter, IndexError};
use docent_core::library::Library;
use docent_core::query::{DEFAULT_HITS, MOST_TOOL_HITS, Question};
use docent_core::retrieve::{Confidence, RetrieveError, Retriever};
use docent_core::search_response::SearchResponse;
use futures_util::FutureExt;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde::Serialize;
use tracing::Instrument as _;

use crate::compose;
use crate::exit::{Exit, Failure};
use crate::title::Title;
use pages::Page;
use tools::{AskBook, ReadPage, SearchBook};

pub use http::{Access, LONGEST_MESSAGE, service};

/// Number of resources per page of the list.
const LISTED: usize = 100;

/// The name of the only prompt.
const PROMPT: &str = "ask";

/// What the MCP server needs.
#[derive(Clone)]
pub struct Service {
    /// Answers questions.
    pub answers: Arc<dyn Answers>,
    /// Finds passages and pages.
    pub library: Library,
    /// The title of the book.
    pub title: Title,
}

/// Answers questions. The HTTP server adds limits, metrics and the turn log.
#[async_trait]
pub trait Answers: Send + Sync {
    /// The answer, or an error message for the calling model.
    async fn answer(&self, ask: Ask) -> Result<AgentResponse, Failure>;

    /// A permit for a search or a page, held until it is dropped; an error if none is available.
    async fn lookup(&self, _client: &str) -> Result<Hold, Failure> {
        Ok(Box::new(()))
    }
}

/// A permit; dropping it releases it.
pub type Hold = Box<dyn std::any::Any + Send>;

/// Identifies a client for limits. The HTTP server adds it to the request's extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Client(pub String);

impl Client {
    fn of(context: &RequestContext<RoleServer>) -> Self {
        extension(context).unwrap_or_default()
    }
}

/// What the HTTP server added to the request; none on stdin and stdout.
fn extension<T: Clone + Send + Sync + 'static>(context: &RequestContext<RoleServer>) -> Option<T> {
    let parts = context.extensions.get::<axum::http::request::Parts>()?;
    parts.extensions.get::<T>().cloned()
}

#[async_trait]
impl Answers for Agent {
    async fn answer(&self, ask: Ask) -> Result<AgentResponse, Failure> {
        self.ask(&ask, &|_| {}).await.map_err(|error| match error {
            AskError::Retrieve(error) => unavailable(error),
            AskError::Invalid(_) | AskError::NoSuchPart(_) => Failure::usage(error),
            other => internal(other),
        })
    }
}

/// Serves on stdin and stdout until the client disconnects.
pub async fn stdio(service: Service) -> anyhow::Result<()> {
    match Server(service).serve(rmcp::transport::stdio()).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(Into::into),
        // A client that disconnects before `initialize` is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Implements the protocol for a [`Service`].
struct Server(Service);

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let able = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        ServerConfig::new(able)
            .with_server_info(
                Implementation::new("docent", env!("CARGO_PKG_VERSION")).with_title(self.0.title.last()),
            )
            .with_instructions(format!(
                "Answers questions about “{}” from the book alone, and says so if the book does not cover \
                 them. Use {} for an answer with citations, {} for passages and {} for whole pages, and cite the \
                 links they return.",
                self.0.title.last(),
                tools::ASK,
                tools::SEARCH,
                tools::READ
            ))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = Client::of(&context);
        // The SDK runs calls in tasks of its own, outside the span of their request.
        let span = extension::<tracing::Span>(&context).unwrap_or_else(tracing::Span::current);
        let called =
            self.0.call(&client, &request.name, request.arguments.unwrap_or_default()).instrument(span);
        // The SDK neither drops a cancelled call nor responds to one that panicked, so both are handled here.
        let ended = tokio::select! {
            ended = AssertUnwindSafe(called).catch_unwind() => ended,
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the request was cancelled", None));
            }
        };
        let result = ended.unwrap_or_else(|_| Err(Failure::new(Exit::Failed, "Internal error")));
        let result = result
            .unwrap_or_else(|failure| CallToolResult::error(vec![ContentBlock::text(in_words(&failure))]));
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let _permit = self.0.answers.lookup(&Client::of(&context).0).await.map_err(protocol_error)?;
        let book = self.0.book().await.map_err(protocol_error)?;
        let outline = book.outline().await.map_err(unavailable).map_err(protocol_error)?;
        // The cursor is the id of the last page listed, so it stays valid when other pages are added or
        // removed.
        let begin = match request.and_then(|request| request.cursor) {
            None => 0,
            Some(cursor) => match outline.iter().position(|page| page.document_id == cursor) {
                Some(last) => last + 1,
                None => return Err(ErrorData::invalid_params("invalid cursor", None)),
            },
        };
        let listed = &outline[begin..outline.len().min(begin + LISTED)];
        let mut result = ListResourcesResult::with_all_items(listed.iter().map(pages::resource).collect());
        result.next_cursor =
            listed.last().filter(|_| begin + LISTED < outline.len()).map(|page| page.document_id.clone());
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![pages::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let _permit = self.0.answers.lookup(&Client::of(&context).0).await.map_err(protocol_error)?;
        let page = self.0.page(&request.uri).await.map_err(protocol_error)?;
        let contents = ResourceContents::text(page.content, request.uri).with_mime_type(pages::MARKDOWN);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let question =
            PromptArgument::new("question").with_description("What to ask the book").with_required(true);
        let prompt = Prompt::new(
            PROMPT,
            Some("A question answered from the book, with citations"),
            Some(vec![question]),
        );
        Ok(ListPromptsResult::with_all_items(vec![prompt.with_title("Ask the book")]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != PROMPT {
            return Err(ErrorData::invalid_params(format!("there is no prompt `{}`", request.name), None));
        }
        let arguments = request.arguments.unwrap_or_default();
        let question = arguments.get("question").and_then(serde_json::Value::as_str).unwrap_or_default();
        if question.trim().is_empty() {
            return Err(ErrorData::invalid_params("missing argument `question`", None));
        }
        let text = format!(
            "Call the tool {} with this question about “{}”, and answer with what it returns and its links. \
             If the book does not cover it, say so.\n\n{}",
            tools::ASK,
            self.0.title.last(),
            question.trim()
        );
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }
}

impl Service {
    async fn call(
        &self,
        client: &Client,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<CallToolResult, Failure> {
        // A question gets its own permit when the turn starts.
        let _room = match tool {
            tools::SEARCH | tools::READ => Some(self.answers.lookup(&client.0).await?),
            _ => None,
        };
        match tool {
            tools::SEARCH => self.search(tools::read(tool, arguments)?).await,
            tools::ASK => self.ask(tools::read(tool, arguments)?).await,
            tools::READ => self.read(tools::read(tool, arguments)?).await,
            _ => Err(Failure::usage(format!("there is no tool `{tool}`"))),
        }
    }

    async fn search(&self, asked: SearchBook) -> Result<CallToolResult, Failure> {
        let book = self.book().await?;
        let filter = Filter::requested(asked.book, asked.module, asked.version, asked.locale);
        check(&book, &filter).await?;
        let top_k = asked.top_k.unwrap_or(DEFAULT_HITS);
        let threshold = asked.threshold.unwrap_or(0.0);
        let question = Question::within(MOST_TOOL_HITS, &asked.query, top_k, threshold, filter)
            .map_err(Failure::usage)?;
        let retrieved = book.search(&question).await.map_err(unavailable)?;
        let response = SearchResponse::new(question.text(), &retrieved);
        result(passages(&response), &response)
    }

    async fn ask(&self, asked: AskBook) -> Result<CallToolResult, Failure> {
        let filter = Filter::requested(asked.book, asked.module, asked.version, asked.locale);
        check(&self.book().await?, &filter).await?;
        let ask = Ask::new(asked.question)
            .with_top_k(asked.top_k.unwrap_or(DEFAULT_HITS))
            .with_filter(filter)
            .with_sources(true);
        let response = self.answers.answer(ask).await?;
        result(answer(&response), &response)
    }

    async fn read(&self, asked: ReadPage) -> Result<CallToolResult, Failure> {
        let page = self.page(&asked.page).await?;
        result(page.with_links(), &page)
    }

    /// The page with this id or URL.
    async fn page(&self, wanted: &str) -> Result<Page, Failure> {
        let book = self.book().await?;
        let outline = book.outline().await.map_err(unavailable)?;
        let found = pages::find(&outline, wanted)?;
        let chunks = book.page(&found.document_id).await.map_err(unavailable)?;
        Ok(Page::new(found, &chunks))
    }

    /// The current snapshot of the book. A call uses the same snapshot throughout.
    async fn book(&self) -> Result<Retriever, Failure> {
        let snapshot = self.library.current().await.map_err(|error| unavailable(error.into()))?;
        Ok(snapshot.retriever.clone())
    }
}

/// Checks that everything a filter names exists.
async fn check(book: &Retriever, filter: &Filter) -> Result<(), Failure> {
    book.check(filter).await.map_err(unavailable)?.map_err(compose::no_such_part)
}

/// A tool result, as text for models and as an object for programs.
fn result(words: String, object: &impl Serialize) -> Result<CallToolResult, Failure> {
    let mut result = CallToolResult::structured(serde_json::to_value(object).map_err(internal)?);
    result.content = vec![ContentBlock::text(words)];
    Ok(result)
}

fn passages(response: &SearchResponse) -> String {
    let mut text = match response.confidence {
        Confidence::High => String::new(),
        Confidence::Low => "The book may not cover this; the nearest passages are:\n\n".to_owned(),
        Confidence::None => "Nothing in the book matches this.".to_owned(),
    };
    for chunk in &response.chunks {
        text.push_str(&format!(
            "{}. {} [{}] {:.2}\n{}\n{}\n\n",
            chunk.position,
            chunk.breadcrumb,
            chunk.part(),
            chunk.similarity_score,
            chunk.url,
            chunk.content
        ));
    }
    text.truncate(text.trim_end().len());
    text
}

fn answer(response: &AgentResponse) -> String {
    let mut text = response.answer.trim_end().to_owned();
    match response.error.as_deref().filter(|_| response.degraded) {
        Some(MODEL_UNAVAILABLE) => text.push_str(&format!("\n\n({MODEL_UNAVAILABLE})")),
        Some(error) => text.push_str(&format!("\n\n({error}; answered without it)")),
        None => {}
    }
    // An abstention already names the nearest sections.
    if let Some(sources) = response.sources.as_ref().filter(|_| response.grounded) {
        text.push_str("\n\nSources:\n");
        for source in sources {
            text.push_str(&format!("{}. {}: {}\n", source.position, source.breadcrumb, source.url));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// A failed search. The client only learns whether embedding or the index failed; the log has the details.
fn unavailable(error: RetrieveError) -> Failure {
    tracing::error!(%error, "search failed");
    match error {
        RetrieveError::Index(IndexError::Empty) => Failure::new(Exit::NotConfigured, IndexError::Empty),
        error => Failure::new(Exit::Unavailable, error.told()),
    }
}

fn internal(error: impl std::fmt::Display) -> Failure {
    tracing::error!(%error, "internal error");
    Failure::new(Exit::Failed, "Internal error")
}

/// A failure as text, in the format of the command line.
fn in_words(failure: &Failure) -> String {
    match &failure.hint {
        Some(hint) => format!("{}\nhint: {hint}", failure.message),
        None => failure.message.clone(),
    }
}

/// A failure as a protocol error, for resources, which have no tool errors.
fn protocol_error(failure: Failure) -> ErrorData {
    match failure.exit {
        Exit::Usage => ErrorData::resource_not_found(in_words(&failure), None),
        _ => ErrorData::internal_error(in_words(&failure), None),
    }
}
