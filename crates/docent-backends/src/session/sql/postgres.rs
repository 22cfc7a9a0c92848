//! PostgreSQL: one database that several servers can share.
//!
//! The tables are in their own schema, so the database can be shared with other programs. A connection that
//! stops responding is considered lost after seconds, long before TCP times out.
//!
//! Invariant: errors and log lines never contain the password.

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

use super::STORE_TIMEOUT;
use super::row::Row;

/// Maximum number of connections per process: a write takes milliseconds, and servers allow few connections.
pub(super) const CONNECTIONS: u32 = 8;

/// How long a connection may take to respond to a ping when it is returned to the pool.
const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// Settings of every connection. Each statement sees what is committed when it begins, whatever the server's
/// default: a writer that waited for a row continues with its current value. Waiting for a lock ends before
/// [`STORE_TIMEOUT`], and a process that hangs does not keep its locks.
const SESSION_SETTINGS: &str = "
    SET search_path TO docent;
    SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET lock_timeout TO '4s';
    SET idle_in_transaction_session_timeout TO '30s'";

/// The address of a database, with user and password.
#[derive(Clone)]
pub struct Address(Box<PgConnectOptions>);

impl Address {
    /// Parses `postgres://user:password@host:port/database`. Errors do not contain the password.
    pub fn parse(url: &SecretString) -> Result<Self, String> {
        let url = url.expose_secret().trim();
        let Some(rest) = ["postgres://", "postgresql://"].iter().find_map(|scheme| url.strip_prefix(scheme))
        else {
            return Err("the URL of a PostgreSQL database must start with postgres://".to_owned());
        };
        // Part of such a password would be taken for a host or a database and shown in errors.
        if rest.find(['/', '?', '#']).is_some_and(|end| rest[end..].contains('@')) {
            return Err("in a password, write / as %2F, ? as %3F, # as %23 and @ as %40".to_owned());
        }
        // Unknown parameters would be logged with their values.
        let silence = tracing::subscriber::NoSubscriber::default();
        let options = tracing::subscriber::with_default(silence, || PgConnectOptions::from_str(url));
        let reason = |error: sqlx::Error| {
            error.to_string().trim_start_matches("error with configuration: ").to_owned()
        };
        let options = options.map_err(reason)?;
        Ok(Self(Box::new(options.application_name("docent"))))
    }

    /// Connects to the database.
    pub(super) async fn open(&self) -> sqlx::Result<PgPool> {
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(STORE_TIMEOUT)
            .after_connect(|connection, _| {
                Box::pin(async move { sqlx::raw_sql(SESSION_SETTINGS).execute(connection).await.map(drop) })
            })
            // Otherwise the pool would wait for an unresponsive connection until TCP times out.
            .after_release(|connection, _| {
                Box::pin(async move { heard_within(PING_TIMEOUT, connection.ping()).await.map(|()| true) })
            });
        match pool.connect_with((*self.0).clone()).await {
            // The pool does not report the reason.
            Err(sqlx::Error::PoolTimedOut) => {
                Err(heard(self.0.connect()).await.err().unwrap_or(sqlx::Error::PoolTimedOut))
            }
            connected => connected,
        }
    }
}

/// For error messages: without user and password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(options) = self;
        // The default name of the database is that of the user.
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

/// Waits for a response, with a timeout.
pub(super) async fn heard<T>(answer: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    // Longer than the timeout for connections, so that their more specific error comes first.
    heard_within(STORE_TIMEOUT + Duration::from_secs(1), answer).await
}

async fn heard_within<T>(
    timeout: Duration,
    answer: impl Future<Output = sqlx::Result<T>>,
) -> sqlx::Result<T> {
    match tokio::time::timeout(timeout, answer).await {
        Ok(answer) => answer,
        Err(_) => {
            Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "the server does not respond")))
        }
    }
}

/// The rows of a statement. There may be many, so the timeout applies to each row.
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

/// Adds up the tokens of the turn log.
pub(super) const TOKENS_SINCE: &str = "
    SELECT COALESCE(SUM(CAST(CAST(record AS JSON) ->> 'tokens' AS BIGINT)), 0)::BIGINT AS tokens
    FROM turn_log WHERE asked_at >= $1";

/// The id of the lock for changing the tables; the same in every version.
const LOCK: i64 = 0x646f_6365_6e74;

/// Takes the lock for changing the tables until the transaction ends, and creates the schema if it does not
/// exist.
pub(super) async fn claim(work: &mut Transaction<'static, Postgres>) -> sqlx::Result<()> {
    // Another process may be migrating, which takes time with a large table.
    sqlx::raw_sql("SET LOCAL lock_timeout TO '60s'").execute(&mut **work).await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut **work).await?;
    // Check first: a user without the right to create a schema may still use an existing one.
    let found = sqlx::query("SELECT 1 FROM pg_namespace WHERE nspname = 'docent'");
    if found.fetch_optional(&mut **work).await?.is_none() {
        sqlx::query("CREATE SCHEMA docent").execute(&mut **work).await?;
    }
    Ok(())
}

/// Whether an error means that stored data is damaged: unexpected table, violated constraint, invalid value,
/// corrupt page.
pub(super) fn is_damage(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| {
        const FORBIDDEN: &str = "42501";
        let classes = ["22", "23", "3F", "42", "XX001", "XX002"];
        state != FORBIDDEN && classes.iter().any(|class| state.starts_with(class))
    })
}

/// Whether a write collided with another one, so that a retry may succeed.
pub(super) fn is_collision(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| {
        const SERIALIZATION: &str = "40001";
        const DEADLOCK: &str = "40P01";
        [SERIALIZATION, DEADLOCK].contains(&state)
    })
}

/// The SQLSTATE code of an error.
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
    fn an_address_is_shown_without_user_and_password() {
        check("postgres://docent:swordfish@db.example.org/book", "postgres://db.example.org:5432/book");
        check("postgresql://docent:swordfish@[::1]:5433/book?sslmode=require", "postgres://[::1]:5433/book");
        check("postgres://docent:a%2Fb@localhost/book", "postgres://localhost:5432/book");
        check("postgres://docent@localhost?password=swordfish", "postgres://localhost:5432/docent");
        check("postgres:///book?host=/run/postgresql", "postgres:///run/postgresql/book");
    }

    #[test]
    fn special_characters_in_a_password_must_be_encoded() {
        let escape = "error: in a password, write / as %2F, ? as %3F, # as %23 and @ as %40";
        for password in ["sword/fish", "12#fish", "12?fish", "s@rd/fish"] {
            check(&format!("postgres://docent:{password}@localhost/book"), escape);
        }
    }

    #[test]
    fn errors_about_invalid_addresses_do_not_contain_them() {
        let begins = "error: the URL of a PostgreSQL database must start with postgres://";
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
