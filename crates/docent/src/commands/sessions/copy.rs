//! `docent sessions copy`: copy conversations and the turn log from one store to another.
//!
//! Invariant: nothing that may be a password is printed.

use docent_backends::session::sql::{Address, Copied, Place};
use secrecy::SecretString;

use crate::compose;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::settings::{SessionsKind, Settings};

/// Runs the command.
pub async fn run(settings: &Settings, from: &str, to: &str, output: &Output) -> Result<(), Failure> {
    let (from, to) = (place(settings, from)?, place(settings, to)?);
    if let Place::File(path) = &from
        && !path.is_file()
    {
        return Err(Failure::new(Exit::Failed, format!("cannot copy from {from}: no such file")));
    }
    if is_same(&from, &to) {
        return Err(Failure::usage(format!("cannot copy {from} to itself")));
    }
    let source = compose::sql_sessions(&from).await?;
    let target = compose::sql_sessions(&to).await?;
    let copied = target.copy_from(&source).await.map_err(|error| {
        compose::session_failure(error)
            .hint("what was copied so far is kept; run the same command again to continue")
    })?;
    for id in &copied.conflicts {
        output.warn(format!("{id} was continued differently in both stores; left unchanged"));
    }
    if output.json { output.object(&copied) } else { output.line(summary(&copied)) }
}

fn summary(copied: &Copied) -> String {
    let many = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    format!(
        "{} copied, {} updated, {} unchanged\nwrote {} and {}",
        many(copied.copied, "conversation"),
        copied.updated,
        copied.unchanged,
        many(copied.turns, "turn"),
        many(copied.logged, "turn log record"),
    )
}

/// Parses the name of a store on the command line.
fn place(settings: &Settings, name: &str) -> Result<Place, Failure> {
    match name {
        "sqlite" => compose::sessions_place(settings, SessionsKind::Sqlite),
        "postgres" => compose::sessions_place(settings, SessionsKind::Postgres),
        "memory" => compose::sessions_place(settings, SessionsKind::Memory),
        url if is_address(url) => {
            Address::parse(&SecretString::from(url)).map(Place::Postgres).map_err(|reason| {
                Failure::usage(reason).hint("a store is sqlite, postgres, a file, or postgres://…")
            })
        }
        path => Ok(Place::File(path.into())),
    }
}

/// Whether the argument may be a database URL. If so, it is not treated as a file, because file names
/// are printed.
fn is_address(name: &str) -> bool {
    name.contains("://")
        || ["postgres:", "postgresql:"].iter().any(|scheme| name.starts_with(scheme))
        || name.split_once('@').is_some_and(|(before, _)| before.contains(':'))
}

fn is_same(one: &Place, other: &Place) -> bool {
    match (one, other) {
        (Place::File(one), Place::File(other)) => match (one.canonicalize(), other.canonicalize()) {
            (Ok(one), Ok(other)) => one == other,
            _ => one == other,
        },
        _ => one.to_string() == other.to_string(),
    }
}
