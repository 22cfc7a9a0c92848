//! The contract suite for turn logs.

use super::sessions::turn;
use crate::session::SessionError;
use crate::turn_log::{Feedback, LoggedTurn, Rating, TurnLog};
use uuid::Uuid;

/// Checks what every [`TurnLog`] must do, on an empty log.
pub async fn log_contract(log: &dyn TurnLog) {
    let logged = |query: &str, at: &str| {
        let turn = turn(query);
        let sources = turn.response.sources.clone().unwrap();
        LoggedTurn { at: at.to_owned(), tokens: 1000, ..LoggedTurn::new(&turn.response, &sources) }
    };
    assert_eq!(log.tokens_since("").await.unwrap(), 0);
    let first = logged("one", "2026-01-01T10:00:00Z");
    let second = LoggedTurn { tokens: 234, ..logged("two", "2026-01-02T10:00:00Z") };
    log.record(&[second.clone(), first.clone()]).await.unwrap();
    log.record(&[]).await.unwrap();

    // Tokens are added up.
    assert_eq!(log.tokens_since("2026-01-01").await.unwrap(), 1234);
    assert_eq!(log.tokens_since("2026-01-02").await.unwrap(), 234);
    assert_eq!(log.tokens_since("2026-01-03").await.unwrap(), 0);

    // A turn that is recorded again, after a crash, is there once.
    let third = logged("three", "2026-01-01T11:00:00Z");
    log.record(&[first.clone(), third.clone()]).await.unwrap();
    assert_eq!(log.since("2026-01-01").await.unwrap(), [first.clone(), third.clone(), second.clone()]);
    assert_eq!(log.forget_before("2026-01-02").await.unwrap(), 2);
    log.record(std::slice::from_ref(&first)).await.unwrap();

    // Turns are returned unchanged, oldest first.
    assert_eq!(log.since("2026-01-01").await.unwrap(), [first.clone(), second.clone()]);
    assert_eq!(log.since("2026-01-02").await.unwrap(), std::slice::from_ref(&second));

    // The last rating counts; a rating without a comment keeps the previous comment.
    let down = Feedback { rating: Rating::Down, comment: Some("too short".to_owned()) };
    log.rate(first.turn_id, &Feedback { rating: Rating::Up, comment: None }).await.unwrap();
    log.rate(first.turn_id, &down).await.unwrap();
    assert_eq!(log.since("2026-01-01").await.unwrap()[0].feedback, Some(down.clone()));
    log.rate(first.turn_id, &Feedback { rating: Rating::Up, comment: None }).await.unwrap();
    let kept = Feedback { rating: Rating::Up, ..down };
    assert_eq!(log.since("2026-01-01").await.unwrap()[0].feedback, Some(kept));

    // A comment may contain anything. Not every log can represent a NUL, but none may fail on one.
    let strange = Feedback { rating: Rating::Down, comment: Some("\u{0}o\u{0}dd'".to_owned()) };
    log.rate(second.turn_id, &strange).await.unwrap();
    let rated = log.since("2026-01-02").await.unwrap().remove(0).feedback.unwrap();
    assert_eq!(rated.comment.unwrap().replace('\0', ""), "odd'");

    // An unknown turn cannot be rated.
    let nobody = log.rate(Uuid::nil(), &Feedback { rating: Rating::Up, comment: None }).await;
    assert!(matches!(nobody, Err(SessionError::NotFound(_))));

    // Old turns are removed.
    assert_eq!(log.forget_before("2026-01-02").await.unwrap(), 1);
    let left: Vec<Uuid> = log.since("").await.unwrap().iter().map(|turn| turn.turn_id).collect();
    assert_eq!(left, [second.turn_id]);
}
