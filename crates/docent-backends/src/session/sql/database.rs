//! One door to two databases: a statement and its values go in, rows come out.
//!
//! What differs between SQLite and PostgreSQL (how to connect, to begin, to lock, what an error
//! means) is in `sqlite.rs` and `postgres.rs`. Everything else is said once.
//!
//! Invariant: a statement does not know which database runs it.

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgPool, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::SqliteRow;
use sqlx::{Encode, Postgres, Row as _, SqlSafeStr, Sqlite, Type};
use uuid::Uuid;

use super::postgres;
use super::sqlite::{self, File};

/// A database that answers.
#[derive(Debug)]
pub(super) enum Database {
    Sqlite(File),
    Postgres(PgPool),
}

/// A piece of work that happens whole or not at all. Dropped, it has not happened.
pub(super) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

/// What a statement is given.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'v> {
    Id(Uuid),
    Number(i64),
    Text(&'v str),
    Maybe(Option<&'v str>),
}

/// What a statement gives back.
pub(super) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl Database {
    /// Begins to write.
    pub(super) async fn begin(&self) -> sqlx::Result<Transaction> {
        Ok(match self {
            Self::Sqlite(file) => Transaction::Sqlite(file.begin().await?),
            Self::Postgres(pool) => Transaction::Postgres(postgres::heard(pool.begin()).await?),
        })
    }

    /// Reads with one statement, which sees one state of the database.
    pub(super) async fn rows(&self, sql: &'static str, values: &[Value<'_>]) -> sqlx::Result<Vec<Row>> {
        Ok(match self {
            Self::Sqlite(file) => {
                bound(sql, values).fetch_all(&file.reads).await?.into_iter().map(Row::Sqlite).collect()
            }
            Self::Postgres(pool) => postgres::rows(&mut *pool.acquire().await?, bound(sql, values)).await?,
        })
    }

    /// What it calls itself, for the owner.
    pub(super) async fn version(&self) -> sqlx::Result<String> {
        let (name, sql) = match self {
            Self::Sqlite(_) => ("SQLite", "SELECT sqlite_version() AS version"),
            Self::Postgres(_) => ("PostgreSQL", "SELECT current_setting('server_version') AS version"),
        };
        let rows = self.rows(sql, &[]).await?;
        let version = rows.first().ok_or(sqlx::Error::RowNotFound)?.text("version")?;
        Ok(format!("{name} {version}"))
    }
}

impl Transaction {
    /// Runs a statement; returns the rows it gives.
    pub(super) async fn rows(&mut self, sql: &'static str, values: &[Value<'_>]) -> sqlx::Result<Vec<Row>> {
        Ok(match self {
            Self::Sqlite(work) => {
                bound(sql, values).fetch_all(&mut **work).await?.into_iter().map(Row::Sqlite).collect()
            }
            Self::Postgres(work) => postgres::rows(&mut *work, bound(sql, values)).await?,
        })
    }

    /// Runs a statement; returns how many rows it changed.
    pub(super) async fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> sqlx::Result<u64> {
        Ok(match self {
            Self::Sqlite(work) => bound(sql, values).execute(&mut **work).await?.rows_affected(),
            Self::Postgres(work) => {
                postgres::heard(bound(sql, values).execute(&mut **work)).await?.rows_affected()
            }
        })
    }

    /// Makes it so.
    pub(super) async fn commit(self) -> sqlx::Result<()> {
        match self {
            Self::Sqlite(work) => work.commit().await,
            Self::Postgres(work) => postgres::heard(work.commit()).await,
        }
    }

    /// Makes it never have been.
    pub(super) async fn rollback(self) -> sqlx::Result<()> {
        match self {
            Self::Sqlite(work) => work.rollback().await,
            Self::Postgres(work) => postgres::heard(work.rollback()).await,
        }
    }

    /// Brings the tables up to date. Nobody else does the same until this ends: of several
    /// processes that meet a new database, one makes the tables and the others find them.
    pub(super) async fn migrate(&mut self) -> Result<(), MigrateError> {
        let migration = |(number, name, sql): (i64, &'static str, &'static str)| {
            Migration::new(number, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
        };
        let mut migrator = Migrator::with_migrations(MIGRATIONS.map(migration).into());
        // The lock is ours, not the migrator's, who would let go before the transaction ends.
        migrator.set_locking(false);
        // Not `run`, whose future is not known to be `Send` when it is given a connection.
        match self {
            Self::Sqlite(work) => migrator.run_direct(None, &mut **work, false).await,
            Self::Postgres(work) => {
                postgres::claim(work).await?;
                migrator.run_direct(None, &mut **work, false).await
            }
        }
    }
}

/// Standard SQL, the same for both.
const MIGRATIONS: [(i64, &str, &str); 2] = [
    (1, "sessions", include_str!("../migrations/0001_sessions.sql")),
    (2, "log", include_str!("../migrations/0002_log.sql")),
];

impl Row {
    /// The id in a column.
    pub(super) fn id(&self, column: &str) -> sqlx::Result<Uuid> {
        self.text(column)?.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
    }

    /// The text in a column.
    pub(super) fn text(&self, column: &str) -> sqlx::Result<String> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    /// The text in a column that may have none.
    pub(super) fn maybe(&self, column: &str) -> sqlx::Result<Option<String>> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    /// The number in a column.
    pub(super) fn number(&self, column: &str) -> sqlx::Result<i64> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }
}

/// A statement with its values.
///
/// PostgreSQL cannot keep a NUL in a text, so neither database gets one. Records have none:
/// JSON writes it as `\u0000`.
fn bound<DB: sqlx::Database>(sql: &'static str, values: &[Value<'_>]) -> Query<'static, DB, DB::Arguments>
where
    i64: for<'v> Encode<'v, DB> + Type<DB>,
    String: for<'v> Encode<'v, DB> + Type<DB>,
    Option<String>: for<'v> Encode<'v, DB> + Type<DB>,
{
    let clean = |text: &str| text.replace('\0', "");
    values.iter().fold(sqlx::query(sql), |query, value| match value {
        Value::Id(id) => query.bind(id.to_string()),
        Value::Number(number) => query.bind(*number),
        Value::Text(text) => query.bind(clean(text)),
        Value::Maybe(text) => query.bind(text.map(clean)),
    })
}

/// Whether an error blames what is stored, not the moment.
pub(super) fn is_damage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(_) => sqlite::is_damage(error) || postgres::is_damage(error),
        sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) => true,
        _ => false,
    }
}
