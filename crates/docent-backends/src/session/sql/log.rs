//! Turns kept for the owner, in the same file as the conversations.

use async_trait::async_trait;
use docent_core::log::{Feedback, LoggedTurn, Rating, TurnLog};
use docent_core::session::SessionError;
use uuid::Uuid;

use super::SqlSessions;

#[async_trait]
impl TurnLog for SqlSessions {
    async fn record(&self, turns: &[LoggedTurn]) -> Result<(), SessionError> {
        let mut transaction = self.begin().await.map_err(|error| self.error(&error))?;
        for turn in turns {
            let what = format!("turn {} cannot be logged", turn.turn_id);
            let record = serde_json::to_string(&LoggedTurn { feedback: None, ..turn.clone() })
                .map_err(|error| self.damaged(&what, &error))?;
            let insert = sqlx::query(INSERT).bind(turn.turn_id.to_string()).bind(&turn.at).bind(record);
            insert.execute(&mut *transaction).await.map_err(|error| self.error(&error))?;
        }
        transaction.commit().await.map_err(|error| self.error(&error))
    }

    async fn rate(&self, turn_id: Uuid, feedback: &Feedback) -> Result<(), SessionError> {
        let rating = match feedback.rating {
            Rating::Up => "up",
            Rating::Down => "down",
        };
        let update = sqlx::query(RATE).bind(turn_id.to_string()).bind(rating).bind(&feedback.comment);
        match update.execute(&self.writes).await.map_err(|error| self.error(&error))?.rows_affected() {
            0 => Err(SessionError::NotFound(turn_id)),
            _ => Ok(()),
        }
    }

    async fn since(&self, moment: &str) -> Result<Vec<LoggedTurn>, SessionError> {
        let rows: Vec<(String, Option<String>, Option<String>)> = sqlx::query_as(SINCE)
            .bind(moment)
            .fetch_all(&self.reads)
            .await
            .map_err(|error| self.error(&error))?;
        rows.into_iter()
            .map(|(record, rating, comment)| {
                let turn: LoggedTurn =
                    serde_json::from_str(&record).map_err(|error| self.damaged("a logged turn", &error))?;
                let feedback = rating.map(|rating| Feedback {
                    rating: if rating == "up" { Rating::Up } else { Rating::Down },
                    comment,
                });
                Ok(LoggedTurn { feedback, ..turn })
            })
            .collect()
    }

    async fn forget_before(&self, moment: &str) -> Result<usize, SessionError> {
        let deleted = sqlx::query(FORGET).bind(moment).execute(&self.writes).await;
        let count = deleted.map_err(|error| self.error(&error))?.rows_affected();
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }
}

const INSERT: &str = "INSERT INTO turn_log (turn_id, asked_at, record) VALUES ($1, $2, $3)";

/// A rating without a comment keeps the comment that came before.
const RATE: &str = "UPDATE turn_log SET rating = $2, comment = COALESCE($3, comment) WHERE turn_id = $1";

const SINCE: &str = "
    SELECT record, rating, comment FROM turn_log WHERE asked_at >= $1 ORDER BY asked_at, turn_id";

const FORGET: &str = "DELETE FROM turn_log WHERE asked_at < $1";
