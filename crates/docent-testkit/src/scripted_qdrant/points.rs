//! The service `Points`: writing, reading, counting, scrolling, querying.
//!
//! Invariant: every call follows aliases, and an update without `wait` is acknowledged even if it then fails,
//! unless the real server would have detected the error beforehand.

use qdrant_client::qdrant::points_server::Points;
use qdrant_client::qdrant::{
    BatchResult, ClearPayloadPoints, CountPoints, CountResponse, CountResult, CreateFieldIndexCollection,
    CreateVectorNameRequest, DeleteFieldIndexCollection, DeletePayloadPoints, DeletePointVectors,
    DeletePoints, DeleteVectorNameRequest, DiscoverBatchPoints, DiscoverBatchResponse, DiscoverPoints,
    DiscoverResponse, FacetCounts, FacetResponse, GetPoints, GetResponse, PointsOperationResponse,
    QueryBatchPoints, QueryBatchResponse, QueryGroupsResponse, QueryPointGroups, QueryPoints, QueryResponse,
    RecommendBatchPoints, RecommendBatchResponse, RecommendGroupsResponse, RecommendPointGroups,
    RecommendPoints, RecommendResponse, ScrollPoints, ScrollResponse, SearchBatchPoints, SearchBatchResponse,
    SearchGroupsResponse, SearchMatrixOffsetsResponse, SearchMatrixPairsResponse, SearchMatrixPoints,
    SearchPointGroups, SearchPoints, SearchResponse, SetPayloadPoints, UpdateBatchPoints,
    UpdateBatchResponse, UpdatePointVectors, UpdateResult, UpdateStatus, UpsertPoints,
};
use tonic::{Request, Status};

use super::collection::Shown;
use super::dispatch::Answer;
use super::id::Id;
use super::payload::{self, Path, Payload};
use super::service::Service;
use super::store::Store;
use super::{errors, fields, query, vectors};

#[tonic::async_trait]
impl Points for Service {
    async fn upsert(&self, request: Request<UpsertPoints>) -> Answer<PointsOperationResponse> {
        self.handle("Points/Upsert", request, |store, request| {
            let version = store.next_operation();
            let collection = store.collection_mut(&request.collection_name)?;
            let upsert =
                collection.read_upsert(request.points, request.update_filter, request.update_mode)?;
            answer_update(version, request.wait, collection.upsert(upsert, version))
        })
        .await
    }

    async fn delete(&self, request: Request<DeletePoints>) -> Answer<PointsOperationResponse> {
        self.handle("Points/Delete", request, |store, request| {
            let version = store.next_operation();
            let missing = || Status::invalid_argument("PointSelector is missing");
            let selector = request.points.ok_or_else(missing)?;
            let collection = store.collection_mut(&request.collection_name)?;
            for id in collection.select(selector)? {
                collection.points.remove(&id);
            }
            answer_update(version, request.wait, Ok(()))
        })
        .await
    }

    async fn get(&self, request: Request<GetPoints>) -> Answer<GetResponse> {
        self.handle("Points/Get", request, |store, request| {
            let shown = Shown {
                payload: payload::Shown::read(request.with_payload, payload::Shown::Nothing)?,
                vectors: vectors::Shown::read(request.with_vectors),
            };
            let ids = Id::read_all(request.ids)?;
            let collection = store.collection(&request.collection_name)?;
            let mut result = Vec::new();
            for (place, id) in ids.iter().enumerate() {
                if let Some(point) = collection.points.get(id).filter(|_| !ids[..place].contains(id)) {
                    result.push(collection.show(&shown, *id, point)?);
                }
            }
            Ok(GetResponse { result, time: 0.0, usage: None })
        })
        .await
    }

    async fn set_payload(&self, request: Request<SetPayloadPoints>) -> Answer<PointsOperationResponse> {
        self.handle("Points/SetPayload", request, |store, request| {
            let key = request.key.as_deref().map(Path::parse).transpose()?;
            change_payload(store, request, |payload, new| match &key {
                Some(key) => key.merge(payload, new),
                None => payload::merge(payload, new),
            })
        })
        .await
    }

    async fn overwrite_payload(&self, request: Request<SetPayloadPoints>) -> Answer<PointsOperationResponse> {
        self.handle("Points/OverwritePayload", request, |store, request| {
            change_payload(store, request, |payload, new| payload.clone_from(new))
        })
        .await
    }

    async fn count(&self, request: Request<CountPoints>) -> Answer<CountResponse> {
        self.handle("Points/Count", request, |store, request| {
            let collection = store.collection(&request.collection_name)?;
            let count = collection.passing(&collection.filter(request.filter)?).count() as u64;
            Ok(CountResponse { result: Some(CountResult { count }), time: 0.0, usage: None })
        })
        .await
    }

    async fn scroll(&self, request: Request<ScrollPoints>) -> Answer<ScrollResponse> {
        self.handle("Points/Scroll", request, scroll).await
    }

    async fn create_field_index(
        &self,
        request: Request<CreateFieldIndexCollection>,
    ) -> Answer<PointsOperationResponse> {
        self.handle("Points/CreateFieldIndex", request, |store, request| {
            let version = store.next_operation();
            let wait = request.wait;
            fields::create_index(store.collection_mut(&request.collection_name.clone())?, request)?;
            answer_update(version, wait, Ok(()))
        })
        .await
    }

    async fn delete_field_index(
        &self,
        request: Request<DeleteFieldIndexCollection>,
    ) -> Answer<PointsOperationResponse> {
        self.handle("Points/DeleteFieldIndex", request, |store, request| {
            let version = store.next_operation();
            fields::delete_index(store.collection_mut(&request.collection_name)?, &request.field_name)?;
            answer_update(version, request.wait, Ok(()))
        })
        .await
    }

    async fn facet(&self, request: Request<FacetCounts>) -> Answer<FacetResponse> {
        self.handle("Points/Facet", request, |store, request| {
            let hits = fields::facet(store.collection(&request.collection_name.clone())?, request)?;
            Ok(FacetResponse { hits, time: 0.0, usage: None })
        })
        .await
    }

    async fn query(&self, request: Request<QueryPoints>) -> Answer<QueryResponse> {
        self.handle("Points/Query", request, |store, request| {
            let result = query::run(store.collection(&request.collection_name.clone())?, request)?;
            Ok(QueryResponse { result, time: 0.0, usage: None })
        })
        .await
    }

    async fn query_batch(&self, request: Request<QueryBatchPoints>) -> Answer<QueryBatchResponse> {
        self.handle("Points/QueryBatch", request, |store, request| {
            // Only the name of the batch is used, but each query must have a valid one.
            for (place, query) in request.query_points.iter().enumerate() {
                let field = format!("query_points[{place}].collection_name");
                errors::check_name(&field, &query.collection_name)?;
            }
            let collection = store.collection(&request.collection_name)?;
            let one = |query| Ok(BatchResult { result: query::run(collection, query)? });
            let result = request.query_points.into_iter().map(one).collect::<Result<_, Status>>()?;
            Ok(QueryBatchResponse { result, time: 0.0, usage: None })
        })
        .await
    }

    async fn update_vectors(&self, request: Request<UpdatePointVectors>) -> Answer<PointsOperationResponse> {
        self.decline("Points/UpdateVectors", &request)
    }

    async fn delete_vectors(&self, request: Request<DeletePointVectors>) -> Answer<PointsOperationResponse> {
        self.decline("Points/DeleteVectors", &request)
    }

    async fn delete_payload(&self, request: Request<DeletePayloadPoints>) -> Answer<PointsOperationResponse> {
        self.decline("Points/DeletePayload", &request)
    }

    async fn clear_payload(&self, request: Request<ClearPayloadPoints>) -> Answer<PointsOperationResponse> {
        self.decline("Points/ClearPayload", &request)
    }

    async fn create_vector_name(
        &self,
        request: Request<CreateVectorNameRequest>,
    ) -> Answer<PointsOperationResponse> {
        self.decline("Points/CreateVectorName", &request)
    }

    async fn delete_vector_name(
        &self,
        request: Request<DeleteVectorNameRequest>,
    ) -> Answer<PointsOperationResponse> {
        self.decline("Points/DeleteVectorName", &request)
    }

    async fn search(&self, request: Request<SearchPoints>) -> Answer<SearchResponse> {
        self.decline("Points/Search", &request)
    }

    async fn search_batch(&self, request: Request<SearchBatchPoints>) -> Answer<SearchBatchResponse> {
        self.decline("Points/SearchBatch", &request)
    }

    async fn search_groups(&self, request: Request<SearchPointGroups>) -> Answer<SearchGroupsResponse> {
        self.decline("Points/SearchGroups", &request)
    }

    async fn recommend(&self, request: Request<RecommendPoints>) -> Answer<RecommendResponse> {
        self.decline("Points/Recommend", &request)
    }

    async fn recommend_batch(
        &self,
        request: Request<RecommendBatchPoints>,
    ) -> Answer<RecommendBatchResponse> {
        self.decline("Points/RecommendBatch", &request)
    }

    async fn recommend_groups(
        &self,
        request: Request<RecommendPointGroups>,
    ) -> Answer<RecommendGroupsResponse> {
        self.decline("Points/RecommendGroups", &request)
    }

    async fn discover(&self, request: Request<DiscoverPoints>) -> Answer<DiscoverResponse> {
        self.decline("Points/Discover", &request)
    }

    async fn discover_batch(&self, request: Request<DiscoverBatchPoints>) -> Answer<DiscoverBatchResponse> {
        self.decline("Points/DiscoverBatch", &request)
    }

    async fn update_batch(&self, request: Request<UpdateBatchPoints>) -> Answer<UpdateBatchResponse> {
        self.decline("Points/UpdateBatch", &request)
    }

    async fn query_groups(&self, request: Request<QueryPointGroups>) -> Answer<QueryGroupsResponse> {
        self.decline("Points/QueryGroups", &request)
    }

    async fn search_matrix_pairs(
        &self,
        request: Request<SearchMatrixPoints>,
    ) -> Answer<SearchMatrixPairsResponse> {
        self.decline("Points/SearchMatrixPairs", &request)
    }

    async fn search_matrix_offsets(
        &self,
        request: Request<SearchMatrixPoints>,
    ) -> Answer<SearchMatrixOffsetsResponse> {
        self.decline("Points/SearchMatrixOffsets", &request)
    }
}

/// Without `wait`, the outcome is not reported.
fn answer_update(
    operation: u64,
    wait: Option<bool>,
    outcome: Result<(), Status>,
) -> Result<PointsOperationResponse, Status> {
    let status = if wait.unwrap_or(false) {
        outcome?;
        UpdateStatus::Completed
    } else {
        UpdateStatus::Acknowledged
    };
    let result = UpdateResult { operation_id: Some(operation), status: status.into() };
    Ok(PointsOperationResponse { result: Some(result), time: 0.0, usage: None })
}

fn change_payload(
    store: &mut Store,
    request: SetPayloadPoints,
    change: impl Fn(&mut Payload, &Payload),
) -> Result<PointsOperationResponse, Status> {
    let version = store.next_operation();
    let missing = || Status::invalid_argument("points_selector is expected");
    let selector = request.points_selector.ok_or_else(missing)?;
    let new = payload::from_wire(request.payload)?;
    let collection = store.collection_mut(&request.collection_name)?;
    let ids = collection.select(selector)?;
    let outcome = collection.change_payload(&ids, version, |payload| change(payload, &new));
    answer_update(version, request.wait, outcome)
}

fn scroll(store: &mut Store, request: ScrollPoints) -> Result<ScrollResponse, Status> {
    let limit = match request.limit {
        Some(0) => return Err(errors::invalid_body("limit", "value 0 invalid, must be 1 or larger")),
        limit => limit.unwrap_or(10) as usize,
    };
    if request.order_by.is_some() {
        return Err(errors::unsupported("order_by"));
    }
    let shown = Shown {
        payload: payload::Shown::read(request.with_payload, payload::Shown::All)?,
        vectors: vectors::Shown::read(request.with_vectors),
    };
    let offset = request.offset.map(|id| Id::read(Some(id))).transpose()?;
    let collection = store.collection(&request.collection_name)?;
    let filter = collection.filter(request.filter)?;
    let mut rest = collection.passing(&filter).filter(|(id, _)| offset.is_none_or(|offset| *id >= offset));
    let page = rest.by_ref().take(limit);
    let result = page.map(|(id, point)| collection.show(&shown, id, point)).collect::<Result<_, _>>()?;
    let next_page_offset = rest.next().map(|(id, _)| id.into());
    Ok(ScrollResponse { next_page_offset, result, time: 0.0, usage: None })
}
