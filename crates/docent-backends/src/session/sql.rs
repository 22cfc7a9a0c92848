//! Sessions in a SQL database: an SQLite file, or PostgreSQL, which several servers may share.
//!
//! A turn is one row with the whole turn as JSON. A reset removes the turns and starts a new generation, so
//! that copies can detect it. The statements are standard SQL and the same for both databases.
//!
//! Invariant: a write is one transaction, committed before the call returns. Unless it deletes turns, it
//! touches the same few rows however long the session is.

mod database;
mod row;
mod private;
mod sqlite;
mod postgres;
mod log;
mod copy;

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use docent_core::session::{SecretHash, Session, SessionAccess, SessionError, SessionStore, Turn};
use sqlx::migrate::MigrateError;
use uuid::Uuid;

use crate::now_rfc3339;
pub use copy::Copied;
use database::{Database, Transaction};
pub use postgres::Address;
use row::{Row, Value};

/// How long a call waits for a connection or for other writers before the store is considered unavailable.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a successful write proves that the store is writable, so that frequent checks do not cause more
/// writes.
const WRITABLE_FOR: Duration = Duration::from_secs(5);

/// Maximum number of attempts of a write that collides with other writers.
const ATTEMPTS: u32 = 5;

/// The location of a store.
#[derive(Debug, Clone)]
pub enum Place {
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Postgres(Address),
}

/// For error messages; does not contain the password.
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
    /// Its location, for error messages.
    place: String,
    /// When the last write succeeded; `None` after a failure.
    writable: Mutex<Option<Instant>>,
}

/// Information about a store, obtained without changing it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Examination {
    /// The database and its version.
    pub server: String,
    /// Number of conversations.
    pub conversations: u64,
}

impl SqlSessions {
    /// Opens the store in the file at `path`; creates the file and its folders as needed.
    pub async fn open(path: &Path) -> Result<Self, SessionError> {
        Self::open_at(&Place::File(path.to_owned())).await
    }

    /// Opens a store; creates the file or the tables as needed.
    pub async fn open_at(place: &Place) -> Result<Self, SessionError> {
        Self::open_within(place, STORE_TIMEOUT).await
    }

    async fn open_within(place: &Place, timeout: Duration) -> Result<Self, SessionError> {
        let store = Self::connect(place, timeout).await?;
        let prepared = store.prepare().await?;
        prepared.commit().await.map_err(|error| store.error(&error))?;
        Ok(store)
    }

    /// Opens a store, examines it, and rolls back all changes.
    pub async fn examine(place: &Place) -> Result<Examination, SessionError> {
        let store = Self::connect(place, STORE_TIMEOUT).await?;
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

    async fn connect(place: &Place, timeout: Duration) -> Result<Self, SessionError> {
        let database = match place {
            Place::File(path) => sqlite::File::open(path, timeout).await.map(Database::Sqlite),
            Place::Postgres(address) => address.open().await.map(Database::Postgres),
        };
        let place = place.to_string();
        let database = database.map_err(|error| session_error(&place, &error))?;
        Ok(Self { database, place, writable: Mutex::default() })
    }

    /// Brings the tables up to date, in a transaction that is not committed yet.
    async fn prepare(&self) -> Result<Transaction, SessionError> {
        let mut transaction = self.database.begin().await.map_err(|error| self.error(&error))?;
        transaction.migrate().await.map_err(|error| migration_error(&self.place, &error))?;
        Ok(transaction)
    }

    /// Runs a write; retries it after a collision with other writers, since nothing was written then.
    async fn write<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, SessionError>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        for pause in 1..ATTEMPTS {
            match attempt().await {
                Err(error) if postgres::is_collision(&error) => {
                    // A random delay, or the same two writers would collide again.
                    let chance = u64::from(Uuid::new_v4().as_bytes()[0] % 32);
                    tokio::time::sleep(Duration::from_millis(chance * u64::from(pause))).await;
                }
                done => return self.written(done),
            }
        }
        self.written(attempt().await)
    }

    /// Remembers whether a write succeeded.
    fn written<T>(&self, done: sqlx::Result<T>) -> Result<T, SessionError> {
        *self.writable.lock().unwrap_or_else(PoisonError::into_inner) = done.is_ok().then(Instant::now);
        done.map_err(|error| self.error(&error))
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
            // Commit explicitly: errors of the implicit commit after a single RETURNING statement may be
            // lost.
            transaction.commit().await?;
            Ok(session)
        };
        self.write(attempt).await?.ok_or(SessionError::NotFound(id))
    }

    /// Inserts a turn; returns `false` for an unknown session.
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
    async fn create_with(&self, access: SessionAccess) -> Result<Session, SessionError> {
        let session = Session::new(Uuid::new_v4(), now_rfc3339());
        let (owner, share) = (hex(access.owner), hex(access.share));
        let values = [
            Value::Id(session.session_id),
            Value::Text(&session.started_at),
            Value::Maybe(owner.as_deref()),
            Value::Maybe(share.as_deref()),
        ];
        self.execute(INSERT_SESSION, &values).await?;
        Ok(session)
    }

    async fn access(&self, id: Uuid) -> Result<SessionAccess, SessionError> {
        let rows = self.read(ACCESS, &[Value::Id(id)]).await?;
        let row = rows.first().ok_or(SessionError::NotFound(id))?;
        let hash = |column| -> Result<Option<SecretHash>, SessionError> {
            let text = row.maybe(column).map_err(|error| self.error(&error))?;
            // An invalid hash gives no access.
            Ok(text.as_deref().and_then(SecretHash::from_hex))
        };
        Ok(SessionAccess { owner: hash("owner_hash")?, share: hash("share_hash")? })
    }

    async fn share(&self, id: Uuid, share: Option<SecretHash>) -> Result<(), SessionError> {
        let share = hex(share);
        match self.execute(SHARE, &[Value::Id(id), Value::Maybe(share.as_deref())]).await? {
            0 => Err(SessionError::NotFound(id)),
            _ => Ok(()),
        }
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

    async fn turns_before(&self, id: Uuid, before: u32, most: usize) -> Result<Vec<Turn>, SessionError> {
        let values = [Value::Id(id), Value::Number(bounded(most)), Value::Number(before.into())];
        let rows = self.read(TURNS_BEFORE, &values).await?;
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
        // JSON cannot represent some numbers. A turn that cannot be read back would make its whole session
        // unreadable, so it is rejected here.
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
        let now = now_rfc3339();
        let attempt = || async {
            let mut transaction = self.database.begin().await?;
            let first = [Value::Id(id), Value::Number(1), Value::Number(2)];
            let first = transaction.rows(TURNS_BEFORE, &first).await?;
            let first = first.first().map(|row| row.text("record")).transpose()?;
            // An unreadable turn is removed like any other.
            let first: Option<Turn> = first.and_then(|record| serde_json::from_str(&record).ok());
            let asked = first.map(|turn| super::title(&turn.query));
            let values = [Value::Id(id), Value::Text(&now), Value::Maybe(asked.as_deref())];
            let session = transaction.rows(RESET_SESSION, &values).await?.first().map(session).transpose()?;
            transaction.execute(FORGET_TURNS, &[Value::Id(id)]).await?;
            transaction.commit().await?;
            Ok(session)
        };
        let session = self.write(attempt).await?.ok_or(SessionError::NotFound(id))?;
        self.database.scrub().await;
        Ok(session)
    }

    async fn delete(&self, id: Uuid) -> Result<(), SessionError> {
        if self.execute(DELETE_SESSION, &[Value::Id(id)]).await? == 0 {
            return Err(SessionError::NotFound(id));
        }
        self.database.scrub().await;
        Ok(())
    }

    async fn check_writable(&self) -> Result<(), SessionError> {
        let last = *self.writable.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() < WRITABLE_FOR) {
            // Skip only the write; a missing database is still detected at once.
            return self.list(1, 0).await.map(|_| ());
        }
        let attempt = || async {
            let mut transaction = self.database.begin().await?;
            // Only the disk of an SQLite file is checked; that of a database server is up to its operator.
            if let Database::Sqlite(_) = self.database {
                for sql in sqlite::WRITE_CHECK {
                    transaction.execute(sql, &[]).await?;
                }
            }
            transaction.commit().await
        };
        self.write(attempt).await
    }

    async fn expire_before(&self, moment: &str) -> Result<usize, SessionError> {
        let count = self.execute(EXPIRE, &[Value::Text(moment)]).await?;
        if count > 0 {
            self.database.scrub().await;
        }
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    async fn retention_time(&self, now: &str) -> Result<String, SessionError> {
        let attempt = || async {
            let mut transaction = self.database.begin().await?;
            let known = transaction.rows(RETENTION, &[]).await?;
            let known = known.first().ok_or(sqlx::Error::RowNotFound)?;
            let (last, newest) = (known.maybe("last")?, known.maybe("newest")?);
            let time = super::retention::advance(last.as_deref(), newest.as_deref(), now);
            transaction.execute(SET_RETENTION, &[Value::Text(&time)]).await?;
            transaction.commit().await?;
            Ok(time)
        };
        self.write(attempt).await
    }
}

fn hex(hash: Option<SecretHash>) -> Option<String> {
    hash.map(|hash| hash.to_hex())
}

/// One more than the largest `last_use`.
///
/// The row itself is checked separately: a writer that waited for the row sees its current value, but the
/// other rows as they were when it began to wait.
macro_rules! next_use {
    () => {
        "(CASE WHEN last_use > (SELECT MAX(last_use) FROM sessions) THEN last_use
               ELSE (SELECT MAX(last_use) FROM sessions) END + 1)"
    };
}
use next_use;

const INSERT_SESSION: &str = "
    INSERT INTO sessions (session_id, title, started_at, updated_at, last_use, generation, turn_count,
        owner_hash, share_hash)
    VALUES ($1, NULL, $2, $2, (SELECT COALESCE(MAX(last_use), 0) + 1 FROM sessions), 0, 0, $3, $4)";

const ACCESS: &str = "SELECT owner_hash, share_hash FROM sessions WHERE session_id = $1";

const SHARE: &str = "UPDATE sessions SET share_hash = $2 WHERE session_id = $1";

const COUNT_SESSIONS: &str = "SELECT COUNT(*) AS conversations FROM sessions";

const LIST_SESSIONS: &str = "
    SELECT session_id, title, started_at, updated_at, turn_count FROM sessions
    ORDER BY last_use DESC, session_id DESC LIMIT $1 OFFSET $2";

const GET_SESSION: &str = "
    SELECT session_id, title, started_at, updated_at, turn_count FROM sessions WHERE session_id = $1";

const TURNS_BEFORE: &str = "
    SELECT turn_number, record FROM turns
    WHERE session_id = $1 AND generation = (SELECT generation FROM sessions WHERE session_id = $1)
        AND turn_number < $3
    ORDER BY turn_number DESC LIMIT $2";

/// Runs before [`INSERT_TURN`] and locks the session's row, so that two turns never get the same number.
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

/// A title made from the first question is removed with it.
const RESET_SESSION: &str = concat!(
    "UPDATE sessions SET generation = generation + 1, turn_count = 0, updated_at = $2,
        title = CASE WHEN title = $3 THEN NULL ELSE title END, last_use = ",
    next_use!(),
    " WHERE session_id = $1 RETURNING session_id, title, started_at, updated_at, turn_count"
);

const FORGET_TURNS: &str = "DELETE FROM turns WHERE session_id = $1";

/// The turns are deleted by the foreign key.
const DELETE_SESSION: &str = "DELETE FROM sessions WHERE session_id = $1";

const EXPIRE: &str = "DELETE FROM sessions WHERE updated_at < $1";

const RETENTION: &str = "
    SELECT (SELECT moment FROM retention WHERE only_row = 1) AS last,
        (SELECT MAX(updated_at) FROM sessions) AS newest";

const SET_RETENTION: &str = "
    INSERT INTO retention (only_row, moment) VALUES (1, $1)
    ON CONFLICT (only_row) DO UPDATE SET moment = excluded.moment";

fn session(row: &Row) -> sqlx::Result<Session> {
    let turn_count = row.number("turn_count")?;
    let mut session = Session::new(row.id("session_id")?, row.text("started_at")?);
    session.title = row.maybe("title")?;
    session.updated_at = row.text("updated_at")?;
    session.turn_count = turn_count.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    Ok(session)
}

/// SQL has only signed numbers.
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
        sqlx::Error::PoolTimedOut => {
            format!("{place}: no connection within {} seconds", STORE_TIMEOUT.as_secs())
        }
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
