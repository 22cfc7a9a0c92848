//! Conversations and the owner's log, from one store to another.
//!
//! Servers may go on using both stores meanwhile. What was deleted in one is not deleted in the
//! other.
//!
//! Invariant: a conversation is copied whole or not at all, and nothing that only the target has
//! is lost. So a copy may be interrupted, and done again.

use std::collections::{HashMap, HashSet};

use docent_core::session::{SessionError, SessionStore};
use serde::Serialize;
use uuid::Uuid;

use super::SqlSessions;
use super::database::{Row, Transaction, Value};
use super::{INSERT_TURN, next_use};

/// Logged turns copied at a time.
const PAGE: i64 = 500;

/// What a copy did.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Conversations that were not there.
    pub copied: usize,
    /// Conversations that were there and had gone on since.
    pub updated: usize,
    /// Conversations that were there already, perhaps with more.
    pub unchanged: usize,
    /// Conversations that went on differently in both stores; they are left as they were.
    pub conflicts: Vec<Uuid>,
    /// Turns of conversations that were written.
    pub turns: usize,
    /// Turns of the owner's log that were written, or got their rating.
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
    /// The last turn: two conversations that went apart may look alike otherwise.
    last_turn: Option<String>,
}

/// A turn's row.
#[derive(Debug)]
struct StoredTurn {
    generation: i64,
    number: i64,
    id: Uuid,
    record: String,
}

/// What became of one conversation.
enum Outcome {
    Copied(usize),
    Updated(usize),
    Unchanged,
    Conflict,
}

impl SqlSessions {
    /// Copies what `source` has and this store has not.
    ///
    /// The last used of what is copied comes first in this store, as it does in the other.
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

    /// The sessions there are, the last used last.
    async fn headers(&self) -> Result<Vec<Header>, SessionError> {
        let rows = self.read(HEADERS, &[]).await?;
        rows.iter().map(Header::read).collect::<Result<_, _>>().map_err(|error| self.error(&error))
    }

    /// All turns that a session had when its header was read, those before a reset too. None
    /// when it was deleted since.
    async fn stored_turns(&self, header: &Header) -> Result<Option<Vec<StoredTurn>>, SessionError> {
        let values =
            [Value::Id(header.id), Value::Number(header.generation), Value::Number(header.turn_count)];
        let rows = self.read(STORED_TURNS, &values).await?;
        let turns: Vec<StoredTurn> = rows
            .iter()
            .map(StoredTurn::read)
            .collect::<Result<_, _>>()
            .map_err(|error| self.error(&error))?;
        let current = turns.iter().filter(|turn| turn.generation == header.generation).count();
        if i64::try_from(current) == Ok(header.turn_count) {
            return Ok(Some(turns));
        }
        match self.get(header.id).await {
            Err(SessionError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
            Ok(_) => {
                let what = format!("{}: turns of session {} are missing", self.place, header.id);
                Err(SessionError::Damaged(what))
            }
        }
    }

    /// Puts a conversation where it is not, or takes along how it went on.
    async fn merge(&self, header: &Header, turns: &[StoredTurn]) -> sqlx::Result<Outcome> {
        let mut transaction = self.database.begin().await?;
        if transaction.execute(INSERT_HEADER, &header.values()).await? == 1 {
            insert(&mut transaction, header.id, turns.iter()).await?;
            transaction.commit().await?;
            return Ok(Outcome::Copied(turns.len()));
        }
        // Deleted between the two statements: the next copy will find it gone.
        let locked = transaction.rows(LOCK_HEADER, &[Value::Id(header.id)]).await?;
        let Some(there) = locked.first() else { return Ok(Outcome::Unchanged) };
        let (generation, updated_at) = (there.number("generation")?, there.text("updated_at")?);
        let known = transaction.rows(TURN_KEYS, &[Value::Id(header.id)]).await?;
        let known: HashSet<Key> = known.iter().map(key).collect::<Result<_, _>>()?;
        let ours: HashSet<Key> = turns.iter().map(StoredTurn::key).collect();

        // A reset is a step forward like a turn.
        let ahead = known.is_subset(&ours) && generation <= header.generation;
        let behind = ours.is_subset(&known) && header.generation <= generation;
        match (ahead, behind) {
            (false, false) => return Ok(Outcome::Conflict),
            (false, true) => return Ok(Outcome::Unchanged),
            // Only the title can differ.
            (true, true) if header.updated_at <= updated_at => return Ok(Outcome::Unchanged),
            (true, _) => {}
        }
        transaction.execute(UPDATE_HEADER, &header.values()).await?;
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

/// Where a turn stands, and which it is.
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
        })
    }

    /// As [`INSERT_HEADER`] and [`UPDATE_HEADER`] number them.
    fn values(&self) -> [Value<'_>; 6] {
        [
            Value::Id(self.id),
            Value::Maybe(self.title.as_deref()),
            Value::Text(&self.updated_at),
            Value::Number(self.generation),
            Value::Number(self.turn_count),
            Value::Text(&self.started_at),
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
    SELECT session_id, title, started_at, updated_at, generation, turn_count,
        (SELECT turn_id FROM turns WHERE turns.session_id = sessions.session_id
            AND turns.generation = sessions.generation AND turn_number = turn_count) AS last_turn
    FROM sessions ORDER BY last_use, session_id";

/// The generations before the last are complete; of the last, what the header counted.
const STORED_TURNS: &str = "
    SELECT generation, turn_number, turn_id, record FROM turns
    WHERE session_id = $1 AND (generation < $2 OR (generation = $2 AND turn_number <= $3))
    ORDER BY generation, turn_number";

const INSERT_HEADER: &str = "
    INSERT INTO sessions (session_id, title, started_at, updated_at, last_use, generation, turn_count)
    VALUES ($1, $2, $6, $3, (SELECT COALESCE(MAX(last_use), 0) + 1 FROM sessions), $4, $5)
    ON CONFLICT (session_id) DO NOTHING";

/// Changes nothing, but until the transaction ends nobody else does either.
const LOCK_HEADER: &str = "
    UPDATE sessions SET session_id = session_id WHERE session_id = $1
    RETURNING generation, updated_at";

const TURN_KEYS: &str = "SELECT generation, turn_number, turn_id FROM turns WHERE session_id = $1";

const UPDATE_HEADER: &str = concat!(
    "UPDATE sessions SET title = $2, updated_at = $3, generation = $4, turn_count = $5, started_at = $6,
        last_use = ",
    next_use!(),
    " WHERE session_id = $1"
);

const LOG_PAGE: &str = "
    SELECT turn_id, asked_at, record, rating, comment FROM turn_log
    WHERE (asked_at, turn_id) > ($1, $2) ORDER BY asked_at, turn_id LIMIT $3";

/// A rating is taken along; one that is there already stays.
const MERGE_LOG: &str = "
    INSERT INTO turn_log (turn_id, asked_at, record, rating, comment) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (turn_id) DO UPDATE SET rating = excluded.rating, comment = excluded.comment
    WHERE turn_log.rating IS NULL AND excluded.rating IS NOT NULL";
