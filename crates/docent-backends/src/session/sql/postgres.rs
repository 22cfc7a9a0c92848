//! PostgreSQL: one database that several servers share.
//!
//! The tables are in a schema of their own, so the database may be another program's too. A
//! connection that falls silent counts as lost: a reader waits for seconds, not for TCP.
//!
//! Invariant: neither an error nor a log line has the password.

use std::fmt;
use std::future::Future;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use futures_util::TryStreamExt;
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgDatabaseError, PgPool, PgPoolOptions};
use sqlx::query::Query;
use sqlx::{ConnectOptions, Connection, Postgres, Transaction};

use super::PATIENCE;
use super::database::Row;

/// Connections of one process: a write takes milliseconds, and a server has few to give.
pub(super) const CONNECTIONS: u32 = 8;

/// How long a connection may take to be ready for the next who needs it.
const FAREWELL: Duration = Duration::from_secs(1);

/// Said on every connection. Each statement sees what is committed when it begins, whatever the
/// server's default: a writer that waited for a row goes on with that row as it is now. Locks are
/// given up before [`PATIENCE`] ends, and a process that hangs does not keep its locks.
const CUSTOMS: &str = "
    SET search_path TO docent;
    SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET lock_timeout TO '4s';
    SET idle_in_transaction_session_timeout TO '30s'";

/// Where a database is and how to log in.
#[derive(Clone)]
pub struct Address(Box<PgConnectOptions>);

impl Address {
    /// Reads `postgres://user:password@host:port/database`. What it complains about is told
    /// without the password.
    pub fn parse(url: &SecretString) -> Result<Self, String> {
        let url = url.expose_secret().trim();
        let Some(rest) = ["postgres://", "postgresql://"].iter().find_map(|scheme| url.strip_prefix(scheme))
        else {
            return Err("the address of a PostgreSQL database begins with postgres://".to_owned());
        };
        // Such a password would be taken for a host or a database, and be shown as one.
        if rest.find(['/', '?', '#']).is_some_and(|end| rest[end..].contains('@')) {
            return Err("in an address, write / as %2F, ? as %3F, # as %23 and @ as %40".to_owned());
        }
        // An unknown parameter would be logged with its value.
        let silence = tracing::subscriber::NoSubscriber::default();
        let options = tracing::subscriber::with_default(silence, || PgConnectOptions::from_str(url));
        let reason = |error: sqlx::Error| {
            error.to_string().trim_start_matches("error with configuration: ").to_owned()
        };
        let options = options.map_err(reason)?;
        Ok(Self(Box::new(options.application_name("docent"))))
    }

    /// Connects.
    pub(super) async fn open(&self) -> sqlx::Result<PgPool> {
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .after_connect(|connection, _| {
                Box::pin(async move { sqlx::raw_sql(CUSTOMS).execute(connection).await.map(drop) })
            })
            // The pool would wait for a silent connection as long as TCP does, and lend no other.
            .after_release(|connection, _| {
                Box::pin(async move { heard_within(FAREWELL, connection.ping()).await.map(|()| true) })
            });
        match pool.connect_with((*self.0).clone()).await {
            // The pool keeps the reason to itself.
            Err(sqlx::Error::PoolTimedOut) => {
                Err(heard(self.0.connect()).await.err().unwrap_or(sqlx::Error::PoolTimedOut))
            }
            connected => connected,
        }
    }
}

/// As errors name it: without user and password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(options) = self;
        // A database has its user's name unless another is given.
        let database = options.get_database().unwrap_or(options.get_username());
        match options.get_socket() {
            Some(socket) => write!(f, "postgres://{}/{database}", socket.display()),
            None => write!(f, "postgres://{}:{}/{database}", options.get_host(), options.get_port()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Waits for an answer, but not for ever.
pub(super) async fn heard<T>(answer: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    // Longer than a connection may take, so that its own error comes first.
    heard_within(PATIENCE + Duration::from_secs(1), answer).await
}

async fn heard_within<T>(
    patience: Duration,
    answer: impl Future<Output = sqlx::Result<T>>,
) -> sqlx::Result<T> {
    match tokio::time::timeout(patience, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "it does not answer"))),
    }
}

/// The rows of a statement. There may be many: only silence between two is too long.
pub(super) async fn rows(
    connection: &mut PgConnection,
    query: Query<'static, Postgres, PgArguments>,
) -> sqlx::Result<Vec<Row>> {
    let (mut stream, mut rows) = (query.fetch(connection), Vec::new());
    while let Some(row) = heard(stream.try_next()).await? {
        rows.push(Row::Postgres(row));
    }
    Ok(rows)
}

/// Any number, the same in every version: who has its lock may change the tables.
const LOCK: i64 = 0x646f_6365_6e74;

/// Waits for the right to change the tables, until the transaction ends, and for a place to
/// have them in.
pub(super) async fn claim(work: &mut Transaction<'static, Postgres>) -> sqlx::Result<()> {
    // Somebody may be at it, and a long table takes its time.
    sqlx::raw_sql("SET LOCAL lock_timeout TO '60s'").execute(&mut **work).await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut **work).await?;
    // Asked first: who may not make a schema may still use one.
    let found = sqlx::query("SELECT 1 FROM pg_namespace WHERE nspname = 'docent'");
    if found.fetch_optional(&mut **work).await?.is_none() {
        sqlx::query("CREATE SCHEMA docent").execute(&mut **work).await?;
    }
    Ok(())
}

/// Whether PostgreSQL blames what is stored: a table is not as expected, a constraint does not
/// hold, a value cannot be, a page is corrupt.
pub(super) fn is_damage(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| {
        const FORBIDDEN: &str = "42501";
        let classes = ["22", "23", "3F", "42", "XX001", "XX002"];
        state != FORBIDDEN && classes.iter().any(|class| state.starts_with(class))
    })
}

/// Whether another writer was in the way and the same may succeed now.
pub(super) fn is_collision(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| {
        const SERIALIZATION: &str = "40001";
        const DEADLOCK: &str = "40P01";
        [SERIALIZATION, DEADLOCK].contains(&state)
    })
}

/// The five letters that standard SQL gives an error.
fn state(error: &sqlx::Error) -> Option<&str> {
    Some(error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &str) {
        let shown = match Address::parse(&url.into()) {
            Ok(address) => {
                assert_eq!(format!("{address:?}"), format!("Address({address})"));
                address.to_string()
            }
            Err(reason) => format!("error: {reason}"),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_address_is_shown_without_who_logs_in() {
        check("postgres://docent:swordfish@db.example.org/book", "postgres://db.example.org:5432/book");
        check("postgresql://docent:swordfish@[::1]:5433/book?sslmode=require", "postgres://[::1]:5433/book");
        check("postgres://docent:a%2Fb@localhost/book", "postgres://localhost:5432/book");
        check("postgres://docent@localhost?password=swordfish", "postgres://localhost:5432/docent");
        check("postgres:///book?host=/run/postgresql", "postgres:///run/postgresql/book");
    }

    #[test]
    fn a_password_is_not_taken_for_something_else() {
        let escape = "error: in an address, write / as %2F, ? as %3F, # as %23 and @ as %40";
        for password in ["sword/fish", "12#fish", "12?fish", "s@rd/fish"] {
            check(&format!("postgres://docent:{password}@localhost/book"), escape);
        }
    }

    #[test]
    fn what_is_no_address_is_told_without_it() {
        let begins = "error: the address of a PostgreSQL database begins with postgres://";
        check("mysql://docent:swordfish@localhost/book", begins);
        check("docent:swordfish@localhost", begins);
        check("", begins);
        check("postgres://docent:swordfish@localhost:port/book", "error: invalid port number");
        check(
            "postgres://docent:swordfish@localhost/book?sslmode=maybe",
            "error: unknown value \"maybe\" for `ssl_mode`",
        );
    }
}
