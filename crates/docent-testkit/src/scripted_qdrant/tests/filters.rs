//! Filters.

use qdrant_client::qdrant::condition::ConditionOneOf;
use qdrant_client::qdrant::{
    Condition, CreateFieldIndexCollectionBuilder, FieldCondition, FieldType, Filter, MinShould,
    NestedCondition, Range, ScrollPointsBuilder, ValuesCount,
};
use serde_json::json;

use super::*;

/// Six pages, numbered from one.
async fn start_with_pages() -> (ScriptedQdrant, Qdrant) {
    let (server, client) = start_with_book().await;
    let payloads = [
        json!({"lang": "de", "n": 1, "tags": ["a", "b"], "meta": {"kind": "api"}, "title": "Große Knoten"}),
        json!({"lang": "en", "n": 2, "tags": [], "meta": {"kind": "guide"}, "title": "Big nodes, small trees"}),
        json!({"lang": "en", "n": 3.5, "tags": null, "draft": true}),
        json!({"lang": ["de", "en"], "n": [1, 9], "tags": "a", "meta": [{"kind": "api", "v": 1}, {"kind": "guide", "v": 2}]}),
        json!({}),
        json!({"lang": null, "tags": [null]}),
    ];
    let points = payloads.into_iter().zip(1_u64..);
    put(
        &client,
        points.map(|(payload, id)| page(id, if id == 5 { &[1.0, 0.0] } else { &[] }, &[], payload)).collect(),
    )
    .await;
    (server, client)
}

async fn passing(client: &Qdrant, filter: Filter) -> String {
    let found = client.scroll(ScrollPointsBuilder::new("book").filter(filter)).await.unwrap().result;
    found.iter().map(|point| name(&point.id)).collect::<Vec<_>>().join(" ")
}

fn field(condition: FieldCondition) -> Condition {
    ConditionOneOf::Field(condition).into()
}

/// A match holds if the value, or any element of an array, equals the wanted value and has its type.
#[tokio::test]
async fn values_match_by_type_and_in_arrays() {
    let (_server, client) = start_with_pages().await;
    let check = async |condition, expected: &str| {
        assert_eq!(passing(&client, Filter::must([condition])).await, expected);
    };
    check(Condition::matches("lang", "de".to_owned()), "1 4").await;
    check(Condition::matches("lang", vec!["de".to_owned(), "fr".to_owned()]), "1 4").await;
    check(Condition::matches("n", 1), "1 4").await;
    check(Condition::matches("n", vec![2_i64, 9]), "2 4").await;
    check(Condition::matches("n", 3), "").await;
    check(Condition::matches("draft", true), "3").await;
    check(Condition::matches("tags[]", "a".to_owned()), "1").await;
    check(Condition::matches("meta.kind", "api".to_owned()), "1").await;
    check(Condition::matches("meta[].kind", "api".to_owned()), "4").await;
    check(Condition::matches("meta[1].kind", "guide".to_owned()), "4").await;
    let except =
        qdrant_client::qdrant::r#match::MatchValue::ExceptKeywords(qdrant_client::qdrant::RepeatedStrings {
            strings: vec!["en".to_owned()],
        });
    check(Condition::matches("lang", except), "1 4").await;
}

/// Without a text index, text matches as a substring; with one, by words regardless of case.
#[tokio::test]
async fn text_matches_by_words_only_with_an_index() {
    let (_server, client) = start_with_pages().await;
    let search =
        async |text: &str| passing(&client, Filter::must([Condition::matches_text("title", text)])).await;
    assert_eq!(search("node").await, "2");
    assert_eq!(search("trees nodes").await, "");
    let index = CreateFieldIndexCollectionBuilder::new("book", "title", FieldType::Text).wait(true);
    client.create_field_index(index).await.unwrap();
    assert_eq!(search("node").await, "");
    assert_eq!(search("TREES nodes").await, "2");
}

/// Ranges apply to numbers, integers or floats, alone or in an array.
#[tokio::test]
async fn ranges_apply_to_numbers() {
    let (_server, client) = start_with_pages().await;
    let between = |range| Filter::must([Condition::range("n", range)]);
    assert_eq!(
        passing(&client, between(Range { gte: Some(2.0), lt: Some(9.0), ..Default::default() })).await,
        "2 3"
    );
    assert_eq!(passing(&client, between(Range { gt: Some(3.5), ..Default::default() })).await, "4");
    let many = FieldCondition {
        key: "tags".to_owned(),
        values_count: Some(ValuesCount { gte: Some(2), ..Default::default() }),
        ..Default::default()
    };
    assert_eq!(passing(&client, Filter::must([field(many)])).await, "1");
}

/// A missing field, null and an empty array are all empty; only an explicit null is null.
#[tokio::test]
async fn empty_and_null_are_different() {
    let (_server, client) = start_with_pages().await;
    assert_eq!(passing(&client, Filter::must([Condition::is_empty("tags")])).await, "2 3 5");
    assert_eq!(passing(&client, Filter::must([Condition::is_null("tags")])).await, "3");
    assert_eq!(passing(&client, Filter::must([Condition::is_null("lang")])).await, "6");
    let not_empty = FieldCondition { key: "tags".to_owned(), is_empty: Some(false), ..Default::default() };
    assert_eq!(passing(&client, Filter::must([field(not_empty)])).await, "1 4 6");
}

/// All of `must`, none of `must_not`, any of `should`, enough of `min_should`; filters nest, and a nested
/// condition checks the elements of an array one by one.
#[tokio::test]
async fn conditions_combine() {
    let (_server, client) = start_with_pages().await;
    let lang = |value: &str| Condition::matches("lang", value.to_owned());
    let some = Filter { should: vec![lang("de"), Condition::is_empty("lang")], ..Default::default() };
    assert_eq!(passing(&client, some.clone()).await, "1 4 5 6");
    let not = Filter { must: vec![some.into()], must_not: vec![lang("en")], ..Default::default() };
    assert_eq!(passing(&client, not).await, "1 5 6");
    let enough = MinShould {
        min_count: 2,
        conditions: vec![lang("de"), lang("en"), Condition::matches("draft", true)],
    };
    assert_eq!(passing(&client, Filter { min_should: Some(enough), ..Default::default() }).await, "3 4");
    assert_eq!(passing(&client, Filter::must([Condition::has_id([2, 5, 77])])).await, "2 5");
    assert_eq!(passing(&client, Filter::must([Condition::has_vector("meaning")])).await, "5");
    let element = |kind: &str, v: i64| {
        let filter = Filter::must([Condition::matches("kind", kind.to_owned()), Condition::matches("v", v)]);
        Filter::must([ConditionOneOf::Nested(NestedCondition {
            key: "meta".to_owned(),
            filter: Some(filter),
        })
        .into()])
    };
    assert_eq!(passing(&client, element("api", 1)).await, "4");
    assert_eq!(passing(&client, element("api", 2)).await, "");
    assert_eq!(passing(&client, Filter::default()).await, "1 2 3 4 5 6");
}

/// Invalid paths and empty conditions are rejected.
#[tokio::test]
async fn malformed_filters_are_rejected() {
    let (_server, client) = start_with_pages().await;
    let scroll = async |condition| {
        let filter = Filter::must([condition]);
        client.scroll(ScrollPointsBuilder::new("book").filter(filter)).await
    };
    let path = scroll(Condition::is_empty("a..b")).await;
    assert_refused(path, Code::InvalidArgument, "Invalid json path: 'a..b'");
    let nothing = refusal(scroll(field(FieldCondition { key: "a".to_owned(), ..Default::default() })).await);
    assert!(nothing.message().contains("At least one field condition must be specified"), "{nothing:?}");
}
