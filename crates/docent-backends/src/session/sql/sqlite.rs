//! SQLite: a file that several processes may share.
//!
//! Invariant: a commit is on the disk when it returns.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteError, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Sqlite, Transaction};

/// How many reads run at once.
const READERS: u32 = 4;

/// A file that is open.
#[derive(Debug)]
pub(super) struct File {
    /// A single connection. SQLite has one writer at a time: here ours queue in order, where
    /// several connections would poll for the file's lock.
    pub(super) writes: SqlitePool,
    pub(super) reads: SqlitePool,
}

impl File {
    /// Opens the file at `path`; creates it and its folders as needed. Calls wait this long for
    /// other writers.
    pub(super) async fn open(path: &Path, patience: Duration) -> sqlx::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .foreign_keys(true)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(patience);
        // An idle connection costs nothing and is never stale.
        let pool = SqlitePoolOptions::new().acquire_timeout(patience).idle_timeout(None).max_lifetime(None);
        let writes = connect(pool.clone().max_connections(1), &options, patience).await?;
        Ok(Self { writes, reads: pool.max_connections(READERS).connect_lazy_with(options) })
    }

    /// Waits for the right to write. Asked for at once, because a transaction that has read
    /// already could only fail when another process wrote since.
    pub(super) async fn begin(&self) -> sqlx::Result<Transaction<'static, Sqlite>> {
        self.writes.begin_with("BEGIN IMMEDIATE").await
    }
}

/// Opens the first connection, which makes a new file a write-ahead log. SQLite does not wait
/// for other processes to let it do that, so this does.
async fn connect(
    pool: SqlitePoolOptions,
    options: &SqliteConnectOptions,
    patience: Duration,
) -> sqlx::Result<SqlitePool> {
    let begun = Instant::now();
    loop {
        let options = options.clone().journal_mode(SqliteJournalMode::Wal);
        match pool.clone().connect_with(options).await {
            Err(error) if result_code(&error) == Some(BUSY) && begun.elapsed() < patience => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            connected => return connected,
        }
    }
}

/// Whether SQLite blames the file.
pub(super) fn is_damage(error: &sqlx::Error) -> bool {
    result_code(error).is_some_and(|code| DAMAGED.contains(&code))
}

const BUSY: i32 = 5;

/// The codes that blame the file: a table is not as expected, a page is corrupt, a constraint
/// does not hold, a value has another type, this is no database at all.
const DAMAGED: [i32; 5] = [1, 11, 19, 20, 26];

/// SQLite's primary result code.
fn result_code(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?.try_downcast_ref::<SqliteError>()?;
    let extended: i32 = sqlx::error::DatabaseError::code(error)?.parse().ok()?;
    Some(extended & 0xff)
}
