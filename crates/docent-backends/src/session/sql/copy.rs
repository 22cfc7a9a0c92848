//! Copies conversations and the turn log from one store to another.
//!
//! Servers may use both stores at the same time. Deletions are not copied, but resets are: turns removed by a
//! reset in the source are removed in the target, too.
//!
//! Invariant: a conversation is copied as a whole or not at all, and turns added to the target since the
//! source last changed are not lost. So a copy can be interrupted and repeated.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use docent_core::session::SessionError;
use serde::Serialize;
use uuid::Uuid;

use super::SqlSessions;
use super::database::Transaction;
use super::row::{Row, Value};
use super::{INSERT_TURN, next_use};

/// Number of logged turns copied at a time.
const PAGE: i64 = 500;

/// The result of a copy.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Copied {
    /// Conversations that were new in the target.
    pub copied: usize,
    /// Conversations that existed in the target and were continued in the source.
    pub updated: usize,
    /// Conversations that the target already had, perhaps with more turns.
    pub unchanged: usize,
    /// Conversations that were continued differently in both stores; they are not changed.
    pub conflicts: Vec<Uuid>,
    /// Number of turns written.
    pub turns: usize,
    /// Number of turns written to the turn log, or updated with a rating.
    pub logged: usize,
}

/// A session's row.
#[derive(Debug, PartialEq)]
struct Header {
    id: Uuid,
    title: Option<String>,
    started_at: String,
    updated_at: String,
    generation: i64,
    turn_count: i64,
    /// The id of the last turn; without it, diverged conversations could look the same.
    last_turn: Option<String>,
    /// Hashes of the secrets that give access to it.
    owner: Option<String>,
    share: Option<String>,
}

/// A turn's row.
#[derive(Debug)]
struct StoredTurn {
    generation: i64,
    number: i64,
    id: Uuid,
    record: String,
}

/// The result for one conversation.
enum Outcome {
    Copied(usize),
    Updated(usize),
    Unchanged,
    Conflict,
}

impl SqlSessions {
    /// Copies what this store does not have from `source`.
    ///
    /// Copied conversations keep their order of use.
    pub async fn copy_from(&self, source: &SqlSessions) -> Result<Copied, SessionError> {
        let mut done = Copied::default();
        let known: HashMap<Uuid, Header> =
            self.headers().await?.into_iter().map(|header| (header.id, header)).collect();
        for header in source.headers().await? {
            if known.get(&header.id) == Some(&header) {
                done.unchanged += 1;
                continue;
            }
            let Some(turns) = source.stored_turns(&header).await? else { continue };
            match self.write(|| self.merge(&header, &turns)).await? {
                Outcome::Copied(turns) => {
                    done.copied += 1;
                    done.turns += turns;
                }
                Outcome::Updated(turns) => {
                    done.updated += 1;
                    done.turns += turns;
                }
                Outcome::Unchanged => done.unchanged += 1,
                Outcome::Conflict => done.conflicts.push(header.id),
            }
        }
        done.logged = self.copy_log(source).await?;
        Ok(done)
    }

    /// All sessions, the most recently used last.
    async fn headers(&self) -> Result<Vec<Header>, SessionError> {
        let rows = self.read(HEADERS, &[]).await?;
        rows.iter().map(Header::read).collect::<Result<_, _>>().map_err(|error| self.error(&error))
    }

    /// All turns that a session had when its header was read; `None` if it was deleted or reset since.
    async fn stored_turns(&self, header: &Header) -> Result<Option<Vec<StoredTurn>>, SessionError> {
        let values =
            [Value::Id(header.id), Value::Number(header.generation), Value::Number(header.turn_count)];
        let rows = self.read(STORED_TURNS, &values).await?;
        let turns: Vec<StoredTurn> = rows
            .iter()
            .map(StoredTurn::read)
            .collect::<Result<_, _>>()
            .map_err(|error| self.error(&error))?;
        if i64::try_from(turns.len()) == Ok(header.turn_count) {
            return Ok(Some(turns));
        }
        let rows = self.read(GENERATION, &[Value::Id(header.id)]).await?;
        let now = rows.first().map(|row| row.number("generation")).transpose();
        if now.map_err(|error| self.error(&error))? != Some(header.generation) {
            return Ok(None);
        }
        Err(SessionError::Damaged(format!("{}: turns of session {} are missing", self.place, header.id)))
    }

    /// Inserts a conversation, or adds its new turns.
    async fn merge(&self, header: &Header, turns: &[StoredTurn]) -> sqlx::Result<Outcome> {
        let mut transaction = self.database.begin().await?;
        if transaction.execute(INSERT_HEADER, &header.values()).await? == 1 {
            insert(&mut transaction, header.id, turns.iter()).await?;
            transaction.commit().await?;
            return Ok(Outcome::Copied(turns.len()));
        }
        // Deleted between the two statements; the next copy inserts it again.
        let locked = transaction.rows(LOCK_HEADER, &[Value::Id(header.id)]).await?;
        let Some(there) = locked.first() else { return Ok(Outcome::Unchanged) };
        let (generation, updated_at) = (there.number("generation")?, there.text("updated_at")?);
        let known = transaction.rows(TURN_KEYS, &[Value::Id(header.id)]).await?;
        let known: HashSet<Key> = known.iter().map(key).collect::<Result<_, _>>()?;
        let ours: HashSet<Key> = turns.iter().map(StoredTurn::key).collect();

        // After a reset there are no turns to compare; the store that used it last is ahead.
        let (ahead, behind) = match generation.cmp(&header.generation) {
            Ordering::Less => (updated_at <= header.updated_at, false),
            Ordering::Greater => (false, header.updated_at <= updated_at),
            Ordering::Equal => (known.is_subset(&ours), ours.is_subset(&known)),
        };
        match (ahead, behind) {
            (false, false) => return Ok(Outcome::Conflict),
            (false, true) => return Ok(Outcome::Unchanged),
            // Only the title can differ.
            (true, true) if header.updated_at <= updated_at => return Ok(Outcome::Unchanged),
            (true, _) => {}
        }
        transaction.execute(UPDATE_HEADER, &header.values()).await?;
        transaction.execute(FORGET_OLDER, &[Value::Id(header.id), Value::Number(header.generation)]).await?;
        let missing = turns.iter().filter(|turn| !known.contains(&turn.key()));
        let count = insert(&mut transaction, header.id, missing).await?;
        transaction.commit().await?;
        Ok(Outcome::Updated(count))
    }

    async fn copy_log(&self, source: &SqlSessions) -> Result<usize, SessionError> {
        let (mut copied, mut last) = (0, (String::new(), String::new()));
        loop {
            let values = [Value::Text(&last.0), Value::Text(&last.1), Value::Number(PAGE)];
            let page = source.read(LOG_PAGE, &values).await?;
            let page: Vec<[Option<String>; 5]> =
                page.iter().map(logged).collect::<Result<_, _>>().map_err(|error| source.error(&error))?;
            let Some([turn_id, asked_at, ..]) = page.last() else { return Ok(copied) };
            last = (asked_at.clone().unwrap_or_default(), turn_id.clone().unwrap_or_default());
            let attempt = || async {
                let (mut transaction, mut written) = (self.database.begin().await?, 0);
                for row in &page {
                    let values = row.each_ref().map(|text| Value::Maybe(text.as_deref()));
                    written += transaction.execute(MERGE_LOG, &values).await?;
                }
                transaction.commit().await?;
                Ok(written)
            };
            copied += usize::try_from(self.write(attempt).await?).unwrap_or(usize::MAX);
        }
    }
}

/// Generation, number and id of a turn.
type Key = (i64, i64, Uuid);

async fn insert(
    transaction: &mut Transaction,
    id: Uuid,
    turns: impl Iterator<Item = &StoredTurn>,
) -> sqlx::Result<usize> {
    let mut count = 0;
    for turn in turns {
        let values = [
            Value::Id(id),
            Value::Number(turn.generation),
            Value::Number(turn.number),
            Value::Id(turn.id),
            Value::Text(&turn.record),
        ];
        transaction.execute(INSERT_TURN, &values).await?;
        count += 1;
    }
    Ok(count)
}

impl Header {
    fn read(row: &Row) -> sqlx::Result<Self> {
        Ok(Self {
            id: row.id("session_id")?,
            title: row.maybe("title")?,
            started_at: row.text("started_at")?,
            updated_at: row.text("updated_at")?,
            generation: row.number("generation")?,
            turn_count: row.number("turn_count")?,
            last_turn: row.maybe("last_turn")?,
            owner: row.maybe("owner_hash")?,
            share: row.maybe("share_hash")?,
        })
    }

    /// In the order of the parameters of [`INSERT_HEADER`] and [`UPDATE_HEADER`].
    fn values(&self) -> [Value<'_>; 8] {
        [
            Value::Id(self.id),
            Value::Maybe(self.title.as_deref()),
            Value::Text(&self.updated_at),
            Value::Number(self.generation),
            Value::Number(self.turn_count),
            Value::Text(&self.started_at),
            Value::Maybe(self.owner.as_deref()),
            Value::Maybe(self.share.as_deref()),
        ]
    }
}

impl StoredTurn {
    fn read(row: &Row) -> sqlx::Result<Self> {
        let (generation, number, id) = key(row)?;
        Ok(Self { generation, number, id, record: row.text("record")? })
    }

    fn key(&self) -> Key {
        (self.generation, self.number, self.id)
    }
}

fn key(row: &Row) -> sqlx::Result<Key> {
    Ok((row.number("generation")?, row.number("turn_number")?, row.id("turn_id")?))
}

/// A row of the log, in the order of [`MERGE_LOG`].
fn logged(row: &Row) -> sqlx::Result<[Option<String>; 5]> {
    Ok([
        Some(row.text("turn_id")?),
        Some(row.text("asked_at")?),
        Some(row.text("record")?),
        row.maybe("rating")?,
        row.maybe("comment")?,
    ])
}

const HEADERS: &str = "
    SELECT session_id, title, started_at, updated_at, generation, turn_count, owner_hash, share_hash,
        (SELECT turn_id FROM turns WHERE turns.session_id = sessions.session_id
            AND turns.generation = sessions.generation AND turn_number = turn_count) AS last_turn
    FROM sessions ORDER BY last_use, session_id";

/// The turns counted in the header.
const STORED_TURNS: &str = "
    SELECT generation, turn_number, turn_id, record FROM turns
    WHERE session_id = $1 AND generation = $2 AND turn_number <= $3
    ORDER BY turn_number";

const GENERATION: &str = "SELECT generation FROM sessions WHERE session_id = $1";

const FORGET_OLDER: &str = "DELETE FROM turns WHERE session_id = $1 AND generation < $2";

const INSERT_HEADER: &str = "
    INSERT INTO sessions (session_id, title, started_at, updated_at, last_use, generation, turn_count,
        owner_hash, share_hash)
    VALUES ($1, $2, $6, $3, (SELECT COALESCE(MAX(last_use), 0) + 1 FROM sessions), $4, $5, $7, $8)
    ON CONFLICT (session_id) DO NOTHING";

/// Changes nothing, but locks the row until the transaction ends.
const LOCK_HEADER: &str = "
    UPDATE sessions SET session_id = session_id WHERE session_id = $1
    RETURNING generation, updated_at";

const TURN_KEYS: &str = "SELECT generation, turn_number, turn_id FROM turns WHERE session_id = $1";

const UPDATE_HEADER: &str = concat!(
    "UPDATE sessions SET title = $2, updated_at = $3, generation = $4, turn_count = $5, started_at = $6,
        owner_hash = $7, share_hash = $8, last_use = ",
    next_use!(),
    " WHERE session_id = $1"
);

const LOG_PAGE: &str = "
    SELECT turn_id, asked_at, record, rating, comment FROM turn_log
    WHERE (asked_at, turn_id) > ($1, $2) ORDER BY asked_at, turn_id LIMIT $3";

/// Copies a rating, but keeps an existing one.
const MERGE_LOG: &str = "
    INSERT INTO turn_log (turn_id, asked_at, record, rating, comment) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (turn_id) DO UPDATE SET rating = excluded.rating, comment = excluded.comment
    WHERE turn_log.rating IS NULL AND excluded.rating IS NOT NULL";
