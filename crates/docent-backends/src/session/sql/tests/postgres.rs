//! Tests with a real PostgreSQL: the contract, several stores on one database, and server failures. Each test
//! starts its own server, so there are only a few.

use docent_core::testing::turn_log::log_contract;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::copy::{assert_same, copy_contract};
use super::*;
use crate::session::sql::postgres::CONNECTIONS;
use docent_testkit::postgres::{PASSWORD, Postgres};

async fn store_at(url: &str) -> SqlSessions {
    SqlSessions::open_at(&place_of(url)).await.unwrap()
}

fn place_of(url: &str) -> Place {
    Place::Postgres(Address::parse(&url.into()).unwrap())
}

fn name_of(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

#[tokio::test]
async fn postgres_keeps_the_contracts() {
    let Some(postgres) = Postgres::start() else { return };
    session_contract(async || Arc::new(store_at(&postgres.database()).await) as Arc<dyn SessionStore>).await;
    log_contract(&store_at(&postgres.database()).await).await;

    let (folder, _) = new_path();
    let copied = store_at(&postgres.database()).await;
    copy_contract(&SqlSessions::open(&folder.path().join("one")).await.unwrap(), &copied).await;
    let back = SqlSessions::open(&folder.path().join("two")).await.unwrap();
    back.copy_from(&copied).await.unwrap();
    assert_same(&back, &copied).await;
    copy_contract(&store_at(&postgres.database()).await, &store_at(&postgres.database()).await).await;

    the_database_can_be_shared(&postgres).await;
    examining_a_store_changes_no_database(&postgres).await;
    damage_is_distinguished_from_unavailability(&postgres).await;
}

/// Other programs may have a table called `sessions`, too.
async fn the_database_can_be_shared(postgres: &Postgres) {
    let url = postgres.database();
    postgres.sql(name_of(&url), "CREATE TABLE sessions (x int); CREATE TABLE _sqlx_migrations (x int)");
    let store = store_at(&url).await;
    store.create().await.unwrap();
    assert_eq!(postgres.sql(name_of(&url), "SELECT count(*) FROM public.sessions"), "0");
    assert_eq!(postgres.sql(name_of(&url), "SELECT count(*) FROM docent.sessions"), "1");

    // A user without the right to create a schema can use the tables.
    postgres.sql(
        name_of(&url),
        "CREATE ROLE reader LOGIN PASSWORD 'reads'; GRANT ALL ON SCHEMA docent TO reader;
         GRANT ALL ON ALL TABLES IN SCHEMA docent TO reader",
    );
    let reader = store_at(&url.replace(&format!("docent:{PASSWORD}"), "reader:reads")).await;
    assert_eq!(reader.list(10, 0).await.unwrap().len(), 1);
}

async fn examining_a_store_changes_no_database(postgres: &Postgres) {
    let url = postgres.database();
    let examined = SqlSessions::examine(&place_of(&url)).await.unwrap();
    assert_eq!(examined.conversations, 0);
    assert!(examined.server.starts_with("PostgreSQL "), "{}", examined.server);
    assert_eq!(
        postgres.sql(name_of(&url), "SELECT count(*) FROM pg_namespace WHERE nspname = 'docent'"),
        "0"
    );
    store_at(&url).await.create().await.unwrap();
    assert_eq!(SqlSessions::examine(&place_of(&url)).await.unwrap().conversations, 1);
}

async fn damage_is_distinguished_from_unavailability(postgres: &Postgres) {
    let url = postgres.database();
    let (store, name) = (store_at(&url).await, name_of(&url));
    let id = store.create().await.unwrap().session_id;
    store.append(id, &turn("What is a node?")).await.unwrap();
    let is_damaged = |result: Result<Vec<Turn>, SessionError>| match result {
        Err(SessionError::Damaged(message)) => assert!(message.contains(name), "{message}"),
        other => panic!("expected damage, got {other:?}"),
    };
    postgres.sql(name, "UPDATE docent.turns SET record = '{}'");
    is_damaged(store.turns(id, 1).await);
    postgres.sql(name, "DROP TABLE docent.turns");
    is_damaged(store.turns(id, 1).await);
    postgres.sql(name, "UPDATE docent._sqlx_migrations SET version = version + 98");
    let newer = SqlSessions::open_at(&place_of(&url)).await.unwrap_err();
    assert!(matches!(&newer, SessionError::Damaged(message) if message.contains("newer version")), "{newer}");

    let elsewhere = SqlSessions::open_at(&place_of(&format!("{url}-not"))).await.unwrap_err();
    assert!(matches!(elsewhere, SessionError::Unavailable(_)), "{elsewhere}");
    assert!(!elsewhere.to_string().contains(PASSWORD), "{elsewhere}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_stores_share_a_database() {
    let Some(postgres) = Postgres::start() else { return };
    let url = postgres.database();
    // Another default isolation level must not matter.
    let strict = "ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'";
    postgres.sql("postgres", &strict.replacen("postgres", name_of(&url), 1));

    // If many stores open a new database at once, one creates the tables.
    let openings: Vec<_> = (0..6)
        .map(|_| {
            let place = place_of(&url);
            tokio::spawn(async move { Arc::new(SqlSessions::open_at(&place).await.unwrap()) })
        })
        .collect();
    let mut stores = Vec::new();
    for opening in openings {
        stores.push(opening.await.unwrap());
    }

    let (busy, noisy) =
        (stores[0].create().await.unwrap().session_id, stores[0].create().await.unwrap().session_id);
    let writers: Vec<_> = stores
        .iter()
        .map(|store| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..20 {
                    let turn = turn(&Uuid::new_v4().to_string());
                    store.append(busy, &turn).await.unwrap();
                    assert!(queries(&store, busy).await.contains(&turn.query), "the turn was written");
                    store.append(noisy, &turn).await.unwrap();
                    store.reset(noisy).await.unwrap();
                    store.rename(noisy, "Noise").await.unwrap();
                    let brief = store.create().await.unwrap().session_id;
                    store.append(brief, &turn).await.unwrap();
                    store.delete(brief).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let all = queries(&stores[0], busy).await;
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 120);
    assert_eq!(stores[1].get(busy).await.unwrap().turn_count, 120);
    for store in &stores {
        assert_eq!(queries(store, busy).await, all);
    }
    let numbers =
        "SELECT count(*) = max(turn_number) FROM docent.turns t WHERE generation = 0 AND turn_number > 0
        AND session_id = ";
    assert_eq!(postgres.sql(name_of(&url), &format!("{numbers} '{busy}'")), "t");

    // The most recently used session is listed first in every store.
    for number in 0..12 {
        let id = [busy, noisy][number % 2];
        stores[number % 6].append(id, &turn("Me?")).await.unwrap();
        assert_eq!(stores[(number + 1) % 6].list(1, 0).await.unwrap()[0].session_id, id);
    }

    a_writer_that_waited_counts_as_the_most_recent(&postgres, &url, &stores[0]).await;
    a_collision_is_retried(&postgres, &url, &stores[0]).await;
}

async fn a_writer_that_waited_counts_as_the_most_recent(postgres: &Postgres, url: &str, store: &SqlSessions) {
    let id = store.create().await.unwrap().session_id;
    let other = store.create().await.unwrap().session_id;
    let pool = sqlx::PgPool::connect(url).await.unwrap();
    let mut elsewhere = pool.begin().await.unwrap();
    let uses = format!(
        "UPDATE docent.sessions SET last_use = CASE session_id WHEN '{id}' THEN 2000 ELSE 1999 END
         WHERE session_id IN ('{id}', '{other}')"
    );
    sqlx::raw_sql(AssertSqlSafe(uses)).execute(&mut *elsewhere).await.unwrap();
    let question = turn("Last?");
    let appending = store.append(id, &question);
    let letting = async {
        while postgres.sql("postgres", "SELECT count(*) FROM pg_locks WHERE NOT granted") == "0" {
            tokio::task::yield_now().await;
        }
        elsewhere.commit().await.unwrap();
    };
    tokio::join!(async { appending.await.unwrap() }, letting);
    let order: Vec<Uuid> = store.list(2, 0).await.unwrap().iter().map(|session| session.session_id).collect();
    assert_eq!(order, [id, other]);
}

async fn a_collision_is_retried(postgres: &Postgres, url: &str, store: &SqlSessions) {
    // The next four inserts collide; a sequence is not rolled back.
    let trigger = "
        CREATE SEQUENCE docent.collisions;
        CREATE FUNCTION docent.collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('docent.collisions') <= 4 THEN RAISE EXCEPTION 'again' USING ERRCODE = '40P01'; END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER collide BEFORE INSERT ON docent.turns FOR EACH ROW EXECUTE FUNCTION docent.collide()";
    let id = store.create().await.unwrap().session_id;
    postgres.sql(name_of(url), trigger);
    store.append(id, &turn("Once?")).await.unwrap();
    assert_eq!(queries(store, id).await, ["Once?"]);
    assert_eq!(postgres.sql(name_of(url), "SELECT last_value FROM docent.collisions"), "5");

    // After five attempts the write fails, and nothing was written.
    postgres.sql(name_of(url), "ALTER SEQUENCE docent.collisions MINVALUE -100 RESTART -100");
    let error = store.append(id, &turn("Never?")).await.unwrap_err();
    assert!(matches!(error, SessionError::Unavailable(_)), "{error}");
    assert_eq!((queries(store, id).await.len(), store.get(id).await.unwrap().turn_count), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_recovers_after_the_server_was_unreachable() {
    let Some(mut postgres) = Postgres::start() else { return };
    let url = postgres.database();
    let line = Line::to(postgres.port()).await;
    let store = store_at(&url).await;
    let distant =
        store_at(&url.replace(&format!(":{}/", postgres.port()), &format!(":{}/", line.port))).await;
    let id = store.create().await.unwrap().session_id;
    store.append(id, &turn("one")).await.unwrap();
    distant.append(id, &turn("two")).await.unwrap();

    let lost = turn("lost");

    // The network freezes while all connections are in use and while a new one is needed.
    let mut begun = Vec::new();
    for _ in 0..CONNECTIONS {
        begun.push(distant.database.begin().await.unwrap());
    }
    line.freeze(true);
    let working = begun.into_iter().map(|mut work| async move { work.execute(COUNT_SESSIONS, &[]).await });
    let (working, append, list) = tokio::join!(
        in_time(futures_util::future::join_all(working)),
        in_time(distant.append(id, &lost)),
        in_time(distant.list(1, 0)),
    );
    for worked in working {
        assert_unavailable_without_password(worked.map_err(|error| distant.error(&error)));
    }
    assert_unavailable_without_password(append);
    assert_unavailable_without_password(list);
    line.freeze(false);
    in_time(distant.append(id, &turn("three"))).await.unwrap();

    // The server is killed in the middle of a conversation.
    postgres.kill();
    let (append, list, open) = tokio::join!(
        in_time(store.append(id, &lost)),
        in_time(store.list(1, 0)),
        in_time(async { SqlSessions::open_at(&place_of(&url)).await }),
    );
    assert_unavailable_without_password(append);
    assert_unavailable_without_password(list);
    let reason = assert_unavailable_without_password(open);
    assert!(reason.contains("refused"), "{reason}");
    postgres.restart();
    in_time(store.append(id, &turn("four"))).await.unwrap();
    assert_eq!(queries(&store, id).await, ["one", "two", "three", "four"]);
    assert_eq!(store.get(id).await.unwrap().turn_count, 4);

    // A wrong password is reported without repeating it.
    let wrong = url.replace(PASSWORD, "not-the-swordfish");
    let refused = in_time(async { SqlSessions::open_at(&place_of(&wrong)).await }).await;
    assert!(!format!("{refused:?}").contains("not-the-swordfish"), "{refused:?}");
    assert!(assert_unavailable_without_password(refused).contains("password authentication failed"));
    for shown in [format!("{store:?}"), format!("{:?}", place_of(&url)), place_of(&url).to_string()] {
        assert!(!shown.contains(PASSWORD), "{shown}");
    }
}

/// Waits as long as a user might.
async fn in_time<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(12), call).await.expect("an answer within seconds")
}

#[track_caller]
fn assert_unavailable_without_password<T: fmt::Debug>(result: Result<T, SessionError>) -> String {
    match result {
        Err(SessionError::Unavailable(message)) => {
            assert!(!message.contains(PASSWORD), "{message}");
            message
        }
        other => panic!("expected an unavailable store, got {other:?}"),
    }
}

/// A connection to a server that can be frozen; data in transit is lost then.
struct Line {
    port: u16,
    frozen: watch::Sender<bool>,
}

impl Line {
    async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (frozen, is_frozen) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut frozen = is_frozen.clone();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                    tokio::select! {
                        biased;
                        () = async { drop(frozen.wait_for(|frozen| *frozen).await) } => std::future::pending().await,
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    }
                });
            }
        });
        Self { port, frozen }
    }

    fn freeze(&self, frozen: bool) {
        self.frozen.send(frozen).unwrap();
    }
}
