//! `docent chat`: ask questions in an interactive chat.

use std::path::Path;
use std::sync::Arc;

use docent_core::agent::{Agent, Ask, TurnEvent};
use docent_core::answer::AgentResponse;
use docent_core::edition::{ALL, Choice};
use docent_core::index::{Description, Filter};
use docent_core::session::SessionStore;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Config, Context, Editor, Helper, Highlighter, Hinter, Validator};
use uuid::Uuid;

use crate::cli::Chat;
use crate::commands::ask::open_session;
use crate::commands::printer::Printer;
use crate::commands::sessions;
use crate::compose;
use crate::exit::Failure;
use crate::output::{FAINT, Output, STRONG, report, write_file};
use crate::settings::Settings;
use crate::stop::Interrupts;

const COMMANDS: [(&str, &str); 9] = [
    ("/reset", "clear the history of the conversation"),
    ("/sources", "show the passages that the last answer is based on"),
    ("/module", "NAME: only use this module; without a name, use the whole book"),
    ("/book", "NAME: only use this book; without a name, use all books"),
    ("/version", "NAME: use this version of the book, or `all`; without a name, the default one"),
    ("/locale", "CODE: use this locale of the book, or `all`; without a code, the default one"),
    ("/export", "FILE: write the conversation as Markdown"),
    ("/help", "show this list"),
    ("/quit", "leave the chat (same as Ctrl-D)"),
];

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Chat, output: &Output) -> Result<(), Failure> {
    let book = compose::book(settings).await?;
    let filter = arguments.part.into();
    book.description.check(&filter).map_err(compose::no_such_part)?;
    let store = compose::sessions(settings).await?;
    let session = open_session(store.as_ref(), arguments.session.as_deref().unwrap_or("new")).await?;
    let agent = compose::agent(&book, settings, Some(store.clone()))?;
    let which = if book.is_sample { "the sample book" } else { "the book" };
    output.note(format!(
        "{FAINT}using {which} ({} pages) · /help lists commands · Ctrl-C stops an answer · Ctrl-D leaves{FAINT:#}",
        book.description.pages
    ));
    let history = settings.data_dir()?.join("chat-history");
    let mut talk = Talk {
        agent,
        store,
        session,
        filter,
        description: book.description.clone(),
        top_k: settings.retrieval.top_k.min(10),
        threshold: settings.retrieval.threshold,
        last: None,
        output: *output,
        interrupts: Interrupts::listen(),
    };
    let mut editor: Editor<Commands, DefaultHistory> =
        Editor::with_config(Config::builder().auto_add_history(true).build()).map_err(anyhow::Error::from)?;
    editor.set_helper(Some(Commands { description: talk.description.clone() }));
    // The first chat has no history yet.
    let _ = editor.load_history(&history);
    converse(&mut talk, &mut editor).await?;
    let _ = editor.save_history(&history);
    output.note(format!("{FAINT}continue with: docent chat --session {}{FAINT:#}", talk.session));
    Ok(())
}

/// Reads lines and handles them until the user leaves.
async fn converse(talk: &mut Talk, editor: &mut Editor<Commands, DefaultHistory>) -> Result<(), Failure> {
    let mut interrupted = false;
    loop {
        let line = editor.readline("› ");
        // The first Ctrl-C clears the line, the second leaves.
        let again = std::mem::replace(&mut interrupted, matches!(line, Err(ReadlineError::Interrupted)));
        match line {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) if line.trim_start().starts_with('/') => {
                if !talk.command(line.trim()).await? {
                    return Ok(());
                }
            }
            Ok(line) => talk.ask(&line).await,
            Err(ReadlineError::Interrupted) if again => return Ok(()),
            Err(ReadlineError::Interrupted) => {
                talk.output.note(format!("{FAINT}press Ctrl-C again or Ctrl-D to leave{FAINT:#}"));
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(anyhow::Error::from(error).into()),
        }
    }
}

/// A running chat.
struct Talk {
    agent: Agent,
    store: Arc<dyn SessionStore>,
    session: Uuid,
    filter: Filter,
    description: Arc<Description>,
    top_k: usize,
    threshold: f32,
    last: Option<AgentResponse>,
    output: Output,
    interrupts: Interrupts,
}

impl Talk {
    /// Asks a question and prints the answer as it arrives; Ctrl-C stops it.
    async fn ask(&mut self, query: &str) {
        let question = Ask::new(query)
            .with_top_k(self.top_k)
            .with_threshold(self.threshold)
            .with_filter(self.filter.clone())
            .with_session(self.session)
            .with_sources(true)
            .with_streaming(true);
        let printer = Printer::new(self.output, true);
        let listener = |event: TurnEvent| printer.hear(&event);
        match self.interrupts.or_interrupted(self.agent.ask(&question, &listener)).await {
            Some(Ok(response)) => {
                if let Err(failure) = printer.finish(&response) {
                    report(&failure);
                }
                self.last = Some(response);
            }
            Some(Err(error)) => report(&compose::ask_failure(error)),
            None => self.output.note(format!("{FAINT}stopped{FAINT:#}")),
        }
    }

    /// Runs a slash command; returns false to leave the chat.
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
                reset.map(|_| self.output.note("history cleared"))
            }
            "/sources" => self.sources(),
            "/module" => self.narrow(Filter { module: named(argument), ..self.filter.clone() }),
            // Another book may not have the current module.
            "/book" => self.narrow(Filter { book: named(argument), ..Filter::default() }),
            "/version" => self.narrow(Filter { version: named(argument).into(), ..self.filter.clone() }),
            "/locale" => self.narrow(Filter { locale: named(argument).into(), ..self.filter.clone() }),
            "/export" if argument.is_empty() => Err(Failure::usage("/export needs a file name")),
            "/export" => match sessions::export(self.store.as_ref(), self.session).await {
                Ok(text) => write_file(Path::new(argument), text + "\n")
                    .map(|()| self.output.note(format!("written to {argument}"))),
                Err(failure) => Err(failure),
            },
            other => {
                let known = COMMANDS.iter().map(|(name, _)| *name);
                let near = crate::exit::nearest(other, known).unwrap_or("/help");
                Err(Failure::usage(format!("unknown command {other}")).hint(format!("did you mean {near}?")))
            }
        };
        // A failed command does not end the chat.
        if let Err(failure) = done {
            report(&failure);
        }
        Ok(true)
    }

    /// Restricts the chat to a part of the index.
    fn narrow(&mut self, filter: Filter) -> Result<(), Failure> {
        self.description.check(&filter).map_err(compose::no_such_part)?;
        self.filter = filter;
        let part = match (&self.filter.book, &self.filter.module) {
            (Some(book), Some(module)) => format!("using only {module} of {book}"),
            (Some(part), None) | (None, Some(part)) => format!("using only {part}"),
            (None, None) => "using the whole book".to_owned(),
        };
        let chosen = |what: &str, choice: &Choice| match choice {
            Choice::Default => String::new(),
            Choice::All => format!(", all {what}s"),
            Choice::Named(name) => format!(", {what} {name}"),
        };
        let (version, locale) = (&self.filter.version, &self.filter.locale);
        self.output.note(format!("{part}{}{}", chosen("version", version), chosen("locale", locale)));
        Ok(())
    }

    fn sources(&self) -> Result<(), Failure> {
        let Some(sources) = self.last.as_ref().and_then(|response| response.sources.as_ref()) else {
            self.output.note("no answer yet");
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

/// The argument, unless it is empty.
fn named(argument: &str) -> Option<String> {
    (!argument.is_empty()).then(|| argument.to_owned())
}

/// Completes slash commands and names of modules and books.
#[derive(Helper, Hinter, Highlighter, Validator)]
struct Commands {
    description: Arc<Description>,
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
        let with_all = |names: Vec<String>| names.into_iter().chain([ALL.to_owned()]).collect::<Vec<_>>();
        let (versions, locales) =
            (with_all(self.description.version_names()), with_all(self.description.locale_names()));
        let (start, names): (usize, Vec<&str>) = if typed.starts_with("/version ") {
            ("/version ".len(), versions.iter().map(String::as_str).collect())
        } else if typed.starts_with("/locale ") {
            ("/locale ".len(), locales.iter().map(String::as_str).collect())
        } else if typed.starts_with("/module ") {
            ("/module ".len(), self.description.modules.keys().map(String::as_str).collect())
        } else if typed.starts_with("/book ") {
            ("/book ".len(), self.description.books.keys().map(String::as_str).collect())
        } else {
            (0, COMMANDS.iter().map(|(name, _)| *name).collect())
        };
        let wanted = &typed[start..];
        let found = names.into_iter().filter(|name| typed.starts_with('/') && name.starts_with(wanted));
        Ok((
            start,
            found.map(|name| Pair { display: name.to_owned(), replacement: name.to_owned() }).collect(),
        ))
    }
}
