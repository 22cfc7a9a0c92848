//! Deletes conversations and log entries that are older than the retention time, once an hour.
//!
//! Invariant: age is measured by the store's own time (`SessionStore::retention_time`), not by the machine's
//! clock, so a clock that jumps ahead does not empty the store.

use std::sync::Arc;
use std::time::Duration;

use docent_backends::{now_rfc3339, rfc3339_days_before};
use docent_core::session::{SessionError, SessionStore};
use docent_core::turn_log::TurnLog;

use crate::settings::Settings;

const HOUR: Duration = Duration::from_secs(3600);

/// Deletes old conversations and old turns of the log, now and then every hour.
pub async fn forget(sessions: Arc<dyn SessionStore>, log: Arc<dyn TurnLog>, settings: Settings) {
    let days = (settings.sessions.retention_days, settings.serve.retention_days);
    loop {
        if let Err(error) = forget_once(&*sessions, &*log, days, &now_rfc3339()).await {
            tracing::warn!("failed to delete old conversations or log entries: {error}");
        }
        tokio::time::sleep(HOUR).await;
    }
}

/// The days are the retention times of conversations (0 keeps them forever) and of the log.
async fn forget_once(
    sessions: &dyn SessionStore,
    log: &dyn TurnLog,
    (session_days, log_days): (u32, u32),
    clock: &str,
) -> Result<(), SessionError> {
    let now = sessions.retention_time(clock).await?;
    if session_days > 0 {
        let count = sessions.expire_before(&rfc3339_days_before(&now, session_days)).await?;
        if count > 0 {
            tracing::info!(count, "deleted conversations not used for {session_days} days");
        }
    }
    let count = log.forget_before(&rfc3339_days_before(&now, log_days)).await?;
    if count > 0 {
        tracing::info!(count, "deleted logged turns older than {log_days} days");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use docent_backends::session::memory::MemorySessions;
    use docent_core::testing::sessions::turn;
    use docent_core::turn_log::LoggedTurn;

    use super::*;

    #[tokio::test]
    async fn a_clock_that_jumps_ahead_does_not_delete_everything_at_once() {
        let store = MemorySessions::default();
        let id = store.create().await.unwrap().session_id;
        let mut logged = LoggedTurn::new(&turn("What is a node?").response, &[]);
        logged.at = now_rfc3339();
        store.record(&[logged]).await.unwrap();
        let kept = async || (store.get(id).await.is_ok(), store.since("").await.unwrap().len());
        for _ in 0..4 {
            forget_once(&store, &store, (3, 3), "2999-01-01T00:00:00Z").await.unwrap();
            assert_eq!(kept().await, (true, 1));
        }
        // By the store's own time, four days have passed now.
        forget_once(&store, &store, (3, 3), "2999-01-01T00:00:00Z").await.unwrap();
        assert_eq!(kept().await, (false, 0));
    }

    #[tokio::test]
    async fn zero_days_keep_conversations_forever() {
        let store = MemorySessions::default();
        let id = store.create().await.unwrap().session_id;
        for _ in 0..10 {
            forget_once(&store, &store, (0, 1), "2999-01-01T00:00:00Z").await.unwrap();
        }
        assert!(store.get(id).await.is_ok());
    }
}
