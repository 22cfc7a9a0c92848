//! Collections and aliases.

use qdrant_client::qdrant::vectors_config::Config;
use qdrant_client::qdrant::{
    AliasOperations, ChangeAliases, CollectionStatus, CreateAlias, CreateCollection, DeleteAlias, FieldType,
    OptimizersConfigDiffBuilder, RenameAlias, ScalarQuantizationBuilder, UpdateCollection,
    UpdateCollectionBuilder, alias_operations::Action,
};
use qdrant_client::qdrant::{CountPointsBuilder, CreateFieldIndexCollectionBuilder};
use serde_json::json;

use super::*;

fn create(alias: &str, collection: &str) -> Action {
    Action::CreateAlias(CreateAlias { alias_name: alias.into(), collection_name: collection.into() })
}

fn delete(alias: &str) -> Action {
    Action::DeleteAlias(DeleteAlias { alias_name: alias.into() })
}

fn rename(old: &str, new: &str) -> Action {
    Action::RenameAlias(RenameAlias { old_alias_name: old.into(), new_alias_name: new.into() })
}

/// The client cannot send several actions at once, so this uses the generated stub.
async fn change(server: &ScriptedQdrant, actions: Vec<Action>) -> Result<bool, QdrantError> {
    use qdrant_client::qdrant::collections_client::CollectionsClient;
    let channel = tonic::transport::Endpoint::from_shared(server.url()).unwrap().connect().await.unwrap();
    let actions = actions.into_iter().map(|action| AliasOperations { action: Some(action) }).collect();
    let answer =
        CollectionsClient::new(channel).update_aliases(ChangeAliases { actions, timeout: None }).await;
    Ok(answer?.into_inner().result)
}

async fn aliases(client: &Qdrant) -> Vec<(String, String)> {
    let all = client.list_aliases().await.unwrap().aliases;
    all.into_iter().map(|alias| (alias.alias_name, alias.collection_name)).collect()
}

/// The server reports its title and version, without requiring a key.
#[tokio::test]
async fn the_health_check_reports_title_and_version() {
    let (_server, client) = start().await;
    let health = client.health_check().await.unwrap();
    assert_eq!((health.title.as_str(), health.version.as_str()), ("qdrant - vector search engine", "1.19.0"));
}

/// Creating a collection again fails because it exists; deleting reports whether there was one; an unknown
/// collection is not found, with its name in backquotes.
#[tokio::test]
async fn collections_can_be_created_and_deleted_only_once() {
    let (_server, client) = start_with_book().await;
    let again = client.create_collection(book("book")).await;
    assert_refused(again, Code::AlreadyExists, "Wrong input: Collection `book` already exists!");
    let names: Vec<_> =
        client.list_collections().await.unwrap().collections.into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["book"]);
    assert!(client.delete_collection("book").await.unwrap().result);
    assert!(!client.delete_collection("book").await.unwrap().result);
    let gone = client.collection_info("book").await;
    assert_refused(gone, Code::NotFound, "Not found: Collection `book` doesn't exist!");
}

/// Names that are not valid file names are rejected on creation, and so is a width of zero.
#[tokio::test]
async fn a_collection_needs_a_valid_name_and_width() {
    let (_server, client) = start().await;
    let slash = client.create_collection(book("a/b")).await;
    assert_refused(
        slash,
        Code::InvalidArgument,
        "Validation error in body: [collection_name: collection name cannot contain \"/\" char]",
    );
    let flat =
        CreateCollectionBuilder::new("flat").vectors_config(VectorParamsBuilder::new(0, Distance::Dot));
    assert_refused(
        client.create_collection(flat).await,
        Code::InvalidArgument,
        "Validation error in body: [vectors_config.config.size: value 0 invalid, must be from 1 to 65536]",
    );
}

/// The description shows the values that were set, defaults for the rest, the payload schema with the number
/// of points in each index, and the metadata.
#[tokio::test]
async fn collection_info_shows_settings_schema_and_metadata() {
    let (_server, client) = start().await;
    let request =
        book("book").shard_number(2).quantization_config(ScalarQuantizationBuilder::default()).build();
    let request = CreateCollection { metadata: fields(json!({"model": "e5"})), ..request };
    client.create_collection(request).await.unwrap();
    put(
        &client,
        vec![page(1, &[1.0, 0.0], &[(3, 1.0)], json!({"lang": "de"})), page(2, &[], &[], json!({}))],
    )
    .await;
    for _ in 0..2 {
        let index = CreateFieldIndexCollectionBuilder::new("book", "lang", FieldType::Keyword).wait(true);
        client.create_field_index(index).await.unwrap();
    }
    let info = client.collection_info("book").await.unwrap().result.unwrap();
    assert_eq!(info.status(), CollectionStatus::Green);
    assert_eq!((info.points_count, info.indexed_vectors_count), (Some(2), Some(1)));
    assert_eq!(info.payload_schema["lang"].points, Some(1));
    let config = info.config.unwrap();
    assert_eq!(config.metadata["model"].as_str().unwrap(), "e5");
    assert!(config.quantization_config.is_some());
    assert_eq!(config.hnsw_config.unwrap().m, Some(16));
    let params = config.params.unwrap();
    assert_eq!((params.shard_number, params.replication_factor), (2, Some(1)));
    #[allow(deprecated, reason = "the server reports it")]
    let on_disk = params.on_disk_payload;
    assert!(on_disk);
    let Some(Config::ParamsMap(dense)) = params.vectors_config.unwrap().config else { panic!("unnamed") };
    assert_eq!((dense.map["meaning"].size, dense.map["meaning"].distance()), (2, Distance::Cosine));
    assert_eq!(params.sparse_vectors_config.unwrap().map["words"].modifier(), Modifier::Idf);
    let cluster = client.collection_cluster_info("book").await.unwrap();
    assert_eq!((cluster.shard_count, cluster.local_shards.len(), cluster.remote_shards.len()), (2, 2, 0));
}

/// An update changes the fields it sets and merges metadata, in which null removes a key.
#[tokio::test]
async fn an_update_changes_only_the_fields_it_sets() {
    let (_server, client) = start().await;
    let first = CreateCollection { metadata: fields(json!({"a": 1, "b": 2})), ..book("book").build() };
    client.create_collection(first).await.unwrap();
    let update = UpdateCollectionBuilder::new("book")
        .optimizers_config(OptimizersConfigDiffBuilder::default().indexing_threshold(7))
        .build();
    let update = UpdateCollection { metadata: fields(json!({"a": null, "c": 3})), ..update };
    assert!(client.update_collection(update).await.unwrap().result);
    let config = client.collection_info("book").await.unwrap().result.unwrap().config.unwrap();
    let optimizers = config.optimizer_config.unwrap();
    assert_eq!((optimizers.indexing_threshold, optimizers.flush_interval_sec), (Some(7), Some(5)));
    let mut keys: Vec<_> = config.metadata.into_keys().collect();
    keys.sort();
    assert_eq!(keys, ["b", "c"]);
}

/// Every reading call follows an alias, including the check whether a collection exists; deleting by alias
/// deletes nothing; deleting the collection removes its aliases.
#[tokio::test]
async fn an_alias_resolves_to_its_collection() {
    let (server, client) = start_with_book().await;
    change(&server, vec![create("current", "book")]).await.unwrap();
    assert!(client.collection_exists("current").await.unwrap());
    assert!(!client.collection_exists("other").await.unwrap());
    assert_eq!(client.count(CountPointsBuilder::new("current")).await.unwrap().result.unwrap().count, 0);
    assert!(!client.delete_collection("current").await.unwrap().result);
    assert_eq!(aliases(&client).await, [("current".to_owned(), "book".to_owned())]);
    assert_eq!(client.list_collection_aliases("book").await.unwrap().aliases.len(), 1);
    client.delete_collection("book").await.unwrap();
    assert_eq!(aliases(&client).await, []);
}

/// Aliases and collections share one namespace. An alias must point to a collection, not to another alias;
/// creating one that exists moves it.
#[tokio::test]
async fn aliases_can_be_moved_but_not_clash_with_collections() {
    let (server, client) = start_with_book().await;
    client.create_collection(book("next")).await.unwrap();
    change(&server, vec![create("current", "book")]).await.unwrap();
    let taken = client.create_collection(book("current")).await;
    assert_refused(
        taken,
        Code::InvalidArgument,
        "Wrong input: Can't create collection with name current. Alias with the same name already exists",
    );
    let exists = change(&server, vec![create("next", "book")]).await;
    assert_refused(exists, Code::AlreadyExists, "Wrong input: Collection `next` already exists!");
    let missing = change(&server, vec![create("other", "nowhere")]).await;
    assert_refused(missing, Code::NotFound, "Not found: Collection `nowhere` doesn't exist!");
    let indirect = change(&server, vec![create("other", "current")]).await;
    assert_refused(indirect, Code::NotFound, "Not found: Collection `current` doesn't exist!");
    change(&server, vec![create("current", "next")]).await.unwrap();
    assert_eq!(aliases(&client).await, [("current".to_owned(), "next".to_owned())]);
    let unknown = change(&server, vec![rename("old", "new")]).await;
    assert_refused(unknown, Code::NotFound, "Not found: Alias old does not exists!");
    assert!(change(&server, vec![delete("unknown")]).await.unwrap());
}

/// Actions are applied in order and become visible together, but if one fails, those before it are kept.
#[tokio::test]
async fn alias_actions_are_applied_in_order_and_not_rolled_back() {
    let (server, client) = start_with_book().await;
    change(&server, vec![create("a", "book"), rename("a", "b"), create("a", "book")]).await.unwrap();
    assert_eq!(aliases(&client).await.len(), 2);
    let half = change(&server, vec![delete("a"), create("a", "nowhere"), delete("b")]).await;
    assert_eq!(refusal(half).code(), Code::NotFound);
    assert_eq!(aliases(&client).await, [("b".to_owned(), "book".to_owned())]);
}
