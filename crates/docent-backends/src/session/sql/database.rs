//! A common interface to SQLite and PostgreSQL: runs statements and returns rows (`row.rs`).
//!
//! The differences (connecting, transactions, locks, error codes) are in `sqlite.rs` and `postgres.rs`.
//!
//! Invariant: statements do not depend on the database, except for those given to [`Database::either`].

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgPool;
use sqlx::{Postgres, SqlSafeStr, Sqlite};

use super::postgres;
use super::row::{Row, Value, bound};
use super::sqlite::{self, File};
use crate::failpoint;

/// An open database.
#[derive(Debug)]
pub(super) enum Database {
    Sqlite(File),
    Postgres(PgPool),
}

/// A transaction. It is rolled back if it is dropped.
pub(super) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

impl Database {
    /// Begins a write transaction.
    pub(super) async fn begin(&self) -> sqlx::Result<Transaction> {
        Ok(match self {
            Self::Sqlite(file) => Transaction::Sqlite(file.begin().await?),
            Self::Postgres(pool) => Transaction::Postgres(postgres::heard(pool.begin()).await?),
        })
    }

    /// Runs a query, which sees a consistent state of the database.
    pub(super) async fn rows(&self, sql: &'static str, values: &[Value<'_>]) -> sqlx::Result<Vec<Row>> {
        Ok(match self {
            Self::Sqlite(file) => {
                bound(sql, values).fetch_all(&file.reads).await?.into_iter().map(Row::Sqlite).collect()
            }
            Self::Postgres(pool) => postgres::rows(&mut *pool.acquire().await?, bound(sql, values)).await?,
        })
    }

    /// The statement for this database, where the two differ.
    pub(super) fn either(&self, sqlite: &'static str, postgres: &'static str) -> &'static str {
        match self {
            Self::Sqlite(_) => sqlite,
            Self::Postgres(_) => postgres,
        }
    }

    /// Removes remaining copies of deleted data; if others are reading, a later call does.
    pub(super) async fn scrub(&self) {
        if let Self::Sqlite(file) = self {
            file.scrub().await;
        }
    }

    /// Name and version of the database, for the operator.
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
    /// Runs a statement and returns its rows.
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
        failpoint::reach("store.execute")?;
        Ok(match self {
            Self::Sqlite(work) => bound(sql, values).execute(&mut **work).await?.rows_affected(),
            Self::Postgres(work) => {
                postgres::heard(bound(sql, values).execute(&mut **work)).await?.rows_affected()
            }
        })
    }

    /// Commits the transaction.
    pub(super) async fn commit(self) -> sqlx::Result<()> {
        failpoint::reach("store.commit")?;
        match self {
            Self::Sqlite(work) => work.commit().await,
            Self::Postgres(work) => postgres::heard(work.commit()).await,
        }?;
        failpoint::reach("store.committed")?;
        Ok(())
    }

    /// Rolls the transaction back.
    pub(super) async fn rollback(self) -> sqlx::Result<()> {
        match self {
            Self::Sqlite(work) => work.rollback().await,
            Self::Postgres(work) => postgres::heard(work.rollback()).await,
        }
    }

    /// Brings the tables up to date. A lock is held until the transaction ends: if several processes open a
    /// new database, one creates the tables and the others find them.
    pub(super) async fn migrate(&mut self) -> Result<(), MigrateError> {
        let migration = |(number, name, sql): (i64, &'static str, &'static str)| {
            Migration::new(number, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
        };
        let mut migrator = Migrator::with_migrations(MIGRATIONS.map(migration).into());
        // The migrator would release its lock before the transaction ends, so ours is used.
        migrator.set_locking(false);
        // Not `run`, whose future is not `Send` when it is given a connection.
        match self {
            Self::Sqlite(work) => migrator.run_direct(None, &mut **work, false).await,
            Self::Postgres(work) => {
                postgres::claim(work).await?;
                migrator.run_direct(None, &mut **work, false).await
            }
        }
    }
}

/// Standard SQL, the same for both databases.
const MIGRATIONS: [(i64, &str, &str); 3] = [
    (1, "sessions", include_str!("../migrations/0001_sessions.sql")),
    (2, "log", include_str!("../migrations/0002_log.sql")),
    (3, "owners", include_str!("../migrations/0003_owners.sql")),
];

/// Whether an error means that stored data is damaged, rather than a temporary failure.
pub(super) fn is_damage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(_) => sqlite::is_damage(error) || postgres::is_damage(error),
        sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) => true,
        _ => false,
    }
}
