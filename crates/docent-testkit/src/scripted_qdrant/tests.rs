//! The real client against the scripted server, over a socket. Each test documents the real server's
//! behavior, taken from the source code of Qdrant 1.19.

use std::collections::HashMap;

use qdrant_client::qdrant::point_id::PointIdOptions;
use qdrant_client::qdrant::{
    CreateCollectionBuilder, Distance, Modifier, NamedVectors, PointId, PointStruct, ScoredPoint,
    SparseVectorParamsBuilder, SparseVectorsConfigBuilder, UpsertPointsBuilder, Value as Sent, Vector,
    VectorParamsBuilder, VectorsConfigBuilder,
};
use qdrant_client::{Payload, Qdrant, QdrantError};
use serde_json::Value;
use tonic::{Code, Status};

use super::{Fault, ScriptedQdrant, When};

mod collections;
mod points;
mod filters;
mod queries;
mod faults;

/// Starts a server and connects the real client to it.
async fn start() -> (ScriptedQdrant, Qdrant) {
    let server = ScriptedQdrant::start().await.unwrap();
    let client = connect(&server);
    (server, client)
}

fn connect(server: &ScriptedQdrant) -> Qdrant {
    Qdrant::from_url(&server.url()).skip_compatibility_check().build().unwrap()
}

/// Starts a server with the collection `book`: dense vectors of width 2 named `meaning`, compared by cosine,
/// and sparse ones named `words`, in which rare indices count more.
async fn start_with_book() -> (ScriptedQdrant, Qdrant) {
    let (server, client) = start().await;
    client.create_collection(book("book")).await.unwrap();
    (server, client)
}

fn book(name: &str) -> CreateCollectionBuilder {
    let mut dense = VectorsConfigBuilder::default();
    dense.add_named_vector_params("meaning", VectorParamsBuilder::new(2, Distance::Cosine));
    let mut sparse = SparseVectorsConfigBuilder::default();
    sparse.add_named_vector_params("words", SparseVectorParamsBuilder::default().modifier(Modifier::Idf));
    CreateCollectionBuilder::new(name).vectors_config(dense).sparse_vectors_config(sparse)
}

/// A point of `book`; empty vectors are omitted.
fn page(id: impl Into<PointId>, meaning: &[f32], words: &[(u32, f32)], payload: Value) -> PointStruct {
    let mut vectors = HashMap::new();
    if !meaning.is_empty() {
        vectors.insert("meaning".to_owned(), Vector::from(meaning));
    }
    if !words.is_empty() {
        vectors.insert("words".to_owned(), Vector::from(words));
    }
    PointStruct {
        id: Some(id.into()),
        vectors: Some(NamedVectors { vectors }.into()),
        payload: fields(payload),
    }
}

fn fields(payload: Value) -> HashMap<String, Sent> {
    match payload {
        Value::Object(fields) => super::payload::to_wire(fields),
        other => panic!("not an object: {other}"),
    }
}

async fn put(client: &Qdrant, points: Vec<PointStruct>) {
    client.upsert_points(UpsertPointsBuilder::new("book", points).wait(true)).await.unwrap();
}

/// Ids in readable form.
fn name(id: &Option<PointId>) -> String {
    match id.as_ref().and_then(|id| id.point_id_options.as_ref()) {
        Some(PointIdOptions::Num(number)) => number.to_string(),
        Some(PointIdOptions::Uuid(uuid)) => uuid.clone(),
        None => "-".to_owned(),
    }
}

/// Ids and scores, in order.
fn scores(hits: &[ScoredPoint]) -> Vec<(String, f32)> {
    hits.iter().map(|hit| (name(&hit.id), (hit.score * 1000.0).round() / 1000.0)).collect()
}

/// Checks the status with which a call was rejected.
#[track_caller]
fn refusal<T: std::fmt::Debug>(answer: Result<T, QdrantError>) -> Status {
    match answer {
        Err(QdrantError::ResponseError { status } | QdrantError::ResourceExhaustedError { status, .. }) => {
            status
        }
        other => panic!("expected an error: {other:?}"),
    }
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(answer: Result<T, QdrantError>, code: Code, message: &str) {
    let status = refusal(answer);
    assert_eq!((status.code(), status.message()), (code, message));
}
