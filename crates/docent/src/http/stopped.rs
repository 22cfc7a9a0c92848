//! Stores a streamed turn that the user stopped, with the part of the answer that was sent.
//!
//! Invariant: a turn is stored once: by the agent when it ends, or here when its stream is dropped before the
//! end.

use std::sync::Arc;

use docent_core::agent::{Ask, State, TurnEvent};
use docent_core::answer::{Citation, Sentence};
use docent_core::search_response::SourceChunk;
use docent_core::session::{SessionError, Turn};
use uuid::Uuid;

use super::Server;
use super::turn::Heard;

/// Follows a streamed turn. If it is dropped before the turn ends, it stores the turn.
pub struct Unfinished {
    server: Arc<Server>,
    /// None if there is no conversation, or if nothing is left to store.
    session: Option<Uuid>,
    query: String,
    begun: String,
    sources: Vec<SourceChunk>,
    sentences: Vec<Sentence>,
    citations: Vec<Citation>,
}

impl Unfinished {
    /// Starts to follow a turn, before it begins.
    pub fn new(server: &Arc<Server>, ask: &Ask) -> Self {
        Self {
            server: server.clone(),
            session: ask.session_id,
            query: ask.query.trim().to_owned(),
            begun: docent_backends::now_rfc3339(),
            sources: Vec::new(),
            sentences: Vec::new(),
            citations: Vec::new(),
        }
    }

    /// Records what the user is sent.
    pub fn hear(&mut self, heard: &Heard) {
        match heard {
            Heard::Event(TurnEvent::Sources(sources)) => self.sources.clone_from(sources),
            Heard::Event(TurnEvent::Sentence(sentence, citations)) => {
                self.sentences.push(sentence.clone());
                let new =
                    citations.iter().filter(|new| !self.citations.iter().any(|known| known.id == new.id));
                let new: Vec<Citation> = new.cloned().collect();
                self.citations.extend(new);
            }
            Heard::Event(TurnEvent::Restart) => {
                self.sentences.clear();
                self.citations.clear();
            }
            Heard::Event(TurnEvent::State(
                State::Received | State::Validating | State::Retrieving | State::Generating,
            )) => {}
            // From here on, the turn has failed or the agent has stored it.
            Heard::Event(TurnEvent::State(_)) | Heard::Ended(_) => self.session = None,
            Heard::Event(_) => {}
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let (Some(session), Ok(runtime)) = (self.session, tokio::runtime::Handle::try_current()) else {
            return;
        };
        let turn = Turn::stopped(
            (Uuid::new_v4(), session),
            &self.query,
            docent_backends::now_rfc3339(),
            (std::mem::take(&mut self.sentences), std::mem::take(&mut self.citations)),
            std::mem::take(&mut self.sources),
        );
        let (server, begun) = (self.server.clone(), std::mem::take(&mut self.begun));
        runtime.spawn(async move {
            if let Err(error) = store(&server, session, &turn, &begun).await {
                tracing::warn!("failed to store a stopped turn: {error}");
            }
        });
    }
}

async fn store(server: &Server, session: Uuid, turn: &Turn, begun: &str) -> Result<(), SessionError> {
    // The turn may have ended, and been stored, before the stream reported it.
    let last = server.sessions.turns(session, 1).await?;
    if last.iter().any(|last| last.query == turn.query && last.timestamp.as_str() >= begun) {
        return Ok(());
    }
    server.sessions.append(session, turn).await
}
