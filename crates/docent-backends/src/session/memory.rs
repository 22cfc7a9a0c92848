//! Sessions that last as long as the process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use docent_core::log::{Feedback, LoggedTurn, TurnLog};
use docent_core::session::{Session, SessionError, SessionStore, Turn};
use uuid::Uuid;

use crate::now_rfc3339;

/// A store without a disk, for trying things out and for tests.
#[derive(Debug, Default)]
pub struct MemorySessions {
    shelf: Mutex<Shelf>,
    log: Mutex<Vec<LoggedTurn>>,
}

#[derive(Debug, Default)]
struct Shelf {
    kept: HashMap<Uuid, Kept>,
    /// Grows with every use of any session.
    uses: u64,
}

#[derive(Debug)]
struct Kept {
    session: Session,
    /// Since the last reset: nobody could ever ask for older ones.
    turns: Vec<Turn>,
    last_use: u64,
}

impl MemorySessions {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // No change below can panic half-way, so a poisoned shelf is still in order.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a session and counts that as a use of it.
    fn update(&self, id: Uuid, change: impl FnOnce(&mut Kept)) -> Result<Session, SessionError> {
        let mut shelf = self.shelf();
        let last_use = shelf.uses + 1;
        let kept = shelf.kept.get_mut(&id).ok_or(SessionError::NotFound(id))?;
        change(kept);
        kept.session.turn_count = kept.turns.len() as u32;
        kept.session.updated_at = now_rfc3339();
        kept.last_use = last_use;
        let session = kept.session.clone();
        shelf.uses = last_use;
        Ok(session)
    }
}

#[async_trait]
impl SessionStore for MemorySessions {
    async fn create(&self) -> Result<Session, SessionError> {
        let session = Session::new(Uuid::new_v4(), now_rfc3339());
        let mut shelf = self.shelf();
        shelf.uses += 1;
        let kept = Kept { session: session.clone(), turns: Vec::new(), last_use: shelf.uses };
        shelf.kept.insert(session.session_id, kept);
        Ok(session)
    }

    async fn list(&self, limit: usize, offset: usize) -> Result<Vec<Session>, SessionError> {
        let shelf = self.shelf();
        let mut kept: Vec<&Kept> = shelf.kept.values().collect();
        kept.sort_by_key(|kept| std::cmp::Reverse(kept.last_use));
        Ok(kept.into_iter().skip(offset).take(limit).map(|kept| kept.session.clone()).collect())
    }

    async fn get(&self, id: Uuid) -> Result<Session, SessionError> {
        let shelf = self.shelf();
        shelf.kept.get(&id).map(|kept| kept.session.clone()).ok_or(SessionError::NotFound(id))
    }

    async fn turns(&self, id: Uuid, last: usize) -> Result<Vec<Turn>, SessionError> {
        let shelf = self.shelf();
        let turns = &shelf.kept.get(&id).ok_or(SessionError::NotFound(id))?.turns;
        Ok(turns[turns.len().saturating_sub(last)..].to_vec())
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
        self.update(id, |kept| kept.turns.clear())
    }

    async fn delete(&self, id: Uuid) -> Result<(), SessionError> {
        self.shelf().kept.remove(&id).map(drop).ok_or(SessionError::NotFound(id))
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
            let place = log.partition_point(|known| (&known.at, known.turn_id) <= (&turn.at, turn.turn_id));
            log.insert(place, turn.clone());
        }
        Ok(())
    }

    async fn rate(&self, turn_id: Uuid, feedback: &Feedback) -> Result<(), SessionError> {
        let mut log = self.log();
        let turn = log.iter_mut().find(|turn| turn.turn_id == turn_id);
        let turn = turn.ok_or(SessionError::NotFound(turn_id))?;
        let before = turn.feedback.take().and_then(|feedback| feedback.comment);
        let comment = feedback.comment.clone().or(before);
        turn.feedback = Some(Feedback { rating: feedback.rating, comment });
        Ok(())
    }

    async fn since(&self, moment: &str) -> Result<Vec<LoggedTurn>, SessionError> {
        Ok(self.log().iter().filter(|turn| turn.at.as_str() >= moment).cloned().collect())
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

    use docent_core::testing::sessions::session_contract;

    use super::*;

    #[tokio::test]
    async fn memory_keeps_the_contract() {
        session_contract(async || Arc::new(MemorySessions::default()) as Arc<dyn SessionStore>).await;
    }

    #[tokio::test]
    async fn the_log_keeps_its_contract() {
        docent_core::testing::log::log_contract(&MemorySessions::default()).await;
    }
}
