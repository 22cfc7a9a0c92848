//! The book for other people's assistants: an MCP server on stdio or at `/mcp`.
//!
//! Three tools (`search_book`, `ask_book`, `read_page`), every page as a resource and one
//! prompt. The tools give the objects of the contract, and the same in words.
//!
//! Invariant: what a model got wrong comes back to it as a tool's error it can act on; what
//! went wrong here comes back without internals. Stdout carries messages of the protocol only.

mod tools;
mod pages;
mod lines;
mod http;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use docent_core::agent::{Agent, Ask, AskError};
use docent_core::answer::AgentResponse;
use docent_core::index::{Filter, IndexError, PageOutline};
use docent_core::query::{DEFAULT_HITS, MOST_TOOL_HITS, Question};
use docent_core::retrieve::{Confidence, RetrieveError, Retriever};
use docent_core::sources::SearchResponse;
use futures_util::FutureExt;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde::Serialize;

use crate::commands::search::part;
use crate::compose;
use crate::exit::{Exit, Failure};
use lines::Lines;
use pages::Page;
use tools::{AskBook, ReadPage, SearchBook};

pub use http::{Access, service};

/// Resources listed at a time.
const LISTED: usize = 100;

/// The one prompt.
const PROMPT: &str = "ask";

/// What the server answers from.
#[derive(Clone)]
pub struct Shelf {
    /// Answers questions.
    pub answers: Arc<dyn Answers>,
    /// Finds passages and pages.
    pub retriever: Retriever,
    /// What the book is called.
    pub title: String,
}

/// Answers questions, with whatever a surface adds to a turn: limits, figures, the owner's log.
#[async_trait]
pub trait Answers: Send + Sync {
    /// The answer, or why there is none, in words for a model.
    async fn answer(&self, ask: Ask) -> Result<AgentResponse, Failure>;
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

/// Serves on stdin and stdout until the client leaves.
pub async fn stdio(shelf: Shelf) -> anyhow::Result<()> {
    let (input, output) = rmcp::transport::stdio();
    match Server(shelf).serve(Lines::new(input, output)).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(Into::into),
        // A client that leaves without a word has left all the same.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The shelf as the protocol sees it.
struct Server(Shelf);

impl ServerHandler for Server {
    fn get_info(&self) -> ServerInfo {
        let able = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        ServerInfo::new(able)
            .with_server_info(
                Implementation::new("docent", env!("CARGO_PKG_VERSION")).with_title(&self.0.title),
            )
            .with_instructions(format!(
                "Answers questions about “{}” from the book alone, and says so when the book does not cover \
                 them. Use {} for a cited answer, {} for passages and {} for whole pages, and cite the links \
                 they return.",
                self.0.title,
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
    ) -> Result<CallToolResult, ErrorData> {
        let called = self.0.call(&request.name, request.arguments.unwrap_or_default());
        // The SDK neither drops the call of a client that cancelled nor answers for one that
        // panicked; both are done here.
        let ended = tokio::select! {
            ended = AssertUnwindSafe(called).catch_unwind() => ended,
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the request was cancelled", None));
            }
        };
        let result = ended.unwrap_or_else(|_| Err(Failure::new(Exit::Failed, "Internal error")));
        Ok(result.unwrap_or_else(|failure| CallToolResult::error(vec![Content::text(in_words(&failure))])))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let outline = self.0.outline().await.map_err(protocol_error)?;
        // A cursor is the last page listed: it holds when pages come and go around it.
        let begin = match request.and_then(|request| request.cursor) {
            None => 0,
            Some(cursor) => match outline.iter().position(|page| page.document_id == cursor) {
                Some(last) => last + 1,
                None => return Err(ErrorData::invalid_params("there is no such cursor", None)),
            },
        };
        let listed = &outline[begin..outline.len().min(begin + LISTED)];
        Ok(ListResourcesResult {
            resources: listed.iter().map(pages::resource).collect(),
            next_cursor: listed
                .last()
                .filter(|_| begin + LISTED < outline.len())
                .map(|page| page.document_id.clone()),
            meta: None,
        })
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
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResult, ErrorData> {
        let page = self.0.page(&request.uri).await.map_err(protocol_error)?;
        let contents = ResourceContents::text(page.content, request.uri).with_mime_type(pages::MARKDOWN);
        Ok(ReadResourceResult::new(vec![contents]))
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
    ) -> Result<GetPromptResult, ErrorData> {
        if request.name != PROMPT {
            return Err(ErrorData::invalid_params(format!("there is no prompt `{}`", request.name), None));
        }
        let arguments = request.arguments.unwrap_or_default();
        let question = arguments.get("question").and_then(serde_json::Value::as_str).unwrap_or_default();
        if question.trim().is_empty() {
            return Err(ErrorData::invalid_params("the prompt needs a `question`", None));
        }
        let text = format!(
            "Call the tool {} with this question about “{}”, and answer with what it returns and its links. \
             If the book does not cover it, say so.\n\n{}",
            tools::ASK,
            self.0.title,
            question.trim()
        );
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(PromptMessageRole::User, text)]))
    }
}

impl Shelf {
    async fn call(&self, tool: &str, arguments: JsonObject) -> Result<CallToolResult, Failure> {
        match tool {
            tools::SEARCH => self.search(tools::read(tool, arguments)?).await,
            tools::ASK => self.ask(tools::read(tool, arguments)?).await,
            tools::READ => self.read(tools::read(tool, arguments)?).await,
            _ => Err(Failure::usage(format!("there is no tool `{tool}`"))),
        }
    }

    async fn search(&self, asked: SearchBook) -> Result<CallToolResult, Failure> {
        let filter = self.filter(asked.book, asked.module).await?;
        let top_k = asked.top_k.unwrap_or(DEFAULT_HITS);
        let threshold = asked.threshold.unwrap_or(0.0);
        let question = Question::within(MOST_TOOL_HITS, &asked.query, top_k, threshold, filter)
            .map_err(Failure::usage)?;
        let retrieved = self.retriever.search(&question).await.map_err(unavailable)?;
        let response = SearchResponse::new(question.text(), &retrieved);
        result(passages(&response), &response)
    }

    async fn ask(&self, asked: AskBook) -> Result<CallToolResult, Failure> {
        let filter = self.filter(asked.book, asked.module).await?;
        let ask = Ask {
            query: asked.question,
            top_k: asked.top_k.unwrap_or(DEFAULT_HITS),
            filter,
            include_sources: true,
            ..Ask::default()
        };
        let response = self.answers.answer(ask).await?;
        result(answer(&response), &response)
    }

    async fn read(&self, asked: ReadPage) -> Result<CallToolResult, Failure> {
        let page = self.page(&asked.page).await?;
        result(page.with_links(), &page)
    }

    /// The page with this id or address.
    async fn page(&self, wanted: &str) -> Result<Page, Failure> {
        let outline = self.outline().await?;
        let found = pages::find(&outline, wanted)?;
        let chunks = self.retriever.page(&found.document_id).await.map_err(unavailable)?;
        Ok(Page::new(found, &chunks))
    }

    async fn outline(&self) -> Result<Vec<PageOutline>, Failure> {
        self.retriever.outline().await.map_err(unavailable)
    }

    /// What may be found, if there is such a part.
    async fn filter(&self, book: Option<String>, module: Option<String>) -> Result<Filter, Failure> {
        let filter = Filter { book, module };
        self.retriever.check(&filter).await.map_err(unavailable)?.map_err(compose::no_such_part)?;
        Ok(filter)
    }
}

/// A result in words, for models, and as the object it is, for programs.
fn result(words: String, object: &impl Serialize) -> Result<CallToolResult, Failure> {
    let mut result = CallToolResult::structured(serde_json::to_value(object).map_err(internal)?);
    result.content = vec![Content::text(words)];
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
            part(&chunk.book_name, &chunk.module_name),
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
    if let Some(error) = response.error.as_ref().filter(|_| response.degraded) {
        text.push_str(&format!("\n\n({error}; answered without it)"));
    }
    // An abstention names the nearest sections itself.
    if let Some(sources) = response.sources.as_ref().filter(|_| response.grounded) {
        text.push_str("\n\nSources:\n");
        for source in sources {
            text.push_str(&format!("{}. {}: {}\n", source.position, source.breadcrumb, source.url));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// The book cannot be searched; the caller is told which half failed and no more.
fn unavailable(error: RetrieveError) -> Failure {
    tracing::error!(%error, "the book cannot be searched");
    match error {
        RetrieveError::Index(IndexError::Empty) => Failure::new(Exit::NotConfigured, IndexError::Empty),
        error => Failure::new(Exit::Unavailable, error.told()),
    }
}

fn internal(error: impl std::fmt::Display) -> Failure {
    tracing::error!(%error, "a call failed");
    Failure::new(Exit::Failed, "Internal error")
}

/// A failure as the command line words it.
fn in_words(failure: &Failure) -> String {
    match &failure.hint {
        Some(hint) => format!("{}\nhint: {hint}", failure.message),
        None => failure.message.clone(),
    }
}

/// The same where the protocol has no tool's error: for resources.
fn protocol_error(failure: Failure) -> ErrorData {
    match failure.exit {
        Exit::Usage => ErrorData::resource_not_found(in_words(&failure), None),
        _ => ErrorData::internal_error(in_words(&failure), None),
    }
}
