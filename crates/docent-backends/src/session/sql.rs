//! Sessions in a SQL database: an SQLite file that several processes may share.
//!
//! A turn is one row, the whole of it as JSON. A reset begins a new generation of turns and
//! leaves the old ones where they are. The statements are standard SQL, for the day another
//! database runs them.
//!
//! Invariant: a write is one transaction, synced to the disk before its call returns, and it
//! touches the same few rows however long the session is.

mod log;

use std::path::Path;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use docent_core::session::{Session, SessionError, SessionStore, Turn};
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::query::Query;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Row, SqlSafeStr, Sqlite, Transaction};
use uuid::Uuid;

use crate::now_rfc3339;

/// How long a call waits for other writers before the store counts as unavailable.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many reads run at once.
const READERS: u32 = 4;

/// Sessions in an SQLite file.
#[derive(Debug)]
pub struct SqlSessions {
    /// A single connection. SQLite has one writer at a time: here ours queue in order, where
    /// several connections would poll for the file's lock.
    writes: SqlitePool,
    reads: SqlitePool,
    /// The file, as errors name it.
    place: String,
}

impl SqlSessions {
    /// Opens the store in the file at `path`; creates the file and its folders as needed.
    pub async fn open(path: &Path) -> Result<Self, SessionError> {
        Self::open_within(path, PATIENCE).await
    }

    async fn open_within(path: &Path, patience: Duration) -> Result<Self, SessionError> {
        let place = path.display().to_string();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| SessionError::Unavailable(format!("{place}: {error}")))?;
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .foreign_keys(true)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(patience);
        // An idle connection costs nothing and is never stale.
        let pool = SqlitePoolOptions::new().acquire_timeout(patience).idle_timeout(None).max_lifetime(None);

        let writes = connect(pool.clone().max_connections(1), &options, patience)
            .await
            .map_err(|error| session_error(&place, &error))?;
        migrate(&writes).await.map_err(|error| migration_error(&place, &error))?;
        let reads = pool.max_connections(READERS).connect_lazy_with(options);
        Ok(Self { writes, reads, place })
    }

    /// Waits for the right to write. Asked for at once, because a transaction that has read
    /// already could only fail when another process wrote since.
    async fn begin(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        self.writes.begin_with("BEGIN IMMEDIATE").await
    }

    /// Runs an `UPDATE sessions … RETURNING`; nothing comes back for an unknown session.
    async fn update(
        &self,
        update: Query<'_, Sqlite, SqliteArguments>,
    ) -> Result<Option<Session>, sqlx::Error> {
        let mut transaction = self.begin().await?;
        let session = update.fetch_optional(&mut *transaction).await?.as_ref().map(session).transpose()?;
        // Said aloud: the commit that a lone RETURNING implies may fail unheard.
        transaction.commit().await?;
        Ok(session)
    }

    /// Adds a row; false for an unknown session.
    async fn insert(&self, id: Uuid, turn: &Turn, record: &str) -> Result<bool, sqlx::Error> {
        let mut transaction = self.begin().await?;
        let numbers: Option<(i64, i64)> = sqlx::query_as(COUNT_TURN)
            .bind(id.to_string())
            .bind(now_rfc3339())
            .bind(super::title(&turn.query))
            .fetch_optional(&mut *transaction)
            .await?;
        let Some((generation, turn_number)) = numbers else { return Ok(false) };
        sqlx::query(INSERT_TURN)
            .bind(id.to_string())
            .bind(generation)
            .bind(turn_number)
            .bind(turn.turn_id.to_string())
            .bind(record)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(true)
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
        sqlx::query(INSERT_SESSION)
            .bind(session.session_id.to_string())
            .bind(&session.started_at)
            .execute(&self.writes)
            .await
            .map_err(|error| self.error(&error))?;
        Ok(session)
    }

    async fn list(&self, limit: usize, offset: usize) -> Result<Vec<Session>, SessionError> {
        let rows = sqlx::query(LIST_SESSIONS).bind(bounded(limit)).bind(bounded(offset));
        let rows = rows.fetch_all(&self.reads).await.map_err(|error| self.error(&error))?;
        rows.iter().map(session).collect::<Result<_, _>>().map_err(|error| self.error(&error))
    }

    async fn get(&self, id: Uuid) -> Result<Session, SessionError> {
        let row = sqlx::query(GET_SESSION).bind(id.to_string()).fetch_optional(&self.reads).await;
        let row = row.map_err(|error| self.error(&error))?.ok_or(SessionError::NotFound(id))?;
        session(&row).map_err(|error| self.error(&error))
    }

    async fn turns(&self, id: Uuid, last: usize) -> Result<Vec<Turn>, SessionError> {
        let rows: Vec<(i64, String)> = sqlx::query_as(LAST_TURNS)
            .bind(id.to_string())
            .bind(bounded(last))
            .fetch_all(&self.reads)
            .await
            .map_err(|error| self.error(&error))?;
        if rows.is_empty() {
            self.get(id).await?;
        }
        let parse = |(number, record): &(i64, String)| {
            serde_json::from_str(record)
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
        let known = self.insert(id, turn, &record).await.map_err(|error| self.error(&error))?;
        if known { Ok(()) } else { Err(SessionError::NotFound(id)) }
    }

    async fn rename(&self, id: Uuid, title: &str) -> Result<Session, SessionError> {
        let update = sqlx::query(RENAME_SESSION).bind(id.to_string()).bind(now_rfc3339()).bind(title);
        self.update(update).await.map_err(|error| self.error(&error))?.ok_or(SessionError::NotFound(id))
    }

    async fn reset(&self, id: Uuid) -> Result<Session, SessionError> {
        let update = sqlx::query(RESET_SESSION).bind(id.to_string()).bind(now_rfc3339());
        self.update(update).await.map_err(|error| self.error(&error))?.ok_or(SessionError::NotFound(id))
    }

    async fn delete(&self, id: Uuid) -> Result<(), SessionError> {
        let deleted = sqlx::query(DELETE_SESSION).bind(id.to_string()).execute(&self.writes).await;
        match deleted.map_err(|error| self.error(&error))?.rows_affected() {
            0 => Err(SessionError::NotFound(id)),
            _ => Ok(()),
        }
    }
}

const INSERT_SESSION: &str = "
    INSERT INTO sessions (session_id, title, started_at, updated_at, last_use, generation, turn_count)
    VALUES ($1, NULL, $2, $2, (SELECT COALESCE(MAX(last_use), 0) + 1 FROM sessions), 0, 0)";

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
const COUNT_TURN: &str = "
    UPDATE sessions SET turn_count = turn_count + 1, updated_at = $2, title = COALESCE(title, $3),
        last_use = (SELECT MAX(last_use) + 1 FROM sessions)
    WHERE session_id = $1 RETURNING generation, turn_count";

const INSERT_TURN: &str = "
    INSERT INTO turns (session_id, generation, turn_number, turn_id, record) VALUES ($1, $2, $3, $4, $5)";

const RENAME_SESSION: &str = "
    UPDATE sessions SET title = $3, updated_at = $2, last_use = (SELECT MAX(last_use) + 1 FROM sessions)
    WHERE session_id = $1 RETURNING session_id, title, started_at, updated_at, turn_count";

const RESET_SESSION: &str = "
    UPDATE sessions SET generation = generation + 1, turn_count = 0, updated_at = $2,
        last_use = (SELECT MAX(last_use) + 1 FROM sessions)
    WHERE session_id = $1 RETURNING session_id, title, started_at, updated_at, turn_count";

/// Its turns go with it.
const DELETE_SESSION: &str = "DELETE FROM sessions WHERE session_id = $1";

fn session(row: &SqliteRow) -> Result<Session, sqlx::Error> {
    let id: &str = row.try_get("session_id")?;
    let turn_count: i64 = row.try_get("turn_count")?;
    Ok(Session {
        session_id: id.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
        title: row.try_get("title")?,
        started_at: row.try_get("started_at")?,
        updated_at: row.try_get("updated_at")?,
        turn_count: turn_count.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
    })
}

/// SQL counts in signed numbers.
fn bounded(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Opens the first connection, which makes a new file a write-ahead log. SQLite does not wait
/// for other processes to let it do that, so this does.
async fn connect(
    pool: SqlitePoolOptions,
    options: &SqliteConnectOptions,
    patience: Duration,
) -> Result<SqlitePool, sqlx::Error> {
    let begun = Instant::now();
    loop {
        let options = options.clone().journal_mode(SqliteJournalMode::Wal);
        match pool.clone().connect_with(options).await {
            Err(error) if result_code(&error) == Some(SQLITE_BUSY) && begun.elapsed() < patience => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            connected => return connected,
        }
    }
}

/// Brings the tables up to date. The lock is taken before looking: of several processes that
/// open a new file, one makes the tables and the others find them.
async fn migrate(writes: &SqlitePool) -> Result<(), MigrateError> {
    let migration = |(number, name, sql): (i64, &'static str, &'static str)| {
        Migration::new(number, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    let migrations = [
        (1, "sessions", include_str!("migrations/0001_sessions.sql")),
        (2, "log", include_str!("migrations/0002_log.sql")),
    ];
    let mut transaction = writes.begin_with("BEGIN IMMEDIATE").await?;
    // Not `run`, whose future is not known to be `Send` when it is given a connection.
    Migrator::with_migrations(migrations.map(migration).into())
        .run_direct(None, &mut *transaction, false)
        .await?;
    transaction.commit().await?;
    Ok(())
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
    let message = format!("{place}: {error}");
    let damaged = match error {
        sqlx::Error::Database(_) => result_code(error).is_some_and(|code| SQLITE_DAMAGED.contains(&code)),
        sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) => true,
        _ => false,
    };
    if damaged { SessionError::Damaged(message) } else { SessionError::Unavailable(message) }
}

const SQLITE_BUSY: i32 = 5;

/// The codes that blame the file: a table is not as expected, a page is corrupt, a constraint
/// does not hold, a value has another type, this is no database at all.
const SQLITE_DAMAGED: [i32; 5] = [1, 11, 19, 20, 26];

/// SQLite's primary result code.
fn result_code(error: &sqlx::Error) -> Option<i32> {
    let extended: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}

#[cfg(test)]
mod tests;
