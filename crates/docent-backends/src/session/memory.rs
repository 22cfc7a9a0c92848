//! Sessions in memory, lost when the process exits.
//!
//! Invariant: memory is bounded; the least recently used sessions are evicted first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use docent_core::session::{SecretHash, Session, SessionAccess, SessionError, SessionStore, Turn};
use docent_core::turn_log::{Feedback, LoggedTurn, TurnLog};
use uuid::Uuid;

use crate::now_rfc3339;

/// Maximum number of sessions.
const MOST_SESSIONS: usize = 2_000;

/// Maximum number of turns of all sessions together. A turn takes about 15 kB.
const MOST_TURNS: usize = 5_000;

/// Maximum number of turns in the turn log.
const MOST_LOGGED: usize = 10_000;

/// A store in memory, for trying Docent out and for tests.
#[derive(Debug, Default)]
pub struct MemorySessions {
    contents: Mutex<Contents>,
    log: Mutex<Vec<LoggedTurn>>,
}

#[derive(Debug, Default)]
struct Contents {
    kept: HashMap<Uuid, Kept>,
    /// Incremented with every use of any session.
    uses: u64,
    /// See [`SessionStore::retention_time`].
    retention_time: Option<String>,
}

impl Contents {
    /// Removes the least recently used sessions until the rest is within the limits.
    fn prune(&mut self) {
        loop {
            let turns: usize = self.kept.values().map(|kept| kept.turns.len()).sum();
            if self.kept.len() <= MOST_SESSIONS && turns <= MOST_TURNS {
                return;
            }
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.last_use).map(|(id, _)| *id);
            match (oldest, self.kept.len()) {
                (Some(oldest), 2..) => drop(self.kept.remove(&oldest)),
                // A single session exceeds the limit: remove its oldest turns.
                _ => {
                    for kept in self.kept.values_mut() {
                        kept.turns.drain(..turns - MOST_TURNS);
                        kept.session.turn_count = kept.turns.len() as u32;
                    }
                }
            }
        }
    }
}

#[derive(Debug)]
struct Kept {
    session: Session,
    access: SessionAccess,
    /// The turns since the last reset; older ones are removed.
    turns: Vec<Turn>,
    last_use: u64,
}

impl MemorySessions {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        // No change can panic half-way, so the contents are consistent even if the lock is poisoned.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a session and counts that as a use of it.
    fn update(&self, id: Uuid, change: impl FnOnce(&mut Kept)) -> Result<Session, SessionError> {
        let mut contents = self.contents();
        let last_use = contents.uses + 1;
        let kept = contents.kept.get_mut(&id).ok_or(SessionError::NotFound(id))?;
        change(kept);
        kept.session.turn_count = kept.turns.len() as u32;
        kept.session.updated_at = now_rfc3339();
        kept.last_use = last_use;
        let session = kept.session.clone();
        contents.uses = last_use;
        contents.prune();
        Ok(session)
    }
}

#[async_trait]
impl SessionStore for MemorySessions {
    async fn create_with(&self, access: SessionAccess) -> Result<Session, SessionError> {
        let session = Session::new(Uuid::new_v4(), now_rfc3339());
        let mut contents = self.contents();
        contents.uses += 1;
        let kept = Kept { session: session.clone(), access, turns: Vec::new(), last_use: contents.uses };
        contents.kept.insert(session.session_id, kept);
        contents.prune();
        Ok(session)
    }

    async fn access(&self, id: Uuid) -> Result<SessionAccess, SessionError> {
        self.contents().kept.get(&id).map(|kept| kept.access).ok_or(SessionError::NotFound(id))
    }

    async fn share(&self, id: Uuid, share: Option<SecretHash>) -> Result<(), SessionError> {
        let mut contents = self.contents();
        contents.kept.get_mut(&id).ok_or(SessionError::NotFound(id))?.access.share = share;
        Ok(())
    }

    async fn list(&self, limit: usize, offset: usize) -> Result<Vec<Session>, SessionError> {
        let contents = self.contents();
        let mut kept: Vec<&Kept> = contents.kept.values().collect();
        kept.sort_by_key(|kept| std::cmp::Reverse(kept.last_use));
        Ok(kept.into_iter().skip(offset).take(limit).map(|kept| kept.session.clone()).collect())
    }

    async fn get(&self, id: Uuid) -> Result<Session, SessionError> {
        let contents = self.contents();
        contents.kept.get(&id).map(|kept| kept.session.clone()).ok_or(SessionError::NotFound(id))
    }

    async fn turns_before(&self, id: Uuid, before: u32, most: usize) -> Result<Vec<Turn>, SessionError> {
        let contents = self.contents();
        let turns = &contents.kept.get(&id).ok_or(SessionError::NotFound(id))?.turns;
        let end = turns.len().min(before.saturating_sub(1) as usize);
        Ok(turns[end.saturating_sub(most)..end].to_vec())
    }

    async fn append(&self, id: Uuid, turn: &Turn) -> Result<(), SessionError> {
        self.update(id, |kept| {
            kept.session.title.get_or_insert_with(|| super::title(&turn.query));
            kept.turns.push(turn.clone());
        })?;
        Ok(())
    }

    async fn rename(&self, id: Uuid, title: &str) -> Result<Session, SessionError> {
        self.update(id, |kept| kept.session.title = Some(title.to_owned()))
    }

    async fn reset(&self, id: Uuid) -> Result<Session, SessionError> {
        self.update(id, |kept| {
            let asked = kept.turns.first().map(|turn| super::title(&turn.query));
            kept.session.title.take_if(|title| Some(&*title) == asked.as_ref());
            kept.turns.clear();
        })
    }

    async fn delete(&self, id: Uuid) -> Result<(), SessionError> {
        self.contents().kept.remove(&id).map(drop).ok_or(SessionError::NotFound(id))
    }

    async fn expire_before(&self, moment: &str) -> Result<usize, SessionError> {
        let mut contents = self.contents();
        let before = contents.kept.len();
        contents.kept.retain(|_, kept| kept.session.updated_at.as_str() >= moment);
        Ok(before - contents.kept.len())
    }

    async fn retention_time(&self, now: &str) -> Result<String, SessionError> {
        let mut contents = self.contents();
        let newest = contents.kept.values().map(|kept| kept.session.updated_at.as_str()).max();
        let time = super::retention::advance(contents.retention_time.as_deref(), newest, now);
        contents.retention_time = Some(time.clone());
        Ok(time)
    }
}

impl MemorySessions {
    fn log(&self) -> MutexGuard<'_, Vec<LoggedTurn>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TurnLog for MemorySessions {
    async fn record(&self, turns: &[LoggedTurn]) -> Result<(), SessionError> {
        let mut log = self.log();
        for turn in turns {
            if log.iter().rev().any(|known| known.turn_id == turn.turn_id) {
                continue;
            }
            let place = log.partition_point(|known| (&known.at, known.turn_id) <= (&turn.at, turn.turn_id));
            log.insert(place, turn.clone());
        }
        let surplus = log.len().saturating_sub(MOST_LOGGED);
        log.drain(..surplus);
        Ok(())
    }

    async fn rate(&self, turn_id: Uuid, feedback: &Feedback) -> Result<(), SessionError> {
        let mut log = self.log();
        let turn = log.iter_mut().find(|turn| turn.turn_id == turn_id);
        let turn = turn.ok_or(SessionError::NotFound(turn_id))?;
        let before = turn.feedback.take().and_then(|feedback| feedback.comment);
        let comment = feedback.comment.clone().or(before);
        turn.feedback = Some(Feedback::new(feedback.rating, comment));
        Ok(())
    }

    async fn since(&self, moment: &str) -> Result<Vec<LoggedTurn>, SessionError> {
        Ok(self.log().iter().filter(|turn| turn.at.as_str() >= moment).cloned().collect())
    }

    async fn tokens_since(&self, moment: &str) -> Result<u64, SessionError> {
        let log = self.log();
        let recent = log.iter().filter(|turn| turn.at.as_str() >= moment);
        Ok(recent.map(|turn| u64::from(turn.tokens)).sum())
    }

    async fn forget_before(&self, moment: &str) -> Result<usize, SessionError> {
        let mut log = self.log();
        let before = log.len();
        log.retain(|turn| turn.at.as_str() >= moment);
        Ok(before - log.len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use docent_core::testing::sessions::{session_contract, turn};

    use super::*;

    #[tokio::test]
    async fn memory_keeps_the_contract() {
        session_contract(async || Arc::new(MemorySessions::default()) as Arc<dyn SessionStore>).await;
    }

    #[tokio::test]
    async fn memory_is_bounded_and_the_least_recently_used_session_is_evicted() {
        let store = MemorySessions::default();
        let first = store.create().await.unwrap().session_id;
        let second = store.create().await.unwrap().session_id;
        store.append(first, &turn("used again")).await.unwrap();
        for _ in 1..MOST_SESSIONS {
            store.create().await.unwrap();
        }
        assert_eq!(store.list(usize::MAX, 0).await.unwrap().len(), MOST_SESSIONS);
        assert!(store.get(first).await.is_ok());
        assert!(matches!(store.get(second).await, Err(SessionError::NotFound(_))));

        let long = store.create().await.unwrap().session_id;
        let mut small = turn("again and again");
        small.response.sources = None;
        for number in 0..=MOST_TURNS {
            small.query = number.to_string();
            store.append(long, &small).await.unwrap();
        }
        let turns = store.turns(long, usize::MAX).await.unwrap();
        assert_eq!((turns.len(), turns[0].query.as_str()), (MOST_TURNS, "1"));
        assert_eq!(store.get(long).await.unwrap().turn_count as usize, MOST_TURNS);
        assert!(matches!(store.get(first).await, Err(SessionError::NotFound(_))));
    }

    #[tokio::test]
    async fn the_log_keeps_its_contract() {
        docent_core::testing::turn_log::log_contract(&MemorySessions::default()).await;
    }
}
