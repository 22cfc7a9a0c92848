//! `docent ask`: answer one question, with citations.

use docent_core::agent::Ask as Question;
use docent_core::session::SessionStore;
use uuid::Uuid;

use crate::cli::{self, Ask};
use crate::commands::printer::Printer;
use crate::compose;
use crate::exit::Failure;
use crate::output::{FAINT, Output};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, arguments: Ask, output: &Output) -> Result<(), Failure> {
    let book = compose::book(settings).await?;
    book.announce(output);
    let filter = arguments.part.into();
    book.description.check(&filter).map_err(compose::no_such_part)?;
    let (store, session_id) = match &arguments.session {
        Some(session) => {
            let store = compose::sessions(settings).await?;
            let id = open_session(store.as_ref(), session).await?;
            (Some(store), Some(id))
        }
        None => (None, None),
    };
    let agent = compose::agent(&book, settings, store)?;
    let question = Question::new(cli::typed(&arguments.question, &arguments.words))
        .with_top_k(arguments.top_k.unwrap_or(settings.retrieval.top_k.min(10)))
        .with_threshold(settings.retrieval.threshold)
        .with_filter(filter)
        .with_session(session_id)
        .with_sources(true)
        .with_streaming(!output.json && !arguments.no_stream);
    let printer = Printer::new(*output, question.streamed);
    let response = agent.ask(&question, &|event| printer.hear(&event)).await.map_err(compose::ask_failure)?;
    if output.json {
        return output.object(&response);
    }
    printer.finish(&response)?;
    if arguments.session.as_deref() == Some("new")
        && let Some(id) = session_id
    {
        output.note(format!("{FAINT}continue with --session {id}{FAINT:#}"));
    }
    Ok(())
}

/// The session with this id, or a new one for `new`.
pub async fn open_session(store: &dyn SessionStore, name: &str) -> Result<Uuid, Failure> {
    if name == "new" {
        return Ok(store.create().await.map_err(compose::session_failure)?.session_id);
    }
    let id = parse_id(name)?;
    Ok(store.get(id).await.map_err(compose::session_failure)?.session_id)
}

/// Parses a session id given by the user.
pub fn parse_id(text: &str) -> Result<Uuid, Failure> {
    text.parse().map_err(|_| {
        Failure::usage(format!("`{text}` is not a session id"))
            .hint("run `docent sessions list` to see all conversations")
    })
}
