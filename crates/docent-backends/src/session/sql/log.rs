//! The turn log for the operator, in the same database as the conversations.

use async_trait::async_trait;
use docent_core::session::SessionError;
use docent_core::turn_log::{Feedback, LoggedTurn, Rating, TurnLog};
use uuid::Uuid;

use super::row::{Row, Value};
use super::{SqlSessions, postgres, sqlite};

#[async_trait]
impl TurnLog for SqlSessions {
    async fn record(&self, turns: &[LoggedTurn]) -> Result<(), SessionError> {
        let mut records = Vec::with_capacity(turns.len());
        for turn in turns {
            let what = format!("turn {} cannot be logged", turn.turn_id);
            let mut unrated = turn.clone();
            unrated.feedback = None;
            let record = serde_json::to_string(&unrated).map_err(|error| self.damaged(&what, &error))?;
            records.push((turn, record));
        }
        let attempt = || async {
            let mut transaction = self.database.begin().await?;
            for (turn, record) in &records {
                let values = [Value::Id(turn.turn_id), Value::Text(&turn.at), Value::Text(record)];
                transaction.execute(INSERT, &values).await?;
            }
            transaction.commit().await
        };
        self.write(attempt).await
    }

    async fn rate(&self, turn_id: Uuid, feedback: &Feedback) -> Result<(), SessionError> {
        let rating = match feedback.rating {
            Rating::Up => "up",
            Rating::Down => "down",
        };
        let values = [Value::Id(turn_id), Value::Text(rating), Value::Maybe(feedback.comment.as_deref())];
        match self.execute(RATE, &values).await? {
            0 => Err(SessionError::NotFound(turn_id)),
            _ => Ok(()),
        }
    }

    async fn since(&self, moment: &str) -> Result<Vec<LoggedTurn>, SessionError> {
        let rows = self.read(SINCE, &[Value::Text(moment)]).await?;
        let parse = |row: &Row| -> sqlx::Result<_> {
            Ok((row.text("record")?, row.maybe("rating")?, row.maybe("comment")?))
        };
        rows.iter()
            .map(|row| {
                let (record, rating, comment) = parse(row).map_err(|error| self.error(&error))?;
                let mut turn: LoggedTurn =
                    serde_json::from_str(&record).map_err(|error| self.damaged("a logged turn", &error))?;
                turn.feedback = rating.map(|rating| {
                    Feedback::new(if rating == "up" { Rating::Up } else { Rating::Down }, comment)
                });
                Ok(turn)
            })
            .collect()
    }

    async fn tokens_since(&self, moment: &str) -> Result<u64, SessionError> {
        let sql = self.database.either(sqlite::TOKENS_SINCE, postgres::TOKENS_SINCE);
        let rows = self.read(sql, &[Value::Text(moment)]).await?;
        let tokens = rows.first().map_or(Ok(0), |row| row.number("tokens"));
        Ok(u64::try_from(tokens.map_err(|error| self.error(&error))?).unwrap_or(0))
    }

    async fn forget_before(&self, moment: &str) -> Result<usize, SessionError> {
        let count = self.execute(FORGET, &[Value::Text(moment)]).await?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }
}

const INSERT: &str = "
    INSERT INTO turn_log (turn_id, asked_at, record) VALUES ($1, $2, $3) ON CONFLICT (turn_id) DO NOTHING";

/// A rating without a comment keeps an earlier comment.
const RATE: &str = "UPDATE turn_log SET rating = $2, comment = COALESCE($3, comment) WHERE turn_id = $1";

const SINCE: &str = "
    SELECT record, rating, comment FROM turn_log WHERE asked_at >= $1 ORDER BY asked_at, turn_id";

const FORGET: &str = "DELETE FROM turn_log WHERE asked_at < $1";
