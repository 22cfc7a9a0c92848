//! Writing, reading and counting points.

use qdrant_client::qdrant::vector_output;
use qdrant_client::qdrant::vectors_output::VectorsOptions;
use qdrant_client::qdrant::{Condition, CountPointsBuilder};
use qdrant_client::qdrant::{
    CreateFieldIndexCollectionBuilder, DeletePointsBuilder, FacetCountsBuilder, FieldType, Filter, GetPoints,
    GetPointsBuilder, PayloadExcludeSelector, PayloadIncludeSelector, PointsIdsList, RetrievedPoint,
    ScrollPointsBuilder, SetPayloadPointsBuilder, SparseIndices, UpdateMode, UpdateStatus, Vectors,
    VectorsSelector, facet_value, with_payload_selector,
};
use serde_json::json;
use uuid::Uuid;

use super::*;

async fn get(client: &Qdrant, collection: &str, id: u64) -> RetrievedPoint {
    let request =
        GetPointsBuilder::new(collection, vec![id.into()]).with_payload(true).with_vectors(true).build();
    client.get_points(request).await.unwrap().result.remove(0)
}

fn payload_of(point: RetrievedPoint) -> Value {
    super::super::payload::from_wire(point.payload).unwrap().into()
}

async fn count(client: &Qdrant) -> u64 {
    client.count(CountPointsBuilder::new("book").exact(true)).await.unwrap().result.unwrap().count
}

/// Points are returned as stored: payloads of any shape, dense vectors normalized in a cosine space, sparse
/// ones sorted; vectors that were not sent are absent.
#[tokio::test]
async fn a_point_is_returned_as_stored() {
    let (_server, client) = start_with_book().await;
    let payload = json!({"n": 1, "x": 1.0, "deep": {"list": [1, "two", null, true]}, "none": null});
    put(
        &client,
        vec![page(1, &[3.0, 4.0], &[(9, 1.0), (2, 0.5)], payload.clone()), page(2, &[], &[], json!({}))],
    )
    .await;
    let point = get(&client, "book", 1).await;
    let Some(VectorsOptions::Vectors(named)) = point.vectors.clone().unwrap().vectors_options else {
        panic!("unnamed")
    };
    let Some(vector_output::Vector::Dense(dense)) = &named.vectors["meaning"].vector else { panic!() };
    assert_eq!(dense.data, [0.6, 0.8]);
    let Some(vector_output::Vector::Sparse(sparse)) = &named.vectors["words"].vector else { panic!() };
    assert_eq!((&sparse.indices[..], &sparse.values[..]), (&[2, 9][..], &[0.5, 1.0][..]));
    assert_eq!(payload_of(point), payload);
    let Some(VectorsOptions::Vectors(none)) = get(&client, "book", 2).await.vectors.unwrap().vectors_options
    else {
        panic!("unnamed")
    };
    assert!(none.vectors.is_empty());
}

/// The deprecated vector fields mean the same as the new ones; an unnamed vector is returned without a name,
/// and a sparse one must have a name.
#[tokio::test]
#[allow(deprecated, reason = "they are what is tested")]
async fn deprecated_vector_fields_are_accepted() {
    let (_server, client) = start_with_book().await;
    let plain =
        CreateCollectionBuilder::new("plain").vectors_config(VectorParamsBuilder::new(2, Distance::Dot));
    client.create_collection(plain).await.unwrap();
    let old = Vector { data: vec![3.0, 4.0], ..Default::default() };
    let point = PointStruct::new(1, Vectors::from(old), Payload::new());
    client.upsert_points(UpsertPointsBuilder::new("plain", [point]).wait(true)).await.unwrap();
    let Some(VectorsOptions::Vector(unnamed)) =
        get(&client, "plain", 1).await.vectors.unwrap().vectors_options
    else {
        panic!("named")
    };
    assert_eq!(unnamed.vector, Some(vector_output::Vector::Dense(vec![3.0, 4.0].into())));
    let old = Vector {
        data: vec![1.0, 2.0],
        indices: Some(SparseIndices { data: vec![8, 5] }),
        ..Default::default()
    };
    let vectors = NamedVectors { vectors: HashMap::from([("words".to_owned(), old.clone())]) };
    put(&client, vec![PointStruct::new(1, vectors, Payload::new())]).await;
    let unnamed = PointStruct::new(1, Vectors::from(old), Payload::new());
    let refused = client.upsert_points(UpsertPointsBuilder::new("plain", [unnamed]).wait(true)).await;
    assert_refused(refused, Code::InvalidArgument, "Sparse vector must be named");
}

/// A wrong width is detected before anything is written, so it is rejected even without `wait`, and nothing
/// of the request is stored. A message without `vectors` is rejected; an empty map is not.
#[tokio::test]
async fn wrong_widths_are_always_rejected() {
    let (_server, client) = start_with_book().await;
    for wait in [true, false] {
        let points = vec![page(1, &[1.0, 0.0], &[], json!({})), page(2, &[1.0], &[], json!({}))];
        assert_refused(
            client.upsert_points(UpsertPointsBuilder::new("book", points).wait(wait)).await,
            Code::InvalidArgument,
            "Wrong input: Vector dimension error: expected dim: 2, got 1 for vector 'meaning'",
        );
    }
    assert_eq!(count(&client).await, 0);
    let plain =
        CreateCollectionBuilder::new("plain").vectors_config(VectorParamsBuilder::new(2, Distance::Dot));
    client.create_collection(plain).await.unwrap();
    let point = PointStruct::new(1, vec![1.0], Payload::new());
    assert_refused(
        client.upsert_points(UpsertPointsBuilder::new("plain", [point])).await,
        Code::InvalidArgument,
        "Wrong input: Vector dimension error: expected dim: 2, got 1",
    );
    let bare = PointStruct { id: Some(1.into()), ..Default::default() };
    let refused = client.upsert_points(UpsertPointsBuilder::new("book", [bare])).await;
    assert_refused(refused, Code::InvalidArgument, "Expected some vectors");
}

/// An unknown vector name is detected only while the request is applied: with `wait` it is an error; without,
/// the client gets an acknowledgement for a point that is never stored.
#[tokio::test]
async fn an_unknown_vector_name_is_an_error_only_with_wait() {
    let (_server, client) = start_with_book().await;
    let point = || {
        let vectors = HashMap::from([("title".to_owned(), vec![1.0_f32, 0.0])]);
        PointStruct::new(1, Vectors::from(vectors), Payload::new())
    };
    assert_refused(
        client.upsert_points(UpsertPointsBuilder::new("book", [point()]).wait(true)).await,
        Code::InvalidArgument,
        "Wrong input: Not existing vector name error: title",
    );
    let unnamed = PointStruct::new(1, vec![1.0, 0.0], Payload::new());
    assert_refused(
        client.upsert_points(UpsertPointsBuilder::new("book", [unnamed]).wait(true)).await,
        Code::InvalidArgument,
        "Wrong input: Not existing vector name error: ",
    );
    let answer = client.upsert_points(UpsertPointsBuilder::new("book", [point()])).await.unwrap();
    assert_eq!(answer.result.unwrap().status(), UpdateStatus::Acknowledged);
    assert_eq!(count(&client).await, 0);
}

/// Sparse vectors have unique indices and as many values as indices; ids are numbers or UUIDs; a request
/// without points is rejected.
#[tokio::test]
async fn malformed_points_are_rejected() {
    let (_server, client) = start_with_book().await;
    let send = async |points| refusal(client.upsert_points(UpsertPointsBuilder::new("book", points)).await);
    let twice = send(vec![page(1, &[], &[(3, 1.0), (3, 2.0)], json!({}))]).await;
    assert_eq!(twice.code(), Code::InvalidArgument);
    assert!(twice.message().ends_with(".indices: must be unique]"), "{twice:?}");
    let no_uuid = send(vec![page("first", &[], &[], json!({}))]).await;
    assert_eq!((no_uuid.code(), no_uuid.message()), (Code::InvalidArgument, "Unable to parse UUID: first"));
    let empty = send(vec![]).await;
    assert_eq!((empty.code(), empty.message()), (Code::InvalidArgument, "Bad request: Empty update request"));
}

/// A second upsert replaces the whole point including its payload; of two in one request, the last wins.
/// Modes and a filter restrict which points an upsert writes.
#[tokio::test]
async fn an_upsert_replaces_the_whole_point() {
    let (_server, client) = start_with_book().await;
    put(&client, vec![page(1, &[1.0, 0.0], &[(1, 1.0)], json!({"a": 1, "b": 1}))]).await;
    put(&client, vec![page(1, &[], &[], json!({"a": 2})), page(1, &[0.0, 1.0], &[], json!({"a": 3}))]).await;
    let point = get(&client, "book", 1).await;
    assert_eq!(payload_of(point), json!({"a": 3}));
    let put_with = async |mode, points| {
        let request = UpsertPointsBuilder::new("book", points).wait(true).update_mode(mode);
        client.upsert_points(request).await.unwrap();
    };
    put_with(UpdateMode::InsertOnly, vec![page(1, &[], &[], json!({"a": 4})), page(2, &[], &[], json!({}))])
        .await;
    put_with(UpdateMode::UpdateOnly, vec![page(2, &[], &[], json!({"a": 5})), page(3, &[], &[], json!({}))])
        .await;
    let only_three = Filter::must([Condition::matches("a", 3)]);
    let request = UpsertPointsBuilder::new(
        "book",
        vec![page(1, &[], &[], json!({"a": 6})), page(2, &[], &[], json!({"a": 6}))],
    );
    client.upsert_points(request.wait(true).update_filter(only_three)).await.unwrap();
    assert_eq!(payload_of(get(&client, "book", 1).await), json!({"a": 6}));
    assert_eq!(payload_of(get(&client, "book", 2).await), json!({"a": 5}));
    assert_eq!(count(&client).await, 2);
}

/// Deleting by id or filter does not report a count; missing ids are fine. Getting skips missing ids and
/// keeps the requested order.
#[tokio::test]
async fn points_are_deleted_by_id_and_by_filter() {
    let (_server, client) = start_with_book().await;
    put(&client, (1..=5_u64).map(|id| page(id, &[], &[], json!({"even": id % 2 == 0}))).collect()).await;
    let ids = PointsIdsList { ids: vec![1.into(), 99.into()] };
    client.delete_points(DeletePointsBuilder::new("book").points(ids).wait(true)).await.unwrap();
    let even = Filter::must([Condition::matches("even", true)]);
    client.delete_points(DeletePointsBuilder::new("book").points(even).wait(true)).await.unwrap();
    let ids = vec![5.into(), 4.into(), 3.into()];
    let left = client.get_points(GetPointsBuilder::new("book", ids)).await.unwrap().result;
    assert_eq!(left.iter().map(|point| name(&point.id)).collect::<Vec<_>>(), ["5", "3"]);
    assert!(left[0].vectors.is_none());
}

/// Setting merges into the payload, at a key if one is given, and null removes a key; overwriting replaces
/// all of it. A missing point is an error with `wait`.
#[tokio::test]
async fn payloads_are_set_and_overwritten() {
    let (_server, client) = start_with_book().await;
    put(&client, vec![page(1, &[], &[], json!({"a": 1, "b": {"c": 1}}))]).await;
    let change = |payload| {
        let ids = PointsIdsList { ids: vec![1.into()] };
        SetPayloadPointsBuilder::new("book", fields(payload)).points_selector(ids).wait(true)
    };
    client.set_payload(change(json!({"a": null, "d": 2}))).await.unwrap();
    client.set_payload(change(json!({"e": 3})).key("b")).await.unwrap();
    assert_eq!(payload_of(get(&client, "book", 1).await), json!({"b": {"c": 1, "e": 3}, "d": 2}));
    client.overwrite_payload(change(json!({"new": true}))).await.unwrap();
    assert_eq!(payload_of(get(&client, "book", 1).await), json!({"new": true}));
    let missing = SetPayloadPointsBuilder::new("book", fields(json!({"a": 1})))
        .points_selector(PointsIdsList { ids: vec![7.into()] })
        .wait(true);
    let refused = client.set_payload(missing).await;
    assert_refused(refused, Code::NotFound, "Not found: No point with id 7 found");
}

/// Pages follow each other by id, numbers before UUIDs, ten per page by default; the offset is the first id
/// of the next page, and absent after the last page. Payloads are included by default, vectors only on
/// request.
#[tokio::test]
async fn scrolling_returns_all_points_in_order() {
    let (_server, client) = start_with_book().await;
    let uuids = [Uuid::from_u128(9), Uuid::from_u128(3)];
    let mut points: Vec<_> =
        (1..=11_u64).rev().map(|id| page(id, &[1.0, 0.0], &[], json!({"n": id}))).collect();
    points.extend(uuids.map(|uuid| page(uuid.to_string(), &[], &[], json!({}))));
    put(&client, points).await;
    let first = client.scroll(ScrollPointsBuilder::new("book")).await.unwrap();
    assert_eq!(first.result.len(), 10);
    assert!(!first.result[0].payload.is_empty() && first.result[0].vectors.is_none());
    assert_eq!(name(&first.next_page_offset), "11");
    let request = ScrollPointsBuilder::new("book").offset(first.next_page_offset.unwrap()).limit(3);
    let last = client.scroll(request).await.unwrap();
    let ids: Vec<_> = last.result.iter().map(|point| name(&point.id)).collect();
    assert_eq!(ids, ["11".to_owned(), uuids[1].to_string(), uuids[0].to_string()]);
    assert!(last.next_page_offset.is_none());
    let refused = client.scroll(ScrollPointsBuilder::new("book").limit(0)).await;
    assert_refused(
        refused,
        Code::InvalidArgument,
        "Validation error in body: [limit: value 0 invalid, must be 1 or larger]",
    );
}

/// Selectors include or exclude parts of the payload by path, and select vectors by name.
#[tokio::test]
async fn selectors_limit_what_is_returned() {
    let (_server, client) = start_with_book().await;
    let payload = json!({"a": {"b": 1, "c": 2}, "list": [{"x": 1, "y": 2}], "d": 3});
    put(&client, vec![page(1, &[1.0, 0.0], &[(1, 1.0)], payload)]).await;
    let show = async |selector: with_payload_selector::SelectorOptions| {
        let request = GetPoints {
            with_payload: Some(selector.into()),
            ..GetPointsBuilder::new("book", vec![1.into()]).build()
        };
        payload_of(client.get_points(request).await.unwrap().result.remove(0))
    };
    let fields = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    let only = PayloadIncludeSelector { fields: fields(&["a.b", "list[].y"]) };
    assert_eq!(show(only.into()).await, json!({"a": {"b": 1}, "list": [{"y": 2}]}));
    let without = PayloadExcludeSelector { fields: fields(&["a.b", "list"]) };
    assert_eq!(show(without.into()).await, json!({"a": {"c": 2}, "d": 3}));
    let named = |names: &[&str]| VectorsSelector { names: fields(names) };
    let request = ScrollPointsBuilder::new("book").with_payload(false).with_vectors(named(&["words"]));
    let point = client.scroll(request).await.unwrap().result.remove(0);
    let Some(VectorsOptions::Vectors(vectors)) = point.vectors.unwrap().vectors_options else { panic!() };
    assert_eq!(vectors.vectors.into_keys().collect::<Vec<_>>(), ["words"]);
    assert!(point.payload.is_empty());
    let unknown = client.scroll(ScrollPointsBuilder::new("book").with_vectors(named(&["title"]))).await;
    assert_refused(unknown, Code::InvalidArgument, "Wrong input: Not existing vector name error: title");
}

/// A facet counts points per value, the most frequent first and ties by value, and needs an index that
/// supports lookups.
#[tokio::test]
async fn facets_count_values_of_an_indexed_field() {
    let (_server, client) = start_with_book().await;
    let tags = [json!(["b", "b", "a"]), json!("a"), json!(["c"]), json!(4)];
    let points =
        tags.into_iter().zip(1_u64..).map(|(tags, id)| page(id, &[], &[], json!({"tags": tags, "n": id})));
    put(&client, points.collect()).await;
    let counts = async |request: FacetCountsBuilder| -> Vec<(String, u64)> {
        let hits = client.facet(request).await.unwrap().hits;
        hits.into_iter()
            .map(|hit| match hit.value.unwrap().variant.unwrap() {
                facet_value::Variant::StringValue(text) => (text, hit.count),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let refused = refusal(client.facet(FacetCountsBuilder::new("book", "tags")).await);
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().starts_with("Wrong input: No appropriate index for faceting: `tags`."));
    let index = CreateFieldIndexCollectionBuilder::new("book", "tags", FieldType::Keyword).wait(true);
    client.create_field_index(index).await.unwrap();
    let expected = [("a", 2), ("b", 1), ("c", 1)].map(|(value, count)| (value.to_owned(), count));
    assert_eq!(counts(FacetCountsBuilder::new("book", "tags").exact(true)).await, expected);
    let filtered =
        FacetCountsBuilder::new("book", "tags").limit(1).filter(Filter::must([Condition::matches("n", 1)]));
    assert_eq!(counts(filtered).await, [("a".to_owned(), 1)]);
    client
        .delete_field_index(qdrant_client::qdrant::DeleteFieldIndexCollectionBuilder::new("book", "tags"))
        .await
        .unwrap();
    assert!(client.facet(FacetCountsBuilder::new("book", "tags")).await.is_err());
}
