//! Faults, restarts and keys.

use std::time::{Duration, Instant};

use qdrant_client::qdrant::points_client::PointsClient;
use qdrant_client::qdrant::{CountPoints, CountPointsBuilder, UpsertPoints};
use serde_json::json;
use tonic::transport::{Channel, Endpoint};

use super::*;

/// The generated stub: unlike the client, it does not retry.
async fn stub(server: &ScriptedQdrant) -> PointsClient<Channel> {
    let channel = Endpoint::from_shared(server.url()).unwrap().connect().await.unwrap();
    PointsClient::new(channel).max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX)
}

fn upsert(id: u64) -> UpsertPoints {
    UpsertPointsBuilder::new("book", [page(id, &[], &[], json!({}))]).wait(true).build()
}

async fn count(server: &ScriptedQdrant) -> u64 {
    let request = CountPoints { collection_name: "book".to_owned(), ..Default::default() };
    stub(server).await.count(request).await.unwrap().into_inner().result.unwrap().count
}

/// Faults hit the calls they were set for, and no others.
#[tokio::test]
async fn faults_hit_only_the_calls_they_were_set_for() {
    let (server, _client) = start_with_book().await;
    let mut stub = stub(&server).await;
    let mut outcomes = async |calls: u64| {
        let mut outcomes = Vec::new();
        for id in 0..calls {
            outcomes.push(stub.upsert(upsert(id)).await.map_or_else(|status| status.code(), |_| Code::Ok));
        }
        outcomes
    };
    server.fault("Upsert", When::Next(2), Fault::Unavailable);
    server.fault("Points/Delete", When::From(1), Fault::Internal);
    assert_eq!(outcomes(3).await, [Code::Unavailable, Code::Unavailable, Code::Ok]);
    server.heal();
    server.fault("Upsert", When::Every(2), Fault::Internal);
    assert_eq!(outcomes(4).await, [Code::Ok, Code::Internal, Code::Ok, Code::Internal]);
    server.heal();
    server.fault("Upsert", When::From(2), Fault::Status(Code::Aborted, "no".to_owned()));
    assert_eq!(outcomes(3).await, [Code::Ok, Code::Aborted, Code::Aborted]);
    server.heal();
    assert_eq!(outcomes(1).await, [Code::Ok]);
    assert_eq!(server.count("Upsert"), 11);
}

/// When rate-limited, the server says how many seconds to wait, and the client reads it.
#[tokio::test]
async fn a_rate_limit_error_includes_retry_after() {
    let (server, client) = start_with_book().await;
    server.fault("Upsert", When::Next(1), Fault::RateLimited { retry_after: 7 });
    match client.upsert_points(upsert(1)).await {
        Err(QdrantError::ResourceExhaustedError { retry_after_seconds, .. }) => {
            assert_eq!(retry_after_seconds, 7)
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.count("Upsert"), 1);
}

/// The client retries once after `UNAVAILABLE` and `INTERNAL`, on a new connection.
#[tokio::test]
async fn the_client_retries_once() {
    let (server, client) = start_with_book().await;
    server.fault("Upsert", When::Next(1), Fault::Unavailable);
    client.upsert_points(upsert(1)).await.unwrap();
    assert_eq!(server.count("Upsert"), 2);
}

/// If the connection closes before the work, nothing is stored; if it closes afterwards, everything is, and
/// the client cannot tell which. On a deadline, the server has already written the update.
#[tokio::test]
async fn a_closed_connection_hides_whether_the_work_was_done() {
    let (server, _client) = start_with_book().await;
    for (fault, stored) in [(Fault::CutBefore, 0), (Fault::CutAfter, 1), (Fault::Deadline, 2)] {
        server.fault("Upsert", When::Next(1), fault.clone());
        let mut caller = stub(&server).await;
        let mut other = stub(&server).await;
        let lost = caller.upsert(upsert(stored)).await.unwrap_err();
        let expected = if matches!(fault, Fault::Deadline) { Code::DeadlineExceeded } else { lost.code() };
        assert!(lost.code() == expected && lost.code() != Code::Ok, "{lost:?}");
        let request = CountPoints { collection_name: "book".to_owned(), ..Default::default() };
        let count = other.count(request).await.unwrap().into_inner().result.unwrap().count;
        assert_eq!(count, stored, "{fault:?}");
    }
}

/// A slow call does not delay others.
#[tokio::test]
async fn a_slow_call_does_not_delay_others() {
    let (server, _client) = start_with_book().await;
    server.fault("Upsert", When::Next(1), Fault::Slow(Duration::from_millis(100)));
    let began = Instant::now();
    stub(&server).await.upsert(upsert(1)).await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(100));
    server.fault("Upsert", When::Next(1), Fault::Slow(Duration::from_secs(600)));
    let mut slow = stub(&server).await;
    let _waiting = tokio::spawn(async move { slow.upsert(upsert(2)).await });
    while server.count("Upsert") < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(count(&server).await, 1);
}

/// A killed server drops every call and connection at once. After a restart on the same port it has
/// everything it acknowledged, and the same client continues.
#[tokio::test]
async fn a_restart_keeps_acknowledged_data() {
    let (server, client) = start_with_book().await;
    client.upsert_points(upsert(1)).await.unwrap();
    server.fault("Upsert", When::Next(1), Fault::Slow(Duration::from_secs(60)));
    let mut caller = stub(&server).await;
    let waiting = tokio::spawn(async move { caller.upsert(upsert(2)).await });
    while server.count("Upsert") < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.stop();
    let lost = tokio::time::timeout(Duration::from_secs(5), waiting).await.unwrap().unwrap();
    assert!(lost.is_err());
    assert!(Endpoint::from_shared(server.url()).unwrap().connect().await.is_err());
    assert!(client.count(CountPointsBuilder::new("book")).await.is_err());
    let url = server.url();
    server.restart().await.unwrap();
    assert_eq!(server.url(), url);
    assert_eq!(client.count(CountPointsBuilder::new("book")).await.unwrap().result.unwrap().count, 1);
    client.upsert_points(upsert(2)).await.unwrap();
    assert_eq!(count(&server).await, 2);
}

/// A server with a key rejects every call without it, except the health check.
#[tokio::test]
async fn calls_without_the_key_are_rejected() {
    let server = ScriptedQdrant::start_with_key("secret").await.unwrap();
    let stranger = connect(&server);
    stranger.health_check().await.unwrap();
    assert_refused(
        stranger.list_collections().await,
        Code::Unauthenticated,
        "Must provide an API key or an Authorization bearer token",
    );
    let with =
        |key: &str| Qdrant::from_url(&server.url()).api_key(key).skip_compatibility_check().build().unwrap();
    let wrong = with("guess").list_collections().await;
    assert_refused(wrong, Code::Unauthenticated, "Invalid API key or JWT");
    with("secret").list_collections().await.unwrap();
}

/// The server has no limit on message size: 40 MB fit into one message.
#[tokio::test]
async fn large_messages_are_accepted() {
    let (server, _client) = start_with_book().await;
    let text = "x".repeat(40 << 20);
    let mut request = upsert(1);
    request.points = vec![page(1, &[], &[], json!({"text": text}))];
    stub(&server).await.upsert(request).await.unwrap();
    assert_eq!(count(&server).await, 1);
}
