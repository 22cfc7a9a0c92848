//! `docent chat`: talk with the book.

use std::path::Path;
use std::sync::Arc;

use docent_core::agent::{Agent, Ask, TurnEvent};
use docent_core::answer::AgentResponse;
use docent_core::session::SessionStore;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Config, Context, Editor, Helper, Highlighter, Hinter, Validator};
use uuid::Uuid;

use crate::cli::Chat;
use crate::commands::ask::open_session;
use crate::commands::printer::Printer;
use crate::commands::search::check_module;
use crate::commands::sessions;
use crate::compose;
use crate::exit::Failure;
use crate::output::{FAINT, Output, STRONG, report, write_file};
use crate::settings::Settings;

const COMMANDS: [(&str, &str); 6] = [
    ("/reset", "forget what was said"),
    ("/sources", "the passages the last answer is made from"),
    ("/module", "NAME: only this module; without a name, the whole book"),
    ("/export", "FILE: write the conversation as Markdown"),
    ("/help", "this list"),
    ("/quit", "leave (Ctrl-D too)"),
];

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Chat, output: &Output) -> Result<(), Failure> {
    let book = compose::book(settings).await?;
    let modules: Vec<String> = book.description.modules.keys().cloned().collect();
    if let Some(module) = &arguments.module {
        check_module(module, modules.iter().map(String::as_str))?;
    }
    let store = compose::sessions(settings).await?;
    let session = open_session(store.as_ref(), arguments.session.as_deref().unwrap_or("new")).await?;
    let agent = compose::agent(&book, settings, Some(store.clone()))?;
    let which = if book.is_sample { "the sample book" } else { "the book" };
    output.note(format!(
        "{FAINT}asking {which}: {} pages. /help shows the commands, Ctrl-C stops an answer, Ctrl-D leaves.{FAINT:#}",
        book.description.pages
    ));
    let history = settings.data_dir()?.join("chat-history");
    let mut talk = Talk {
        agent,
        store,
        session,
        module: arguments.module,
        modules,
        top_k: settings.retrieval.top_k.min(10),
        threshold: settings.retrieval.threshold,
        last: None,
        output: *output,
    };
    let mut editor: Editor<Commands, DefaultHistory> =
        Editor::with_config(Config::builder().auto_add_history(true).build()).map_err(anyhow::Error::from)?;
    editor.set_helper(Some(Commands { modules: talk.modules.clone() }));
    // The first chat has no history yet.
    let _ = editor.load_history(&history);
    loop {
        match editor.readline("› ") {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) if line.trim_start().starts_with('/') => {
                if !talk.command(line.trim()).await? {
                    break;
                }
            }
            Ok(line) => talk.ask(&line).await,
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(anyhow::Error::from(error).into()),
        }
    }
    let _ = editor.save_history(&history);
    output.note(format!("{FAINT}continue with: docent chat --session {}{FAINT:#}", talk.session));
    Ok(())
}

/// A conversation under way.
struct Talk {
    agent: Agent,
    store: Arc<dyn SessionStore>,
    session: Uuid,
    module: Option<String>,
    modules: Vec<String>,
    top_k: usize,
    threshold: f32,
    last: Option<AgentResponse>,
    output: Output,
}

impl Talk {
    /// Asks, and prints the answer as it comes; Ctrl-C stops it.
    async fn ask(&mut self, query: &str) {
        let question = Ask {
            query: query.to_owned(),
            top_k: self.top_k,
            threshold: self.threshold,
            module: self.module.clone(),
            session_id: Some(self.session),
            include_sources: true,
            streamed: true,
            ..Ask::default()
        };
        let printer = Printer::new(self.output, true);
        let listener = |event: TurnEvent| printer.hear(&event);
        tokio::select! {
            answered = self.agent.ask(&question, &listener) => match answered {
                Ok(response) => {
                    if let Err(failure) = printer.finish(&response) {
                        report(&failure);
                    }
                    self.last = Some(response);
                }
                Err(error) => report(&compose::ask_failure(error)),
            },
            _ = tokio::signal::ctrl_c() => self.output.note(format!("{FAINT}stopped{FAINT:#}")),
        }
    }

    /// Runs a slash command; false leaves.
    async fn command(&mut self, line: &str) -> Result<bool, Failure> {
        let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        let done = match name {
            "/quit" | "/exit" => return Ok(false),
            "/help" => COMMANDS.iter().try_for_each(|(name, about)| {
                self.output.line(format!("{STRONG}{name:<9}{STRONG:#} {about}"))
            }),
            "/reset" => {
                self.last = None;
                let reset = self.store.reset(self.session).await.map_err(compose::session_failure);
                reset.map(|_| self.output.note("forgotten; ask away"))
            }
            "/sources" => self.sources(),
            "/module" if argument.is_empty() => {
                self.module = None;
                self.output.note("the whole book");
                Ok(())
            }
            "/module" => check_module(argument, self.modules.iter().map(String::as_str)).map(|()| {
                self.module = Some(argument.to_owned());
                self.output.note(format!("only {argument}"));
            }),
            "/export" if argument.is_empty() => Err(Failure::usage("/export needs a file name")),
            "/export" => match sessions::export(self.store.as_ref(), self.session).await {
                Ok(text) => write_file(Path::new(argument), text + "\n")
                    .map(|()| self.output.note(format!("written to {argument}"))),
                Err(failure) => Err(failure),
            },
            other => {
                let known = COMMANDS.iter().map(|(name, _)| *name);
                let near = crate::exit::nearest(other, known).unwrap_or("/help");
                Err(Failure::usage(format!("there is no command {other}"))
                    .hint(format!("did you mean {near}?")))
            }
        };
        // A slip in a chat is no reason to leave it.
        if let Err(failure) = done {
            report(&failure);
        }
        Ok(true)
    }

    fn sources(&self) -> Result<(), Failure> {
        let Some(sources) = self.last.as_ref().and_then(|response| response.sources.as_ref()) else {
            self.output.note("nothing was answered yet");
            return Ok(());
        };
        sources.iter().try_for_each(|source| {
            self.output.line(format!(
                "{}. {} {FAINT}{:.2}{FAINT:#}\n   {}",
                source.position, source.breadcrumb, source.similarity_score, source.url
            ))
        })
    }
}

/// Completes slash commands and module names.
#[derive(Helper, Hinter, Highlighter, Validator)]
struct Commands {
    modules: Vec<String>,
}

impl Completer for Commands {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..position];
        let (start, names): (usize, Vec<&str>) = match typed.strip_prefix("/module ") {
            Some(_) => ("/module ".len(), self.modules.iter().map(String::as_str).collect()),
            None => (0, COMMANDS.iter().map(|(name, _)| *name).collect()),
        };
        let wanted = &typed[start..];
        let found = names.into_iter().filter(|name| typed.starts_with('/') && name.starts_with(wanted));
        Ok((
            start,
            found.map(|name| Pair { display: name.to_owned(), replacement: name.to_owned() }).collect(),
        ))
    }
}
