//! The services `Collections` and `Qdrant`: health, collections, aliases.
//!
//! Invariant: reading a collection follows an alias; creating and deleting one do not.

use qdrant_client::qdrant::collections_server::Collections;
use qdrant_client::qdrant::qdrant_server::Qdrant;
use qdrant_client::qdrant::{
    AliasDescription, ChangeAliases, CollectionClusterInfoRequest, CollectionClusterInfoResponse,
    CollectionDescription, CollectionExists, CollectionExistsRequest, CollectionExistsResponse,
    CollectionInfo, CollectionOperationResponse, CollectionStatus, CreateCollection, CreateShardKeyRequest,
    CreateShardKeyResponse, DeleteCollection, DeleteShardKeyRequest, DeleteShardKeyResponse,
    GetCollectionInfoRequest, GetCollectionInfoResponse, HealthCheckReply, HealthCheckRequest,
    ListAliasesRequest, ListAliasesResponse, ListCollectionAliasesRequest, ListCollectionsRequest,
    ListCollectionsResponse, ListShardKeysRequest, ListShardKeysResponse, LocalShardInfo, OptimizerStatus,
    ReplicaState, UpdateCollection, UpdateCollectionClusterSetupRequest,
    UpdateCollectionClusterSetupResponse, UpdateQueueInfo,
};
use tonic::{Code, Request};

use super::collection::Collection;
use super::dispatch::Answer;
use super::service::Service;
use super::vectors::Vector;

/// The id of the only peer.
const PEER: u64 = 1;

#[tonic::async_trait]
impl Qdrant for Service {
    async fn health_check(&self, request: Request<HealthCheckRequest>) -> Answer<HealthCheckReply> {
        self.handle("Qdrant/HealthCheck", request, |_, _| {
            Ok(HealthCheckReply {
                title: "qdrant - vector search engine".to_owned(),
                version: "1.19.0".to_owned(),
                commit: None,
            })
        })
        .await
    }
}

#[tonic::async_trait]
impl Collections for Service {
    async fn get(&self, request: Request<GetCollectionInfoRequest>) -> Answer<GetCollectionInfoResponse> {
        self.handle("Collections/Get", request, |store, request| {
            let info = describe(store.collection(&request.collection_name)?);
            Ok(GetCollectionInfoResponse { result: Some(info), time: 0.0 })
        })
        .await
    }

    async fn list(&self, request: Request<ListCollectionsRequest>) -> Answer<ListCollectionsResponse> {
        self.handle("Collections/List", request, |store, _| {
            let names = store.collections.keys().cloned();
            let collections = names.map(|name| CollectionDescription { name }).collect();
            Ok(ListCollectionsResponse { collections, time: 0.0 })
        })
        .await
    }

    async fn create(&self, request: Request<CreateCollection>) -> Answer<CollectionOperationResponse> {
        self.handle("Collections/Create", request, |store, request| {
            store.create(request)?;
            Ok(CollectionOperationResponse { result: true, time: 0.0 })
        })
        .await
    }

    async fn update(&self, request: Request<UpdateCollection>) -> Answer<CollectionOperationResponse> {
        self.handle("Collections/Update", request, |store, request| {
            store.collection_mut(&request.collection_name.clone())?.config.update(request)?;
            Ok(CollectionOperationResponse { result: true, time: 0.0 })
        })
        .await
    }

    async fn delete(&self, request: Request<DeleteCollection>) -> Answer<CollectionOperationResponse> {
        self.handle("Collections/Delete", request, |store, request| {
            let result = store.delete(&request.collection_name);
            Ok(CollectionOperationResponse { result, time: 0.0 })
        })
        .await
    }

    async fn update_aliases(&self, request: Request<ChangeAliases>) -> Answer<CollectionOperationResponse> {
        self.handle("Collections/UpdateAliases", request, |store, request| {
            store.change_aliases(request.actions)?;
            Ok(CollectionOperationResponse { result: true, time: 0.0 })
        })
        .await
    }

    async fn list_collection_aliases(
        &self,
        request: Request<ListCollectionAliasesRequest>,
    ) -> Answer<ListAliasesResponse> {
        self.handle("Collections/ListCollectionAliases", request, |store, request| {
            let aliases = store
                .aliases
                .iter()
                .filter(|(_, collection)| **collection == request.collection_name)
                .map(describe_alias)
                .collect();
            Ok(ListAliasesResponse { aliases, time: 0.0 })
        })
        .await
    }

    async fn list_aliases(&self, request: Request<ListAliasesRequest>) -> Answer<ListAliasesResponse> {
        self.handle("Collections/ListAliases", request, |store, _| {
            let aliases = store.aliases.iter().map(describe_alias).collect();
            Ok(ListAliasesResponse { aliases, time: 0.0 })
        })
        .await
    }

    async fn collection_exists(
        &self,
        request: Request<CollectionExistsRequest>,
    ) -> Answer<CollectionExistsResponse> {
        self.handle("Collections/CollectionExists", request, |store, request| {
            let exists = match store.collection(&request.collection_name) {
                Ok(_) => true,
                Err(refusal) if refusal.code() == Code::NotFound => false,
                Err(refusal) => return Err(refusal),
            };
            Ok(CollectionExistsResponse { result: Some(CollectionExists { exists }), time: 0.0 })
        })
        .await
    }

    async fn collection_cluster_info(
        &self,
        request: Request<CollectionClusterInfoRequest>,
    ) -> Answer<CollectionClusterInfoResponse> {
        self.handle("Collections/CollectionClusterInfo", request, |store, request| {
            let collection = store.collection(&request.collection_name)?;
            let shards = collection.config.shards();
            // Points are not really distributed: the first shard reports all of them.
            let local_shards = (0..shards).map(|shard_id| LocalShardInfo {
                shard_id,
                points_count: if shard_id == 0 { collection.points.len() as u64 } else { 0 },
                state: ReplicaState::Active.into(),
                shard_key: None,
            });
            Ok(CollectionClusterInfoResponse {
                peer_id: PEER,
                shard_count: shards.into(),
                local_shards: local_shards.collect(),
                ..Default::default()
            })
        })
        .await
    }

    async fn update_collection_cluster_setup(
        &self,
        request: Request<UpdateCollectionClusterSetupRequest>,
    ) -> Answer<UpdateCollectionClusterSetupResponse> {
        self.decline("Collections/UpdateCollectionClusterSetup", &request)
    }

    async fn create_shard_key(
        &self,
        request: Request<CreateShardKeyRequest>,
    ) -> Answer<CreateShardKeyResponse> {
        self.decline("Collections/CreateShardKey", &request)
    }

    async fn delete_shard_key(
        &self,
        request: Request<DeleteShardKeyRequest>,
    ) -> Answer<DeleteShardKeyResponse> {
        self.decline("Collections/DeleteShardKey", &request)
    }

    async fn list_shard_keys(&self, request: Request<ListShardKeysRequest>) -> Answer<ListShardKeysResponse> {
        self.decline("Collections/ListShardKeys", &request)
    }
}

fn describe_alias((alias, collection): (&String, &String)) -> AliasDescription {
    AliasDescription { alias_name: alias.clone(), collection_name: collection.clone() }
}

/// Always green: there is no optimizer to wait for. Dense vectors are reported as not indexed, as in a
/// collection below the indexing threshold; sparse ones are indexed at once.
fn describe(collection: &Collection) -> CollectionInfo {
    let vectors = collection.points.values().flat_map(|point| point.vectors.values());
    let sparse = vectors.filter(|vector| matches!(vector, Vector::Sparse(entries) if !entries.is_empty()));
    CollectionInfo {
        status: CollectionStatus::Green.into(),
        optimizer_status: Some(OptimizerStatus { ok: true, error: String::new() }),
        segments_count: 1,
        config: Some(collection.config.show()),
        payload_schema: collection.described_schema(),
        points_count: Some(collection.points.len() as u64),
        indexed_vectors_count: Some(sparse.count() as u64),
        update_queue: Some(UpdateQueueInfo::default()),
        ..Default::default()
    }
}
