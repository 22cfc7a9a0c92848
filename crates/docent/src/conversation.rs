//! A stored conversation as users export it: as one JSON object, or as Markdown.
//!
//! Invariant: the head and the turns, written one after the other, are the whole conversation, so that a server can
//! send a long one without holding it in memory.

use docent_core::answer::ResponseKind;
use docent_core::session::{Session, Turn};
use serde::Serialize;

/// A whole conversation.
#[derive(Serialize)]
pub struct Conversation {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// Its turns, oldest first.
    pub turns: Vec<Turn>,
}

impl Conversation {
    /// The conversation as Markdown: questions as headings, answers with their links.
    pub fn markdown(&self) -> String {
        let turns: String = self.turns.iter().map(markdown_turn).collect();
        format!("{}{turns}", markdown_head(&self.session)).trim_end().to_owned()
    }
}

/// The head of a conversation in Markdown.
pub fn markdown_head(session: &Session) -> String {
    let title = session.title.as_deref().unwrap_or("Conversation");
    format!("# {title}\n\n{} · {}\n", session.session_id, session.started_at)
}

/// A turn as Markdown.
pub fn markdown_turn(turn: &Turn) -> String {
    let stopped = match turn.response.kind {
        ResponseKind::Stopped => "\n\n*(stopped before the end)*",
        _ => "",
    };
    format!("\n## {}\n\n{}\n", turn.query, format!("{}{stopped}", turn.response.answer).trim_start())
}
