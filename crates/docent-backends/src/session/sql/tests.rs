//! Tests of the SQLite store: the contract, and failures specific to files.

#[cfg(unix)]
mod postgres;
mod copy;

use std::collections::HashSet;
use std::sync::Arc;

use docent_core::testing::sessions::{session_contract, turn};
use sqlx::{AssertSqlSafe, Row as _};
use tempfile::TempDir;

use super::*;
use docent_testkit::SmallDisk;

/// A new folder, and the path of a store in it that does not exist yet.
fn new_path() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/docent/sessions.db");
    (folder, path)
}

/// The connections, to inspect and damage the database.
fn file(store: &SqlSessions) -> &sqlite::File {
    match &store.database {
        Database::Sqlite(file) => file,
        Database::Postgres(_) => panic!("{} is not a file", store.place),
    }
}

async fn queries(store: &SqlSessions, id: Uuid) -> Vec<String> {
    store.turns(id, usize::MAX).await.unwrap().into_iter().map(|turn| turn.query).collect()
}

#[track_caller]
fn assert_damaged<T: std::fmt::Debug>(result: Result<T, SessionError>, path: &Path) {
    match result {
        Err(SessionError::Damaged(message)) if message.contains(path.to_str().unwrap()) => (),
        other => panic!("expected damage in {}, got {other:?}", path.display()),
    }
}

#[track_caller]
fn assert_unavailable<T: std::fmt::Debug>(result: Result<T, SessionError>, path: &Path) {
    match result {
        Err(SessionError::Unavailable(message)) if message.contains(path.to_str().unwrap()) => (),
        other => panic!("expected {} to be unavailable, got {other:?}", path.display()),
    }
}

#[tokio::test]
async fn sqlite_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    session_contract(async || {
        let path = folder.path().join(Uuid::new_v4().to_string());
        Arc::new(SqlSessions::open(&path).await.unwrap()) as Arc<dyn SessionStore>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_file_can_be_opened_concurrently() {
    for _ in 0..5 {
        let (_folder, path) = new_path();
        let openings = (0..8).map(|_| {
            let path = path.clone();
            tokio::spawn(async move { SqlSessions::open(&path).await.unwrap().create().await.unwrap() })
        });
        for opening in openings.collect::<Vec<_>>() {
            opening.await.unwrap();
        }
        assert_eq!(SqlSessions::open(&path).await.unwrap().list(100, 0).await.unwrap().len(), 8);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_share_a_file() {
    let (_folder, path) = new_path();
    let first = Arc::new(SqlSessions::open(&path).await.unwrap());
    let second = Arc::new(SqlSessions::open(&path).await.unwrap());
    let id = first.create().await.unwrap().session_id;
    let writers = [first.clone(), second.clone()].map(|store| {
        tokio::spawn(async move {
            for _ in 0..50 {
                let turn = turn(&Uuid::new_v4().to_string());
                store.append(id, &turn).await.unwrap();
                assert!(queries(&store, id).await.contains(&turn.query));
            }
        })
    });
    for writer in writers {
        writer.await.unwrap();
    }
    let all = queries(&first, id).await;
    assert_eq!(all, queries(&second, id).await);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 100);
    second.delete(id).await.unwrap();
    assert!(matches!(first.append(id, &turn("Hello?")).await, Err(SessionError::NotFound(_))));
}

#[tokio::test]
async fn appended_turns_are_there_after_reopening() {
    let (_folder, path) = new_path();
    let id = SqlSessions::open(&path).await.unwrap().create().await.unwrap().session_id;
    let mut turns = Vec::new();
    for number in 0..5 {
        let store = SqlSessions::open(&path).await.unwrap();
        assert_eq!(store.turns(id, usize::MAX).await.unwrap(), turns);
        turns.push(turn(&number.to_string()));
        store.append(id, &turns[number]).await.unwrap();
    }
}

/// Whether any file of the store contains this text.
fn is_on_disk(path: &Path, words: &str) -> bool {
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
    files.flatten().any(|file| {
        let bytes = std::fs::read(file.path()).unwrap();
        bytes.windows(words.len()).any(|window| window == words.as_bytes())
    })
}

#[tokio::test]
async fn deleted_conversations_are_erased_from_disk() {
    let (_folder, path) = new_path();
    let store = SqlSessions::open(&path).await.unwrap();
    let id = store.create().await.unwrap().session_id;
    let kept = store.create().await.unwrap().session_id;
    let count = async || -> i64 {
        sqlx::query_scalar("SELECT COUNT(*) FROM turns").fetch_one(&file(&store).reads).await.unwrap()
    };
    store.append(kept, &turn("marmalade")).await.unwrap();
    for forget in ["reset", "delete"] {
        store.append(id, &turn("rhododendron")).await.unwrap();
        assert!(is_on_disk(&path, "rhododendron"));
        match forget {
            "reset" => drop(store.reset(id).await.unwrap()),
            _ => store.delete(id).await.unwrap(),
        }
        assert_eq!(count().await, 1);
        assert!(!is_on_disk(&path, "rhododendron"), "{forget}");
        assert!(is_on_disk(&path, "marmalade"));
    }
    assert_eq!(store.expire_before("2999-01-01T00:00:00Z").await.unwrap(), 1);
    assert!(!is_on_disk(&path, "marmalade"));
}

#[tokio::test]
async fn only_old_sessions_expire() {
    let (_folder, path) = new_path();
    let store = SqlSessions::open(&path).await.unwrap();
    let old = store.create().await.unwrap().session_id;
    let fresh = store.create().await.unwrap().session_id;
    let age = "UPDATE sessions SET updated_at = '2024-02-03T04:05:06Z' WHERE session_id = $1";
    sqlx::query(age).bind(old.to_string()).execute(&file(&store).writes).await.unwrap();
    assert_eq!(store.expire_before("2024-02-03T04:05:06Z").await.unwrap(), 0);
    assert_eq!(store.expire_before("2024-02-03T04:05:07Z").await.unwrap(), 1);
    assert_eq!(store.list(10, 0).await.unwrap()[0].session_id, fresh);
}

/// Conversations from before owners were introduced are kept, without secrets; hidden turns are removed.
#[tokio::test]
async fn a_store_of_the_previous_version_is_migrated() {
    let (_folder, path) = new_path();
    let id = {
        let store = SqlSessions::open(&path).await.unwrap();
        let id = store.create().await.unwrap().session_id;
        for query in ["hidden", "seen"] {
            store.append(id, &turn(query)).await.unwrap();
        }
        for back in [
            "ALTER TABLE sessions DROP COLUMN owner_hash",
            "ALTER TABLE sessions DROP COLUMN share_hash",
            "DROP INDEX sessions_by_update",
            "DROP TABLE retention",
            "DELETE FROM _sqlx_migrations WHERE version = 3",
            "UPDATE sessions SET generation = 1, turn_count = 1",
            "UPDATE turns SET generation = 1, turn_number = 1 WHERE turn_number = 2",
        ] {
            sqlx::query(back).execute(&file(&store).writes).await.unwrap();
        }
        id
    };
    let store = SqlSessions::open(&path).await.unwrap();
    assert_eq!(queries(&store, id).await, ["seen"]);
    let left: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM turns").fetch_one(&file(&store).reads).await.unwrap();
    assert_eq!(left, 1);
    assert_eq!(store.access(id).await.unwrap(), SessionAccess::default());
    store.append(id, &turn("goes on")).await.unwrap();
    assert_eq!(queries(&store, id).await, ["seen", "goes on"]);
}

#[cfg(unix)]
#[tokio::test]
async fn other_users_cannot_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = new_path();
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    let set = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    let store = SqlSessions::open(&path).await.unwrap();
    store.create().await.unwrap();
    for entry in std::fs::read_dir(path.parent().unwrap()).unwrap().flatten() {
        let found = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(found, 0o600, "{}", entry.path().display());
    }
    drop(store);
    // A file made by an older version, and one opened to a group on purpose.
    for (before, after) in [(0o644, 0o640), (0o660, 0o660)] {
        set(before);
        SqlSessions::open(&path).await.unwrap();
        assert_eq!(mode(), after);
    }
}

#[tokio::test]
async fn writes_are_synced_and_use_a_write_ahead_log() {
    let (_folder, path) = new_path();
    let store = SqlSessions::open(&path).await.unwrap();
    for pool in [&file(&store).writes, &file(&store).reads] {
        let journal: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(pool).await.unwrap();
        let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(pool).await.unwrap();
        assert_eq!((journal.as_str(), synchronous), ("wal", 2));
    }
}

/// Long sessions must not slow down answers.
#[tokio::test]
async fn no_statement_reads_a_whole_session() {
    let (_folder, path) = new_path();
    let store = SqlSessions::open(&path).await.unwrap();
    for sql in [
        COUNT_TURN,
        INSERT_TURN,
        TURNS_BEFORE,
        GET_SESSION,
        ACCESS,
        SHARE,
        RENAME_SESSION,
        RESET_SESSION,
        EXPIRE,
    ] {
        let plan = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")));
        for step in plan.fetch_all(&file(&store).reads).await.unwrap() {
            let step: String = step.get("detail");
            assert!(!step.contains("SCAN") && !step.contains("TEMP B-TREE"), "{sql}: {step}");
        }
    }
}

#[tokio::test]
async fn a_locked_file_is_unavailable_and_nothing_is_written() {
    let (_folder, path) = new_path();
    let place = Place::File(path.clone());
    let store = SqlSessions::open(&path).await.unwrap();
    // Do not wait for other writers, so that the test does not depend on time.
    sqlx::query("PRAGMA busy_timeout = 0").execute(&file(&store).writes).await.unwrap();
    let id = store.create().await.unwrap().session_id;
    let other = SqlSessions::open(&path).await.unwrap();
    let lock = other.database.begin().await.unwrap();
    assert_unavailable(store.append(id, &turn("one")).await, &path);
    assert_unavailable(store.create().await, &path);
    assert_unavailable(store.rename(id, "Nodes").await, &path);
    assert_unavailable(store.delete(id).await, &path);
    assert_unavailable(SqlSessions::open_within(&place, Duration::from_millis(50)).await, &path);
    assert_eq!(queries(&store, id).await, [""; 0], "reading still works");
    lock.rollback().await.unwrap();
    store.append(id, &turn("two")).await.unwrap();
    assert_eq!(queries(&store, id).await, ["two"]);
}

#[tokio::test]
async fn a_path_that_cannot_be_written_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "text").unwrap();
    assert_unavailable(SqlSessions::open(&file.join("sessions.db")).await, &file);
    assert_unavailable(SqlSessions::open(folder.path()).await, folder.path());
}

#[tokio::test]
async fn a_full_or_read_only_file_is_unavailable() {
    let (_folder, path) = new_path();
    let store = SqlSessions::open(&path).await.unwrap();
    let id = store.create().await.unwrap().session_id;
    let mut long = turn("Everything?");
    long.response.answer = "word ".repeat(100_000);
    for pragma in ["PRAGMA max_page_count = 1", "PRAGMA query_only = 1"] {
        sqlx::query(pragma).execute(&file(&store).writes).await.unwrap();
        assert_unavailable(store.append(id, &long).await, &path);
    }
    assert_eq!(store.get(id).await.unwrap().turn_count, 0);
}

#[tokio::test]
async fn writes_succeed_again_after_a_full_disk_without_reopening() {
    let Some(disk) = SmallDisk::mount(2) else { return };
    let path = disk.path().join("sessions.db");
    let store = SqlSessions::open(&path).await.unwrap();
    let id = store.create().await.unwrap().session_id;
    store.append(id, &turn("before")).await.unwrap();
    for round in 0..3 {
        disk.fill();
        let mut long = turn("too long");
        long.response.answer = "word ".repeat(40_000);
        assert_unavailable(store.append(id, &long).await, &path);
        assert_unavailable(store.append(id, &long).await, &path);
        assert_unavailable(store.check_writable().await, &path);
        assert_eq!(queries(&store, id).await.len(), 1 + round, "reading still works");
        disk.free();
        store.check_writable().await.unwrap();
        store.append(id, &turn(&round.to_string())).await.unwrap();
    }
    assert_eq!(queries(&store, id).await, ["before", "0", "1", "2"]);
}

#[tokio::test]
async fn a_connection_stuck_in_a_transaction_is_replaced() {
    let (_folder, path) = new_path();
    let store = SqlSessions::open(&path).await.unwrap();
    let id = store.create().await.unwrap().session_id;
    let mut transaction = store.database.begin().await.unwrap();
    // SQLite does this by itself when the disk is full.
    transaction.execute("ROLLBACK", &[]).await.unwrap();
    drop(transaction);
    store.append(id, &turn("after")).await.unwrap();
    assert_eq!(queries(&store, id).await, ["after"]);
}

#[tokio::test]
async fn frequent_checks_for_writability_write_only_once() {
    let (_folder, path) = new_path();
    let store = SqlSessions::open(&path).await.unwrap();
    let filler = async || -> String {
        let row = sqlx::query_scalar("SELECT filler FROM write_check");
        row.fetch_one(&file(&store).reads).await.unwrap()
    };
    store.check_writable().await.unwrap();
    let first = filler().await;
    *store.writable.lock().unwrap() = Some(Instant::now() + Duration::from_secs(600));
    store.check_writable().await.unwrap();
    assert_eq!(filler().await, first);
    *store.writable.lock().unwrap() = None;
    store.check_writable().await.unwrap();
    assert_ne!(filler().await, first);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_damaged() {
    let (_folder, path) = new_path();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "These are my holiday plans. ".repeat(500)).unwrap();
    assert_damaged(SqlSessions::open(&path).await, &path);
}

#[tokio::test]
async fn a_corrupt_page_is_damaged() {
    let (_folder, path) = new_path();
    let store = SqlSessions::open(&path).await.unwrap();
    let id = store.create().await.unwrap().session_id;
    for number in 0..20 {
        store.append(id, &turn(&number.to_string())).await.unwrap();
    }
    file(&store).reads.close().await;
    file(&store).writes.close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    // Keep the first page, which has the names of the tables.
    bytes[4096..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    assert_damaged(SqlSessions::open(&path).await, &path);
}

#[tokio::test]
async fn an_unreadable_record_or_row_is_damaged() {
    let (_folder, path) = new_path();
    let store = SqlSessions::open(&path).await.unwrap();
    let id = store.create().await.unwrap().session_id;
    store.append(id, &turn("What is a node?")).await.unwrap();
    for damage in ["UPDATE turns SET record = '{}'", "UPDATE turns SET record = x'ff'"] {
        sqlx::query(damage).execute(&file(&store).writes).await.unwrap();
        assert_damaged(store.turns(id, 1).await, &path);
    }
    for damage in ["UPDATE sessions SET turn_count = -1", "UPDATE sessions SET turn_count = 'many'"] {
        sqlx::query(damage).execute(&file(&store).writes).await.unwrap();
        assert_damaged(store.get(id).await, &path);
        assert_damaged(store.list(10, 0).await, &path);
    }
    sqlx::query("DROP TABLE turns").execute(&file(&store).writes).await.unwrap();
    assert_damaged(store.append(id, &turn("And a topic?")).await, &path);
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_rejected() {
    let (_folder, path) = new_path();
    let store = SqlSessions::open(&path).await.unwrap();
    sqlx::query("UPDATE _sqlx_migrations SET version = version + 98")
        .execute(&file(&store).writes)
        .await
        .unwrap();
    let refused = SqlSessions::open(&path).await;
    assert!(refused.as_ref().unwrap_err().to_string().contains("newer version"), "{refused:?}");
    assert_damaged(refused, &path);
}

#[tokio::test]
async fn examining_a_store_changes_nothing() {
    let (_folder, path) = new_path();
    let place = Place::File(path.clone());
    assert_eq!(SqlSessions::examine(&place).await.unwrap().conversations, 0);
    let tables = "SELECT COUNT(*) FROM sqlite_master";
    let store = SqlSessions::connect(&place, STORE_TIMEOUT).await.unwrap();
    let count: i64 = sqlx::query_scalar(tables).fetch_one(&file(&store).reads).await.unwrap();
    assert_eq!(count, 0, "no table was left behind");
    SqlSessions::open(&path).await.unwrap().create().await.unwrap();
    let examined = SqlSessions::examine(&place).await.unwrap();
    assert_eq!(examined.conversations, 1);
    assert!(examined.server.starts_with("SQLite 3."), "{}", examined.server);
}

#[tokio::test]
async fn the_log_keeps_its_contract() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sessions.sqlite");
    docent_core::testing::turn_log::log_contract(&SqlSessions::open(&file).await.unwrap()).await;
}
