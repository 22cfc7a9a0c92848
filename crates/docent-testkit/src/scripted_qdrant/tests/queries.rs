//! Dense and sparse queries.

use qdrant_client::qdrant::{
    Condition, Filter, Fusion, PrefetchQueryBuilder, Query, QueryBatchPointsBuilder, QueryPoints,
    QueryPointsBuilder, SearchPointsBuilder, VectorInput,
};
use serde_json::json;

use super::*;

async fn ask(client: &Qdrant, query: QueryPointsBuilder) -> Vec<(String, f32)> {
    scores(&client.query(query).await.unwrap().result)
}

fn hits<const N: usize>(expected: [(&str, f32); N]) -> Vec<(String, f32)> {
    expected.map(|(id, score)| (id.to_owned(), score)).to_vec()
}

fn dense(vector: &[f32]) -> QueryPointsBuilder {
    QueryPointsBuilder::new("book").query(vector.to_vec()).using("meaning")
}

fn sparse(vector: &[(u32, f32)]) -> QueryPointsBuilder {
    QueryPointsBuilder::new("book").query(vector.to_vec()).using("words")
}

async fn start_with_three() -> (ScriptedQdrant, Qdrant) {
    let (server, client) = start_with_book().await;
    put(
        &client,
        vec![
            page(1, &[1.0, 0.0], &[(1, 1.0), (2, 2.0)], json!({"lang": "de"})),
            page(2, &[3.0, 4.0], &[(2, 1.0)], json!({"lang": "en"})),
            page(3, &[0.0, -2.0], &[(7, 1.0)], json!({"lang": "de"})),
            page(4, &[], &[], json!({"lang": "de"})),
        ],
    )
    .await;
    (server, client)
}

/// Results are ordered by cosine similarity, regardless of vector length; points without the vector are not
/// returned. Payload and vectors are omitted unless requested.
#[tokio::test]
async fn dense_queries_find_the_nearest() {
    let (_server, client) = start_with_three().await;
    let all = hits([("1", 1.0), ("2", 0.6), ("3", 0.0)]);
    assert_eq!(ask(&client, dense(&[9.0, 0.0])).await, all);
    assert_eq!(ask(&client, dense(&[9.0, 0.0]).limit(1).offset(1)).await, all[1..2]);
    assert_eq!(ask(&client, dense(&[9.0, 0.0]).score_threshold(0.5)).await, all[..2]);
    let german = Filter::must([Condition::matches("lang", "de".to_owned())]);
    assert_eq!(ask(&client, dense(&[9.0, 0.0]).filter(german)).await, hits([("1", 1.0), ("3", 0.0)]));
    let bare = client.query(dense(&[1.0, 0.0])).await.unwrap().result.remove(0);
    assert!(bare.payload.is_empty() && bare.vectors.is_none());
    let full = client
        .query(dense(&[1.0, 0.0]).with_payload(true).with_vectors(true))
        .await
        .unwrap()
        .result
        .remove(0);
    assert!(!full.payload.is_empty() && full.vectors.is_some());
}

/// For Euclidean and Manhattan spaces the score is a distance: smaller is better, and the threshold is an
/// upper bound.
#[tokio::test]
async fn scores_follow_the_distance_of_the_collection() {
    let (_server, client) = start().await;
    for (distance, expected) in [
        (Distance::Dot, [("2", 8.0), ("1", 2.0)]),
        (Distance::Euclid, [("1", 1.0), ("2", 3.606)]),
        (Distance::Manhattan, [("1", 1.0), ("2", 5.0)]),
    ] {
        let name = format!("{distance:?}");
        let config =
            CreateCollectionBuilder::new(&name).vectors_config(VectorParamsBuilder::new(2, distance));
        client.create_collection(config).await.unwrap();
        let points = [(1, vec![1.0, 0.0]), (2, vec![4.0, 3.0])];
        let points = points.map(|(id, vector)| PointStruct::new(id, vector, Payload::new()));
        client.upsert_points(UpsertPointsBuilder::new(&name, points).wait(true)).await.unwrap();
        let query = || QueryPointsBuilder::new(&name).query(vec![2.0, 0.0]);
        assert_eq!(ask(&client, query()).await, hits(expected));
        let threshold = (expected[0].1 + expected[1].1) / 2.0;
        assert_eq!(ask(&client, query().score_threshold(threshold)).await, hits([expected[0]]));
    }
}

/// Only points that share an index with the query are returned. A rare index weighs more: ln(1 + (N - n +
/// 0.5) / (n + 0.5)), where N counts the points that have the vector, filtered or not.
#[tokio::test]
async fn sparse_queries_give_rare_indices_more_weight() {
    let (_server, client) = start_with_three().await;
    let idf = |n: f32| (1.0 + (3.0 - n + 0.5) / (n + 0.5)).ln();
    let round = |score: f32| (score * 1000.0).round() / 1000.0;
    let expected = hits([("1", round(idf(1.0) + 2.0 * idf(2.0))), ("2", round(idf(2.0)))]);
    assert_eq!(ask(&client, sparse(&[(2, 1.0), (1, 1.0)])).await, expected);
    let german = Filter::must([Condition::matches("lang", "de".to_owned())]);
    assert_eq!(ask(&client, sparse(&[(2, 1.0), (1, 1.0)]).filter(german)).await, expected[..1]);
    assert_eq!(ask(&client, sparse(&[(99, 1.0)])).await, []);
}

/// One batch is one round trip, with a result for each query in order.
#[tokio::test]
async fn a_batch_is_one_round_trip() {
    let (server, client) = start_with_three().await;
    server.forget_calls();
    let queries = vec![dense(&[0.0, 1.0]).limit(1).build(), sparse(&[(7, 1.0)]).build()];
    let batch = client.query_batch(QueryBatchPointsBuilder::new("book", queries)).await.unwrap().result;
    assert_eq!(batch.iter().map(|one| name(&one.result[0].id)).collect::<Vec<_>>(), ["2", "3"]);
    assert_eq!(server.calls(), [("Points/QueryBatch", "book".to_owned())]);
}

/// Every query of a batch must name a collection, although only the name of the batch is used.
#[tokio::test]
async fn every_query_of_a_batch_needs_a_collection_name() {
    let (_server, client) = start_with_three().await;
    let ask = async |inner: &str| {
        let query = QueryPoints { collection_name: inner.to_owned(), ..dense(&[0.0, 1.0]).build() };
        client.query_batch(QueryBatchPointsBuilder::new("book", vec![query])).await
    };
    ask("elsewhere").await.unwrap();
    assert_refused(
        ask("").await,
        Code::InvalidArgument,
        "Validation error in body: [query_points[0].collection_name: value \"\" invalid, must be from 1 to \
         255 characters]",
    );
}

/// A point can be used as the query and is then excluded from the results; without a query, points are
/// ordered by id.
#[tokio::test]
async fn a_query_by_id_excludes_the_point_itself() {
    let (_server, client) = start_with_three().await;
    let like = |id: u64| QueryPointsBuilder::new("book").query(VectorInput::from(id)).using("meaning");
    assert_eq!(ask(&client, like(1)).await, hits([("2", 0.6), ("3", 0.0)]));
    let missing = client.query(like(9)).await;
    assert_refused(missing, Code::NotFound, "Not found: No point with id 9 found");
    let bare = client.query(like(4)).await;
    assert_refused(bare, Code::NotFound, "Not found: Vector with name \"meaning\" for point not found");
    assert_eq!(ask(&client, QueryPointsBuilder::new("book").limit(2)).await, hits([("1", 1.0), ("2", 1.0)]));
}

/// Names, widths and kinds of vectors must match the collection.
#[tokio::test]
async fn queries_must_match_the_collection() {
    let (_server, client) = start_with_three().await;
    let refused = async |query: QueryPointsBuilder, message: &str| {
        assert_refused(client.query(query).await, Code::InvalidArgument, message);
    };
    refused(dense(&[1.0]), "Wrong input: Vector dimension error: expected dim: 2, got 1").await;
    refused(dense(&[1.0, 0.0]).using("title"), "Wrong input: Not existing vector name error: title").await;
    let unnamed = QueryPointsBuilder::new("book").query(vec![1.0, 0.0]);
    refused(unnamed, "Wrong input: Not existing vector name error: ").await;
    let mixed = "Wrong input: Conversion between sparse and regular vectors failed";
    refused(dense(&[1.0, 0.0]).using("words"), mixed).await;
    refused(sparse(&[(1, 1.0)]).using("meaning"), mixed).await;
    refused(
        dense(&[1.0, 0.0]).limit(0),
        "Validation error in body: [limit: value 0 invalid, must be 1 or larger]",
    )
    .await;
}

/// Unsupported calls fail with their name instead of a wrong result.
#[tokio::test]
async fn unsupported_calls_fail_with_their_name() {
    let (server, client) = start_with_three().await;
    let search = client.search_points(SearchPointsBuilder::new("book", vec![1.0, 0.0], 1)).await;
    assert_refused(search, Code::Unimplemented, "the scripted Qdrant does not support Points/Search");
    assert_eq!(server.count("Search"), 1);
    let fused = QueryPointsBuilder::new("book")
        .add_prefetch(PrefetchQueryBuilder::default().query(vec![1.0, 0.0]).using("meaning"))
        .query(Query::new_fusion(Fusion::Rrf));
    assert_eq!(refusal(client.query(fused).await).code(), Code::Unimplemented);
}
