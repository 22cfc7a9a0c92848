//! Opens the stores of conversations and of the turn log.
//!
//! Invariant: both use the same storage, so neither outlives the other.

use std::path::Path;
use std::sync::Arc;

use docent_backends::session::memory::MemorySessions;
use docent_backends::session::sql::{Examination, Place, SqlSessions};
use docent_core::session::SessionStore;
use docent_core::turn_log::TurnLog;

use super::session_failure;
use crate::exit::Failure;
use crate::settings::{SessionsKind, Settings};

/// Where conversations and the turn log are stored.
pub struct Stores {
    /// The conversations of users.
    pub sessions: Arc<dyn SessionStore>,
    /// The turn log for the operator; it names no user.
    pub log: Arc<dyn TurnLog>,
    /// Whether both are lost when the process ends.
    pub in_memory: bool,
}

impl Stores {
    fn in_memory() -> Self {
        let memory = Arc::new(MemorySessions::default());
        Self { sessions: memory.clone(), log: memory, in_memory: true }
    }
}

/// The configured stores; both use the same storage.
pub async fn stores(settings: &Settings) -> Result<Stores, Failure> {
    match settings.sessions.kind {
        SessionsKind::Memory => Ok(Stores::in_memory()),
        SessionsKind::Sqlite | SessionsKind::Postgres => {
            let place = sessions_place(settings, settings.sessions.kind)?;
            let sql = Arc::new(sql_sessions(&place).await?);
            Ok(Stores { sessions: sql.clone(), log: sql, in_memory: false })
        }
    }
}

/// The stores of a server. With a read-only data folder, conversations are kept in memory.
pub async fn stores_of_server(settings: &Settings) -> Result<Stores, Failure> {
    if settings.sessions.kind == SessionsKind::Sqlite
        && let Place::File(file) = sessions_place(settings, SessionsKind::Sqlite)?
        && !can_write(&file)
    {
        tracing::warn!(file = %file.display(), "conversations are kept in memory: the file is not writable");
        return Ok(Stores::in_memory());
    }
    stores(settings).await
}

/// Whether a file can be written, or created if it does not exist.
fn can_write(file: &Path) -> bool {
    if file.exists() {
        return std::fs::OpenOptions::new().append(true).open(file).is_ok();
    }
    let folder = file.ancestors().skip(1).find(|folder| folder.exists());
    folder.is_some_and(|folder| tempfile::tempfile_in(folder).is_ok())
}

/// Where conversations are stored for this kind of store.
pub fn sessions_place(settings: &Settings, kind: SessionsKind) -> Result<Place, Failure> {
    match kind {
        SessionsKind::Sqlite => Ok(Place::File(settings.data_dir()?.join("sessions.sqlite"))),
        SessionsKind::Postgres => Ok(Place::Postgres(settings.sessions.address()?)),
        SessionsKind::Memory => Err(Failure::usage(
            "in-memory conversations cannot be copied: they are lost when the process exits",
        )),
    }
}

/// Opens the store at this location.
pub async fn sql_sessions(place: &Place) -> Result<SqlSessions, Failure> {
    SqlSessions::open_at(place).await.map_err(session_failure)
}

/// Examines the store at this location without changing it.
pub async fn examine_sessions(place: &Place) -> Result<Examination, Failure> {
    SqlSessions::examine(place).await.map_err(session_failure)
}

/// The store of conversations.
pub async fn sessions(settings: &Settings) -> Result<Arc<dyn SessionStore>, Failure> {
    Ok(stores(settings).await?.sessions)
}
