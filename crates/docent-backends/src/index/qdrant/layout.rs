//! How new collections are laid out on the server.
//!
//! Invariant: the layout changes where and how fast vectors are searched, never which passages a collection holds.

use qdrant_client::qdrant::quantization_config::Quantization as QuantizationConfig;
use qdrant_client::qdrant::{BinaryQuantizationBuilder, QuantizationType, ScalarQuantizationBuilder};
use serde::{Deserialize, Serialize};

/// The layout of new collections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Layout {
    /// Number of shards; the server decides if not set.
    pub shards: Option<u32>,
    /// Number of replicas of each shard.
    pub replicas: Option<u32>,
    /// How vectors are compressed for the first pass of a search.
    pub quantization: Quantization,
    /// Whether full vectors and payloads are kept on disk instead of in memory.
    pub on_disk: bool,
}

/// How vectors are compressed for the first pass of a search. The best hits are rescored with full vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Quantization {
    /// No compression.
    #[default]
    None,
    /// One byte per dimension.
    Scalar,
    /// One bit per dimension; for vectors with many dimensions.
    Binary,
}

impl Quantization {
    /// The same for the server; `None` for its default.
    pub(super) fn config(self) -> Option<QuantizationConfig> {
        match self {
            Self::None => None,
            Self::Scalar => {
                let bytes = ScalarQuantizationBuilder::default()
                    .r#type(QuantizationType::Int8.into())
                    .always_ram(true);
                Some(bytes.into())
            }
            Self::Binary => Some(BinaryQuantizationBuilder::new(true).into()),
        }
    }
}
