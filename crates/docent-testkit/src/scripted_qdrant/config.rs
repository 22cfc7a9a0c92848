//! The configuration of a collection, with the real server's defaults filled in.
//!
//! Invariant: clients see the values they set, or the defaults; the vector spaces never change.

use std::collections::BTreeMap;

use qdrant_client::qdrant::vectors_config::Config as Vectors;
use qdrant_client::qdrant::{
    CollectionConfig, CollectionParams, CreateCollection, Distance, HnswConfigDiff, Modifier,
    OptimizersConfigDiff, QuantizationConfig, UpdateCollection, VectorParams, VectorParamsMap, VectorsConfig,
    WalConfigDiff, quantization_config, quantization_config_diff,
};
use tonic::Status;

use super::errors;
use super::payload;
use super::vectors::Space;

pub(super) struct Config {
    shown: CollectionConfig,
    spaces: BTreeMap<String, Space>,
}

/// Overwrites each listed field that the change sets.
macro_rules! take_over {
    ($into:expr, $change:expr, $($field:ident),+) => {
        $(if let Some(value) = $change.$field { $into.$field = Some(value); })+
    };
}

impl Config {
    #[allow(deprecated, reason = "the real server reports the deprecated fields too")]
    pub(super) fn read(sent: CreateCollection) -> Result<Self, Status> {
        let at_least_one = |field: &str, value: Option<u32>| match value {
            Some(0) => Err(errors::invalid_body(field, "value 0 invalid, must be 1 or larger")),
            value => Ok(value.unwrap_or(1)),
        };
        let vectors = sent
            .vectors_config
            .and_then(|vectors| vectors.config)
            .unwrap_or_else(|| Vectors::ParamsMap(VectorParamsMap::default()));
        let mut spaces = BTreeMap::new();
        match &vectors {
            Vectors::Params(params) => {
                spaces.insert(String::new(), dense_space(params, "vectors_config.config.size")?);
            }
            Vectors::ParamsMap(map) => {
                for (name, params) in &map.map {
                    spaces.insert(name.clone(), dense_space(params, "vectors_config.config.map.[].size")?);
                }
            }
        }
        for (name, params) in sent.sparse_vectors_config.iter().flat_map(|sparse| &sparse.map) {
            let rare_counts_more = params.modifier == Some(Modifier::Idf.into());
            spaces.insert(name.clone(), Space::Sparse { rare_counts_more });
        }
        let params = CollectionParams {
            shard_number: at_least_one("shard_number", sent.shard_number)?,
            on_disk_payload: sent.on_disk_payload.unwrap_or(true),
            vectors_config: Some(VectorsConfig { config: Some(vectors) }),
            replication_factor: Some(at_least_one("replication_factor", sent.replication_factor)?),
            write_consistency_factor: Some(at_least_one(
                "write_consistency_factor",
                sent.write_consistency_factor,
            )?),
            sharding_method: sent.sharding_method,
            sparse_vectors_config: sent.sparse_vectors_config,
            payload: sent.payload,
            id_tracker: sent.id_tracker,
            ..Default::default()
        };
        let mut shown = CollectionConfig {
            params: Some(params),
            hnsw_config: Some(HnswConfigDiff {
                m: Some(16),
                ef_construct: Some(100),
                full_scan_threshold: Some(10_000),
                max_indexing_threads: Some(0),
                on_disk: Some(false),
                ..Default::default()
            }),
            optimizer_config: Some(OptimizersConfigDiff {
                deleted_threshold: Some(0.2),
                vacuum_min_vector_number: Some(1000),
                default_segment_number: Some(0),
                indexing_threshold: Some(10_000),
                flush_interval_sec: Some(5),
                ..Default::default()
            }),
            wal_config: Some(WalConfigDiff {
                wal_capacity_mb: Some(32),
                wal_segments_ahead: Some(0),
                wal_retain_closed: Some(1),
            }),
            quantization_config: sent.quantization_config,
            strict_mode_config: sent.strict_mode_config,
            metadata: sent.metadata,
        };
        if let (Some(wal), Some(change)) = (&mut shown.wal_config, sent.wal_config) {
            take_over!(wal, change, wal_capacity_mb, wal_segments_ahead, wal_retain_closed);
        }
        let mut config = Self { shown, spaces };
        config.tune(sent.optimizers_config, sent.hnsw_config);
        Ok(config)
    }

    /// Applies the values that the client gave; the vector spaces stay unchanged.
    #[allow(deprecated, reason = "the real server reports the deprecated fields too")]
    pub(super) fn update(&mut self, sent: UpdateCollection) -> Result<(), Status> {
        self.tune(sent.optimizers_config, sent.hnsw_config);
        if let (Some(params), Some(change)) = (&mut self.shown.params, sent.params) {
            take_over!(
                params,
                change,
                replication_factor,
                write_consistency_factor,
                read_fan_out_factor,
                read_fan_out_delay_ms,
                payload,
                id_tracker
            );
            params.on_disk_payload = change.on_disk_payload.unwrap_or(params.on_disk_payload);
        }
        if let Some(change) = sent.quantization_config.and_then(|change| change.quantization) {
            use quantization_config::Quantization as Set;
            use quantization_config_diff::Quantization as Change;
            let quantization = match change {
                Change::Scalar(scalar) => Some(Set::Scalar(scalar)),
                Change::Product(product) => Some(Set::Product(product)),
                Change::Binary(binary) => Some(Set::Binary(binary)),
                Change::Turboquant(turbo) => Some(Set::Turboquant(turbo)),
                Change::Disabled(_) => None,
            };
            self.shown.quantization_config =
                quantization.map(|quantization| QuantizationConfig { quantization: Some(quantization) });
        }
        if let Some(strict) = sent.strict_mode_config {
            self.shown.strict_mode_config = Some(strict);
        }
        let mut metadata = payload::from_wire(std::mem::take(&mut self.shown.metadata))?;
        payload::merge(&mut metadata, &payload::from_wire(sent.metadata)?);
        self.shown.metadata = payload::to_wire(metadata);
        Ok(())
    }

    #[allow(deprecated, reason = "the real server accepts the deprecated fields too")]
    fn tune(&mut self, optimizers: Option<OptimizersConfigDiff>, hnsw: Option<HnswConfigDiff>) {
        if let (Some(into), Some(change)) = (&mut self.shown.optimizer_config, optimizers) {
            take_over!(
                into,
                change,
                deleted_threshold,
                vacuum_min_vector_number,
                default_segment_number,
                max_segment_size,
                memmap_threshold,
                indexing_threshold,
                flush_interval_sec,
                max_optimization_threads,
                prevent_unoptimized
            );
        }
        if let (Some(into), Some(change)) = (&mut self.shown.hnsw_config, hnsw) {
            take_over!(
                into,
                change,
                m,
                ef_construct,
                full_scan_threshold,
                max_indexing_threads,
                on_disk,
                payload_m,
                inline_storage,
                memory
            );
        }
    }

    pub(super) fn show(&self) -> CollectionConfig {
        self.shown.clone()
    }

    pub(super) fn shards(&self) -> u32 {
        self.shown.params.as_ref().map_or(1, |params| params.shard_number)
    }

    /// The space of the vector with this name; the unnamed one has an empty name.
    pub(super) fn space(&self, name: &str) -> Option<Space> {
        self.spaces.get(name).copied()
    }
}

fn dense_space(params: &VectorParams, field: &str) -> Result<Space, Status> {
    if params.multivector_config.is_some() {
        return Err(errors::unsupported("multi-vectors"));
    }
    if !(1..=65_536).contains(&params.size) {
        let what = format!("value {} invalid, must be from 1 to 65536", params.size);
        return Err(errors::invalid_body(field, what));
    }
    match Distance::try_from(params.distance) {
        Ok(Distance::UnknownDistance) => {
            Err(Status::invalid_argument("Malformed distance parameter: UnknownDistance"))
        }
        Ok(distance) => Ok(Space::Dense { width: params.size as usize, distance }),
        Err(_) => Err(Status::invalid_argument(format!(
            "Malformed distance parameter, unexpected value: {}",
            params.distance
        ))),
    }
}
