//! `docent sessions copy`: conversations and the owner's log, from one store to another.
//!
//! Invariant: what may be a password is never shown.

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
        return Err(Failure::new(Exit::Failed, format!("there is no file {from} to copy from")));
    }
    if is_same(&from, &to) {
        return Err(Failure::usage(format!("{from} cannot be copied to itself")));
    }
    let source = compose::sql_sessions(&from).await?;
    let target = compose::sql_sessions(&to).await?;
    let copied = target.copy_from(&source).await.map_err(|error| {
        compose::session_failure(error).hint("what was copied is kept: run the same command again")
    })?;
    for id in &copied.conflicts {
        output.warn(format!("{id} went on differently in both stores and was left as it is"));
    }
    if output.json { output.object(&copied) } else { output.line(summary(&copied)) }
}

fn summary(copied: &Copied) -> String {
    let many = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    format!(
        "{} copied, {} brought up to date, {} there already\n{} written, {} of the owner's log",
        many(copied.copied, "conversation"),
        copied.updated,
        copied.unchanged,
        many(copied.turns, "turn"),
        copied.logged,
    )
}

/// The store that a word on the command line names.
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

/// Whether something may be meant as an address. It is not taken for a file then, because a
/// file's name would be shown.
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
