//! Sessions in a SQL database: an SQLite file, or PostgreSQL, which several servers may share.
//!
//! A turn is one row, the whole of it as JSON. A reset begins a new generation of turns and
//! leaves the old ones where they are. The statements are standard SQL, the same for both.
//!
//! Invariant: a write is one transaction, committed before its call returns, and it touches the
//! same few rows however long the session is.

mod database;
mod sqlite;
mod postgres;
mod log;
mod copy;

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use docent_core::session::{Session, SessionError, SessionStore, Turn};
use sqlx::migrate::MigrateError;
use uuid::Uuid;

use crate::now_rfc3339;
pub use copy::Copied;
use database::{Database, Row, Transaction, Value};
pub use postgres::Address;

/// How long a call waits for a connection, or for other writers, before the store counts as
/// unavailable.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often a write is tried that other writers are in the way of.
const ATTEMPTS: u32 = 5;

/// Where a store is.
#[derive(Debug, Clone)]
pub enum Place {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Postgres(Address),
}

/// As errors name it; there is no password in it.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Postgres(address) => write!(f, "{address}"),
        }
    }
}

/// Sessions in a SQL database.
#[derive(Debug)]
pub struct SqlSessions {
    database: Database,
    /// Where it is, as errors name it.
    place: String,
}

/// What can be said of a store without changing it.
#[derive(Debug)]
pub struct Examination {
    /// The database and its version.
    pub server: String,
    /// How many conversations it has.
    pub conversations: u64,
}

impl SqlSessions {
    /// Opens the store in the file at `path`; creates the file and its folders as needed.
    pub async fn open(path: &Path) -> Result<Self, SessionError> {
        Self::open_at(&Place::File(path.to_owned())).await
    }

    /// Opens the store at a place; makes what it needs there.
    pub async fn open_at(place: &Place) -> Result<Self, SessionError> {
        Self::open_within(place, PATIENCE).await
    }

    async fn open_within(place: &Place, patience: Duration) -> Result<Self, SessionError> {
        let store = Self::connect(place, patience).await?;
        let prepared = store.prepare().await?;
        prepared.commit().await.map_err(|error| store.error(&error))?;
        Ok(store)
    }

    /// Does all that opening does, looks, and leaves everything as it was.
    pub async fn examine(place: &Place) -> Result<Examination, SessionError> {
        let store = Self::connect(place, PATIENCE).await?;
        let mut prepared = store.prepare().await?;
        let examined = async {
            let rows = prepared.rows(COUNT_SESSIONS, &[]).await?;
            let count = rows.first().ok_or(sqlx::Error::RowNotFound)?.number("conversations")?;
            prepared.rollback().await?;
            let conversations = count.try_into().unwrap_or_default();
            Ok(Examination { server: store.database.version().await?, conversations })
        };
        examined.await.map_err(|error| store.error(&error))
    }

    async fn connect(place: &Place, patience: Duration) -> Result<Self, SessionError> {
        let database = match place {
            Place::File(path) => sqlite::File::open(path, patience).await.map(Database::Sqlite),
            Place::Postgres(address) => address.open().await.map(Database::Postgres),
        };
        let place = place.to_string();
        Ok(Self { database: database.map_err(|error| session_error(&place, &error))?, place })
    }

    /// The tables as this version wants them, not committed yet.
    async fn prepare(&self) -> Result<Transaction, SessionError> {
        let mut transaction = self.database.begin().await.map_err(|error| self.error(&error))?;
        transaction.migrate().await.map_err(|error| migration_error(&self.place, &error))?;
        Ok(transaction)
    }

    /// Writes; again when other writers were in the way, because then nothing was written.
    async fn write<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, SessionError>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        for pause in 1..ATTEMPTS {
            match attempt().await {
                Err(error) if postgres::is_collision(&error) => {
                    // Apart by chance, or the same two would meet again.
                    let chance = u64::from(Uuid::new_v4().as_bytes()[0] % 32);
                    tokio::time::sleep(Duration::from_millis(chance * u64::from(pause))).await;
                }
                done => return done.map_err(|error| self.error(&error)),
            }
        }
        attempt().await.map_err(|error| self.error(&error))
    }

    /// Writes with one statement; returns how many rows it changed.
    async fn execute(&self, sql: &'static str, values: &[Value<'_>]) -> Result<u64, SessionError> {
        let attempt = || async {
            let mut transaction = self.database.begin().await?;
            let changed = transaction.execute(sql, values).await?;
            transaction.commit().await?;
            Ok(changed)
        };
        self.write(attempt).await
    }

    /// Runs an `UPDATE sessions … RETURNING`; an unknown session is not found.
    async fn update(
        &self,
        id: Uuid,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Session, SessionError> {
        let attempt = || async {
            let mut transaction = self.database.begin().await?;
            let session = transaction.rows(sql, values).await?.first().map(session).transpose()?;
            // Said aloud: the commit that a lone RETURNING implies may fail unheard.
            transaction.commit().await?;
            Ok(session)
        };
        self.write(attempt).await?.ok_or(SessionError::NotFound(id))
    }

    /// Adds a row; false for an unknown session.
    async fn insert(&self, id: Uuid, turn: &Turn, record: &str) -> sqlx::Result<bool> {
        let mut transaction = self.database.begin().await?;
        let (now, title) = (now_rfc3339(), super::title(&turn.query));
        let values = [Value::Id(id), Value::Text(&now), Value::Text(&title)];
        let counted = transaction.rows(COUNT_TURN, &values).await?;
        let Some(counted) = counted.first() else { return Ok(false) };
        let values = [
            Value::Id(id),
            Value::Number(counted.number("generation")?),
            Value::Number(counted.number("turn_count")?),
            Value::Id(turn.turn_id),
            Value::Text(record),
        ];
        transaction.execute(INSERT_TURN, &values).await?;
        transaction.commit().await?;
        Ok(true)
    }

    async fn read(&self, sql: &'static str, values: &[Value<'_>]) -> Result<Vec<Row>, SessionError> {
        self.database.rows(sql, values).await.map_err(|error| self.error(&error))
    }

    fn error(&self, error: &sqlx::Error) -> SessionError {
        session_error(&self.place, error)
    }

    fn damaged(&self, what: &str, error: &serde_json::Error) -> SessionError {
        SessionError::Damaged(format!("{}: {what}: {error}", self.place))
    }
}

#[async_trait]
impl SessionStore for SqlSessions {
    async fn create(&self) -> Result<Session, SessionError> {
        let session = Session::new(Uuid::new_v4(), now_rfc3339());
        let values = [Value::Id(session.session_id), Value::Text(&session.started_at)];
        self.execute(INSERT_SESSION, &values).await?;
        Ok(session)
    }

    async fn list(&self, limit: usize, offset: usize) -> Result<Vec<Session>, SessionError> {
        let values = [Value::Number(bounded(limit)), Value::Number(bounded(offset))];
        let rows = self.read(LIST_SESSIONS, &values).await?;
        rows.iter().map(session).collect::<Result<_, _>>().map_err(|error| self.error(&error))
    }

    async fn get(&self, id: Uuid) -> Result<Session, SessionError> {
        let rows = self.read(GET_SESSION, &[Value::Id(id)]).await?;
        let row = rows.first().ok_or(SessionError::NotFound(id))?;
        session(row).map_err(|error| self.error(&error))
    }

    async fn turns(&self, id: Uuid, last: usize) -> Result<Vec<Turn>, SessionError> {
        let rows = self.read(LAST_TURNS, &[Value::Id(id), Value::Number(bounded(last))]).await?;
        if rows.is_empty() {
            self.get(id).await?;
        }
        let parse = |row: &Row| {
            let number = row.number("turn_number").map_err(|error| self.error(&error))?;
            let record = row.text("record").map_err(|error| self.error(&error))?;
            serde_json::from_str(&record)
                .map_err(|error| self.damaged(&format!("turn {number} of session {id}"), &error))
        };
        rows.iter().rev().map(parse).collect()
    }

    async fn append(&self, id: Uuid, turn: &Turn) -> Result<(), SessionError> {
        // JSON has no way to write some numbers. A turn that could not be read again would
        // take its whole session with it, so it is refused here.
        let record = serde_json::to_string(turn)
            .and_then(|record| serde_json::from_str::<Turn>(&record).map(|_| record))
            .map_err(|error| self.damaged(&format!("turn {} cannot be stored", turn.turn_id), &error))?;
        let known = self.write(|| self.insert(id, turn, &record)).await?;
        if known { Ok(()) } else { Err(SessionError::NotFound(id)) }
    }

    async fn rename(&self, id: Uuid, title: &str) -> Result<Session, SessionError> {
        let values = [Value::Id(id), Value::Text(&now_rfc3339()), Value::Text(title)];
        self.update(id, RENAME_SESSION, &values).await
    }

    async fn reset(&self, id: Uuid) -> Result<Session, SessionError> {
        self.update(id, RESET_SESSION, &[Value::Id(id), Value::Text(&now_rfc3339())]).await
    }

    async fn delete(&self, id: Uuid) -> Result<(), SessionError> {
        match self.execute(DELETE_SESSION, &[Value::Id(id)]).await? {
            0 => Err(SessionError::NotFound(id)),
            _ => Ok(()),
        }
    }
}

/// One more than any use there was.
///
/// The row's own is looked at too: a writer that waited for the row sees it as it is now, and
/// the other rows as they were when it began to wait.
macro_rules! next_use {
    () => {
        "(CASE WHEN last_use > (SELECT MAX(last_use) FROM sessions) THEN last_use
               ELSE (SELECT MAX(last_use) FROM sessions) END + 1)"
    };
}
use next_use;

const INSERT_SESSION: &str = "
    INSERT INTO sessions (session_id, title, started_at, updated_at, last_use, generation, turn_count)
    VALUES ($1, NULL, $2, $2, (SELECT COALESCE(MAX(last_use), 0) + 1 FROM sessions), 0, 0)";

const COUNT_SESSIONS: &str = "SELECT COUNT(*) AS conversations FROM sessions";

const LIST_SESSIONS: &str = "
    SELECT session_id, title, started_at, updated_at, turn_count FROM sessions
    ORDER BY last_use DESC, session_id DESC LIMIT $1 OFFSET $2";

const GET_SESSION: &str = "
    SELECT session_id, title, started_at, updated_at, turn_count FROM sessions WHERE session_id = $1";

const LAST_TURNS: &str = "
    SELECT turn_number, record FROM turns
    WHERE session_id = $1 AND generation = (SELECT generation FROM sessions WHERE session_id = $1)
    ORDER BY turn_number DESC LIMIT $2";

/// Comes before [`INSERT_TURN`] and locks the session's row: two turns never get one number.
const COUNT_TURN: &str = concat!(
    "UPDATE sessions SET turn_count = turn_count + 1, updated_at = $2, title = COALESCE(title, $3),
        last_use = ",
    next_use!(),
    " WHERE session_id = $1 RETURNING generation, turn_count"
);

const INSERT_TURN: &str = "
    INSERT INTO turns (session_id, generation, turn_number, turn_id, record) VALUES ($1, $2, $3, $4, $5)";

const RENAME_SESSION: &str = concat!(
    "UPDATE sessions SET title = $3, updated_at = $2, last_use = ",
    next_use!(),
    " WHERE session_id = $1 RETURNING session_id, title, started_at, updated_at, turn_count"
);

const RESET_SESSION: &str = concat!(
    "UPDATE sessions SET generation = generation + 1, turn_count = 0, updated_at = $2, last_use = ",
    next_use!(),
    " WHERE session_id = $1 RETURNING session_id, title, started_at, updated_at, turn_count"
);

/// Its turns go with it.
const DELETE_SESSION: &str = "DELETE FROM sessions WHERE session_id = $1";

fn session(row: &Row) -> sqlx::Result<Session> {
    let turn_count = row.number("turn_count")?;
    Ok(Session {
        session_id: row.id("session_id")?,
        title: row.maybe("title")?,
        started_at: row.text("started_at")?,
        updated_at: row.text("updated_at")?,
        turn_count: turn_count.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
    })
}

/// SQL counts in signed numbers.
fn bounded(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn migration_error(place: &str, error: &MigrateError) -> SessionError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            session_error(place, error)
        }
        MigrateError::VersionMissing(_) => {
            SessionError::Damaged(format!("{place}: written by a newer version of Docent"))
        }
        other => SessionError::Damaged(format!("{place}: {other}")),
    }
}

fn session_error(place: &str, error: &sqlx::Error) -> SessionError {
    let message = match error {
        sqlx::Error::Io(error) => format!("{place}: {error}"),
        sqlx::Error::PoolTimedOut => format!("{place}: no connection within {} seconds", PATIENCE.as_secs()),
        other => format!("{place}: {other}"),
    };
    if database::is_damage(error) {
        SessionError::Damaged(message)
    } else {
        SessionError::Unavailable(message)
    }
}

#[cfg(test)]
mod tests;
