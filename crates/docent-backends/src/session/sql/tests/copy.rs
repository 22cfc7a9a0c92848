//! Tests of copying between two stores.

use docent_core::turn_log::{Feedback, LoggedTurn, Rating, TurnLog};

use super::*;

/// Two stores in files of one folder.
async fn two_files() -> (TempDir, SqlSessions, SqlSessions) {
    let folder = tempfile::tempdir().unwrap();
    let source = SqlSessions::open(&folder.path().join("source")).await.unwrap();
    let target = SqlSessions::open(&folder.path().join("target")).await.unwrap();
    (folder, source, target)
}

/// A session with these questions.
async fn session_of(store: &SqlSessions, questions: &[&str]) -> Uuid {
    let id = store.create().await.unwrap().session_id;
    for question in questions {
        store.append(id, &turn(question)).await.unwrap();
    }
    id
}

pub(super) async fn log(store: &SqlSessions, question: &str, at: &str) -> Uuid {
    let mut logged = LoggedTurn::new(&turn(question).response, &[]);
    logged.at = at.to_owned();
    store.record(std::slice::from_ref(&logged)).await.unwrap();
    logged.turn_id
}

fn counts(copied: &Copied) -> [usize; 6] {
    [copied.copied, copied.updated, copied.unchanged, copied.conflicts.len(), copied.turns, copied.logged]
}

/// Asserts that both stores have the same conversations, in the same order, and the same turn log.
pub(super) async fn assert_same(one: &SqlSessions, other: &SqlSessions) {
    let sessions = one.list(usize::MAX, 0).await.unwrap();
    assert_eq!(sessions, other.list(usize::MAX, 0).await.unwrap());
    for session in sessions {
        let id = session.session_id;
        assert_eq!(one.turns(id, usize::MAX).await.unwrap(), other.turns(id, usize::MAX).await.unwrap());
    }
    assert_eq!(one.since("").await.unwrap(), other.since("").await.unwrap());
}

/// Everything a copy does, for any combination of databases.
pub(super) async fn copy_contract(source: &SqlSessions, target: &SqlSessions) {
    let nodes = session_of(source, &["What is a node?", "And a topic?"]).await;
    let empty = session_of(source, &[]).await;
    let anew = session_of(source, &["one", "two"]).await;
    source.reset(anew).await.unwrap();
    source.append(anew, &turn("three")).await.unwrap();
    source.rename(empty, "Für später").await.unwrap();
    let first = log(source, "What is a node?", "2026-01-01T10:00:00Z").await;
    log(source, "And a topic?", "2026-01-01T10:00:00Z").await;
    source.rate(first, &Feedback::new(Rating::Up, Some("yes".to_owned()))).await.unwrap();

    assert_eq!(counts(&target.copy_from(source).await.unwrap()), [3, 0, 0, 0, 3, 2]);
    assert_same(source, target).await;
    assert_eq!(counts(&target.copy_from(source).await.unwrap()), [0, 0, 3, 0, 0, 0], "nothing is new");

    // The source is continued.
    source.append(nodes, &turn("And an action?")).await.unwrap();
    source.reset(empty).await.unwrap();
    let service = session_of(source, &["What is a service?"]).await;
    let third = log(source, "What is a service?", "2026-01-02T10:00:00Z").await;
    assert_eq!(counts(&target.copy_from(source).await.unwrap()), [1, 2, 1, 0, 2, 1]);
    assert_same(source, target).await;

    // The target is continued: there is nothing to copy, and it is not changed.
    target.append(nodes, &turn("And a parameter?")).await.unwrap();
    target.rate(third, &Feedback::new(Rating::Down, None)).await.unwrap();
    assert_eq!(counts(&target.copy_from(source).await.unwrap()), [0, 0, 4, 0, 0, 0]);
    assert_eq!(queries(target, nodes).await.last().unwrap(), "And a parameter?");

    // Copying back brings the source up to date.
    assert_eq!(counts(&source.copy_from(target).await.unwrap()), [0, 1, 3, 0, 1, 1]);
    assert_same(source, target).await;

    // Both are continued differently: neither is lost.
    source.append(service, &turn("Here?")).await.unwrap();
    target.append(service, &turn("There?")).await.unwrap();
    source.append(anew, &turn("four")).await.unwrap();
    target.reset(anew).await.unwrap();
    let copied = target.copy_from(source).await.unwrap();
    assert_eq!(copied.conflicts, [service], "a later reset in the target is kept");
    assert_eq!(queries(target, service).await, ["What is a service?", "There?"]);
    assert_eq!(queries(source, service).await, ["What is a service?", "Here?"]);
    assert_eq!(queries(target, anew).await, [""; 0]);
}

#[tokio::test]
async fn a_copy_adds_what_is_new_and_loses_nothing() {
    let (_folder, source, target) = two_files().await;
    copy_contract(&source, &target).await;
}

#[tokio::test]
async fn a_reset_in_the_source_is_copied_to_the_target() {
    let (_folder, source, target) = two_files().await;
    let access = SessionAccess { owner: Some(SecretHash([1; 32])), share: Some(SecretHash([2; 32])) };
    let id = source.create_with(access).await.unwrap().session_id;
    source.append(id, &turn("What is a node?")).await.unwrap();
    target.copy_from(&source).await.unwrap();
    assert_eq!(target.access(id).await.unwrap(), access);
    source.reset(id).await.unwrap();
    source.append(id, &turn("What is a topic?")).await.unwrap();
    assert_eq!(counts(&target.copy_from(&source).await.unwrap()), [0, 1, 0, 0, 1, 0]);
    assert_eq!(queries(&target, id).await, ["What is a topic?"]);
    let left: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM turns").fetch_one(&file(&target).reads).await.unwrap();
    assert_eq!(left, 1);
    assert_same(&source, &target).await;
}

#[tokio::test]
async fn the_most_recent_title_is_kept() {
    let (_folder, source, target) = two_files().await;
    let id = session_of(&source, &["What is a node?"]).await;
    target.copy_from(&source).await.unwrap();
    // Timestamps have millisecond resolution.
    let later = async |before: &str| {
        while *now_rfc3339() <= *before {
            tokio::task::yield_now().await
        }
    };
    later(&source.get(id).await.unwrap().updated_at).await;
    let renamed = source.rename(id, "Nodes").await.unwrap();
    assert_eq!(counts(&target.copy_from(&source).await.unwrap()), [0, 1, 0, 0, 0, 0]);
    later(&renamed.updated_at).await;
    target.rename(id, "The graph").await.unwrap();
    assert_eq!(counts(&target.copy_from(&source).await.unwrap()), [0, 0, 1, 0, 0, 0]);
    assert_eq!(target.get(id).await.unwrap().title.as_deref(), Some("The graph"));
}

#[tokio::test]
async fn a_long_log_is_copied_completely() {
    let (_folder, source, target) = two_files().await;
    let turns: Vec<LoggedTurn> = (0..1203)
        .map(|number| {
            let mut logged = LoggedTurn::new(&turn("Why?").response, &[]);
            logged.at = format!("2026-01-{:02}T10:00:00Z", number % 3 + 1);
            logged
        })
        .collect();
    source.record(&turns).await.unwrap();
    assert_eq!(target.copy_from(&source).await.unwrap().logged, 1203);
    assert_same(&source, &target).await;
}

#[tokio::test]
async fn a_conversation_with_missing_turns_is_not_copied() {
    let (_folder, source, target) = two_files().await;
    session_of(&source, &["one", "two"]).await;
    sqlx::query("DELETE FROM turns WHERE turn_number = 1").execute(&file(&source).writes).await.unwrap();
    match target.copy_from(&source).await {
        Err(SessionError::Damaged(message)) => assert!(message.contains("are missing"), "{message}"),
        other => panic!("expected damage, got {other:?}"),
    }
    assert_eq!(target.list(10, 0).await.unwrap(), []);
}

/// Two concurrent copies, after one that was interrupted, give the same result as a single one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn copies_can_run_concurrently_and_be_interrupted() {
    let (_folder, source, target) = two_files().await;
    for _ in 0..30 {
        session_of(&source, &["one", "two", "three"]).await;
    }
    let begun = async {
        while target.list(1, 0).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = target.copy_from(&source) => {}
        () = begun => {}
    }
    let begun = target.list(usize::MAX, 0).await.unwrap();
    assert!(!begun.is_empty() && begun.iter().all(|session| session.turn_count == 3), "{begun:?}");
    let (one, other) = tokio::join!(target.copy_from(&source), target.copy_from(&source));
    let (one, other) = (one.unwrap(), other.unwrap());
    for copied in [&one, &other] {
        assert_eq!(copied.copied + copied.unchanged, 30, "{copied:?}");
    }
    assert!(one.copied + other.copied <= 30 - begun.len());
    assert_eq!(one.conflicts.len() + other.conflicts.len(), 0);
    assert_same(&source, &target).await;
}
