//! The values of statements and the rows they return, the same for both databases.
//!
//! Invariant: what is written as a value is read back unchanged, except for NUL characters.

use sqlx::postgres::PgRow;
use sqlx::query::Query;
use sqlx::sqlite::SqliteRow;
use sqlx::{Encode, Row as _, Type};
use uuid::Uuid;

/// A value bound to a statement.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'v> {
    Id(Uuid),
    Number(i64),
    Text(&'v str),
    Maybe(Option<&'v str>),
}

/// A row returned by a statement.
pub(super) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

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

    /// The text in a nullable column.
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
/// PostgreSQL cannot store a NUL character in text, so it is removed for both databases. Records contain
/// none, since JSON writes it as `\u0000`.
pub(super) fn bound<DB: sqlx::Database>(
    sql: &'static str,
    values: &[Value<'_>],
) -> Query<'static, DB, DB::Arguments>
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
