//! `docent sessions`: list, show, export, reset, delete and copy stored conversations.

mod copy;

use docent_core::session::SessionStore;
use uuid::Uuid;

use crate::cli::Sessions;
use crate::commands::ask::parse_id;
use crate::compose;
use crate::conversation::Conversation;
use crate::exit::Failure;
use crate::output::{FAINT, Output, STRONG, write_file};
use crate::settings::Settings;

/// Runs the command.
pub async fn run(settings: &Settings, command: Sessions, output: &Output) -> Result<(), Failure> {
    if let Sessions::Copy { from, to } = command {
        return copy::run(settings, &from, &to, output).await;
    }
    let store = compose::sessions(settings).await?;
    match command {
        Sessions::List { limit } => list(store.as_ref(), limit, output).await,
        Sessions::Show { id } => {
            let conversation = read(store.as_ref(), parse_id(&id)?).await?;
            if output.json { output.object(&conversation) } else { output.line(conversation.markdown()) }
        }
        Sessions::Export { id, out } => {
            let conversation = read(store.as_ref(), parse_id(&id)?).await?;
            let text = if output.json {
                serde_json::to_string_pretty(&conversation).map_err(anyhow::Error::from)?
            } else {
                conversation.markdown()
            };
            match out {
                None => output.line(text),
                Some(path) => write_file(&path, text + "\n"),
            }
        }
        Sessions::Reset { id } => {
            let session = store.reset(parse_id(&id)?).await.map_err(compose::session_failure)?;
            output.note(format!("cleared the history of {}", session.session_id));
            Ok(())
        }
        Sessions::Delete { id } => {
            store.delete(parse_id(&id)?).await.map_err(compose::session_failure)?;
            output.note("deleted");
            Ok(())
        }
        Sessions::Copy { .. } => Ok(()),
    }
}

async fn list(store: &dyn SessionStore, limit: usize, output: &Output) -> Result<(), Failure> {
    let sessions = store.list(limit, 0).await.map_err(compose::session_failure)?;
    if output.json {
        return output.object(&sessions);
    }
    if sessions.is_empty() {
        output.note("no conversations yet; start one with `docent chat`");
    }
    for session in sessions {
        let title = session.title.as_deref().unwrap_or("(no questions yet)");
        output.line(format!(
            "{STRONG}{}{STRONG:#}  {title}  {FAINT}{} turns, {}{FAINT:#}",
            session.session_id, session.turn_count, session.updated_at
        ))?;
    }
    Ok(())
}

async fn read(store: &dyn SessionStore, id: Uuid) -> Result<Conversation, Failure> {
    let session = store.get(id).await.map_err(compose::session_failure)?;
    let turns = store.turns(id, usize::MAX).await.map_err(compose::session_failure)?;
    Ok(Conversation { session, turns })
}

/// A stored conversation as Markdown.
pub async fn export(store: &dyn SessionStore, id: Uuid) -> Result<String, Failure> {
    Ok(read(store, id).await?.markdown())
}
