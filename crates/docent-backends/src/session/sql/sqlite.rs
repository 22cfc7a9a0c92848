//! SQLite: a file that several processes may share.
//!
//! Invariant: a commit is synced to disk when it returns.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteError, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Connection, Sqlite, Transaction};

/// Checks whether the file is writable: writes about as much as a turn, always to the same row.
pub(super) const WRITE_CHECK: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS write_check (id INTEGER PRIMARY KEY, filler TEXT NOT NULL)",
    "INSERT INTO write_check (id, filler) VALUES (1, hex(randomblob(8192)))
     ON CONFLICT (id) DO UPDATE SET filler = excluded.filler",
];

/// Adds up the tokens of the turn log.
pub(super) const TOKENS_SINCE: &str = "
    SELECT COALESCE(SUM(json_extract(record, '$.tokens')), 0) AS tokens FROM turn_log WHERE asked_at >= $1";

use super::private;

/// Maximum number of concurrent reads.
const READ_CONNECTIONS: u32 = 4;

/// An open file.
#[derive(Debug)]
pub(super) struct File {
    /// A single connection. SQLite allows one writer at a time: with one connection, writes queue in order,
    /// while several connections would poll for the lock.
    pub(super) writes: SqlitePool,
    pub(super) reads: SqlitePool,
    /// Does not wait for locks; see [`File::scrub`].
    scrubs: SqlitePool,
}

impl File {
    /// Opens the file at `path`; creates it and its folders as needed. `timeout` is how long calls wait for
    /// other writers.
    pub(super) async fn open(path: &Path, timeout: Duration) -> sqlx::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        private::make(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .foreign_keys(true)
            .synchronous(SqliteSynchronous::Full)
            // Deleted data is overwritten, so that free pages contain no deleted conversations.
            .pragma("secure_delete", "ON")
            .busy_timeout(timeout);
        // An idle connection costs nothing and never becomes stale.
        let pool = SqlitePoolOptions::new().acquire_timeout(timeout).idle_timeout(None).max_lifetime(None);
        // If the disk is full, SQLite rolls back by itself, but the driver does not notice and keeps the
        // connection inside a transaction, so that no other can begin. Replace such a connection.
        let write = pool.clone().max_connections(1).before_acquire(|connection, _| {
            let usable = !connection.is_in_transaction();
            Box::pin(std::future::ready(Ok(usable)))
        });
        let writes = connect(write, &options, timeout).await?;
        let scrubs = pool.clone().max_connections(1);
        let scrubs = scrubs.connect_lazy_with(options.clone().busy_timeout(Duration::ZERO));
        Ok(Self { writes, reads: pool.max_connections(READ_CONNECTIONS).connect_lazy_with(options), scrubs })
    }

    /// Empties the write-ahead log, which still contains deleted data. This is not possible while an older
    /// state is being read; then the next call does it, or the last process that closes the file.
    pub(super) async fn scrub(&self) {
        if let Err(error) = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&self.scrubs).await {
            tracing::debug!("cannot truncate the write-ahead log: {error}");
        }
    }

    /// Begins a write transaction. Takes the write lock immediately: a transaction that starts by reading
    /// would fail if another process wrote in between.
    pub(super) async fn begin(&self) -> sqlx::Result<Transaction<'static, Sqlite>> {
        self.writes.begin_with("BEGIN IMMEDIATE").await
    }
}

/// Opens the first connection, which switches a new file to a write-ahead log. SQLite does not wait for other
/// processes when doing that, so this function retries.
async fn connect(
    pool: SqlitePoolOptions,
    options: &SqliteConnectOptions,
    timeout: Duration,
) -> sqlx::Result<SqlitePool> {
    let begun = Instant::now();
    loop {
        let options = options.clone().journal_mode(SqliteJournalMode::Wal);
        match pool.clone().connect_with(options).await {
            Err(error) if result_code(&error) == Some(BUSY) && begun.elapsed() < timeout => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            connected => return connected,
        }
    }
}

/// Whether an error means that the file is damaged.
pub(super) fn is_damage(error: &sqlx::Error) -> bool {
    result_code(error).is_some_and(|code| DAMAGED.contains(&code))
}

const BUSY: i32 = 5;

/// Result codes for a damaged file: unexpected table, corrupt page, violated constraint, wrong type, not a
/// database.
const DAMAGED: [i32; 5] = [1, 11, 19, 20, 26];

/// SQLite's primary result code.
fn result_code(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?.try_downcast_ref::<SqliteError>()?;
    let extended: i32 = sqlx::error::DatabaseError::code(error)?.parse().ok()?;
    Some(extended & 0xff)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn only_the_owner_can_read_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.sqlite");
        let file = File::open(&path, Duration::from_secs(5)).await.unwrap();
        file.begin().await.unwrap().rollback().await.unwrap();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", entry.path().display());
        }
        // An existing file keeps its mode.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        File::open(&path, Duration::from_secs(5)).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
