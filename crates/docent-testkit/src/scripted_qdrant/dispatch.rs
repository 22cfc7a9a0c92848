//! The steps of every call: check the key, record the call, apply faults, do the work.
//!
//! Invariant: the work of a call runs under one lock without awaiting, so a kill happens before or after it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use qdrant_client::qdrant::{
    ChangeAliases, CollectionClusterInfoRequest, CollectionExistsRequest, CountPoints, CreateCollection,
    CreateFieldIndexCollection, DeleteCollection, DeleteFieldIndexCollection, DeletePoints, FacetCounts,
    GetCollectionInfoRequest, GetPoints, HealthCheckRequest, ListAliasesRequest,
    ListCollectionAliasesRequest, ListCollectionsRequest, QueryBatchPoints, QueryPoints, ScrollPoints,
    SetPayloadPoints, UpdateCollection, UpsertPoints,
};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::connection::ConnectionCloser;
use super::errors;
use super::fault::{Fault, Plan};
use super::store::Store;

pub(super) type Answer<T> = Result<Response<T>, Status>;

pub(super) struct Stage {
    key: Option<String>,
    store: Mutex<Store>,
    calls: Mutex<Vec<(&'static str, String)>>,
    plans: Mutex<Vec<Plan>>,
}

impl Stage {
    pub(super) fn new(key: Option<String>) -> Self {
        Self { key, store: Mutex::default(), calls: Mutex::default(), plans: Mutex::default() }
    }

    pub(super) fn calls(&self) -> MutexGuard<'_, Vec<(&'static str, String)>> {
        lock(&self.calls)
    }

    pub(super) fn plans(&self) -> MutexGuard<'_, Vec<Plan>> {
        lock(&self.plans)
    }

    /// Handles one call with `work`, unless a fault intervenes.
    pub(super) async fn handle<Q: Named, A>(
        &self,
        rpc: &'static str,
        request: Request<Q>,
        work: impl FnOnce(&mut Store, Q) -> Result<A, Status>,
    ) -> Answer<A> {
        if rpc != "Qdrant/HealthCheck" {
            self.check_key(request.metadata())?;
        }
        self.calls().push((rpc, request.get_ref().collection().unwrap_or_default().to_owned()));
        let faults: Vec<_> = self.plans().iter_mut().filter_map(|plan| plan.meet(rpc)).collect();
        let closer = request.extensions().get::<ConnectionCloser>().cloned();
        let mut instead = None;
        for fault in faults {
            match (&fault, &closer) {
                (Fault::Slow(pause), _) => tokio::time::sleep(*pause).await,
                (Fault::CutBefore, Some(closer)) => closer.close().await,
                _ => instead = instead.or(Some(fault)),
            }
        }
        if let Some(fault) = &instead
            && !matches!(fault, Fault::CutAfter | Fault::Deadline)
            && let Some(status) = fault.status()
        {
            return Err(status);
        }
        let name = request.get_ref().collection();
        let answer = match name.map_or(Ok(()), |name| errors::check_name("collection_name", name)) {
            Ok(()) => work(&mut lock(&self.store), request.into_inner()),
            Err(refusal) => Err(refusal),
        };
        match (instead, closer) {
            (Some(Fault::CutAfter), Some(closer)) => closer.close().await,
            (Some(fault), _) => match fault.status() {
                Some(status) => Err(status),
                None => answer.map(Response::new),
            },
            (None, _) => answer.map(Response::new),
        }
    }

    /// Rejects a call that the real server supports and this one does not.
    pub(super) fn decline<Q, A>(&self, rpc: &'static str, request: &Request<Q>) -> Answer<A> {
        self.check_key(request.metadata())?;
        self.calls().push((rpc, String::new()));
        Err(errors::unsupported(rpc))
    }

    fn check_key(&self, metadata: &MetadataMap) -> Result<(), Status> {
        let Some(key) = &self.key else { return Ok(()) };
        let text = |name| metadata.get(name).and_then(|value| value.to_str().ok());
        let bearer = || text("authorization").and_then(|value| value.strip_prefix("Bearer "));
        match text("api-key").or_else(bearer) {
            Some(given) if given == key => Ok(()),
            Some(_) => Err(Status::unauthenticated("Invalid API key or JWT")),
            None => Err(Status::unauthenticated("Must provide an API key or an Authorization bearer token")),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Requests that may name a collection.
pub(super) trait Named {
    fn collection(&self) -> Option<&str> {
        None
    }
}

impl Named for HealthCheckRequest {}
impl Named for ListCollectionsRequest {}
impl Named for ListAliasesRequest {}
impl Named for ChangeAliases {}

macro_rules! named {
    ($($request:ty),+ $(,)?) => {
        $(impl Named for $request {
            fn collection(&self) -> Option<&str> {
                Some(&self.collection_name)
            }
        })+
    };
}

named!(
    CollectionClusterInfoRequest,
    CollectionExistsRequest,
    CountPoints,
    CreateCollection,
    CreateFieldIndexCollection,
    DeleteCollection,
    DeleteFieldIndexCollection,
    DeletePoints,
    FacetCounts,
    GetCollectionInfoRequest,
    GetPoints,
    ListCollectionAliasesRequest,
    QueryBatchPoints,
    QueryPoints,
    ScrollPoints,
    SetPayloadPoints,
    UpdateCollection,
    UpsertPoints,
);
